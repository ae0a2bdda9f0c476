"""Everything an operator can do, once: footer, command palette, `?` help and the key map read this.

An action's id is `scope.name`. The method `action_<name>` carries it out (dashes become
underscores): the app's, for the scope `app`, else that of the scope's screen. An action without
such a method fails a test.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding, BindingType

from ddtui.ui.action import Action, Group, Scope, steps
from ddtui.ui.queue_actions import QUEUE
from ddtui.ui.results_actions import RESULTS

__all__ = [
    "ACTIONS",
    "Action",
    "Group",
    "Scope",
    "action",
    "actions",
    "bindings",
    "refused_read_only",
]


_APP = (
    Action("app.monitor", "Monitor", "Show the monitor", ("1",), Group.GO, footer=True),
    Action("app.log", "Log", "Show the unit's journal", ("2",), Group.GO, footer=True),
    Action("app.hosts", "Hosts", "Show all configured hosts", ("3",), Group.GO, footer=True),
    Action("app.presets", "Presets", "Show the presets, and apply one", ("4",), Group.GO, True),
    Action("app.queue", "Queue", "Show the experiments of the host", ("5",), Group.GO, True),
    Action("app.results", "Results", "Show what was measured", ("6",), Group.GO, footer=True),
    Action(
        "app.history",
        "History",
        "Show the changes made from this machine",
        ("H",),
        Group.GO,
        footer=True,
    ),
    Action(
        "app.reconnect",
        "Try now",
        "Try to reach the host now instead of waiting for the next try",
        ("ctrl+r",),
        Group.HOST,
    ),
    Action(
        "app.rollback",
        "Roll back",
        "Bring back the configuration before the last change; asks first",
        ("B",),
        Group.CHANGE,
        destructive=True,
    ),
    Action(
        "app.restart",
        "Restart",
        "Stop the engine and start it as it is configured; asks first",
        ("R",),
        Group.CHANGE,
        destructive=True,
    ),
    Action(
        "app.decide",
        "Decide",
        "Answer what a reconfiguration asks, or carry on one that was interrupted",
        ("D",),
        Group.CHANGE,
        footer=True,
        destructive=True,
    ),
    Action(
        "app.palette",
        "Commands",
        "Search all commands by name",
        ("ctrl+p", ":"),
        Group.APP,
        method="command_palette",
    ),
    Action("app.help", "Help", "Explain this screen and its keys", ("?", "f1"), Group.APP, True),
    Action(
        "app.theme",
        "Theme",
        "Choose the colours",
        ("ctrl+t",),
        Group.APP,
        method="change_theme",
    ),
    Action(
        "app.screenshot",
        "Screenshot",
        "Save a picture of the screen (SVG) to a new file, and say where",
        ("f12",),
        Group.COPY,
        method="save_screen",
    ),
    Action("app.quit", "Quit", "Leave ddtui; the host goes on", ("q", "ctrl+c"), Group.APP, True),
)

_LOG_MOVE = (
    Action(
        "log.follow",
        "Follow",
        "Follow new lines, or stop and stay where you are",
        ("f",),
        Group.MOVE,
        footer=True,
    ),
    Action("log.down", "Down", "One line down", ("j", "down"), Group.MOVE),
    Action("log.up", "Up", "One line up; stops following", ("k", "up"), Group.MOVE),
    Action("log.page-down", "Page down", "One page down", ("pagedown", "space"), Group.MOVE),
    Action("log.page-up", "Page up", "One page up", ("pageup",), Group.MOVE),
    Action("log.top", "First line", "To the oldest line kept", ("g", "home"), Group.MOVE),
    Action("log.end", "Last line", "To the newest line, and follow", ("G", "end"), Group.MOVE),
    Action("log.left", "Left", "Scroll long lines to the left", ("left",), Group.MOVE),
    Action("log.right", "Right", "Scroll long lines to the right", ("right",), Group.MOVE),
)

_LOG_FIND = (
    Action("log.search", "Search", "Search the lines shown", ("/",), Group.SEARCH, footer=True),
    Action("log.next", "Next match", "Go to the next match", ("n",), Group.SEARCH),
    Action("log.previous", "Previous match", "Go to the previous match", ("N",), Group.SEARCH),
    Action(
        "log.regex",
        "Regex",
        "Read search and text filter as regular expressions, or as plain text",
        ("ctrl+g",),
        Group.SEARCH,
    ),
    Action(
        "log.cancel",
        "Clear search",
        "Close the search, then drop the selection, then the search's matches",
        ("escape",),
        Group.SEARCH,
    ),
    Action(
        "log.text",
        "Text filter",
        "Show only lines with a text; a leading ! shows those without it",
        ("&",),
        Group.FILTER,
    ),
    Action(
        "log.level",
        "Level",
        "Lowest level shown: all, info, warnings, errors",
        ("l",),
        Group.FILTER,
        footer=True,
    ),
    Action("log.rank", "Rank", "Choose the rank shown", ("r",), Group.FILTER, footer=True),
    Action("log.phase", "Phase", "Choose the phase shown", ("p",), Group.FILTER),
    Action(
        "log.invocation",
        "Start",
        "Show all starts of the unit, only this one, or only earlier ones",
        ("i",),
        Group.FILTER,
    ),
    Action("log.bars", "Bars", "Show or hide progress bars", ("b",), Group.FILTER),
    Action(
        "log.noise",
        "Polls",
        "Show or hide answered polls of health and metrics, ddtui's own among them",
        ("z",),
        Group.FILTER,
    ),
    Action("log.reset", "All lines", "Remove every filter", ("c",), Group.FILTER),
)

_LOG_SHOW = (
    Action("log.wrap", "Wrap", "Wrap long lines, or scroll them", ("w",), Group.SHOW, footer=True),
    Action("log.stamps", "Time", "Show or hide the host's time of each line", ("t",), Group.SHOW),
    Action("log.select", "Select", "Begin or end a selection of lines", ("v",), Group.COPY),
    Action(
        "log.copy",
        "Copy",
        "Copy the selected lines, or the line under the cursor, to the clipboard and a file",
        ("y",),
        Group.COPY,
        footer=True,
    ),
    Action("log.save", "Save", "Save the lines shown to a new file", ("s",), Group.COPY, True),
)

_MONITOR = (
    Action(
        "monitor.pause",
        "Pause",
        "Freeze what is shown, or go on; the host is watched all the same",
        ("p", "space"),
        Group.SHOW,
        footer=True,
    ),
    Action(
        "monitor.hide",
        "Hide",
        "Hide a reconfiguration that has ended",
        ("escape",),
        Group.SHOW,
    ),
)


_PRESETS = (
    Action(
        "presets.apply",
        "Apply",
        "Stop the engine and start it with this preset; shows all that changes, and asks first",
        ("a",),
        Group.CHANGE,
        footer=True,
        destructive=True,
    ),
    Action(
        "presets.edit",
        "Set",
        "Set a knob, a flag or a variable beside the preset: budget=16, flag:NAME=1, env:NAME=1",
        ("e",),
        Group.CHANGE,
        footer=True,
    ),
    Action(
        "presets.clear",
        "Drop",
        "Drop what was set beside the preset",
        ("x",),
        Group.CHANGE,
    ),
    Action(
        "presets.save",
        "Save",
        "Save the preset, with what was set beside it, under a new name",
        ("s",),
        Group.COPY,
        footer=True,
    ),
    Action(
        "presets.copy",
        "Copy",
        "Copy what is told of the preset, lines meant for the host among it",
        ("y",),
        Group.COPY,
    ),
    Action("presets.filter", "Filter", "Show only some presets", ("/",), Group.SEARCH, True),
    Action(
        "presets.cancel",
        "Close",
        "Close the line that is typed into, drop the filter, then hide a change that has ended",
        ("escape",),
        Group.SEARCH,
    ),
    Action("presets.reload", "Reload", "Read the presets and plan again", ("r",), Group.SHOW),
    *steps(Scope.PRESETS, "preset"),
    Action(
        "presets.page-down",
        "Further",
        "Scroll what the preset does",
        ("pagedown", "J"),
        Group.MOVE,
    ),
    Action(
        "presets.page-up",
        "Back",
        "Scroll what the preset does back",
        ("pageup", "K"),
        Group.MOVE,
    ),
)

_HISTORY = (
    Action(
        "history.open",
        "Details",
        "Show the highlighted change in full: what was asked, how it ended, each step",
        ("o",),
        Group.SHOW,
        footer=True,
    ),
    Action("history.reload", "Reload", "Read the history again", ("r",), Group.SHOW, True),
    *steps(Scope.HISTORY, "change"),
)

_HOSTS = (
    Action(
        "hosts.open",
        "Open",
        "Leave this host and open the highlighted one",
        ("o",),
        Group.HOST,
        footer=True,
    ),
    *steps(Scope.HOSTS, "host"),
)

ACTIONS: tuple[Action, ...] = (
    *_APP,
    *_MONITOR,
    *_LOG_MOVE,
    *_LOG_FIND,
    *_LOG_SHOW,
    *_HOSTS,
    *_PRESETS,
    *_HISTORY,
    *QUEUE,
    *RESULTS,
)
"""All actions, in the order in which the help lists them."""


def actions(*scopes: Scope) -> tuple[Action, ...]:
    """Actions of some scopes, in the registry's order."""
    return tuple(action for action in ACTIONS if action.scope in scopes)


def action(action_id: str) -> Action:
    """The action with an id.

    Raises:
        KeyError: no action has it.
    """
    for candidate in ACTIONS:
        if candidate.id == action_id:
            return candidate
    raise KeyError(action_id)


def bindings(scope: Scope, among: Iterable[Action] | None = None) -> list[BindingType]:
    """What to set as `BINDINGS` of the app (`Scope.APP`) or of a scope's screen.

    The bindings carry the actions' ids, so that `App.set_keymap` finds them.
    """
    return [
        Binding(
            ",".join(each.keys),
            each.command,
            each.title,
            show=each.footer,
            tooltip=each.description,
            id=each.id,
        )
        for each in (ACTIONS if among is None else among)
        if each.scope is scope
    ]


def refused_read_only(scope: Scope, handler: str) -> bool:
    """Whether `--read-only` refuses a Textual action name: to be asked in `check_action`."""
    return any(
        (each.destructive or each.queues) and each.handler == handler for each in actions(scope)
    )
