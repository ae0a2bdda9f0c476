"""The charts of the results as SVG: readable on light and dark ground, in colour and without.

Series are told apart by marker and colour. Colours follow the reader's scheme where the viewer
knows `prefers-color-scheme`, and are those for light ground elsewhere. Simulated figures carry a
watermark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

from ddtui.core.text import clean
from ddtui.core.width import clip
from ddtui.experiments.chart_data import AnyChart, Chart, HeatMap, Point
from ddtui.experiments.svg import Svg
from ddtui.experiments.wording import number

WIDTH, HEIGHT = 880, 400
_LEFT, _TOP, _RIGHT, _BOTTOM = 78, 48, 296, 58
_LEGEND = 38
"""Characters of a legend's line; a label has two at most."""
_WIDEST = 128
"""Characters of a line beneath a chart."""
_LINE, _MOST_BENEATH = 16, 4
"""Height of such lines, and how many there are at most."""
_FADE = 0.72
"""Strength of a field from which its text is set in the ground's colour."""

_LIGHT = ("#0066a8", "#c44e00", "#00855f", "#b3478a", "#a87400", "#2b9bd8", "#6b4fa0", "#5c6670")
_DARK = ("#5ab4f0", "#ff9350", "#35cc9f", "#f09ace", "#f0c050", "#a5d8ff", "#bda4f0", "#aab4be")


def _scheme(ground: str, ink: str, faint: str, rule: str, colours: Sequence[str]) -> str:
    series = "".join(
        f".s{n}{{stroke:{colour}}}.f{n}{{fill:{colour};stroke:{ground}}}"
        for n, colour in enumerate(colours)
    )
    return (
        f".ground{{fill:{ground}}}text{{fill:{ink}}}.faint{{fill:{faint}}}.mark{{fill:{ink}}}"
        f".grid{{stroke:{rule}}}.axis,.front,.reference{{stroke:{faint}}}.field{{fill:{colours[0]}}}"
        f".empty{{stroke:{rule}}}.onfield{{fill:{ground}}}{series}"
    )


STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    ".title{font-weight:600;font-size:15px}.mark{font-size:64px;font-weight:700;opacity:.09}"
    ".value{font-size:13px;font-weight:600}.grid,.axis{stroke-width:1}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.bar{stroke-width:1.25;opacity:.75}"
    ".dot{stroke-width:1.5}.front{fill:none;stroke-width:7;opacity:.22;stroke-linejoin:round}"
    ".hole{stroke-width:1.25;stroke-dasharray:2 6}.reference{stroke-dasharray:5 4}.empty{fill:none}"
    + _scheme("#ffffff", "#1d2733", "#5b6773", "#e3e8ee", _LIGHT)
    + "@media (prefers-color-scheme:dark){"
    + _scheme("#14191f", "#e4e9ef", "#98a4b1", "#2b343e", _DARK)
    + "}"
)


class Scale:
    """Places values on a stretch of pixels, evenly or by their logarithm."""

    def __init__(
        self, span: tuple[float, float], pixels: tuple[float, float], *, log: bool = False
    ) -> None:
        self.span, self.pixels, self.log = span, pixels, log

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high = map(self._even, self.span)
        share = (self._even(value) - low) / (high - low)
        return self.pixels[0] + share * (self.pixels[1] - self.pixels[0])

    def _even(self, value: float) -> float:
        return math.log2(value) if self.log else value


def drawn(chart: AnyChart) -> Svg:
    """The picture of a chart."""
    return _heat_map(chart) if isinstance(chart, HeatMap) else _lines(chart)


def sheet(charts: Sequence[AnyChart], title: str) -> Svg:
    """Several charts, one below the other, in one picture."""
    height = max(1, len(charts)) * HEIGHT
    whole = Svg(WIDTH, height, title, STYLE)
    whole.box((0, 0), (WIDTH, height), "ground")
    for place, chart in enumerate(charts):
        whole.embed(drawn(chart), 0, place * HEIGHT)
    if not charts:
        whole.text(24, 40, f"{title}: nothing to draw yet", "faint")
    return whole


def nice_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round values between two bounds: at most `most`, steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two bounds above zero."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = (each * 10.0**power for power in powers for each in (1, 2, 5))
    return [value for value in values if low <= value <= high]


def _lines(chart: Chart) -> Svg:
    points = [point for each in chart.series for point in each.points]
    picture = _frame(chart)
    if not points:
        picture.text(_LEFT, HEIGHT / 2, "nothing measured", "faint")
        return picture
    x = _x_scale(chart, points)
    y = Scale(_y_span(chart, points), (HEIGHT - _BOTTOM, _TOP))
    _axes(picture, chart, x, y, points)
    if chart.reference is not None and y.span[0] <= chart.reference <= y.span[1]:
        at = y(chart.reference)
        picture.line(_LEFT, at, WIDTH - _RIGHT, at, "reference")
    if len(chart.front) > 1:
        picture.path([(x(each.x), y(each.y)) for each in chart.front], "front")
    for place, series in enumerate(chart.series):
        # Beside one another, or the intervals of one value would hide each other.
        aside = 0.0 if chart.front else (place - (len(chart.series) - 1) / 2) * 3
        spots = [(x(point.x) + aside, y(point.y)) for point in series.points]
        _path(picture, spots, series.holes, place)
        for point, spot in zip(series.points, spots, strict=True):
            _bar(picture, point, spot, y, place)
            tip = f"{point.label}: {number(point.y)} ({number(point.low)} to {number(point.high)})"
            _marker(picture, spot, place, tip)
    _legend(picture, chart)
    _beneath(picture, chart)
    return picture


