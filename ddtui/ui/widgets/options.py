"""Textual's list of options, mended: neither a page key nor a narrow terminal ends the app."""

from __future__ import annotations

from textual.binding import Binding
from textual.widgets import OptionList

LEAST_WIDTH = 10
"""Columns that a list is laid out in even where the terminal has fewer."""


class Options(OptionList):
    """Ignores page keys that come before its options have been laid out.

    Textual looks up the highlighted option's line then, and fails (8.2.8, `_move_page`): a burst of
    keys is fast enough for that. Nor does it break words into lines of no width.
    """

    DEFAULT_CSS = f"Options {{ min-width: {LEAST_WIDTH}; }}"

    def action_page_up(self) -> None:
        """One page up."""
        if laid_out(self):
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        """One page down."""
        if laid_out(self):
            super().action_page_down()  # type: ignore[no-untyped-call]


class UnpagedOptions(Options, inherit_bindings=False):
    """Leaves the page keys to its screen."""

    BINDINGS = [
        Binding("up", "cursor_up", show=False),
        Binding("down", "cursor_down", show=False),
        Binding("home", "first", show=False),
        Binding("end", "last", show=False),
        Binding("enter", "select", show=False),
    ]


def laid_out(options: OptionList) -> bool:
    """Whether every option has its lines."""
    return len(options._index_to_line) == len(options.options)
