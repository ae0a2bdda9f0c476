"""What came of an experiment, as the queue shows it beside its row."""

from __future__ import annotations

from ddtui.core.measurement import Measurement
from ddtui.ui.queue_source import Result


def result_of(measured: Measurement) -> Result:
    """What a measurement gave, in short. It has a cell at least."""
    cell, coding = measured.cells[0], measured.coding
    return Result(
        concurrency=cell.concurrency,
        user_rate=cell.user_rate.median if cell.user_rate else None,
        total_rate=cell.total_rate.median if cell.total_rate else None,
        acceptance=cell.acceptance_length.median if cell.acceptance_length else None,
        passed=None if coding is None or not coding.total else coding.passed,
        tasks=0 if coding is None else coding.total,
        disturbed=bool(measured.disturbed),
    )
