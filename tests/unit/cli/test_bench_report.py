"""A measurement as a terminal of some width shows it."""

from __future__ import annotations

import msgspec
import pytest

from ddtui.cli.bench_report import measurement_lines
from ddtui.core.measurement import MeasurementState, Provenance
from tests.unit.experiments.results_world import cell, measured

WHOLE = measured(8, (cell(170.0), cell(149.0, 4.81, concurrency=64)))


def test_the_table_fits_the_terminal_and_says_what_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    disturbed = msgspec.structs.replace(WHOLE, disturbed=("somebody asked for more " * 9,))
    head, _, _, said, *_ = measurement_lines(disturbed)[1:]
    assert all(len(line) <= 80 for line in measurement_lines(disturbed))
    for kept in ("at once", "tok/s each", "95 %", "total", "TTFT ms", "TPOT ms", "accept"):
        assert kept in head
    assert said == "left out at this width: step ms, requests (--json has everything)"


def test_in_a_pipe_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = measurement_lines(WHOLE)
    assert "step ms" in lines[1]
    assert "requests" in lines[1]
    assert not any("left out" in line for line in lines)


def test_what_failed_before_anything_was_known_of_it() -> None:
    failed = msgspec.structs.replace(
        WHOLE, state=MeasurementState.FAILED, cells=(), cause="no", provenance=Provenance()
    )
    assert "engine not known, GPUs not known" in measurement_lines(failed)
    assert not any(line.startswith(",") for line in measurement_lines(failed))
