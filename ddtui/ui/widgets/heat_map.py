"""A figure over two knobs as a field of shaded cells, each with its figure."""

from __future__ import annotations

from ddtui.core.width import clip
from ddtui.experiments.chart_data import Field, HeatMap
from ddtui.experiments.wording import number
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import HEATS, Ink, Row, wrapped
from ddtui.ui.widgets.scatter import beneath

_WIDEST, _NARROWEST = 20, 7
"""Columns of a field."""
_TALLEST = 6
_FOOT = 2
"""Lines that the words beneath may take."""
_GUTTER = 12
"""Columns that the names at the left may take."""


def heat_rows(chart: HeatMap, width: int, height: int, glyphs: Glyphs) -> list[Row]:
    """The map in `width` x `height` cells, the largest value on top; empty where there is no room.

    Fields that have no room are left out, those of the largest values first, and said to be.
    """
    names = [clip(fmt.clean(name), _GUTTER) for name in chart.rows]
    gutter = max([*map(len, names), 2]) + 2
    columns = min(len(chart.columns), (width - gutter) // _NARROWEST)
    lines = height - 3 - _FOOT
    count = min(len(chart.rows), lines)
    if columns < 2 or count < 2:
        return []
    each = min(_WIDEST, (width - gutter) // columns)
    tall = max(1, min(_TALLEST, lines // count))
    filled = tall - (tall > 2)  # a blank line between fields, where there is room
    by_place = {(field.column, field.row): field for field in chart.fields}
    values = [field.value for field in chart.fields]
    rows = [Row(fmt.clean(chart.y_label), Ink.LABEL)]
    for at in range(count - 1, -1, -1):
        for line in range(filled):
            middle = line == (filled - 1) // 2
            row = Row().put(names[at] if middle else "", gutter - 2, Ink.AXIS, right=True)
            row.add("  ")
            for column in range(columns):
                field = by_place.get((column, at))
                row.extend(_cell(field, values, each, glyphs, middle=middle))
            rows.append(row)
        rows += [Row()] * (tall - filled if at else 0)
    line_of_names = Row(" " * gutter)
    for name in chart.columns[:columns]:
        line_of_names.add(clip(fmt.clean(name), each - 1).center(each), Ink.AXIS)
    rows += [line_of_names, beneath(chart.x_label, gutter, gutter + columns * each)]
    rows += wrapped(_foot(chart, columns, count), width, Ink.LABEL)[:_FOOT]
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
        beside = " " if len(text) + 4 < width else ""
        left, right = glyphs.chosen
        text = f"{left}{beside}{text}{beside}{right}" if best else text
    return Row(text.center(width - 1), HEATS[strength(field.value, values)]).add(" ")


def _foot(chart: HeatMap, columns: int, rows: int) -> str:
    words = [chart.unit]
    more = len(chart.columns) - columns, len(chart.rows) - rows
    if any(more):
        missing = (f"{n} {what}" for n, what in zip(more, ("columns", "rows"), strict=True) if n)
        words.append(f"no room for {' and '.join(missing)} of larger values")
    if chart.beside:
        words.append(f"all with {fmt.clean(chart.beside)}")
    if chart.coupled:
        words.append(f"{fmt.clean(chart.coupled)} changes with them")
    if len(chart.fields) < len(chart.columns) * len(chart.rows):
        words.append(f"{fmt.NOTHING} was not measured")
    return "; ".join(words)
