"""Charts of points over two axes: lines of braille dots, with a marker for every point.

Scales are fixed by what is drawn: their ends are round figures, so that a new point seldom moves
the others. Series are told apart by marker and by ink; points that carry an interval have it as a
bar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ddtui.experiments.chart_data import Chart, Point, Series
from ddtui.experiments.svg_charts import log_ticks, nice_ticks
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, flow

INKS = (Ink.THROUGHPUT, Ink.PROGRESS, Ink.UTILIZATION, Ink.ACCEPTANCE)
_MARKERS = "●■▲◆○□△◇"
_ASCII_MARKERS = "ox*+OX%#"
_LOG_FROM = 6.0
"""Times that the largest value is the smallest, from which an axis goes by the logarithm: knobs are
mostly doubled."""
_SIDE = 30
"""Columns of a legend at the side."""
_SIDE_FROM = 76
"""Width from which it is there."""
_SELDOM = 8
"""Dots from one to the next where a line passes over a value that was not measured."""
_Spot = Callable[[float, float], tuple[int, int]]
"""Where a pair of values lies, in dots."""
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille cell, by column and row from the top."""


@dataclass(frozen=True)
class Axis:
    """A range of values, evenly or by their logarithm, with what is written beside it."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one; it may lie outside."""
        low, high, value = (math.log(each) if self.log else each for each in self._all(value))
        return (value - low) / (high - low) if high > low else 0.5

    def _all(self, value: float) -> tuple[float, float, float]:
        return self.low, self.high, max(value, self.low / 1e6) if self.log else value


