"""The command palette lists what the registry holds for the screen it was opened on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.theme import ThemeProvider
from textual.worker import Worker

from ddtui.ui.actions import ACTIONS, Action, Scope, actions
from ddtui.ui.keymap import Keymap, default_keymap
from ddtui.ui.screens.modal import nothing_to_await
from ddtui.ui.widgets.options import laid_out

PALETTE_CSS = """
CommandPalette SearchIcon { display: none; }
CommandPalette > Vertical { margin-top: 1; min-width: 12; }
CommandPalette #--input, CommandPalette #--input.--list-visible {
    border: round $primary; padding: 0 1; background: $surface;
}
CommandPalette CommandInput, CommandPalette CommandInput:focus {
    border: none; height: 1; min-width: 8;
}
CommandPalette CommandList, CommandPalette CommandList.--populating {
    min-width: 10; max-height: 65vh; padding: 0;
    border: round $primary; background: $surface;
}
"""
"""Style for the app. The palette's icon is an emoji, which terminals disagree on the width of."""


def scope_of(screen: Screen[Any]) -> Scope:
    """Which scope's actions a screen has, by its bindings; `Scope.APP` when it has none."""
    by_id = {each.id: each for each in ACTIONS}
    for binding in type(screen).BINDINGS:
        if isinstance(binding, Binding) and binding.id in by_id:
            return by_id[binding.id].scope
    return Scope.APP


def actions_of(screen: Screen[Any]) -> tuple[Action, ...]:
    """What an operator can do on a screen now: its own actions, then the app's."""
    scope = scope_of(screen)
    own = () if scope is Scope.APP else actions(scope)
    return tuple(
        each
        for each in (*own, *actions(Scope.APP))
        if (screen.app if each.scope is Scope.APP else screen).check_action(each.handler, ())
    )


def keymap_of(screen: Screen[Any]) -> Keymap:
    """The key map in force in a screen's app."""
    keymap = getattr(screen.app, "keymap", None)
    return keymap if isinstance(keymap, Keymap) else default_keymap()


_GATHER: Callable[[CommandPalette, str], Awaitable[None]] = vars(CommandPalette)[
    "_gather_commands"
].__wrapped__
"""Textual's search itself, without the worker around it."""


class Palette(CommandPalette):
    """Textual's command palette, mended as `ddtui.ui.widgets.options` and `Modal` are."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_current else nothing_to_await()

    def _gather_commands(self, search_value: str) -> Worker[None]:
        """Search, unless the palette has been closed before the search began."""

        async def search() -> None:
            try:
                if self.is_current:
                    await _GATHER(self, search_value)
            except NoMatches:
                if self.query(CommandList):  # else it was closed meanwhile, or the app ends
                    raise

        group = self._GATHER_COMMANDS_GROUP
        return self.run_worker(search, group=group, exclusive=True)

    def _action_command_list(self, action: str) -> None:
        if laid_out(self.query_one(CommandList)):
            super()._action_command_list(action)


class ThemeCommands(ThemeProvider):
    """All themes by name, the one in force marked."""

    @property
    def commands(self) -> list[tuple[str, Callable[[], None]]]:
        now = self.app.theme
        return [(f"{'*' if name == now else ' '} {name}", run) for name, run in super().commands]


class ActionCommands(Provider):
    """Set as `COMMANDS` of the app: every action of the screen, with its keys."""

    async def discover(self) -> Hits:
        for name, keys, action in self._entries():
            yield DiscoveryHit(
                Content(name).append(Content.styled(f"  {keys}", "dim")),
                self._runner(action),
                text=name,
                help=action.description,
            )

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, keys, action in self._entries():
            score = max(matcher.match(name), matcher.match(action.description) * 0.6)
            if score > 0:
                yield Hit(
                    score,
                    matcher.highlight(name).append(Content.styled(f"  {keys}", "dim")),
                    self._runner(action),
                    text=name,
                    help=action.description,
                )

    def _entries(self) -> Iterable[tuple[str, str, Action]]:
        keymap = keymap_of(self.screen)
        for action in actions_of(self.screen):
            if action.id != "app.palette":
                yield f"{action.group}: {action.title}", keymap.shown(action.id), action

    def _runner(self, action: Action) -> Callable[[], object]:
        return partial(self.screen.run_action, action.command)
