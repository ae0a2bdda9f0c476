"""The changes made to the unit from this machine: who, when, what, and how each one ended."""

from __future__ import annotations

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ddtui.ui import format as fmt
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.control_desk import ControlDesk
from ddtui.ui.glyphs import UNICODE
from ddtui.ui.history_rows import heading, line, record_rows, widths
from ddtui.ui.screens.built import built
from ddtui.ui.screens.live import ListScreen
from ddtui.ui.screens.reading import ReadingScreen
from ddtui.ui.shown import Shown
from ddtui.ui.source import ReconfigurationView
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.options import Options


class HistoryScreen(ListScreen):
    """Lists changes, the newest first; one in full on `enter`."""

    BINDINGS = bindings(Scope.HISTORY)
    DEFAULT_CSS = """
    HistoryScreen { background: $background; }
    HistoryScreen > #columns { height: 1; padding: 0 1; color: $label; margin-top: 1; }
    HistoryScreen > #note { height: auto; padding: 0 1; color: $label; display: none; }
    HistoryScreen > OptionList {
        height: 1fr; background: $background; border: none; padding: 0 1;
        &:focus { border: none; background: $background; background-tint: $background 0%; }
    }
    """

    def __init__(self, desk: ControlDesk) -> None:
        """Prepare the screen; `desk` reads the history."""
        super().__init__(id="history")
        self._desk = desk
        self._shown: Shown | None = None
        self._listed: list[ReconfigurationView] = []
        self._lines: list[str] = []

    def compose(self) -> ComposeResult:
        yield Header()
        yield Static(id="columns")
        yield Static(id="note")
        yield Options()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_screen_resume(self) -> None:
        self._look()

    @work(group="look", exclusive=True)
    async def _look(self) -> None:
        await self._desk.look()
        self._fill()

    def show(self, shown: Shown) -> None:
        self._shown = shown
        if built(self):
            self.query_one(Header).show(shown)
            self._fill()

    def on_resize(self) -> None:
        self._fill()

    def action_open(self) -> None:
        """Show the highlighted change in full."""
        at = self.query_one(OptionList).highlighted
        if at is None or at >= len(self._listed):
            return
        view = self._listed[at]
        glyphs = self._shown.glyphs if self._shown is not None else UNICODE
        title = f"{fmt.clean(view.title)[:48]} of {fmt.date(view.began)}"
        self.app.push_screen(ReadingScreen(title, lambda width: record_rows(view, width, glyphs)))

    @on(OptionList.OptionSelected)
    def _chosen(self) -> None:
        self.action_open()

    def action_reload(self) -> None:
        """Read the history again."""
        self._look()

    def _fill(self) -> None:
        """Fill the list, and keep the highlight on its change."""
        width = self.size.width - 4
        if not built(self) or width <= 0:
            return
        glyphs = self._shown.glyphs if self._shown is not None else UNICODE
        listed = list(self._desk.control.history)
        columns = widths(listed, width)
        lines = [line(each, width, glyphs, columns) for each in listed]
        self.query_one("#columns", Static).update(Content(heading(width, columns)))
        self._tell()
        if lines == self._lines and [each.id for each in listed] == [
            each.id for each in self._listed
        ]:
            self._listed = listed
            return
        options = self.query_one(OptionList)
        at = options.highlighted
        kept = self._listed[at].id if at is not None and at < len(self._listed) else ""
        self._listed, self._lines = listed, lines
        options.clear_options()
        options.add_options([Option(Content(each)) for each in lines])
        if lines:
            ids = [each.id for each in listed]
            options.highlighted = ids.index(kept) if kept in ids else 0

    def _tell(self) -> None:
        """What to say beside the list, or in its place."""
        words = ""
        if not self._desk.control.history:
            words = "No change of this unit was made from here." if self._desk.looked else ""
        if self._desk.trouble:
            words = f"As far as is known here: {self._desk.trouble}"
        note = self.query_one("#note", Static)
        note.display = bool(words)
        note.update(Content(fmt.clean(words)))
