"""Keys that are typed right after a question has closed do nothing below it."""

from __future__ import annotations

from msgspec.structs import replace

from ddtui.core.launch import Finding, Level
from ddtui.ui.aftermath import AFTER, AFTER_A_WORD, REST, Aftermath
from ddtui.ui.queue_source import RunView
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.screens.queue_like import LikeScreen
from tests.ui.control_keys import operating, shows, until
from tests.ui.control_world import FakeControl
from tests.ui.queue_world import FULL, StillQueue

LIVE = "live"
"""A scene in which requests run, so that the unit's name must be typed."""


def test_what_follows_at_once_is_swallowed_until_it_rests() -> None:
    after = Aftermath()
    assert not after.swallows("m", 0.0)
    after.asked(10.0, word=False)
    assert after.swallows("m", 10.0 + AFTER - 0.01)
    at = 10.0 + AFTER - 0.01
    for _ in range(20):  # a word that is typed slowly
        at += REST - 0.01
        assert after.swallows("m", at)
    assert not after.swallows("m", at + REST)


def test_a_question_that_asks_for_a_word_is_followed_longer() -> None:
    after = Aftermath()
    after.asked(10.0, word=True)
    assert after.swallows("m", 10.0 + AFTER_A_WORD - 0.01)
    assert not Aftermath().swallows("m", 10.0)


def test_what_only_moves_passes_and_it_is_told_once() -> None:
    after = Aftermath()
    after.asked(10.0, word=True)
    assert not after.swallows("down", 10.1)
    assert after.swallows("", 10.1)  # pasted text
    assert [after.worth_telling(), after.worth_telling()] == [True, False]
    after.asked(12.0, word=True)
    assert after.worth_telling()


async def test_the_word_typed_after_a_cancelled_question_is_no_keys() -> None:
    queue = StillQueue(replace(FULL, run=RunView()))
    async with operating(LIVE, queue=queue) as operator:
        await operator.press("5")
        below = operator.app.screen
        await operator.press("s")
        word = (await operator.until_asked()).words.typed
        await operator.settle(2.0)
        assert f"type {word} first; enter and esc: Cancel" in operator.text()
        await operator.press("enter")
        await until(operator, lambda: operator.app.screen is below)
        await until(operator, shows(operator, "Cancelled: nothing was done"))
        await operator.press(*word, each=0.3)
        await until(operator, shows(operator, "Keys typed right after the question were ignored"))
        assert operator.app.screen is below
        await operator.press("m")
        await until(operator, lambda: isinstance(operator.app.screen, LikeScreen))
        assert (queue.begun, queue.changed) == ([], [])


async def test_after_what_only_told_something_keys_act_at_once() -> None:
    control = FakeControl()
    control.no_restart = (Finding(Level.ERROR, "right-missing", "sudo does not allow it"),)
    async with operating(LIVE, control) as operator:
        await operator.press("R")
        assert not (await operator.until_asked()).words.action
        await operator.press("escape", "4", each=0.1)
        await until(operator, lambda: isinstance(operator.app.screen, PresetsScreen))
