"""The footer: the most needed keys first, and a mark where some have no room."""

from __future__ import annotations

import pytest

from ddtui.ui.widgets.key_bar import Hint, Hints, KeyBar, fitted
from tests.ui.control_world import FakeControl, control_app
from tests.ui.queue_world import queue_app

OWN: list[Hint] = [("s", "Start", ""), ("a", "Add", ""), ("e", "Edit", "")]
SCREENS: list[Hint] = [
    (str(at), name, "") for at, name in enumerate(("Monitor", "Log", "Hosts"), 1)
]
LAST: Hint = ("H", "History", "")
ALWAYS: list[Hint] = [("?", "Help", ""), ("q", "Quit", "")]


def words(width: int, own: list[Hint] = OWN, screens: list[Hint] = SCREENS) -> str:
    left, right = fitted(Hints(own, [*screens, LAST], ALWAYS), width)
    assert sum(len(key) + len(name) + 3 for key, name, _ in (*left, *right)) <= width
    return " ".join(f"{key} {name}" for key, name, _ in (*left, *right))


def test_what_fits_is_all_there() -> None:
    assert words(79) == "s Start a Add e Edit 1 Monitor 2 Log 3 Hosts H History ? Help q Quit"


def test_screens_are_told_in_short_where_their_names_have_no_room() -> None:
    assert words(66) == "s Start a Add e Edit 1-3 Go to H History ? More q Quit"
    assert words(55) == "s Start a Add e Edit 1-3 Go to ? More q Quit"


def test_the_most_needed_keys_stay_and_a_mark_tells_of_the_others() -> None:
    assert words(46) == "s Start a Add 1-3 Go to ? More q Quit"
    assert words(30) == "1-3 Go to ? More q Quit"
    assert words(20) == "? More q Quit"


def test_keys_that_are_not_in_a_row_are_not_told_in_short() -> None:
    other = [("f5", "Monitor", ""), *SCREENS[1:]]
    assert words(58, screens=other) == "s Start a Add e Edit f5 Monitor ? More q Quit"


@pytest.mark.parametrize("keys", [["5"], ["6"], ["4"], ["2"], ["3"], ["H"], []])
async def test_no_footer_of_a_small_terminal_drops_keys_without_a_mark(keys: list[str]) -> None:
    app = queue_app() if keys == ["5"] else control_app("live", FakeControl())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        bar = app.screen.query_one(KeyBar)
        hints, line = bar.hints(), bar.render_line(0).text
        dropped = [name for _, name, _ in (*hints.own, *hints.screens) if f" {name} " not in line]
        assert bool(dropped) == ("? More" in line)
