"""The bench that runs: how far it is, and how fast, over the best that was measured so far."""

from __future__ import annotations

from ddtui.bench.progress import Progress
from ddtui.bench.progress import Step as BenchStep
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row
from ddtui.ui.queue_source import QueueView
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.chart import Plot, Scale, growing, largest, nice_ceiling

LEAST_CHART = 6
"""Lines from which a curve can be read, the line of words not counted."""


class BenchPanel(Panel):
    """Shows the progress of `Shown.queue`."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        view = shown.queue
        progress = view.run.progress if view is not None else None
        if view is None or progress is None:
            return Drawing()
        running = view.running
        drawing = Drawing(title=Row(running.title if running is not None else "Bench", Ink.TITLE))
        drawing.title.add("  ").add(f" {shown.glyphs.running} {progress.step.upper()} ", _BADGE)
        if view.run.eta_seconds is not None:
            drawing.note = Row(f"{fmt.duration(view.run.eta_seconds)} left", Ink.STRONG)
        drawing.rows = [words_row(progress, view.best, width)]
        if height - 1 >= LEAST_CHART:
            drawing.rows += curve_rows(view, shown, width, height - 1)
        return drawing


_BADGE = Ink.BUSY_BADGE


def words_row(progress: Progress, best: float | None, width: int) -> Row:
    """How far it is, from the cell to the request."""
    row = Row()
    pieces: list[tuple[str, str]] = []
    if progress.cells:
        pieces.append(("cell", f"{progress.cell}/{progress.cells}"))
    if progress.concurrency:
        pieces.append(("at once", str(progress.concurrency)))
    if progress.step is BenchStep.WARMING_UP:
        pieces.append(("warm-up batch", f"{progress.batch}"))
    elif progress.step is BenchStep.MEASURING:
        pieces.append(("repeat", f"{progress.batch}/{progress.batches}"))
    if progress.requests:
        pieces.append(("requests", f"{progress.done}/{progress.requests}"))
    for name, value in pieces:
        row.add(f"{name} ", Ink.LABEL).add(value, Ink.STRONG).add("  ")
    if progress.note:
        row.add(progress.note, Ink.LABEL)
    right = Row()
    if progress.rate is not None:
        right.add(fmt.tokens_per_second(progress.rate), Ink.THROUGHPUT).add(" tok/s", Ink.LABEL)
    if best is not None:
        right.add("   best so far ", Ink.LABEL).add(fmt.tokens_per_second(best), Ink.STRONG)
    return row.with_right(right, width)


def curve_rows(view: QueueView, shown: Shown, width: int, height: int) -> list[Row]:
    """Tokens per second of all streams, with a line at the best so far."""
    curve, best = view.run.curve, view.best
    ceiling = nice_ceiling(max(largest(curve), best or 0.0), 10.0)
    title = "tok/s of all streams"
    if best is not None:
        title += f"   {shown.glyphs.stale_horizontal * 3} best so far"
    plot = Plot(title, curve, Scale(0.0, ceiling), Ink.THROUGHPUT, mark=best)
    return growing(plot, (width, height), shown.glyphs, expected=expected_seconds(view))


def expected_seconds(view: QueueView) -> float:
    """How long the cell under way is likely to take, of which the curve is; 0 where unknown."""
    progress, left = view.run.progress, view.run.eta_seconds
    if progress is None or left is None:
        return 0.0
    return (progress.elapsed + left) / max(1, progress.cells)
