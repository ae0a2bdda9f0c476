"""Stands where a question will be, while it is being worked out: keys reach nothing below it."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ddtui.ui import format as fmt
from ddtui.ui.screens.modal import Modal

_AWAY = frozenset({"escape", "ctrl+c"})
_TICK = 1.0


class WaitingScreen(Modal[None]):
    """Takes all keys; escape gives up waiting. Gives None, and calls `given_up` for escape."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    WaitingScreen { align: center middle; }
    WaitingScreen > Vertical {
        width: 100; max-width: 96%; height: auto;
        background: $surface; border: heavy $warning; padding: 0 2;
    }
    WaitingScreen #keys { color: $label; }
    """

    def __init__(self, title: str, words: str, given_up: Callable[[], None]) -> None:
        """`title` is what will be asked, `words` what is being done for it."""
        super().__init__()
        self._heading = title
        self._words = words
        self._given_up = given_up
        self._ticks = 0

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._heading)
            yield Static(Content(f"{self._words} ..."), id="words")
            yield Static(Content("esc gives up waiting; nothing has been changed"), id="keys")

    def on_mount(self) -> None:
        self.set_interval(_TICK, self._tick)

    def _tick(self) -> None:
        self._ticks += 1
        words = f"{self._words} ... {fmt.duration(self._ticks * _TICK)}"
        self.query_one("#words", Static).update(Content(words))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste):
            event.stop()
            event.prevent_default()
            if isinstance(event, events.Key) and event.key in _AWAY and self.is_current:
                self.dismiss(None)
                self._given_up()
            return
        await super().on_event(event)
