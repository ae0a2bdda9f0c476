"""Which earlier loads count, and what a record holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ddtui.core.events import Phase
from ddtui.core.load_history import (
    LoadHistory,
    LoadRecord,
    PhaseSeconds,
    relevant_flags,
    resample,
    time_share,
)


def record(name: str, began: float = 0.0, **changes: Any) -> LoadRecord:
    values: dict[str, Any] = {"model": "m", "drafter": "d", "tp": 8, "seconds": 60.0}
    return LoadRecord(**{**values, "invocation": name, "began": began, **changes})


def names(records: list[LoadRecord]) -> list[str]:
    return [each.invocation for each in records]


def test_the_best_match_comes_first() -> None:
    history = LoadHistory(
        [
            record("old", 1.0, flags={"a": "1"}),
            record("new", 9.0, flags={"a": "1"}),
            record("other flag", 20.0, flags={"a": "2"}),
            record("other drafter", 30.0, drafter=None, flags={"a": "1"}),
            record("other tp", 40.0, tp=4, flags={"a": "1"}),
            record("other model", 50.0, model="n"),
        ]
    )
    like = history.like("m", "d", 8, {"a": "1", "port": "30000"})
    assert names(like) == ["new", "old", "other flag", "other drafter", "other tp"]


def test_the_same_invocation_is_replaced() -> None:
    history = LoadHistory([record("a", 1.0)])
    history.add(record("a", 1.0, seconds=61.0))
    history.add(record("b", 2.0))
    assert [each.seconds for each in history.records] == [61.0, 60.0]


def test_flags_that_cannot_matter_and_secrets_are_left_out() -> None:
    flags = {
        "port": "1",
        "log-level": "info",
        "api-key": "s3cret",
        "some-token": "s3cret",
        "mem-fraction-static": "0.9",
        "speculative-num-draft-tokens": "32",
        "model-path": "m",
    }
    assert set(relevant_flags(flags)) == {"mem-fraction-static", "speculative-num-draft-tokens"}


def test_the_signature_knows_flags_by_value_and_not_by_order() -> None:
    one = record("a", flags={"x": "1", "y": "2"})
    assert one.signature == record("b", flags={"y": "2", "x": "1"}).signature
    assert one.signature != record("c", flags={"x": "1", "y": "3"}).signature


def test_a_record_survives_json() -> None:
    full = record(
        "a",
        phases=(PhaseSeconds(Phase.KV_CACHE, 2.0), PhaseSeconds(Phase.KV_CACHE, 0.5)),
        curve=(0.0, 1.0),
        checkpoint_bytes=100,
        read_bytes=120,
    )
    again = msgspec.json.decode(msgspec.json.encode(full), type=LoadRecord)
    assert again == full
    assert again.phase_seconds(Phase.KV_CACHE) == 2.5
    assert again.phase_seconds(Phase.DRAFTER) is None


def test_a_curve_gives_the_time_share_back() -> None:
    """Half of the bytes in the first tenth of the time (page cache), the rest from storage."""
    points = [(0.0, 0.0), (10.0, 0.5), (40.0, 0.66), (100.0, 1.0)]
    curve = resample(points)
    assert len(curve) <= 50
    assert time_share(curve, 0.0) == 0.0
    assert time_share(curve, 0.5) == pytest.approx(0.1, abs=0.02)
    assert time_share(curve, 0.66) == pytest.approx(0.4, abs=0.02)
    assert time_share(curve, 1.0) == 1.0
    assert time_share((), 0.3) == 0.3
    assert resample(points[:2]) == ()
