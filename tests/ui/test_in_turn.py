"""What is typed right after a key that opens something reaches what it opens, and no action."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual.widgets import Input

from ddtui.ui import in_turn
from ddtui.ui.keymap import canonical
from ddtui.ui.palette import Palette
from ddtui.ui.screens.choice import ChoiceScreen
from ddtui.ui.screens.help import HelpScreen
from ddtui.ui.screens.log import LogScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.screens.waiting import WaitingScreen
from ddtui.ui.source import ControlProblem
from ddtui.ui.widgets.prompt import Prompt
from tests.ui.control_keys import Operator, at_rest, operating, until
from tests.ui.control_world import FakeControl


async def type_at_once(operator: Operator, *keys: str) -> None:
    """All keys in one go, as a terminal delivers what was typed while the app was busy."""
    for key in keys:
        event = events.Key(canonical(key), key if len(key) == 1 else None)
        event.time = operator.now
        operator.app.post_message(event)
    await operator.pilot.pause()
    await until(operator, lambda: not operator.app.typing)


def waits(operator: Operator) -> bool:
    return isinstance(operator.app.screen, WaitingScreen)


def typed(operator: Operator) -> str:
    return operator.app.screen.query_one(Prompt).value


@pytest.mark.parametrize("key", ["s", "e", "/"])
async def test_text_typed_right_after_a_key_reaches_the_prompt_of_the_presets(key: str) -> None:
    async with operating("idle") as operator:
        await operator.press("4", "j")
        await type_at_once(operator, key, *"aBRDq4a")
        assert isinstance(operator.app.screen, PresetsScreen)
        assert typed(operator) == "aBRDq4a"
        assert operator.app.return_code is None
        assert operator.control.begun == []


async def test_a_prompt_opens_even_where_there_is_nothing_to_save() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "end")
        await type_at_once(operator, "s", *"aBR", "enter")
        assert typed(operator) == "aBR"
        assert "nothing to save" in operator.text()
        await operator.press("escape")
        await type_at_once(operator, "/", *"zzz", "enter", "e", *"aBR", "tab", "enter")
        assert typed(operator) == "aBR"
        assert "no preset" in operator.text()


async def test_keys_of_several_screens_in_one_go() -> None:
    async with operating("idle") as operator:
        await type_at_once(operator, "2", "/", *"Decode", "enter", "4", "/", *"chain", "enter")
        assert isinstance(operator.app.screen, PresetsScreen)
        assert "1 of 4" in operator.text()
        log = operator.app.get_screen("log")
        assert isinstance(log, LogScreen)
        assert log.lines.search is not None
        assert log.lines.search.pattern == "Decode"


async def test_text_typed_right_after_the_palettes_key_is_searched_for() -> None:
    async with operating("idle") as operator:
        await type_at_once(operator, "ctrl+p", *"aBRDq")
        assert isinstance(operator.app.screen, Palette)
        assert operator.app.screen.query_one(Input).value == "aBRDq"


async def test_keys_right_after_a_lists_key_move_in_the_list() -> None:
    async with operating("live") as operator:
        await operator.press("2")
        log = operator.app.screen
        assert isinstance(log, LogScreen)
        await until(operator, lambda: bool(log.lines.ranks))
        await type_at_once(operator, "r", "j", "j", "enter")
        assert log.lines.filter.rank is not None
        await type_at_once(operator, "r", "q")
        assert operator.app.screen is log
        await type_at_once(operator, "r", "a", "B")
        assert isinstance(operator.app.screen, ChoiceScreen)


async def test_help_closes_at_once() -> None:
    async with operating("live") as operator:
        await type_at_once(operator, "?", "q", "?", "B")
        assert isinstance(operator.app.screen, HelpScreen)


@pytest.mark.parametrize("key", ["a", "B", "R"])
async def test_keys_right_after_one_that_changes_the_host_wait_for_its_question(key: str) -> None:
    """They reach neither the screen below while the plan is made, nor the question itself."""
    async with operating("live") as operator:
        await operator.press("4")
        await type_at_once(operator, key, *"sglang-kimi", "right", "enter", "4", "B", "s")
        question = await operator.until_asked()
        assert question.words.typed == "sglang-kimi"
        await operator.settle(5.0)
        assert operator.app.screen is question
        assert question.deliberation.typed == ""
        assert operator.control.begun == []
        await operator.press("escape")
        assert operator.app.screen.query_one(Prompt).purpose == ""


async def test_waiting_for_a_plan_can_be_given_up() -> None:
    control = FakeControl()
    planned, going_on = asyncio.Event(), asyncio.Event()

    async def plan(_request: object) -> None:
        planned.set()
        await going_on.wait()

    async with operating("idle", control) as operator:
        await operator.press("4")
        control.plan = plan  # type: ignore[method-assign, assignment]
        await operator.press("a")
        await planned.wait()
        assert waits(operator)
        assert "Apply budget-16" in operator.text()
        control.trouble = ControlProblem("it went wrong", "")
        operator.app._check()
        assert waits(operator)
        await operator.press("R", "q", "escape")
        assert not waits(operator)
        operator.app._check()
        await operator.until_asked()
        assert "it went wrong" in operator.text()
        await operator.settle(3.0)
        await operator.press("escape")
        going_on.set()
        await at_rest(operator.pilot)
        assert isinstance(operator.app.screen, PresetsScreen)


async def test_a_paste_waits_its_turn() -> None:
    async with operating("idle") as operator:
        await operator.press("4")
        operator.app.post_message(events.Key("s", "s"))
        operator.app.post_message(events.Paste("aBRa"))
        await operator.pilot.pause()
        await until(operator, lambda: typed(operator) == "aBRa")


async def test_keys_never_go_deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when what a key did never ends, nor when what had the focus is gone with the key."""
    monkeypatch.setattr(in_turn, "PATIENCE", 0.05)
    async with operating("live") as operator:
        monkeypatch.setattr(operator.app._in_turn, "_follow", lambda *_: None)
        await type_at_once(operator, "2", "1", "2")
        assert isinstance(operator.app.screen, LogScreen)
        monkeypatch.undo()
        field = Input()
        await operator.app.screen.mount(field)
        operator.app.screen.set_focus(field)
        operator.app.post_message(events.Key("1", "1"))
        removal = field.remove()
        operator.app.post_message(events.Key("1", "1"))
        await asyncio.wait_for(removal, 5)
        await until(operator, lambda: isinstance(operator.app.screen, MonitorScreen))


async def test_a_question_is_not_answered_while_keys_wait_for_their_turn() -> None:
    """A key that was pressed in time takes the answer back, however late it gets its turn."""
    async with operating("idle") as operator:
        await operator.press("R")
        question = await operator.until_asked()
        await operator.settle(3.0)
        await operator.press("right", "enter")
        turns = operator.app._in_turn
        late = events.Key("x", "x")
        late.time = operator.now + 0.1
        turns._waiting.append(late)  # it waits behind another one that takes long
        operator.now += 5.0
        question._when_due()
        await at_rest(operator.pilot)
        assert operator.control.begun == []
        assert operator.app.screen is question
        turns._waiting.clear()
        operator.app.post_message(late)
        await at_rest(operator.pilot)
        assert operator.control.begun == []
        assert "burst" in question.deliberation.note