@dataclass
class Field:
    """A rectangle of cells to draw in, two by four dots each; later ink covers earlier one."""

    width: int
    height: int
    ascii: bool = False
    dots: dict[tuple[int, int], int] = field(default_factory=dict)
    inks: dict[tuple[int, int], Ink] = field(default_factory=dict)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)

    def dot(self, x: int, y: int, ink: Ink) -> None:
        """One dot, counted in dots from the top left; nothing outside."""
        cell = (x // 2, y // 4)
        if 0 <= cell[0] < self.width and 0 <= cell[1] < self.height:
            self.dots[cell] = self.dots.get(cell, 0) | _DOTS[x % 2][y % 4]
            self.inks[cell] = ink

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: Ink, every: int = 1) -> None:
        """A line of dots; of a dashed one only every so-manyth."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(0, steps + 1, every):
            share = step / steps
            x = round(start[0] + (end[0] - start[0]) * share)
            y = round(start[1] + (end[1] - start[1]) * share)
            self.dot(x, y, ink)

    def text(self, x: int, y: int, text: str, ink: Ink) -> None:
        """A character in the cell that holds a dot."""
        cell = (min(self.width - 1, max(0, x // 2)), min(self.height - 1, max(0, y // 4)))
        self.texts[cell] = text
        self.inks[cell] = ink

    def rows(self) -> list[Row]:
        """What was drawn."""
        return [self._row(y) for y in range(self.height)]

    def _row(self, y: int) -> Row:
        row = Row()
        run, before = "", Ink.TEXT
        for x in range(self.width):
            cell = (x, y)
            ink = self.inks.get(cell, before)
            if ink is not before:
                row.add(run, before)
                run, before = "", ink
            run += self.texts.get(cell) or self._character(self.dots.get(cell, 0))
        return row.add(run, before)

    def _character(self, dots: int) -> str:
        if not dots:
            return " "
        return "." if self.ascii else chr(0x2800 + dots)


def chart_rows(chart: Chart, width: int, height: int, glyphs: Glyphs) -> list[Row]:
    """A chart with its axes and legend in `width` x `height` cells; empty where that is too small.

    The legend is at the side where there is room, else beneath.
    """
    points = [point for each in chart.series for point in each.points]
    side = width >= _SIDE_FROM
    plot_width = width - _SIDE - 2 if side else width
    below = [] if side else flow(legend(chart, glyphs), width)[: max(1, height // 4)]
    lines = height - 3 - len(below)
    if not points or lines < 4 or plot_width < 24:
        return []
    y = value_axis(chart, points, lines)
    names = names_beside(y, lines)
    gutter = max(map(len, names.values())) + 1
    x = knob_axis(chart, points)
    area = Field(plot_width - gutter, lines, ascii=glyphs.ascii)
    _draw(area, chart, x, y, glyphs)
    rows = [Row(" " * gutter).add(fmt.clean(chart.y_label), Ink.LABEL)]
    for line, drawn in enumerate(area.rows()):
        name = names.get(line, "")
        tick = glyphs.axis_tick if name else glyphs.axis
        rows.append(Row(name.rjust(gutter - 1) + tick, Ink.AXIS).extend(drawn))
    rows.append(names_beneath(x, gutter, plot_width, glyphs))
    label = fmt.clean(chart.x_label)
    rows.append(
        Row(" " * max(gutter, (gutter + plot_width - len(label)) // 2)).add(label, Ink.LABEL)
    )
    if side:
        for row, entry in zip(rows[1:], legend(chart, glyphs), strict=False):
            row.to(plot_width + 2).extend(entry.cut(_SIDE))
    return [row.cut(width) for row in rows] + below


def beneath(label: str, gutter: int, width: int) -> Row:
    """The name of the axis below a chart, in its middle."""
    label = fmt.clean(label)
    return Row(" " * max(gutter, (gutter + width - len(label)) // 2)).add(label, Ink.LABEL)


def legend(chart: Chart, glyphs: Glyphs) -> list[Row]:
    """One entry a series, and what else is drawn."""
    rows = [
        Row(f"{marker(place, glyphs)} ", ink_of(place)).add(fmt.clean(each.label))
        for place, each in enumerate(chart.series)
    ]
    if chart.reference is not None:
        value = fmt.tokens_per_second(chart.reference)
        rows.append(Row(f"{_dash(glyphs)} ", Ink.AXIS).add(f"baseline {value}", Ink.LABEL))
    if chart.front:
        rows.append(Row(f"{glyphs.track} ", Ink.GOOD).add("not beaten on both axes", Ink.LABEL))
    if any(each.holes for each in chart.series):
        rows.append(Row("sparse: one not measured", Ink.LABEL))
    if chart.left_out:
        rows.append(Row(f"and {chart.left_out} more, not drawn", Ink.LABEL))
    if any(point.low < point.high for each in chart.series for point in each.points):
        rows.append(Row("bars: 95 % intervals", Ink.LABEL))
    return rows


def marker(place: int, glyphs: Glyphs) -> str:
    """The marker of a series."""
    markers = _ASCII_MARKERS if glyphs.ascii else _MARKERS
    return markers[place % len(markers)]


def ink_of(place: int) -> Ink:
    """The ink of a series."""
    return INKS[place % len(INKS)]


def value_axis(chart: Chart, points: Sequence[Point], lines: int) -> Axis:
    """From a round figure below everything to one above; intervals count as far as they are near.

    A single wild repeat must not press all medians into one line.
    """
    medians = [point.y for point in points]
    if chart.reference is not None:
        medians.append(chart.reference)
    low, high = min(medians), max(medians)
    room = max(high - low, 0.04 * abs(high), 1e-9)
    low = min(low, max(min(point.low for point in points), low - 0.5 * room))
    high = max(high, min(max(point.high for point in points), high + 0.5 * room))
    return round_axis(low, high, max(2, min(8, lines // 3)))


def round_axis(low: float, high: float, most: int) -> Axis:
    """An axis whose ends are ticks."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-3):
        low, high = low - max(abs(low) * 0.05, 0.5), high + max(abs(high) * 0.05, 0.5)
    ticks = nice_ticks(low, high, most)
    if len(ticks) < 2:
        ticks = nice_ticks(low, high, 2 * most)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    count = round((high - low) / step)
    return Axis(
        low, high, tuple((low + each * step, f"{low + each * step:g}") for each in range(count + 1))
    )


