"""A question before something that cannot be taken back. Cancel is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from ddtui.ui.copying import UNBROKEN, copy_text, plain
from ddtui.ui.deliberate import OPENING, QUIET, Deliberation
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.ink import Row, rows_text
from ddtui.ui.screens.modal import Modal

_SCROLL = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8, "home": -1_000, "end": 1_000}
CANCEL = "Cancel"
"""The button that leaves all as it is."""
_TURN = 0.02
"""Seconds between two looks whether keys still wait for their turn."""
Body = Callable[[int], Sequence[Row]]
"""Rows of text for a width in cells."""


@dataclass(frozen=True)
class Words:
    """What the question says."""

    title: str
    """What would happen, in a few words."""
    body: str | Body
    """What it means. A string is shown as it is, without markup."""
    action: str = ""
    """The word on the button that does it: `Restart`, not `Yes`; empty where nothing can be."""
    typed: str = ""
    """A word that must be typed before the button works; empty for none."""
    refuse: str = ""
    """The word on a button that says no for good, where cancelling only puts it off."""
    cancel: str = CANCEL


class ConfirmScreen(Modal[bool | None]):
    """Gives True only when the operator chose the action, not by keys that merely arrived.

    False for no; None for `not now`, of a question that has both. It takes all keys itself, so that
    `ddtui.ui.deliberate` judges every one of them; nothing in it has the focus.
    """

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > Vertical {
        width: 100; max-width: 96%; height: auto; max-height: 96%;
        background: $surface; border: heavy $warning; padding: 0 2;
    }
    ConfirmScreen VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
    ConfirmScreen #typed { height: 1; color: $label; margin-top: 1; }
    ConfirmScreen #note { height: 1; color: $warning; &.-alone { margin-top: 1; } }
    ConfirmScreen Horizontal { height: 1; align-horizontal: right; }
    ConfirmScreen Button {
        margin-left: 2; height: 1; border: none; min-width: 12; padding: 0 1;
        background: $panel; color: $foreground; text-style: none;
        &:disabled { color: $label; }
        &.-chosen { background: $primary; color: $background; text-style: bold; }
        &#do.-chosen { background: $error; color: $background; text-style: bold; }
    }
    """

    def __init__(
        self,
        words: Words,
        *,
        unasked: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare the question.

        Args:
            words: What it says.
            unasked: It comes up by itself, perhaps while the operator types something else: it then
                waits longer before it listens.
            clock: Seconds of the clock that key events carry.
        """
        super().__init__()
        self.words = words
        self._clock = clock
        answers = ["cancel"]
        answers += ["refuse"] if words.refuse else []
        answers += ["do"] if words.action else []
        self._answers = answers
        self._opening, self._quiet = (1.5, 1.0) if unasked else (OPENING, QUIET)
        self.deliberation = Deliberation(clock(), answers, word=words.typed)
        self._width = 0

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self.words.title)
            with VerticalScroll(can_focus=False):
                yield Static(id="body")
            if self.words.typed:
                yield Static(id="typed")
            yield Static(id="note", classes="" if self.words.typed else "-alone")
            with Horizontal():
                for answer in self._answers:
                    button = Button(self._label(answer, ""), id=answer, compact=True)
                    button.can_focus = False
                    button.active_effect_duration = 0
                    yield button

    def on_mount(self) -> None:
        self.deliberation = Deliberation(
            self._clock(),
            self._answers,
            word=self.words.typed,
            opening=self._opening,
            quiet=self._quiet,
        )
        self._look()

    def on_resize(self) -> None:
        if not self._composed:
            return
        width = max(20, min(100, int(self.size.width * 0.96)) - 7)
        others = 6 + (1 if self.words.typed else 0)
        room = max(2, int(self.size.height * 0.96) - others)
        self.query_one(VerticalScroll).styles.max_height = room
        if width != self._width:
            self._width = width
            body = self.words.body
            text = body if isinstance(body, str) else ""
            rows = None if isinstance(body, str) else body(width)
            shown = Text(text) if rows is None else rows_text(rows, self.app.theme_variables)
            self.query_one("#body", Static).update(shown)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste):
            event.stop()
            event.prevent_default()
            if isinstance(event, events.Paste):
                self.deliberation.paste(event.time)
            elif self._copies and event.key == "escape":
                self._close("cancel")  # nothing can be done by it: it need not be heard out
                return
            elif self._copies and event.key == "y":
                self._copy()
            elif event.key in _SCROLL:
                self.deliberation.moved(event.time)
                for scroll in self.query(VerticalScroll):  # none before it is laid out
                    scroll.scroll_relative(y=_SCROLL[event.key], animate=False)
            else:
                self.deliberation.key(event.key, event.character, event.time)
            self._look()
            return
        await super().on_event(event)

    @on(Button.Pressed)
    def _clicked(self, event: Button.Pressed) -> None:
        self.deliberation.click(event.button.id or "", self._clock())
        self._look()

    @property
    def _composed(self) -> bool:
        """Whether its widgets are there: keys and sizes may come before, and after they went."""
        return self.is_attached and bool(self.query("#do, #cancel")) and bool(self.query("#note"))

    def _look(self) -> None:
        """Show where the question stands; close it once it is answered."""
        asked = self.deliberation
        if not self._composed:
            return
        if asked.answer is not None:
            self._close(asked.answer)
            return
        now = self._clock()
        chosen = asked.answers[asked.chosen]
        for button in self.query(Button):
            button.set_class(button.id == chosen, "-chosen")
            label = self._label(button.id or "", chosen)
            if button.label != label:
                button.label = label
            button.disabled = button.id != "cancel" and not asked.word_given
        if self.words.typed:
            line = Content(f"Type {self.words.typed} to go on: ")
            line = line.append(Content.styled(asked.typed + "_", "bold $foreground"))
            self.query_one("#typed", Static).update(line)
        note = Content(asked.note) if asked.note else Content.styled(self._hint(now), "$label")
        self.query_one("#note", Static).update(note)
        if (due := asked.due(now)) is not None:
            self.set_timer(max(0.01, due), self._when_due)

    def _label(self, answer: str, chosen: str) -> Content:
        """The word on a button; the chosen one is told by more than its colour."""
        words = {
            "cancel": self.words.cancel,
            "refuse": self.words.refuse,
            "do": self.words.action,
        }
        left, right = glyphs_of(self.app).chosen
        word = words[answer]
        return Content(f"{left} {word} {right}" if answer == chosen else f"  {word}  ")

    def _hint(self, now: float) -> str:
        if self._copies:
            return "y copies this"
        if not self.deliberation.listening(now):
            return "one moment ..."
        if not self.deliberation.word_given:
            return f"type {self.words.typed} first; enter and esc: {self.words.cancel}"
        return f"tab steps to a button, enter presses it; esc: {self.words.cancel}"

    @property
    def _copies(self) -> bool:
        """Whether a key copies what it says: only where no key could mean anything else."""
        return not self.words.action

    def _copy(self) -> None:
        body = self.words.body
        copy_text(self.app, body if isinstance(body, str) else plain(body(UNBROKEN)), "it")

    def _when_due(self) -> None:
        # Keys that came before this moment may still wait in the queues of app and screen.
        self.app.call_later(self.call_later, self._settle_when_quiet)

    def _settle_when_quiet(self) -> None:
        if getattr(self.app, "typing", False):  # nor may it wait for its turn
            self.set_timer(_TURN, self._when_due)
        else:
            self._settle()

    def _settle(self) -> None:
        self.deliberation.settle(self._clock())
        self._look()

    def _close(self, answer: str) -> None:
        if self.is_current:
            no = None if self.words.refuse else False
            self.dismiss({"do": True, "refuse": False}.get(answer, no))
