"""A question before something that cannot be taken back. Cancel has the focus."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

OPENING = 0.3
"""Seconds after opening in which keys are not meant for the question."""
QUIET = 0.05
"""Seconds of silence that end a burst of keys, as from a paste into the terminal."""


class ConfirmScreen(ModalScreen[bool]):
    """Gives True only when the operator chose the action, not by a burst of keys typed before."""

    AUTO_FOCUS = ""
    BINDINGS = [
        Binding("escape", "cancel", "Cancel", show=False),
        Binding("left,right", "other", "Other button", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
    ]
    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 94%;
        background: $surface; border: heavy $warning; padding: 1 2 0 2;
    }
    ConfirmScreen VerticalScroll { height: auto; max-height: 30vh; scrollbar-size-vertical: 1; }
    ConfirmScreen Input { background: $panel; }
    ConfirmScreen #typed { margin-top: 1; color: $label; }
    ConfirmScreen Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
    ConfirmScreen Button { margin-left: 2; }
    """

    def __init__(
        self,
        title: str,
        body: str | Content,
        action: str,
        *,
        typed: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the question.

        Args:
            title: What would happen, in a few words.
            body: What it means. A string is shown as it is, without markup.
            action: The word on the button that does it: `Restart`, not `Yes`.
            typed: A word that must be typed before the button works; empty for none.
            clock: Seconds of a clock that only goes forward.
        """
        super().__init__()
        self._heading = title
        self._body = body if isinstance(body, Content) else Content(body)
        self._action = action
        self._typed = typed
        self._clock = clock
        self._deaf_until = 0.0
        self._listening = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(f" {self._heading} ")
            with VerticalScroll(can_focus=False):
                yield Static(self._body)
            if self._typed:
                yield Static(Content(f"Type {self._typed} to go on:"), id="typed")
                yield Input(id="word", compact=True)
            with Horizontal():
                yield Button(Content("Cancel"), id="cancel")
                yield Button(
                    Content(self._action), id="do", variant="error", disabled=bool(self._typed)
                )

    def on_mount(self) -> None:
        self._deaf_until = self._clock() + OPENING
        self.set_timer(OPENING, self._listen)

    async def on_event(self, event: events.Event) -> None:
        # Nothing has the focus yet, so keys come here: those typed before it was read end.
        if isinstance(event, events.Key | events.Paste) and not self._listening:
            self._deaf_until = max(self._deaf_until, self._clock() + QUIET)
            event.stop()
            event.prevent_default()
            return
        await super().on_event(event)

    def _listen(self) -> None:
        """Give Cancel the focus, once keys have been quiet."""
        left = self._deaf_until - self._clock()
        if self._listening:
            return
        if left > 0:
            self.set_timer(left, self._listen)
            return
        self._listening = True
        self.query_one("#cancel", Button).focus()

    @on(Input.Changed, "#word")
    def _compare(self, event: Input.Changed) -> None:
        self.query_one("#do", Button).disabled = event.value.strip() != self._typed

    @on(Input.Submitted, "#word")
    def _to_button(self) -> None:
        button = self.query_one("#do", Button)
        if not button.disabled:
            button.focus()  # typing the word is one step, doing it another

    @on(Button.Pressed)
    def _answer(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "do")

    def action_cancel(self) -> None:
        """Close without doing anything."""
        self.dismiss(False)

    def action_scroll(self, step: int) -> None:
        """Scroll a long text."""
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)

    def action_other(self) -> None:
        """Focus the other button."""
        do, cancel = self.query_one("#do", Button), self.query_one("#cancel", Button)
        (cancel if do.has_focus or do.disabled else do).focus()
