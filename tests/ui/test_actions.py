"""Every action in the registry is carried out by somebody, and is in the palette and the help."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from textual.app import App
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from ddtui.ui.actions import ACTIONS, Scope, actions, bindings, refused_read_only
from ddtui.ui.app import DdtuiApp
from ddtui.ui.keymap import default_keymap, read_keymap
from ddtui.ui.palette import ActionCommands, actions_of, scope_of
from ddtui.ui.screens.help import ABOUT, HelpScreen
from ddtui.ui.screens.history import HistoryScreen
from ddtui.ui.screens.hosts import HostsScreen
from ddtui.ui.screens.log import LogScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.screens.queue import QueueScreen
from ddtui.ui.screens.results import ResultsScreen
from tests.ui.log_world import LogApp, many

PLACES: dict[Scope, type[App[Any]] | type[Screen[Any]]] = {
    Scope.APP: DdtuiApp,
    Scope.MONITOR: MonitorScreen,
    Scope.LOG: LogScreen,
    Scope.HOSTS: HostsScreen,
    Scope.PRESETS: PresetsScreen,
    Scope.HISTORY: HistoryScreen,
    Scope.RESULTS: ResultsScreen,
    Scope.QUEUE: QueueScreen,
}


@pytest.mark.parametrize("each", ACTIONS, ids=lambda each: each.id)
def test_every_action_has_a_handler(each: Any) -> None:
    place = PLACES[each.scope]
    assert callable(getattr(place, f"action_{each.handler}", None)), f"{place.__name__} lacks it"


@pytest.mark.parametrize("scope", Scope)
def test_every_place_binds_its_actions(scope: Scope) -> None:
    bound = {getattr(each, "id", None) for each in PLACES[scope].BINDINGS}
    assert bound >= {each.id for each in actions(scope)}
    assert scope in ABOUT


def test_what_changes_the_host_is_marked_as_that_and_nothing_else() -> None:
    marked = {each.id for each in ACTIONS if each.destructive}
    runs = {"queue.start", "queue.stop"}
    assert marked == {"app.rollback", "app.restart", "app.decide", "presets.apply", *runs}
    assert refused_read_only(Scope.PRESETS, "apply")
    assert refused_read_only(Scope.APP, "restart")
    assert not refused_read_only(Scope.LOG, "follow")
    queues = {each.id for each in ACTIONS if each.queues}
    looks = {"open", "reload", "copy", "close", "down", "up", "page-down", "page-up"}
    assert queues | runs == {each.id for each in actions(Scope.QUEUE)} - {
        f"queue.{name}" for name in looks
    }
    assert refused_read_only(Scope.QUEUE, "hold")
    assert not refused_read_only(Scope.QUEUE, "open")


def test_bindings_carry_ids_for_the_key_map() -> None:
    (quit_binding,) = (each for each in bindings(Scope.APP) if each.id == "app.quit")  # type: ignore[union-attr]
    assert quit_binding.key == "q,ctrl+c"  # type: ignore[union-attr]
    assert quit_binding.action == "app.quit"  # type: ignore[union-attr]


NOW_OF_THE_APP = tuple(each for each in actions(Scope.APP) if each.id != "app.decide")
"""The app's actions while nothing waits for a decision."""


async def entries(provider: ActionCommands, query: str = "") -> dict[str, Any]:
    hits = provider.search(query) if query else provider.discover()
    return {str(hit.text): hit async for hit in hits}


async def test_the_palette_lists_every_action_of_the_screen() -> None:
    app = LogApp(*many(50))
    async with app.run_test():
        found = await entries(ActionCommands(app.screen))
        expected = {
            f"{each.group}: {each.title}"
            for each in (*actions(Scope.LOG), *NOW_OF_THE_APP)
            if each.id != "app.palette"
        }
        assert set(found) == expected
        assert "Move: Follow  f" in str(found["Move: Follow"].display)
        by_words = await entries(ActionCommands(app.screen), "clipboard")
        assert list(by_words) == ["Copy and save: Copy"]


async def test_the_palette_runs_what_was_chosen() -> None:
    app = LogApp(*many(50))
    async with app.run_test() as pilot:
        await pilot.press("colon")
        await until_palette_has_hits(pilot, "wrap")
        await pilot.press("enter")
        await pilot.pause()
        assert app.log_screen.view.wrap


async def until_palette_has_hits(pilot: Pilot[object], query: str) -> None:
    """Type a query, and wait until the palette has found something."""
    palette = pilot.app.screen
    assert isinstance(palette, CommandPalette)
    await pilot.press(*query)
    for _ in range(100):
        await pilot.pause(0.02)
        options = palette.query_one("CommandList")
        if (
            getattr(options, "highlighted", None) is not None
            and query
            in str(
                options.get_option_at_index(0).prompt  # type: ignore[attr-defined]
            ).lower()
        ):
            return
    raise AssertionError(f"the palette found nothing for {query}")


def shown_help(app: App[Any]) -> HelpScreen:
    assert isinstance(app.screen, HelpScreen)
    return app.screen


def help_text(screen: HelpScreen) -> str:
    table = screen.query_one("#keys", Static).content
    console = Console(width=110, file=io.StringIO())
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


async def test_help_lists_every_action_with_the_keys_in_force() -> None:
    app = LogApp(keymap=read_keymap({"log.follow": ["F", "f9"]}))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("question_mark")
        text = help_text(shown_help(app))
        for each in (*actions(Scope.LOG), *NOW_OF_THE_APP):
            assert each.id in text
        (follow,) = (row for row in text.splitlines() if "log.follow" in row)
        assert follow.split()[:2] == ["F", "f9"]
        assert follow.endswith("log.follow *")
        assert "config.toml" in "".join(text.split())
        await pilot.press("escape")
        assert app.screen is app.log_screen


@pytest.mark.parametrize("size", [(60, 16), (120, 40)])
async def test_help_closes_by_the_key_that_opened_it(size: tuple[int, int]) -> None:
    app = LogApp()
    async with app.run_test(size=size) as pilot:
        for key in ("question_mark", "f1", "escape", "q", "enter"):
            await pilot.press("question_mark")
            shown_help(app)
            await pilot.press("j", "k", key)
            assert app.screen is app.log_screen
        assert app.is_running


async def test_a_screen_without_actions_of_its_own_has_the_apps() -> None:
    app = LogApp()
    async with app.run_test():
        plain: Screen[Any] = Screen()
        await app.push_screen(plain)
        assert scope_of(plain) is Scope.APP
        assert actions_of(plain) == NOW_OF_THE_APP
        assert scope_of(app.log_screen) is Scope.LOG


def test_titles_are_unique_within_reach() -> None:
    for scope in Scope:
        names = [f"{each.group}: {each.title}" for each in actions(scope, Scope.APP)]
        assert len(set(names)) == len(names)
    assert default_keymap().changed == frozenset()
