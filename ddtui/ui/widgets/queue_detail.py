"""The highlighted experiment in full, beside the queue's table."""

from __future__ import annotations

from textual import events

from ddtui.ui.copying import UNBROKEN, plain
from ddtui.ui.ink import Ink, Row
from ddtui.ui.queue_detail_rows import QueueDetail, detail_rows
from ddtui.ui.queue_source import QueueView
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel


class QueueDetailPanel(Panel):
    """Scrolls by pages; another experiment begins at its first line."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._detail = QueueDetail()
        self._offset = 0
        self._rows = 0
        self._height = 1

    def tell(self, detail: QueueDetail) -> None:
        """Show another detail."""
        before, after = self._detail.experiment, detail.experiment
        if (before.id if before else "") != (after.id if after else ""):
            self._offset = 0
        self._detail = detail
        if self._shown is not None:
            self.show(self._shown)

    def rows(self, shown: Shown, width: int) -> list[Row]:
        """All that is told, for a width in cells."""
        info = shown.snapshot.server_info
        report = info.arguments if info is not None else None
        view = shown.queue or QueueView()
        return detail_rows(self._detail, view, width, shown.glyphs, report)

    def text(self) -> str:
        """All that is told, each line whole."""
        return "" if self._shown is None else plain(self.rows(self._shown, UNBROKEN))

    def page(self, step: int) -> None:
        """Scroll by pages."""
        self._scroll(step * max(1, self._height - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def _scroll(self, rows: int) -> None:
        self._offset = max(0, min(self._offset + rows, self._rows - self._height))
        if self._shown is not None:
            self.show(self._shown)

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        rows = self.rows(shown, width)
        self._rows, self._height = len(rows), max(1, height)
        self._offset = max(0, min(self._offset, len(rows) - height))
        each = self._detail.experiment
        drawing = Drawing(title=Row(each.title if each is not None else "No experiment", Ink.TITLE))
        if len(rows) > height:
            last = min(len(rows), self._offset + height)
            drawing.note = Row(f"{self._offset + 1}-{last} of {len(rows)}", Ink.LABEL)
        drawing.rows = rows[self._offset : self._offset + height]
        return drawing
