"""Columns of results fitted into a width: what matters least is left out first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.core.width import cell_len, clip
from ddtui.experiments.columns import Column

GAP = 2
"""Blanks between two columns."""
NARROWEST_TITLE = 12
WIDEST_TITLE = 44


def fitted(columns: Sequence[Column], width: int | None) -> tuple[list[Column], list[str]]:
    """The columns for which there is room, and the names of the others.

    The heaviest goes first; of several alike the rightmost. The first column is cut before them as
    far as its texts still differ; beyond that only where the ones that stay are too wide together.
    A wide one that goes late may leave room for some that went before it: they come back.
    """
    kept = [(column, width_of(column)) for column in columns]
    kept[0] = _cut(columns[0], WIDEST_TITLE)
    enough = _telling_width(columns[0].texts)
    left_out = set()
    while width is not None and _total(kept) > width:
        first = kept[0][1]
        room = max(NARROWEST_TITLE, first - _total(kept) + width)
        rest = _total(kept) - first
        heaviest = max(kept, key=lambda each: (each[0].weight, kept.index(each)))
        if rest + room <= width and room >= enough:
            kept[0] = _cut(kept[0][0], room)
        elif heaviest[0].weight:
            kept.remove(heaviest)
            left_out.add(heaviest[0].title)
        else:
            kept[0] = _cut(kept[0][0], room)
            break
    for column in sorted((each for each in columns if each.title in left_out), key=_weight):
        if width is not None and _total(kept) + GAP + width_of(column) <= width:
            kept.append((column, width_of(column)))
            left_out.remove(column.title)
    places = {each.title: at for at, each in enumerate(columns)}
    kept[1:] = sorted(kept[1:], key=lambda each: places[each[0].title])
    return [column for column, _ in kept], [
        each.title for each in columns if each.title in left_out
    ]


def _telling_width(titles: Sequence[str]) -> int:
    """The least width, of some use, at which titles that differ still do."""
    different = len({clip(each, WIDEST_TITLE) for each in titles})
    for width in range(NARROWEST_TITLE * 2, WIDEST_TITLE):
        if len({clip(each, width) for each in titles}) == different:
            return width
    return WIDEST_TITLE


def width_of(column: Column) -> int:
    """How many columns of a terminal one column takes."""
    return max(cell_len(text) for text in (column.title, *column.texts))


def _weight(column: Column) -> int:
    return column.weight


_Fitted = tuple[Column, int]
"""A column and its width."""


def _total(columns: Sequence[_Fitted]) -> int:
    return sum(width for _, width in columns) + GAP * (len(columns) - 1)


def _cut(column: Column, width: int) -> _Fitted:
    texts = tuple(clip(text, width) for text in column.texts)
    cut = Column(clip(column.title, width), texts, column.weight, column.right)
    return cut, width_of(cut)