def _heat_map(chart: HeatMap) -> Svg:
    picture = _frame(chart)
    wide = (WIDTH - _LEFT - _RIGHT) / len(chart.columns)
    tall = (HEIGHT - _TOP - _BOTTOM) / len(chart.rows)
    values = [field.value for field in chart.fields]
    low, high = min(values), max(values)
    by_place = {(field.column, field.row): field for field in chart.fields}
    for column, name in enumerate(chart.columns):
        middle = _LEFT + (column + 0.5) * wide
        picture.text(middle, HEIGHT - _BOTTOM + 18, name, "tick", anchor="middle")
        for row in range(len(chart.rows)):
            # The largest value on top, as on an axis.
            top = HEIGHT - _BOTTOM - (row + 1) * tall
            corner, size = (_LEFT + column * wide + 1, top + 1), (wide - 2, tall - 2)
            field = by_place.get((column, row))
            centre = top + tall / 2 + 5
            if field is None:
                picture.box(corner, size, "empty", rx=3)
                picture.text(middle, centre, "–", "faint", anchor="middle")
                continue
            strength = 0.12 + 0.83 * ((field.value - low) / (high - low) if high > low else 0.5)
            picture.box(corner, size, "field", rx=3, **{"fill-opacity": strength})
            kind = "value onfield" if strength > _FADE else "value"
            picture.text(middle, centre, number(field.value), kind, anchor="middle")
    for row, name in enumerate(chart.rows):
        at = HEIGHT - _BOTTOM - (row + 0.5) * tall + 4
        picture.text(_LEFT - 8, at, name, "tick", anchor="end")
    picture.text(WIDTH - _RIGHT + 18, _TOP + 16, f"in {chart.unit}; strongest is best", "faint")
    told = ["–  not measured"] if len(chart.fields) < len(chart.columns) * len(chart.rows) else []
    told += [f"all with {chart.beside}"] if chart.beside else []
    told += [f"{chart.coupled} changes with them"] if chart.coupled else []
    for below, words in enumerate(line for each in told for line in _legend_lines(each)):
        picture.text(WIDTH - _RIGHT + 18, _TOP + 34 + 15 * below, words, "faint")
    _beneath(picture, chart)
    _watermark(picture, chart)
    return picture


def _missing_lines(chart: AnyChart) -> list[str]:
    """What is not drawn, and why: in so many lines that the reason is there too."""
    lines = wrap(chart.missing, _WIDEST)
    kept = [clip(each, _WIDEST) for each in lines[:_MOST_BENEATH]]
    return [*kept[:-1], f"{kept[-1]} …"] if len(lines) > len(kept) else kept


def _beneath(picture: Svg, chart: AnyChart) -> None:
    for below, words in enumerate(_missing_lines(chart)):
        picture.text(20, HEIGHT - 3 + _LINE * below, words, "faint")


def _frame(chart: AnyChart) -> Svg:
    """Ground, title and the axes' labels."""
    title = f"{chart.title} (simulated)" if chart.simulated else chart.title
    height = HEIGHT + _LINE * max(0, len(_missing_lines(chart)) - 1)
    picture = Svg(WIDTH, height, title, STYLE)
    picture.box((0, 0), (WIDTH, height), "ground")
    picture.text(20, 27, title, "title")
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    picture.text(middle, HEIGHT - 22, chart.x_label, "faint", anchor="middle")
    centre = (_TOP + HEIGHT - _BOTTOM) / 2
    picture.text(22, centre, chart.y_label, "faint", anchor="middle", turned=-90)
    return picture


def _watermark(picture: Svg, chart: AnyChart) -> None:
    if chart.simulated:
        at = ((_LEFT + WIDTH - _RIGHT) / 2, (_TOP + HEIGHT - _BOTTOM) / 2 + 20)
        picture.text(*at, "simulated", "mark", anchor="middle", turned=-14)


def _x_scale(chart: Chart, points: Sequence[Point]) -> Scale:
    pixels = (_LEFT + 16.0, WIDTH - _RIGHT - 16.0)
    if chart.categories:
        return Scale((0, max(1, len(chart.categories) - 1)), pixels)
    low, high = min(point.x for point in points), max(point.x for point in points)
    if not high > low:
        return Scale((low - 1, high + 1), pixels)
    # Knobs are mostly doubled: evenly placed, their small values would lie on one another.
    return Scale((low, high), pixels, log=low > 0 and high / low >= 6)


