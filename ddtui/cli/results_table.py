"""The results as a table in the terminal: as wide as that is, and no wider where it can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddtui.cli.output import Paint, wrapped
from ddtui.core.text import counted
from ddtui.core.width import clip, padded
from ddtui.experiments import fitting
from ddtui.experiments.columns import Column, columns_of, verdict_word
from ddtui.experiments.comparison import Standing
from ddtui.experiments.fastest import fastest_words
from ddtui.experiments.fitting import WIDEST_TITLE, fitted, width_of
from ddtui.experiments.results import ResultsView, Row

GAP = " " * fitting.GAP
_STYLES = {
    "faster": ("green", "bold"),
    "slower": ("red",),
    "tie": ("dim",),
    "unclear": ("yellow",),
    "failed": ("red", "bold"),
    "baseline": ("cyan", "bold"),
}
_LISTED = 6
"""Titles that one line names."""


def table_lines(view: ResultsView, width: int | None, paint: Paint) -> Iterator[str]:
    """The table and what is to be told beside it.

    Args:
        view: What is shown.
        width: Columns of the terminal; None where there is no such limit.
        paint: Colours, or none.
    """
    simulated = " (simulated)" if view.simulated else ""
    yield paint(f"Results of {view.host}{simulated}", "bold")
    baseline = f"baseline: {view.baseline}" if view.baseline else "nothing measured yet"
    about = f"concurrency {view.concurrency}; {baseline}; a tie: within {view.margin * 100:.1f} %"
    yield from wrapped(about, width)
    yield ""
    kept, left_out = fitted(columns_of(view), width)
    yield from _grid(kept, view.rows, paint)
    if left_out:
        yield ""
        words = f"left out at this width: {', '.join(left_out)} (--format csv has everything)"
        yield from wrapped(words, width)
    yield from _not_compared(view.rows, width)
    yield from _causes(view.rows, width, paint)
    first = fastest_words(view.rows, view.margin)
    if notes := [*first, *(note.text for note in view.notes)]:
        yield ""
        yield paint("What stands out", "bold")
        for note in notes:
            yield from wrapped(f"  {note}", width, "    ")
    if view.waiting:
        yield ""
        have = "has" if view.waiting == 1 else "have"
        yield f"{counted(view.waiting, 'experiment')} of the queue {have} not ended yet"


def _grid(columns: Sequence[Column], rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    widths = [width_of(column) for column in columns]
    head = (
        padded(column.title, width, right=column.right)
        for column, width in zip(columns, widths, strict=True)
    )
    yield paint(GAP.join(head).rstrip(), "bold")
    for place, row in enumerate(rows):
        parts = []
        for column, width in zip(columns, widths, strict=True):
            text = padded(column.texts[place], width, right=column.right)
            styles = _STYLES.get(verdict_word(row), ()) if column.title == "verdict" else ()
            parts.append(paint(text, *styles))
        yield GAP.join(parts).rstrip()


def _not_compared(rows: Sequence[Row], width: int | None) -> Iterator[str]:
    """Why rows have no verdict, whatever columns there is room for."""
    silent: dict[str, list[str]] = {}
    for row in rows:
        if row.state != "failed" and row.comparison.standing is Standing.NOT_COMPARED:
            silent.setdefault(row.comparison.reason, []).append(row.title)
    if silent:
        yield ""
    for reason, titles in silent.items():
        more = f" and {len(titles) - _LISTED} more" if len(titles) > _LISTED else ""
        named = ", ".join(clip(each, WIDEST_TITLE) for each in titles[:_LISTED])
        yield from wrapped(f"no verdict: {reason}: {named}{more}", width, "  ")


def _causes(rows: Sequence[Row], width: int | None, paint: Paint) -> Iterator[str]:
    """What a table has no room for: why rows failed, and what to know of the others."""
    told = [(row, line) for row in rows for line in _to_know(row)]
    if told:
        yield ""
    for row, line in told:
        title = clip(row.title, WIDEST_TITLE)
        first, *more = wrapped(f"  {title}: {line}", width, "    ")
        yield first.replace(title, paint(title, "bold"), 1)
        yield from more


def _to_know(row: Row) -> Iterator[str]:
    if row.state == "failed":
        yield f"failed: {row.cause}" + (f" ({row.remedy})" if row.remedy else "")
    elif row.cause:
        yield f"{row.state}: {row.cause}"
    yield from (flag for flag in row.flags if flag not in {"partial", "running"})
