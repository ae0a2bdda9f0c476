"""The results as a table in the terminal: as wide as that is, and no wider where it can be."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from ddtui.cli.output import Paint
from ddtui.experiments.columns import Column, columns_of, verdict_word
from ddtui.experiments.results import ResultsView, Row

GAP = "  "
NARROWEST_TITLE = 12
WIDEST_TITLE = 44
_STYLES = {
    "faster": ("green", "bold"),
    "slower": ("red",),
    "tie": ("dim",),
    "unclear": ("yellow",),
    "failed": ("red", "bold"),
    "baseline": ("cyan", "bold"),
}


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
    yield f"concurrency {view.concurrency}; {baseline}; ties within {view.margin * 100:.1f} %"
    if not view.rows:
        return
    yield ""
    kept, left_out = fitted(columns_of(view), width)
    yield from _grid(kept, view.rows, paint)
    if left_out:
        yield ""
        yield f"left out at this width: {', '.join(left_out)} (--format csv has everything)"
    yield from _causes(view.rows, paint)
    if view.notes:
        yield ""
        yield paint("What stands out", "bold")
        yield from (f"  {note.text}" for note in view.notes)
    if view.waiting:
        yield ""
        yield f"{view.waiting} experiments of the queue have not ended yet"


def fitted(columns: Sequence[Column], width: int | None) -> tuple[list[Column], list[str]]:
    """The columns for which there is room, and the names of the others.

    The heaviest goes first; of several alike the rightmost. The first column is cut before the ones
    that stay are too wide together.
    """
    kept = list(columns)
    kept[0] = _cut(kept[0], WIDEST_TITLE)
    left_out = []
    while width is not None and _total(kept) > width:
        short = _cut(kept[0], max(NARROWEST_TITLE, _width_of(kept[0]) - _total(kept) + width))
        heaviest = max(kept, key=lambda each: (each.weight, kept.index(each)))
        if _total([short, *kept[1:]]) <= width and _width_of(short) >= NARROWEST_TITLE * 2:
            kept[0] = short
        elif heaviest.weight:
            kept.remove(heaviest)
            left_out.append(heaviest.title)
        else:
            kept[0] = short
            break
    names = {column.title for column in columns}
    return kept, [column.title for column in columns if column.title in names & set(left_out)]


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _grid(columns: Sequence[Column], rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    widths = [_width_of(column) for column in columns]
    head = (
        _padded(column.title, width, right=column.right)
        for column, width in zip(columns, widths, strict=True)
    )
    yield paint(GAP.join(head).rstrip(), "bold")
    for place, row in enumerate(rows):
        parts = []
        for column, width in zip(columns, widths, strict=True):
            text = _padded(column.texts[place], width, right=column.right)
            styles = _STYLES.get(verdict_word(row), ()) if column.title == "verdict" else ()
            parts.append(paint(text, *styles))
        yield GAP.join(parts).rstrip()


def _causes(rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    """What a table has no room for: why rows failed, and what to know of the others."""
    told = [(row, line) for row in rows for line in _to_know(row)]
    if told:
        yield ""
    for row, line in told:
        yield f"  {paint(_shortened(row.title, WIDEST_TITLE), 'bold')}: {line}"


def _to_know(row: Row) -> Iterator[str]:
    if row.state == "failed":
        yield f"failed: {row.cause}" + (f" ({row.remedy})" if row.remedy else "")
    elif row.cause:
        yield f"{row.state}: {row.cause}"
    yield from (flag for flag in row.flags if flag not in {"partial", "running"})


def _cut(column: Column, width: int) -> Column:
    texts = tuple(_shortened(text, width) for text in column.texts)
    return Column(_shortened(column.title, width), texts, column.weight, column.right)


def _shortened(text: str, width: int) -> str:
    if cells(text) <= width:
        return text
    kept = ""
    for char in text:
        if cells(kept + char) > width - 1:
            break
        kept += char
    return f"{kept}…"


def _padded(text: str, width: int, *, right: bool) -> str:
    blank = " " * (width - cells(text))
    return blank + text if right else text + blank


def _width_of(column: Column) -> int:
    return max(cells(text) for text in (column.title, *column.texts))


def _total(columns: Sequence[Column]) -> int:
    return sum(map(_width_of, columns)) + len(GAP) * (len(columns) - 1)