def _y_span(chart: Chart, points: Sequence[Point]) -> tuple[float, float]:
    """Around all medians, and around the intervals as far as they leave the medians readable."""
    medians = [point.y for point in points]
    if chart.reference is not None:
        medians.append(chart.reference)
    low, high = min(medians), max(medians)
    room = max(high - low, 0.1 * abs(high), 1e-9)
    least = max(min(point.low for point in points), low - 0.75 * room)
    most = min(max(point.high for point in points), high + 0.75 * room)
    low, high = min(low, least), max(high, most)
    pad = max(high - low, 0.04 * abs(high), 1e-9) * 0.08
    return (max(0.0, low - pad) if low >= 0 else low - pad), high + pad


def _axes(picture: Svg, chart: Chart, x: Scale, y: Scale, points: Sequence[Point]) -> None:
    floor, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for value in nice_ticks(*y.span):
        picture.line(_LEFT, y(value), right, y(value), "grid")
        picture.text(_LEFT - 8, y(value) + 4, f"{value:g}", "tick", anchor="end")
    picture.line(_LEFT, floor, right, floor, "axis")
    last = float("-inf")
    for value, label in _x_ticks(chart, x, points):
        if x(value) - last < 8 + 7 * len(label):
            continue
        last = x(value)
        picture.line(last, floor, last, floor + 4, "axis")
        picture.text(last, floor + 18, label, "tick", anchor="middle")
    _watermark(picture, chart)


def _x_ticks(chart: Chart, x: Scale, points: Sequence[Point]) -> list[tuple[float, str]]:
    """What was measured; round values where that is too much."""
    if chart.categories:
        return [(float(place), clean(name, 16)) for place, name in enumerate(chart.categories)]
    measured = sorted({point.x for point in points})
    if len(measured) <= 10 and not chart.front:
        values = measured
    else:
        values = log_ticks(*x.span) if x.log else nice_ticks(*x.span)
    return [(value, f"{value:g}") for value in values]


def _bar(picture: Svg, point: Point, spot: tuple[float, float], y: Scale, place: int) -> None:
    """The interval; without end where it leaves the picture."""
    if not point.low < point.high:
        return
    low, high = max(point.low, y.span[0]), min(point.high, y.span[1])
    picture.line(spot[0], y(low), spot[0], y(high), f"bar s{place}")
    for end, bound in ((low, point.low), (high, point.high)):
        if end == bound:
            picture.line(spot[0] - 4, y(end), spot[0] + 4, y(end), f"bar s{place}")


def _path(picture: Svg, spots: list[tuple[float, float]], holes: Sequence[int], place: int) -> None:
    """The line through the points of a series; dashed over values that were not measured."""
    bounds = [0, *holes, len(spots)]
    for begin, end in pairwise(bounds):
        if end - begin > 1:
            picture.path(spots[begin:end], f"line s{place}")
    for hole in holes:
        picture.path(spots[hole - 1 : hole + 1], f"line hole s{place}")


def _marker(picture: Svg, spot: tuple[float, float], place: int, tip: str) -> None:
    """One shape a series: circle, square, triangle, diamond."""
    x, y = spot
    kind = f"dot f{place}"
    shapes: dict[int, list[tuple[float, float]]] = {
        1: [(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
        2: [(0, -6), (5.5, 4.5), (-5.5, 4.5)],
        3: [(0, -6), (6, 0), (0, 6), (-6, 0)],
    }
    corners = shapes.get(place % 4)
    if corners is None:
        picture.circle(x, y, 5, kind, tip)
    else:
        picture.polygon([(x + dx, y + dy) for dx, dy in corners], kind, tip)


def _legend_lines(label: str) -> list[str]:
    """A label in one line or two; what is more is cut."""
    whole = clean(label, 4 * _LEGEND)
    first, *more = wrap(whole, _LEGEND) or [""]
    return [first, clean(" ".join(more), _LEGEND)] if more else [first]


def _legend(picture: Svg, chart: Chart) -> None:
    left, at = WIDTH - _RIGHT + 24, _TOP + 8
    for place, series in enumerate(chart.series):
        picture.line(left - 12, at, left + 12, at, f"line s{place}")
        _marker(picture, (left, at), place, "")
        for below, words in enumerate(_legend_lines(series.label)):
            at += 15 * below
            picture.text(left + 20, at + 4, words, "legend")
        at += 22
    if chart.reference is not None:
        picture.line(left - 12, at, left + 12, at, "reference")
        picture.text(left + 20, at + 4, "baseline", "faint")
        at += 22
    if chart.front:
        picture.line(left - 12, at, left + 12, at, "front")
        picture.text(left + 20, at + 4, "not beaten on both axes", "faint")
        at += 22
    if chart.left_out:
        picture.text(left - 12, at + 4, f"and {chart.left_out} more, not drawn", "faint")
        at += 22
    if any(each.holes for each in chart.series):
        picture.text(left - 12, at + 6, "dotted: a value between was not measured", "faint")
        at += 22
    if any(point.low < point.high for each in chart.series for point in each.points):
        picture.text(left - 12, at + 6, "bars: 95 % intervals", "faint")
