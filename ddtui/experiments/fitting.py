"""Columns of results fitted into a width: what matters least is left out first. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ddtui.experiments.columns import Column

GAP = 2
"""Blanks between two columns."""
NARROWEST_TITLE = 12
WIDEST_TITLE = 44


def fitted(columns: Sequence[Column], width: int | None) -> tuple[list[Column], list[str]]:
    """The columns for which there is room, and the names of the others.

    The heaviest goes first; of several alike the rightmost. The first column is cut before the ones
    that stay are too wide together.
    """
    kept = list(columns)
    kept[0] = _cut(kept[0], WIDEST_TITLE)
    left_out = []
    while width is not None and _total(kept) > width:
        short = _cut(kept[0], max(NARROWEST_TITLE, width_of(kept[0]) - _total(kept) + width))
        heaviest = max(kept, key=lambda each: (each.weight, kept.index(each)))
        if _total([short, *kept[1:]]) <= width and width_of(short) >= NARROWEST_TITLE * 2:
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


def shortened(text: str, width: int) -> str:
    """A text in at most `width` columns, with an ellipsis where something was left out."""
    if cells(text) <= width:
        return text
    kept = ""
    for char in text:
        if cells(kept + char) > width - 1:
            break
        kept += char
    return f"{kept}…"


def padded(text: str, width: int, *, right: bool) -> str:
    """A text filled with blanks."""
    blank = " " * (width - cells(text))
    return blank + text if right else text + blank


def width_of(column: Column) -> int:
    """How many columns of a terminal one column takes."""
    return max(cells(text) for text in (column.title, *column.texts))


def _total(columns: Sequence[Column]) -> int:
    return sum(map(width_of, columns)) + GAP * (len(columns) - 1)


def _cut(column: Column, width: int) -> Column:
    texts = tuple(shortened(text, width) for text in column.texts)
    return Column(shortened(column.title, width), texts, column.weight, column.right)
