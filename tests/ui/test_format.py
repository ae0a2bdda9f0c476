from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from ddtui.ui import format as fmt

GIB = 1 << 30


SHOWN = [
    fmt.number, fmt.count, fmt.tokens_per_second, fmt.gib, fmt.memory, fmt.rate, fmt.percent,
    fmt.duration, fmt.ago, fmt.clock,
]  # fmt: skip


@pytest.mark.parametrize("show", SHOWN)
@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_known_is_a_dash_and_never_zero(
    show: Callable[[float | None], str], value: float | None
) -> None:
    assert show(value) == fmt.NOTHING


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (999, "999"), (1_000, "1.0k"), (9_960, "10k"), (43_210, "43k"),
     (999_400, "999k"), (999_999, "1.0M"), (1.2e6, "1.2M"), (5e9, "5.0G")],
)  # fmt: skip
def test_count(value: float, text: str) -> None:
    assert fmt.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.0"), (9.66, "9.7"), (99.96, "100"), (142.3, "142"), (1240.4, "1240"), (12_345, "12.3k"),
     (123_456, "123k")],
)  # fmt: skip
def test_throughput(value: float, text: str) -> None:
    assert fmt.tokens_per_second(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 KiB"), (512 << 20, "512 MiB"), (88.1 * GIB, "88.1 GiB"), (612 * GIB, "612 GiB"),
     (1024 * GIB, "1.0 TiB"), (1.5 * 1024 * GIB, "1.5 TiB")],
)  # fmt: skip
def test_memory(value: float, text: str) -> None:
    assert fmt.memory(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 kB/s"), (450_000, "450 kB/s"), (1.2e6, "1.2 MB/s"), (999.9e6, "1.0 GB/s"),
     (2.31e9, "2.3 GB/s"), (24e9, "24 GB/s")],
)  # fmt: skip
def test_rate(value: float, text: str) -> None:
    assert fmt.rate(value) == text


@pytest.mark.parametrize(
    ("seconds", "text", "age"),
    [(-3, "0 s", "0 s"), (9.4, "9 s", "9 s"), (59.6, "1 m 00 s", "59 s"), (372, "6 m 12 s", "6 m"),
     (7_500, "2 h 05 m", "2 h 05 m"), (5_459, "1 h 30 m", "1 h 30 m"),
     (273_600, "3 d 04 h", "3 d 04 h")],
)  # fmt: skip
def test_spans(seconds: float, text: str, age: str) -> None:
    assert fmt.duration(seconds) == text
    assert fmt.ago(seconds) == age


@pytest.mark.parametrize("stamp", [1e300, -1e300])
def test_a_stamp_that_no_calendar_holds_is_a_dash(stamp: float) -> None:
    assert fmt.clock(stamp) == fmt.NOTHING


def test_clock() -> None:
    assert fmt.clock(1_790_000_000.0) == "14:13:20"
