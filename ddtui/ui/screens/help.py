"""The help of a screen: what it shows, and all that can be done there, with the keys in force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from ddtui.config.paths import find_config
from ddtui.ui.actions import Action, Group, Scope
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.palette import actions_of, keymap_of, scope_of
from ddtui.ui.screens.modal import Modal

ABOUT = {
    Scope.APP: "ddtui shows one host. Nothing on it changes unless you confirm it.",
    Scope.MONITOR: (
        "The monitor shows what is known of the host now. A figure carries its source; one that is "
        "out of date looks faded and says how old it is. Evidence for readiness: {ok} proved, "
        "{maybe} nothing against it, {pending} not known yet, {failed} against it. The line beside "
        "a GPU is its utilization, 0 to 100 %, over the last minutes, with now at the right."
    ),
    Scope.LOG: (
        "The log shows the unit's journal. Letters tell the level: E error, W warning, I info, "
        "D debug; where the engine writes none, it is inferred from the words. Times are by the "
        "host's clock, in your time zone. Scrolling up stops following."
    ),
    Scope.HOSTS: (
        "All configured hosts. ddtui watches one at a time: choosing another one closes this "
        "connection and opens that host."
    ),
    Scope.PRESETS: (
        "Presets, what each would change of the unit as it is configured now, and what speaks "
        "against it. Nothing is stopped before you have confirmed it, and nothing is stopped for "
        "what cannot work."
    ),
    Scope.HISTORY: (
        "The changes of this unit that were made from this machine, the newest first: who asked "
        "for what, how it ended, and with which proof or cause. Others' changes are not among "
        "them. `ddtui history` prints the same, for all units of a host."
    ),
    Scope.QUEUE: (
        "The experiments of this host: what runs, what waits in its order, what ended. It may be "
        "changed while it is run, from several terminals at once. `load` marks what the engine is "
        "loaded for. `other base` marks what would be another configuration than when it was "
        "added, as something else is in force by now. Nothing is run before you "
        "have confirmed it. `ddtui queue` and `ddtui run` do the same."
    ),
    Scope.RESULTS: (
        "What was measured on this host, one row per configuration, compared with the baseline. "
        "Faster and slower are told by 95 % intervals, else it is a tie. tok/s per user is "
        "acceptance length over step time: a change pays if acceptance (accept×) grows by more "
        "than the step time (step×). `ddtui results` prints the same."
    ),
}
"""What each screen is, in a few words."""


class HelpScreen(Modal[None]):
    """Explains the screen under it. Any of its closing keys leads back."""

    BINDINGS = [
        Binding("escape,q,question_mark,f1,enter", "dismiss_help", "Close", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 100; max-width: 96%; height: auto; max-height: 94%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    HelpScreen VerticalScroll {
        height: auto; max-height: 100%; scrollbar-size-vertical: 1; padding-right: 1;
    }
    HelpScreen #about { color: $label; margin-bottom: 1; }
    """

    def __init__(self, below: Screen[Any]) -> None:
        """Prepare the help.

        Args:
            below: The screen to explain.
        """
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        scope = scope_of(self._below)
        with Vertical() as box:
            box.border_title = Content(f" Help: {scope.title()} ")
            box.border_subtitle = Content(" esc closes ")
            with VerticalScroll():
                yield Static(Content(self._about(scope)), id="about")
                yield Static(id="keys")

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._fill())
        self.query_one(VerticalScroll).focus()
        self._fill()

    def on_resize(self) -> None:
        self._fill()

    def action_dismiss_help(self) -> None:
        """Back to the screen below."""
        self.dismiss(None)

    def action_scroll(self, step: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)

    def _about(self, scope: Scope) -> str:
        glyphs = glyphs_of(self.app)
        marks = {name: getattr(glyphs, name) for name in ("ok", "maybe", "pending", "failed")}
        return ABOUT[scope].format(**marks)

    def _fill(self) -> None:
        colors = self.app.theme_variables
        wide = self.size.width >= 90
        keymap = keymap_of(self._below)
        listed = actions_of(self._below)
        keys = max(8, *(cell_len(keymap.shown(action.id)) for action in listed))
        names = max(len(action.id) for action in listed) + 2 * bool(keymap.changed)
        parts: list[RenderableType] = []
        for group, each in _by_group(listed).items():
            parts.append(Text(str(group), style=f"bold {colors['primary']}"))
            table = Table.grid(padding=(0, 2), expand=True)
            table.add_column(width=keys, no_wrap=True)
            table.add_column(ratio=1, overflow="fold")
            if wide:
                table.add_column(width=names, no_wrap=True)
            for action in each:
                words = Text(action.description)
                if action.destructive:
                    words.append(" (changes the host)", style=colors["warning"])
                row = [Text(keymap.shown(action.id), style=f"bold {colors['accent']}"), words]
                if wide:
                    mine = action.id in keymap.changed
                    row.append(Text(f"{action.id}{' *' if mine else ''}", style=colors["label"]))
                table.add_row(*row)
            parts += [table, ""]
        by = "the names at the right" if wide else "names that a wider window shows here"
        note = f"Your own keys: the table [keys] of {find_config().file}, by {by}"
        if keymap.changed:
            note += "; * marks those that you have set"
        parts.append(Text(note + ".", style=colors["label"]))
        self.query_one("#keys", Static).update(Rows(*parts))


def _by_group(listed: Iterable[Action]) -> dict[Group, list[Action]]:
    """The actions under each heading once, in the order in which the headings come first."""
    found: dict[Group, list[Action]] = {}
    for action in listed:
        found.setdefault(action.group, []).append(action)
    return found
