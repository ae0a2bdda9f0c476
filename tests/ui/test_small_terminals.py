"""Dialogs and lists in terminals that are too small for them: nothing ends the app."""

from __future__ import annotations

import pytest

from tests.ui.control_keys import operating, shows, until
from tests.ui.control_world import FakeControl, control_app
from tests.ui.queue_world import StillQueue
from tests.ui.results_world import GivenResults

KEYS = {
    "palette": ["ctrl+p", "pagedown", "pageup", "end", "home", "escape"],
    "theme": ["ctrl+t", "pagedown", "pageup", "escape"],
    "hosts": ["3", "pagedown", "pageup", "end"],
    "presets": ["4", "pagedown", "pageup", "e", "escape"],
    "choice": ["2", "r", "pagedown", "pageup", "escape", "p", "end", "pageup", "escape"],
    "results": ["6", "v", "c", "c", "c", "v", "o", "pagedown", "escape", "s", "escape", "G", "/"],
    "help": ["question_mark", "pagedown", "escape"],
    "restart": ["R", "pagedown", "escape"],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("size", [(80, 4), (80, 1), (6, 24), (4, 3), (1, 1)])
async def test_no_terminal_is_too_small_for_keys(keys: list[str], size: tuple[int, int]) -> None:
    app = control_app("live", FakeControl(), results=GivenResults())
    async with app.run_test(size=size) as pilot:
        await pilot.press(*keys)
        assert app.is_running


async def test_the_list_of_themes_marks_the_one_in_force() -> None:
    app = control_app("live", FakeControl())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("ctrl+t")
        for _ in range(200):  # the list is filled by a search of its own
            picture = app.export_screenshot().replace("&#160;", " ")
            if f"* {app.theme}" in picture:
                return
            await pilot.pause(0.02)
        raise AssertionError(picture)


async def test_the_queue_in_a_terminal_that_is_too_small_shows_only_that() -> None:
    async with operating("live", size=(80, 24), queue=StillQueue()) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "budget 12 topk 4"))
        await operator.pilot.resize_terminal(50, 14)
        await until(operator, shows(operator, "terminal too small"))
        assert "terminal too small" in operator.text().splitlines()[0]
        assert "budget" not in operator.text()
        await operator.pilot.resize_terminal(80, 24)
        await until(operator, shows(operator, "budget 12 topk 4"))
        assert "terminal too small" not in operator.text()
        assert "q Quit" in operator.text()


async def test_a_list_to_choose_from_says_its_keys() -> None:
    async with operating("live", queue=StillQueue()) as operator:
        await operator.press("5", "L")
        await until(operator, shows(operator, "⏎ chooses  esc closes  * chosen"))
