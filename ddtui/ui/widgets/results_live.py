"""The curve of the bench that runs now, over the best that was measured so far."""

from __future__ import annotations

import math

import msgspec

from ddtui.core.snapshot import History
from ddtui.experiments.grouping import cell_at
from ddtui.experiments.intervals import usable
from ddtui.experiments.results import ResultsView
from ddtui.experiments.results import Row as Result
from ddtui.experiments.svg_charts import nice_ticks
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row
from ddtui.ui.queue_rows import progress_words
from ddtui.ui.queue_source import QueueView
from ddtui.ui.widgets.bench_panel import expected_seconds
from ddtui.ui.widgets.chart import span_for
from ddtui.ui.widgets.scatter import Axis, Field, beneath, names_beneath, names_beside, round_axis

_LEAST_SECONDS = 30.0
"""Seconds that the axis holds where none are expected: a young curve must not jump about."""


class LiveBench(msgspec.Struct, frozen=True, kw_only=True):
    """A bench that runs in this ddtui now."""

    title: str
    """The configuration under test."""
    concurrency: int
    doing: str
    """How far it is, in words."""
    curve: History
    """Tokens per second of all streams, since the cell began."""
    expected: float = 0.0
    """Seconds that the cell is likely to take; 0 where that is not known."""


def live_of(queue: QueueView | None) -> LiveBench | None:
    """The bench that this ddtui runs; None where there is none, or another process runs it."""
    if queue is None or queue.run.where != "here" or queue.run.progress is None:
        return None
    progress, experiment = queue.run.progress, queue.running
    return LiveBench(
        title=experiment.title if experiment is not None else "",
        concurrency=progress.concurrency,
        doing=progress_words(progress),
        curve=queue.run.curve,
        expected=span_for(expected_seconds(queue)),
    )


def best_at(view: ResultsView, concurrency: int) -> tuple[float, Result] | None:
    """The highest total rate that was measured at a concurrency, and of which row."""
    found = [
        (rate.median, row)
        for row in view.rows
        if (cell := cell_at(row.cells, concurrency)) is not None
        and (rate := usable(cell.total_rate)) is not None
    ]
    return max(found, key=lambda pair: pair[0], default=None)


def live_rows(
    live: LiveBench | None, view: ResultsView, width: int, height: int, glyphs: Glyphs
) -> tuple[str, list[Row]]:
    """Why there is no curve, or the curve in `width` x `height` cells."""
    if live is None:
        return "No bench runs in this ddtui now; key 5 shows who runs the queue.", []
    points = [
        (at, value)
        for at, value in zip(live.curve.times, live.curve.values, strict=True)
        if math.isfinite(at) and math.isfinite(value)
    ]
    if not points:
        return f"{fmt.clean(live.title)}: {fmt.clean(live.doing)}; no token has come yet.", []
    best = best_at(view, live.concurrency)
    lines = height - 4
    if lines < 4 or width < 30:
        return "", []
    most = max([value for _, value in points] + ([best[0]] if best is not None else []))
    y = round_axis(0.0, most, max(2, min(8, lines // 3)))
    began = points[0][0]
    x = _time_axis(max(points[-1][0] - began, live.expected or _LEAST_SECONDS))
    names = names_beside(y, lines)
    gutter = max(map(len, names.values())) + 1
    area = Field(width - gutter, lines, ascii=glyphs.ascii)
    _draw(area, [(at - began, value) for at, value in points], x, y, best)
    rows = [_head(live, points[-1][1], best, width)]
    rows.append(Row(" " * gutter).add("tok/s of all users", Ink.LABEL))
    for line, drawn in enumerate(area.rows()):
        name = names.get(line, "")
        tick = glyphs.axis_tick if name else glyphs.axis
        rows.append(Row(name.rjust(gutter - 1) + tick, Ink.AXIS).extend(drawn))
    rows.append(names_beneath(x, gutter, width, glyphs))
    rows.append(beneath("seconds of this cell", gutter, width))
    return "", [row.cut(width) for row in rows]


def _head(live: LiveBench, now: float, best: tuple[float, Result] | None, width: int) -> Row:
    row = Row(fmt.clean(live.title), Ink.STRONG).add(f"  {fmt.clean(live.doing)}", Ink.LABEL)
    row.add("  now ", Ink.LABEL).add(fmt.tokens_per_second(now), Ink.THROUGHPUT)
    if best is not None:
        row.add("  best so far ", Ink.LABEL).add(fmt.tokens_per_second(best[0]), Ink.GOOD)
        row.add(f" {fmt.clean(best[1].title)}", Ink.LABEL)
    return row.cut(width)


def _time_axis(seconds: float) -> Axis:
    span = span_for(seconds)
    ticks = tuple((each, f"{each:g}") for each in nice_ticks(0.0, span, 6))
    return Axis(0.0, span, ticks)


def _draw(
    area: Field,
    points: list[tuple[float, float]],
    x: Axis,
    y: Axis,
    best: tuple[float, Result] | None,
) -> None:
    def spot(at: float, value: float) -> tuple[int, int]:
        across = round(x.share(at) * (area.width * 2 - 1))
        return across, round((1 - y.share(value)) * (area.height * 4 - 1))

    if best is not None:
        _, level = spot(0.0, best[0])
        area.line((0, level), (area.width * 2 - 1, level), Ink.GOOD, every=2)
    before = spot(*points[0])
    for point in points[1:]:
        here = spot(*point)
        area.line(before, here, Ink.THROUGHPUT)
        before = here
