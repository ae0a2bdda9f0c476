"""What the app asks of a screen that shows a host: to be told what is shown now."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import OptionList

from ddtui.ui.shown import Shown


class LiveScreen(Screen[None]):
    """A screen that the app feeds. Only the one on top is fed."""

    def show(self, shown: Shown) -> None:
        """Show a snapshot. Called at every paint, and once when the screen comes to the top."""
        raise NotImplementedError


class ListScreen(LiveScreen):
    """One with a list, in which keys of its own move too."""

    def action_down(self) -> None:
        """One entry down."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """One entry up."""
        self.query_one(OptionList).action_cursor_up()
