"""Braille charts of a figure over time, with a fixed scale and a time axis.

Each cell is two columns and four levels of dots. A column stands for a whole number of seconds that
begins at a whole multiple of it, and shows its largest sample: the picture moves, it does not
shimmer. Where nothing was said the chart is empty.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from ddtui.core.snapshot import History
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row

_STEPS = (1, 2, 5, 10, 15, 30, 60)
"""Seconds that one column of dots may stand for."""
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)
"""Bits of a braille cell's two columns of dots, from the bottom."""
_ASCII_LEVELS = " .:|"


@dataclass(frozen=True)
class Scale:
    """The range of a chart's vertical axis."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the bottom to 1 at the top."""
        if self.high <= self.low:
            return 0.0
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def nice_ceiling(value: float, least: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below `value` nor `least`."""
    value = max(value, least)
    if not math.isfinite(value) or value <= 0:
        return least
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1, 2, 5, 10):
        if value <= factor * power * 1.0001:
            return factor * power
    return 10 * power


def largest(history: History) -> float:
    """The largest value of a history; 0 when it has none."""
    return max((value for value in history.values if math.isfinite(value)), default=0.0)


def step_for(columns: int, window: float) -> int:
    """Seconds a column, so that `columns` of them hold at least `window` seconds."""
    for step in _STEPS:
        if columns * step >= window:
            return step
    return _STEPS[-1]


def window_of(now: float, *histories: History, most: float = 300.0) -> float:
    """Seconds that charts should hold: what is known of the past, at least one minute."""
    known = [now - history.times[0] for history in histories if history.times]
    return min(most, max([60.0, *known]))


def resample(history: History, now: float, columns: int, step: int) -> list[float]:
    """The largest value in each column of `step` seconds, the last one holding `now`; NaN for none.

    A sample holds until the next one, but no longer than three columns or three times the usual
    distance of samples: beyond that nothing is known.
    """
    times, values = history.times, history.values
    if not all(map(math.isfinite, times)):
        pairs = [pair for pair in zip(times, values, strict=True) if math.isfinite(pair[0])]
        times, values = tuple(at for at, _ in pairs), tuple(value for _, value in pairs)
    if not times or columns <= 0:
        return [math.nan] * columns
    first = int(now // step) - columns + 1
    # From a little before the left edge: an older sample may hold into the picture.
    start = max(0, bisect_left(times, first * step) - 1)
    held = min(max(3, int(3 * _usual_distance(times[-_DISTANCES:]) / step)), max(3, columns))
    found: dict[int, float] = {}
    for at, value in zip(times[start:], values[start:], strict=True):
        # One that is too old to reach into the picture is not followed back to its time.
        column = max(int(at // step) - first, -held - 1)
        known = found.get(column)
        if known is None or not known >= value:  # also where what is known is NaN
            found[column] = value if value == value or known is None else known  # noqa: PLR0124
    out = []
    last, left = math.nan, 0
    for column in range(min(found, default=0), columns):
        if column in found:
            last, left = found[column], held
        left -= 1
        out.append(last if left >= 0 else math.nan)
    missing = columns - len(out)
    return [math.nan] * missing + out if missing >= 0 else out[-columns:]


_DISTANCES = 32
"""Last samples whose distances tell how often samples usually come."""


def _usual_distance(times: tuple[float, ...]) -> float:
    gaps = sorted(b - a for a, b in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0.0


def plot(
    values: list[float], height: int, scale: Scale, ink: Ink, glyphs: Glyphs, *, fill: bool = True
) -> list[Row]:
    """The chart alone, `len(values) / 2` cells wide: an area, or only its edge."""
    if glyphs.ascii:
        return _plot_ascii(values, height, scale, ink)
    levels = [_level(value, height * 4, scale) for value in values]
    cells = [[0] * (len(levels) // 2) for _ in range(height)]
    before = 0
    for column, level in enumerate(levels):
        if not level:
            before = 0
            continue
        # The edge reaches from the last level to this one, so that it is one line.
        low = 1 if fill else min(level, before + 1 if 0 < before < level else level)
        high = level if fill or before <= level else before - 1
        bits = _RIGHT if column % 2 else _LEFT
        for dot in range(low - 1, high):
            cells[height - 1 - dot // 4][column // 2] |= bits[dot % 4]
        before = level
    return [
        Row("".join(chr(0x2800 + dots) if dots else " " for dots in line), ink) for line in cells
    ]


def _plot_ascii(values: list[float], height: int, scale: Scale, ink: Ink) -> list[Row]:
    pairs = [
        max(_level(left, height * 3, scale), _level(right, height * 3, scale))
        for left, right in zip(values[::2], values[1::2], strict=True)
    ]
    return [
        Row(
            "".join(
                _ASCII_LEVELS[min(3, max(0, level - (height - 1 - row) * 3))] for level in pairs
            ),
            ink,
        )
        for row in range(height)
    ]


def _level(value: float, levels: int, scale: Scale) -> int:
    """Dots of a column: 0 for nothing known, at least 1 for a known value."""
    if not math.isfinite(value):
        return 0
    return max(1, round(scale.share(value) * levels))


@dataclass(frozen=True)
class Plot:
    """One figure to draw over time."""

    title: str
    history: History
    scale: Scale
    ink: Ink
    mark: float | None = None
    """A value to draw a broken line at; None for none."""


def charts(
    plots: tuple[Plot, ...],
    now: float,
    size: tuple[int, int],
    glyphs: Glyphs,
) -> list[Row]:
    """Charts below each other over one time axis.

    Args:
        plots: what is drawn, from top to bottom.
        now: the right edge, Unix seconds.
        size: width and height in cells, titles and axes included.
        glyphs: the characters to draw with.

    Returns:
        `height` rows, or none where that is too little to read anything.
    """
    width, height = size
    lines = height - 1 - len(plots)
    if width < 16 or lines < 2 * len(plots):
        return []
    share, more = divmod(lines, len(plots))
    heights = [share + (index < more) for index in range(len(plots))]
    labels = [_axis_labels(each.scale, high) for each, high in zip(plots, heights, strict=True)]
    gutter = max(len(label) for one in labels for label in one) + 1
    cells = width - gutter
    step = step_for(cells * 2, window_of(now, *(each.history for each in plots)))
    out = []
    for each, high, names in zip(plots, heights, labels, strict=True):
        out.append(Row(" " * gutter + each.title, Ink.LABEL))
        values = resample(each.history, now, cells * 2, step)
        rows = plot(values, high, each.scale, each.ink, glyphs)
        if each.mark is not None:
            rows = marked(rows, each.mark, each.scale, glyphs)
        for label, row in zip(names, rows, strict=True):
            tick = glyphs.axis_tick if label else glyphs.axis
            out.append(Row(label.rjust(gutter - 1) + tick, Ink.AXIS).extend(row))
    out.append(_time_axis(gutter, cells, step))
    return out


SPANS = (
    *(10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1_200, 1_800),
    *(2_700, 3_600, 7_200, 14_400, 28_800),
)
"""Seconds that the axis of a growing chart may hold: it changes by steps, and seldom."""


def span_for(seconds: float) -> float:
    """What an axis holds that must have room for so many seconds."""
    return next((float(each) for each in SPANS if each >= seconds), seconds)


def growing(
    each: Plot, size: tuple[int, int], glyphs: Glyphs, *, expected: float = 0.0
) -> list[Row]:
    """A chart that fills from the left as its figure goes on, from its first sample to now.

    `size` as in `charts`; no rows where that is too little to read anything. `expected` is how
    many seconds it is likely to take in all.
    """
    width, high = size[0], size[1] - 2
    if width < 16 or high < 2:
        return []
    labels = _axis_labels(each.scale, high)
    gutter = max(map(len, labels)) + 1
    cells = width - gutter
    times, values = each.history.times, each.history.values
    spent = times[-1] - times[0] if times else 0.0
    whole = span_for(max(spent, expected))
    step = whole / (cells * 2)
    columns = [math.nan] * (cells * 2)
    for at, value in zip(times, values, strict=True):
        column = min(len(columns) - 1, int((at - times[0]) / step))
        if not columns[column] >= value:
            columns[column] = value
    for column in range(1, min(len(columns), int(spent / step))):
        if math.isnan(columns[column]):  # nothing was said for a moment
            columns[column] = columns[column - 1]
    rows = plot(columns, high, each.scale, each.ink, glyphs)
    if each.mark is not None:
        rows = marked(rows, each.mark, each.scale, glyphs)
    out = [Row(" " * gutter + each.title, Ink.LABEL)]
    for label, row in zip(labels, rows, strict=True):
        tick = glyphs.axis_tick if label else glyphs.axis
        out.append(Row(label.rjust(gutter - 1) + tick, Ink.AXIS).extend(row))
    end = f"{whole:.0f} s" if whole < 120 else f"{whole / 60:.0f} m"
    out.append(Row(f"{' ' * gutter}0".ljust(width - len(end)) + end, Ink.AXIS))
    return out


def marked(rows: list[Row], value: float, scale: Scale, glyphs: Glyphs) -> list[Row]:
    """A chart with a broken line at a value, where nothing of the chart is in its way."""
    line = len(rows) - 1 - min(len(rows) - 1, int(scale.share(value) * len(rows)))
    found = Row()
    for text, ink in rows[line].spans:
        for char in text:
            blank = char == " "
            found.add(glyphs.stale_horizontal if blank else char, Ink.STRONG if blank else ink)
    return [*rows[:line], found, *rows[line + 1 :]]


def _axis_labels(scale: Scale, rows: int) -> list[str]:
    labels = [""] * rows
    labels[-1] = _short(scale.low)
    labels[0] = _short(scale.high)
    middle = (scale.low + scale.high) / 2
    if rows >= 5 and rows % 2:
        labels[rows // 2] = _short(middle)
    return labels


def _short(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:g}"


def _time_axis(gutter: int, cells: int, step: int) -> Row:
    """Labels at whole minutes before now, as many as stand apart."""
    total = cells * 2 * step
    for every in (60, 120, 300, 600, 1200, 1800, 3600):
        distance = every / (2 * step)
        if distance >= 9:
            break
    text = [" "] * (gutter + cells)
    back = every
    while back <= total:
        label = f"-{back // 60} m"
        column = gutter + cells - 1 - round(back / (2 * step))
        if column - 1 >= gutter and column + len(label) < gutter + cells - 3:
            text[column - 1 : column - 1 + len(label)] = label
        back += every
    text[-3:] = "now"
    return Row("".join(text), Ink.AXIS)
