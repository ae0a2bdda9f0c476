"""Which rows of the results are shown, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from ddtui.core.measurement import Spread
from ddtui.experiments.columns import columns_of, marks_of
from ddtui.experiments.comparison import Standing
from ddtui.experiments.intervals import Ratio
from ddtui.experiments.knob_values import in_words, value_of, value_order, varying_knobs
from ddtui.experiments.results import ResultsView, Row

AS_MEASURED = ""
"""No column: the baseline first, then by knobs, what failed last."""
_VERDICTS = ("faster", "baseline", "tie", "unclear", "slower", "not compared", "failed")
_LESS_IS_BETTER = frozenset({"±", "step ms", "step×", "TTFT ms", "load s"})

Key = Callable[[Row], object]


@dataclass(frozen=True)
class Order:
    """By which column, and whether the other way round."""

    column: str = AS_MEASURED
    reverse: bool = False


def sortable(view: ResultsView) -> list[str]:
    """The columns that rows can be sorted by: those of the table."""
    return [column.title for column in columns_of(view)]


def arranged(view: ResultsView, order: Order, *, work: str = "", text: str = "") -> ResultsView:
    """The view with only some of its rows, sorted.

    Args:
        view: All that was read.
        order: The best first, where figures are sorted by; what has none is last either way.
        work: Only what was measured with this work; empty for all.
        text: Only rows with this text in their title, knobs, marks, notes or cause.
    """
    words = " ".join(text.casefold().split())
    rows = [row for row in view.rows if (not work or row.work == work) and _has(row, words)]
    key = _key_of(order.column)
    if key is not None:
        known = [row for row in rows if key(row) is not None]
        down = _is_figure(order.column) and order.column not in _LESS_IS_BETTER
        known.sort(key=key, reverse=down != order.reverse)  # type: ignore[arg-type]
        rows = known + [row for row in rows if key(row) is None]
    elif order.reverse:
        rows.reverse()
    if rows == list(view.rows):
        return view
    varying = varying_knobs([row.knobs for row in rows if row.state != "failed"])
    return msgspec.structs.replace(view, rows=tuple(rows), varying=varying)


def works_of(view: ResultsView) -> list[tuple[str, int]]:
    """Each kind of work, with how many rows it has, in the order of the rows."""
    counts: dict[str, int] = {}
    for row in view.rows:
        counts[row.work] = counts.get(row.work, 0) + 1
    return list(counts.items())


def concurrencies_of(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Each concurrency, with how many rows were measured at it."""
    levels = [cell.concurrency for row in rows for cell in row.cells]
    return [(level, levels.count(level)) for level in sorted(set(levels))]


def _has(row: Row, words: str) -> bool:
    if not words:
        return True
    told = [row.title, in_words(row.knobs.items()), marks_of(row), row.cause, row.state]
    told += [row.comparison.standing, *row.sweeps, *row.notes, *row.hypotheses]
    return words in "\n".join(told).casefold()


def _is_figure(column: str) -> bool:
    return column in _FIGURES


def _key_of(column: str) -> Key | None:
    if column == AS_MEASURED:
        return None
    if column in _FIGURES:
        return _FIGURES[column]
    if column in _WORDS:
        return _WORDS[column]
    return lambda row: value_order(value_of(row.knobs, column))


def _median(figure: Spread | None) -> float | None:
    return None if figure is None else figure.median


def _value(found: Ratio | None) -> float | None:
    return None if found is None else found.value


def _gain(row: Row) -> float | None:
    found = row.comparison
    if found.standing is Standing.BASELINE:
        return 1.0
    return _value(found.user_rate if found.by == "user" else found.total_rate)


def _width(row: Row) -> float | None:
    figure = row.user_rate
    return None if figure is None or not figure.low < figure.high else figure.high - figure.low


def _verdict(row: Row) -> tuple[int, float]:
    word = "failed" if row.state == "failed" else str(row.comparison.standing)
    return _VERDICTS.index(word), -(_gain(row) or 0.0)


def _flips(row: Row) -> int | None:
    if row.coding is None or not row.coding.compared:
        return None
    return len(row.coding.gained) - len(row.coding.lost)


_FIGURES: dict[str, Key] = {
    "tok/s/user": lambda row: _median(row.user_rate),
    "±": _width,
    "Δ": _gain,
    "accept": lambda row: _median(row.acceptance_length),
    "accept×": lambda row: _value(row.comparison.acceptance),
    "step ms": lambda row: _median(row.step_time),
    "step×": lambda row: _value(row.comparison.step_time),
    "nodes used": lambda row: row.node_use,
    "TTFT ms": lambda row: _median(row.ttft),
    "tok/s total": lambda row: _median(row.total_rate),
    "coding": lambda row: row.coding and row.coding.passed / row.coding.total,
    "95 %": lambda row: row.coding and row.coding.low,
    "flips": _flips,
    "load s": lambda row: row.load_seconds,
}
_WORDS: dict[str, Key] = {
    "configuration": lambda row: row.title.casefold(),
    "verdict": _verdict,
    "work": lambda row: row.work,
    "marks": lambda row: marks_of(row) or None,
    "why": lambda row: row.comparison.reason or None,
}
