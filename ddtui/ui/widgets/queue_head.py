"""Two lines above the queue's table: how much there is, how long it takes, who runs it."""

from __future__ import annotations

from ddtui.ui.queue_rows import head_rows
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Canvas, Drawing


class QueueHead(Canvas):
    """Shows `Shown.queue`."""

    DEFAULT_CSS = "QueueHead { height: 2; }"

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        if shown.queue is None:
            return Drawing()
        return Drawing(rows=head_rows(shown.queue, shown.now, width, shown.glyphs)[:height])
