"""Text to read over another screen, to scroll and to copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ddtui.ui.copying import UNBROKEN, copy_text, plain
from ddtui.ui.ink import Row, rows_text
from ddtui.ui.screens.modal import Modal

_SIDES = 5
"""Columns that frame, padding and scroll bar take."""


class ReadingScreen(Modal[None]):
    """Shows rows; any of its closing keys leads back."""

    BINDINGS = [
        Binding("escape,q,enter", "back", "Close", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("y", "copy", show=False),
    ]
    DEFAULT_CSS = """
    ReadingScreen { align: center middle; }
    ReadingScreen > Vertical {
        width: 130; max-width: 96%; height: auto; max-height: 96%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    ReadingScreen VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    """

    def __init__(self, title: str, body: Callable[[int], Sequence[Row]]) -> None:
        """`body` gives the rows for a width in cells."""
        super().__init__()
        self._heading = title
        self._body = body

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(f" {self._heading} ")
            box.border_subtitle = Content(" y copies  esc closes ")
            with VerticalScroll():
                yield Static(id="body")

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._fill())
        self.query_one(VerticalScroll).focus()

    def on_resize(self) -> None:
        self._fill()

    def action_back(self) -> None:
        """Back to the screen below."""
        self.dismiss(None)

    def action_scroll(self, step: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)

    def action_copy(self) -> None:
        """Copy all of it, each line whole."""
        copy_text(self.app, plain(self._body(UNBROKEN)), "it")

    def _fill(self) -> None:
        width = max(20, min(130, int(self.size.width * 0.96)) - _SIDES)
        rows = self._body(width)
        self.query_one("#body", Static).update(rows_text(rows, self.app.theme_variables))