def knob_axis(chart: Chart, points: Sequence[Point]) -> Axis:
    """Along the knob's values as they were measured, or round figures where these are many."""
    if chart.categories:
        names = tuple((float(at), fmt.clean(name)) for at, name in enumerate(chart.categories))
        return Axis(-0.5, len(names) - 0.5, names)
    values = sorted({point.x for point in points})
    low, high = values[0], values[-1]
    if not high > low:
        return Axis(low - 1, high + 1, ((low, f"{low:g}"),))
    log = low > 0 and high / low >= _LOG_FROM
    measured = len(values) <= 10 and not chart.front
    ticks = values if measured else log_ticks(low, high) if log else nice_ticks(low, high)
    names = tuple((value, f"{value:g}") for value in ticks)
    if log:
        pad = (high / low) ** 0.04
        return Axis(low / pad, high * pad, names, log=True)
    pad = (high - low) * 0.04
    return Axis(low - pad, high + pad, names)


# ---- drawing ------------------------------------------------------------------------------


def _draw(area: Field, chart: Chart, x: Axis, y: Axis, glyphs: Glyphs) -> None:
    def spot(at: float, value: float) -> tuple[int, int]:
        across = round(x.share(at) * (area.width * 2 - 1))
        return across, round((1 - y.share(value)) * (area.height * 4 - 1))

    if chart.reference is not None and y.low <= chart.reference <= y.high:
        _, level = spot(x.low, chart.reference)
        area.line((0, level), (area.width * 2 - 1, level), Ink.AXIS, every=4)
    for place, series in enumerate(chart.series):
        here = _aside(spot, place, chart)
        _draw_series(area, series, ink_of(place), here, every=2 if chart.front else 1)
    for one, other in zip(chart.front, chart.front[1:], strict=False):
        area.line(spot(one.x, one.y), spot(other.x, other.y), Ink.GOOD)
    # Markers last: a line that passes over a point of another series must not hide it.
    for place, series in enumerate(chart.series):
        for point in series.points:
            if y.low <= point.y <= y.high:
                across, down = _aside(spot, place, chart)(point.x, point.y)
                area.text(across, down, marker(place, glyphs), ink_of(place))


def _aside(spot: _Spot, place: int, chart: Chart) -> _Spot:
    """Series beside one another, or the points of one value would hide each other."""
    if chart.front:
        return spot
    by = round((place - (len(chart.series) - 1) / 2) * 2)

    def moved(at: float, value: float) -> tuple[int, int]:
        across, down = spot(at, value)
        return across + by, down

    return moved


def _draw_series(area: Field, series: Series, ink: Ink, spot: _Spot, *, every: int) -> None:
    for at, (one, other) in enumerate(zip(series.points, series.points[1:], strict=False), 1):
        seldom = _SELDOM if at in series.holes else every
        area.line(spot(one.x, one.y), spot(other.x, other.y), ink, seldom)
    for point in series.points:
        if point.low < point.high:
            across, top = spot(point.x, point.high)
            _, bottom = spot(point.x, point.low)
            area.line((across, max(0, top)), (across, min(area.height * 4 - 1, bottom)), ink)


def names_beside(y: Axis, lines: int) -> dict[int, str]:
    """What is written beside which line of the chart."""
    found: dict[int, str] = {}
    for value, name in y.ticks:
        line = round((1 - y.share(value)) * (lines * 4 - 1)) // 4
        found.setdefault(min(lines - 1, max(0, line)), name)
    return found


def names_beneath(x: Axis, gutter: int, width: int, glyphs: Glyphs) -> Row:
    """What is written beneath a chart: as many ticks as stand apart."""
    cells = width - gutter
    line = [" "] * width
    line[gutter - 1] = "+" if glyphs.ascii else "└"
    end = gutter
    for value, name in x.ticks:
        at = gutter + round(x.share(value) * (cells - 1))
        start = min(max(gutter, at - len(name) // 2), width - len(name))
        if gutter <= at < width and start >= end and name:
            line[start : start + len(name)] = name
            end = start + len(name) + 1
    return Row("".join(line), Ink.AXIS)


def _dash(glyphs: Glyphs) -> str:
    return "." if glyphs.ascii else "┄"
