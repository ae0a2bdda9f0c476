"""A measurement as lines of text: its cells, its coding tests, its circumstances."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.cli.output import narrowed, table, terminal_width, wrapped
from ddtui.core.measurement import Cell, Measurement, Spread, Verdict

_HEAD = (
    *("at once", "tok/s each", "95 %", "total", "TTFT ms", "TPOT ms", "accept", "step ms"),
    *("requests", "failed"),
)
_GIVE = ("requests", "step ms", "TTFT ms", "95 %", "total", "accept")
"""Columns that are left out where there is no room, the first one first."""


def measurement_lines(measured: Measurement) -> list[str]:
    """The whole of it, for a terminal of its width; in full where the output is none."""
    simulated = " (simulated)" if measured.simulated else ""
    lines = [f"{measured.title or measured.configuration}{simulated}: {measured.state}"]
    if measured.cause:
        lines.append(f"  {measured.cause}")
    if measured.cells:
        lines += _table(measured.cells)
    words = [f"  {each.concurrency}: {note}" for each in measured.cells for note in each.notes]
    words += _coding(measured)
    words += [f"disturbed: {why}" for why in measured.disturbed]
    words += _circumstances(measured)
    width = terminal_width()
    lines += [line for each in words for line in wrapped(each, width, "    ")]
    return [*lines, f"measurement {measured.id}"]


def _table(cells: Sequence[Cell]) -> list[str]:
    give = [(_HEAD.index(name), 0) for name in _GIVE]
    head, *rows = narrowed([_HEAD, *map(_row, cells)], terminal_width(), give)
    left_out = [name for name in _HEAD if name not in head]
    words = [f"left out at this width: {', '.join(left_out)} (--json has everything)"]
    return [*table([head, *rows], right=range(len(head))), *(words if left_out else [])]


def _row(cell: Cell) -> tuple[str, ...]:
    rate = cell.user_rate
    return (
        str(cell.concurrency),
        _figure(rate, 1.0, 1),
        f"{rate.low:.1f}-{rate.high:.1f}" if rate is not None else "-",
        _figure(cell.total_rate, 1.0, 1),
        _figure(cell.ttft, 1000.0, 0),
        _figure(cell.tpot, 1000.0, 2),
        _figure(cell.acceptance_length, 1.0, 2),
        _figure(cell.step_time, 1000.0, 2),
        str(cell.requests),
        str(cell.failed + cell.stalled),
    )


def _figure(spread: Spread | None, factor: float, digits: int) -> str:
    return "-" if spread is None else f"{spread.median * factor:.{digits}f}"


def _coding(measured: Measurement) -> list[str]:
    coding = measured.coding
    if coding is None:
        return []
    lines = [f"coding {coding.passed}/{coding.total} ({coding.isolation})"]
    lines += [
        f"  {name}: {verdict}{_why(coding.details.get(name, ''))}"
        for name, verdict in coding.verdicts.items()
        if verdict is not Verdict.PASS
    ]
    return lines


def _why(detail: str) -> str:
    return f": {detail}" if detail else ""


def _circumstances(measured: Measurement) -> list[str]:
    told = measured.provenance
    gpus = f"{len(told.gpus)} x {told.gpus[0]}" if told.gpus else "GPUs not known"
    engine = f"{told.engine} {told.engine_version}".strip()
    parts = [engine or "engine not known", gpus]
    parts += [f"driver {told.driver}"] if told.driver else []
    if told.clocks_mhz is not None:
        parts.append(f"{told.clocks_mhz[0]:.0f}-{told.clocks_mhz[1]:.0f} MHz")
    parts += [f"throttled: {', '.join(told.throttled)}"] if told.throttled else []
    parts += [f"{told.temperature_c:.0f} °C"] if told.temperature_c is not None else []
    return [", ".join(parts)]
