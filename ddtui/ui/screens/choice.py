"""A short list to choose from, over another screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.ui.screens.modal import Modal
from ddtui.ui.widgets.options import Options

_WIDTH, _WIDEST = 44, 110
"""Columns that a list takes at least, where there is room, and at most."""


@dataclass(frozen=True)
class Choice:
    """One thing to choose."""

    id: str
    words: str
    """Shown as it is, without markup."""
    note: str = ""
    """At the right, dimmed: a count."""


class ChoiceScreen(Modal[str | None]):
    """Gives the id of what was chosen, or None."""

    BINDINGS = [
        Binding("escape,q", "cancel", "Cancel", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]
    DEFAULT_CSS = """
    ChoiceScreen { align: center middle; }
    ChoiceScreen > OptionList {
        width: 96%; height: auto; max-height: 80%;
        background: $surface; border: round $primary; padding: 0 1;
        &:focus { border: round $primary; }
    }
    """

    def __init__(self, title: str, choices: Sequence[Choice], chosen: str) -> None:
        """Prepare the list.

        Args:
            title: What is chosen.
            choices: What there is, in order.
            chosen: Id of the one in force.
        """
        super().__init__()
        self._heading = title
        self._choices = choices
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        widest = max(len(each.words) for each in self._choices)
        options = Options(
            *(
                Option(
                    Content(
                        f"{'*' if each.id == self._chosen else ' '} {each.words:{widest}}"
                    ).append(Content.styled(f"  {each.note}", "dim")),
                    id=f"choice-{index}",
                )
                for index, each in enumerate(self._choices)
            )
        )
        notes = max(len(each.note) for each in self._choices)
        options.styles.max_width = max(_WIDTH, min(_WIDEST, widest + notes + 9))
        options.border_title = Content(f" {self._heading} ")
        ids = [each.id for each in self._choices]
        now = "  * chosen" if self._chosen in ids else ""
        options.border_subtitle = Content(f" ⏎ chooses  esc closes{now} ")
        options.highlighted = ids.index(self._chosen) if self._chosen in ids else 0
        yield options

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index].id)

    def action_cancel(self) -> None:
        """Choose nothing."""
        self.dismiss(None)

    def action_move(self, step: int) -> None:
        """Move the highlight."""
        options = self.query_one(OptionList)
        if step > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()
