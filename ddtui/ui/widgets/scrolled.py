"""A framed text of many rows that scrolls: what the detail panels have in common."""

from __future__ import annotations

from abc import abstractmethod

from textual import events

from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel

_WHEEL = 3
"""Rows a step of the mouse wheel."""


class ScrolledPanel(Panel):
    """Scrolls by pages and with the wheel; says in its frame which rows are seen."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._offset = 0
        self._count = 0
        self._height = 1

    @abstractmethod
    def title(self) -> Row:
        """What stands in the frame."""

    @abstractmethod
    def rows(self, shown: Shown, width: int) -> list[Row]:
        """The whole text for a width in cells."""

    def renew(self, *, from_top: bool) -> None:
        """Draw what is told now, from its first row or where it was read."""
        if from_top:
            self._offset = 0
        if self._shown is not None:
            self.show(self._shown)

    def page(self, step: int) -> None:
        """Scroll by pages."""
        self._scroll(step * max(1, self._height - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(_WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-_WHEEL)

    def _scroll(self, rows: int) -> None:
        self._offset = max(0, min(self._offset + rows, self._count - self._height))
        self.renew(from_top=False)

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        rows = self.rows(shown, width)
        self._count, self._height = len(rows), max(1, height)
        self._offset = max(0, min(self._offset, self._count - height))
        drawing = Drawing(title=self.title())
        if self._count > height:
            last = min(self._count, self._offset + height)
            drawing.note = Row(f"{self._offset + 1}-{last} of {self._count}", Ink.LABEL)
        drawing.rows = rows[self._offset : self._offset + height]
        return drawing
