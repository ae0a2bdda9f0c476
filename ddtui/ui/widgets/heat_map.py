"""A figure over two knobs as a field of shaded cells, each with its figure."""

from __future__ import annotations

from ddtui.experiments.chart_data import Field, HeatMap
from ddtui.experiments.wording import number
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import HEATS, Ink, Row, clip
from ddtui.ui.widgets.scatter import beneath

_WIDEST, _NARROWEST = 16, 7
"""Columns of a field."""
_GUTTER = 12
"""Columns that the names at the left may take."""


def heat_rows(chart: HeatMap, width: int, height: int, glyphs: Glyphs) -> list[Row]:
    """The map in `width` x `height` cells, the largest value on top; empty where there is no room.

    Fields that have no room are left out, those of the largest values first, and said to be.
    """
    names = [clip(fmt.clean(name), _GUTTER) for name in chart.rows]
    gutter = max([*map(len, names), 2]) + 2
    columns = min(len(chart.columns), (width - gutter) // _NARROWEST)
    lines = height - 5
    count = min(len(chart.rows), lines)
    if columns < 2 or count < 2:
        return []
    each = min(_WIDEST, (width - gutter) // columns)
    tall = max(1, min(5, lines // count))
    by_place = {(field.column, field.row): field for field in chart.fields}
    values = [field.value for field in chart.fields]
    rows = [Row(fmt.clean(chart.y_label), Ink.LABEL)]
    for at in range(count - 1, -1, -1):
        for line in range(tall):
            middle = line == (tall - 1) // 2
            row = Row().put(names[at] if middle else "", gutter - 2, Ink.AXIS, right=True)
            row.add("  ")
            for column in range(columns):
                field = by_place.get((column, at))
                row.extend(_cell(field, values, each, glyphs, middle=middle))
            rows.append(row)
    line_of_names = Row(" " * gutter)
    for name in chart.columns[:columns]:
        line_of_names.add(clip(fmt.clean(name), each - 1).center(each), Ink.AXIS)
    rows += [line_of_names, beneath(chart.x_label, gutter, gutter + columns * each)]
    rows.append(_foot(chart, columns, count))
    return [row.cut(width) for row in rows]


def strength(value: float, values: list[float]) -> int:
    """Which of the inks a value has among all: from the smallest to the largest."""
    low, high = min(values), max(values)
    share = (value - low) / (high - low) if high > low else 0.5
    return round(share * (len(HEATS) - 1))


def _cell(
    field: Field | None, values: list[float], width: int, glyphs: Glyphs, *, middle: bool
) -> Row:
    """One line of one field, with a blank beside it."""
    if field is None:
        return Row((fmt.NOTHING if middle else "").center(width), Ink.DIM)
    best = field.value == max(values)
    text = ""
    if middle:
        text = number(field.value)
        text = f"{glyphs.chosen[0]} {text} {glyphs.chosen[1]}" if best else text
    return Row(text.center(width - 1), HEATS[strength(field.value, values)]).add(" ")


def _foot(chart: HeatMap, columns: int, rows: int) -> Row:
    words = [f"{chart.unit}; the strongest is the best, {fmt.NOTHING} was not measured"]
    if chart.best_of_others:
        words.append("other knobs vary too: the best of them")
    more = len(chart.columns) - columns, len(chart.rows) - rows
    if more[0]:
        words.append(f"{more[0]} columns more than there is room for")
    if more[1]:
        words.append(f"{more[1]} rows more than there is room for")
    return Row("; ".join(words), Ink.LABEL)
