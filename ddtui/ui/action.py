"""What one action is: the pieces that `ddtui.ui.actions` puts its registry together from."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Scope(enum.StrEnum):
    """Where an action works: everywhere, or on one screen."""

    APP = "app"
    MONITOR = "monitor"
    LOG = "log"
    HOSTS = "hosts"
    PRESETS = "presets"
    HISTORY = "history"
    QUEUE = "queue"
    RESULTS = "results"


class Group(enum.StrEnum):
    """What an action belongs to: the headings of the help."""

    GO = "Go to"
    HOST = "Host"
    CHANGE = "Change the engine"
    QUEUE = "Change the queue"
    MOVE = "Move"
    SEARCH = "Search"
    FILTER = "Filter"
    SHOW = "Show"
    COPY = "Copy and save"
    APP = "ddtui"


@dataclass(frozen=True)
class Action:
    """One thing that an operator can do."""

    id: str
    """`scope.name`, as written in the `[keys]` table."""
    title: str
    """One to three words, for the footer."""
    description: str
    """One sentence, for the palette and the help."""
    keys: tuple[str, ...]
    """Default keys, as Textual names them; a printable character stands for itself."""
    group: Group
    footer: bool = False
    """Whether the footer shows it. The palette and the help show all."""
    destructive: bool = False
    """Whether it changes something on the host. Hidden and refused with `--read-only`."""
    queues: bool = False
    """Whether it changes what will be run on the host. Refused with `--read-only` likewise."""
    method: str = ""
    """Set where Textual brings the method itself under another name."""

    @property
    def scope(self) -> Scope:
        """The scope that its id names."""
        return Scope(self.id.partition(".")[0])

    @property
    def handler(self) -> str:
        """Name of the Textual action: the method's name without `action_`."""
        return self.method or self.id.partition(".")[2].replace("-", "_")

    @property
    def command(self) -> str:
        """The action as Textual runs it, with its namespace."""
        return f"{'app' if self.scope is Scope.APP else 'screen'}.{self.handler}"


def steps(scope: Scope, what: str) -> tuple[Action, Action]:
    """Moving in a screen's list."""
    return (
        Action(f"{scope}.down", "Down", f"One {what} down", ("j",), Group.MOVE),
        Action(f"{scope}.up", "Up", f"One {what} up", ("k",), Group.MOVE),
    )
