"""One line to type into, at the bottom of a screen, with what is wrong beside it."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static


class Prompt(Horizontal):
    """Hidden until `ask`; closes by `close` alone, so that a mistake can be mended.

    The focus stays in it while it is open: what is typed would reach the screen's keys otherwise.
    """

    BINDINGS = [Binding("tab,shift+tab", "stay", show=False)]

    DEFAULT_CSS = """
    Prompt { height: 1; display: none; background: $surface; }
    Prompt.-open { display: block; }
    Prompt > #label {
        width: auto; max-width: 50%; padding: 0 1; color: $primary; text-style: bold;
    }
    Prompt > Input {
        width: 1fr; min-width: 12; border: none; height: 1; padding: 0; background: $surface;
    }
    Prompt > #fault { width: auto; max-width: 60%; padding: 0 1; color: $error; }
    """

    class Changed(Message):
        """The text is another one."""

        def __init__(self, purpose: str, value: str) -> None:
            super().__init__()
            self.purpose = purpose
            self.value = value

    class Entered(Changed):
        """The text was confirmed."""

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self.purpose = ""
        """What is asked for; empty while nothing is."""

    def compose(self) -> ComposeResult:
        yield Static(id="label")
        yield Input(compact=True, select_on_focus=False)
        yield Static(id="fault")

    @property
    def value(self) -> str:
        """The text."""
        return self.query_one(Input).value

    def ask(self, purpose: str, label: str, value: str = "", *, anew: bool = False) -> None:
        """Open with a label and a text to begin with; `anew`: what is typed takes its place."""
        self.purpose = purpose
        self.query_one("#label", Static).update(Content(label))
        self.fault("")
        field = self.query_one(Input)
        with self.prevent(Input.Changed):
            field.value = value
        field.cursor_position = len(value)
        if anew:
            field.select_all()
        self.add_class("-open")
        self.app.clear_notifications()  # they cover the line that is typed into
        field.focus()

    def relabel(self, label: str) -> None:
        """Show another label."""
        self.query_one("#label", Static).update(Content(label))

    def fault(self, words: str) -> None:
        """Say what is wrong with the text; an empty string when nothing is."""
        self.query_one("#fault", Static).update(Content(words))

    def close(self) -> None:
        """Ask no more."""
        self.purpose = ""
        self.remove_class("-open")

    def action_stay(self) -> None:
        """Keep the focus."""

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.purpose:
            self.post_message(self.Changed(self.purpose, event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.purpose:
            self.post_message(self.Entered(self.purpose, event.value))
