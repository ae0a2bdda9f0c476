"""The queue in short, on the monitor."""

from __future__ import annotations

from ddtui.ui.ink import Ink, Row
from ddtui.ui.queue_rows import who_row
from ddtui.ui.queue_short_rows import line_row, short_rows
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel


class QueuePanel(Panel):
    """What runs with its step, the next ones, and when all is done; in one line where it is low."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        view = shown.queue
        if view is None:
            return Drawing()
        if height == 1:
            return Drawing([line_row(view, width, shown.glyphs)])
        drawing = Drawing(title=Row("Queue", Ink.TITLE), note=who_row(view, shown.glyphs))
        if view.settings.paused:
            drawing.title.add("  ").add(" PAUSED ", Ink.WARN_BADGE)
        rows = short_rows(view, shown.now, width, shown.glyphs, height)
        # What does not fit is left out from the middle: when all is done matters more.
        drawing.rows = rows if len(rows) <= height else [*rows[: height - 1], rows[-1]]
        return drawing
