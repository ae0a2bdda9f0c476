"""The Queue screen: its table, what its keys do to a real queue, and what is asked before a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from textual.widgets import Input, OptionList

from ddtui.core.experiment import ExperimentState, Place
from ddtui.core.launch import Request
from ddtui.experiments.worked import Worked
from ddtui.ui.queue_source import QueueView
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.queue import QueueScreen
from ddtui.ui.screens.queue_grid import GridScreen
from ddtui.ui.screens.queue_like import LikeScreen
from ddtui.ui.source import ControlProblem
from ddtui.ui.widgets.prompt import Prompt
from tests.ui.control_keys import Operator, operating, shows, until
from tests.ui.queue_world import (
    EMPTY,
    HOSTILE_VIEW,
    IDLE,
    StillQueue,
    StoredQueue,
    fill,
)

State = ExperimentState


async def type_in(operator: Operator, words: str) -> None:
    """Write into the line, and confirm it."""
    operator.app.screen.query_one(Input).value = words
    await operator.pilot.pause()
    await operator.press("enter")


def budgets(queue: StoredQueue) -> list[object]:
    return [each.request.knobs.get("budget") for each in queue.queue.listed()]


# ---- what is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_table_tells_what_runs_waits_and_ended(size: tuple[int, int]) -> None:
    async with operating("live", size=size, queue=StillQueue()) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "measuring"))
        text = operator.text()
        for words in ("3 loads", "44 m", "run here", "158 tok/s", "best so far", "CUDA out of"):
            assert words in text
        lines = [each for each in text.splitlines() if "budget 8 topk 4" in each]
        assert any("143 tok/s" in each and "done" in each for each in lines)


async def test_the_details_follow_the_highlight_and_say_why_it_failed() -> None:
    async with operating("live", size=(200, 60), queue=StillQueue()) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "four more nodes pay"))
        await until(operator, shows(operator, "8 → 12"))
        assert "taken up" in operator.text()
        await operator.press(*"jjjjjjj")
        await until(operator, shows(operator, "lower mem_fraction to 0.84"))
        assert "torch.OutOfMemoryError" in operator.text()
        await operator.press("o")
        assert "Why it failed" in operator.text()
        await operator.press("escape")
        assert isinstance(operator.app.screen, QueueScreen)


async def test_what_cannot_be_planned_is_said_where_it_would_stand() -> None:
    queue = StillQueue(IDLE)

    def none(_request: Request) -> object:
        raise ControlProblem("the host does not answer", "try again")

    queue.make_plan = none  # type: ignore[assignment]
    async with operating("live", size=(200, 60), queue=queue) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "not known: the host does not answer"))


@pytest.mark.parametrize("read_only", [False, True])
async def test_an_empty_queue_says_how_to_begin(read_only: bool) -> None:
    async with operating("live", queue=StillQueue(EMPTY), read_only=read_only) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "Nothing is queued"))
        assert ("adds a grid" in operator.text()) is not read_only


async def test_a_queue_that_cannot_be_read_is_no_empty_one() -> None:
    broken = replace(EMPTY, version=-1, problem="cannot read the queue: disk I/O error")
    async with operating("live", queue=StillQueue(broken)) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "disk I/O error"))
        assert "Nothing is queued" not in operator.text()


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (200, 60)])
async def test_hostile_texts_stay_text(size: tuple[int, int]) -> None:
    queue = StillQueue(HOSTILE_VIEW)
    async with operating("hostile", size=size, queue=queue) as operator:
        await operator.press("5")
        for _ in HOSTILE_VIEW.experiments:
            await operator.press("o", "escape", "m", "escape", "j")
            text = operator.text()
            assert "\x1b" not in text
            assert "\u202e" not in text
        await operator.press("S", "escape")
        assert operator.app.is_running


async def test_a_terminal_that_is_too_small_says_so() -> None:
    async with operating("live", size=(50, 12), queue=StillQueue()) as operator:
        await operator.press("5")
        await until(operator, shows(operator, "terminal too small"))


async def test_the_monitor_tells_the_queue_in_short() -> None:
    async with operating("live", size=(120, 40), queue=StillQueue()) as operator:
        await until(operator, shows(operator, "Queue"))
        assert isinstance(operator.app.screen, MonitorScreen)
        for words in ("measuring budget 12 topk 4", "budget 12 topk 6", "3 loads", "run here"):
            assert words in operator.text()


async def test_the_highlight_stays_on_its_experiment_when_others_come(
    stored: StoredQueue,
) -> None:
    fill(stored, 4, 8)
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "j")
        draft = stored.queue.draft(Request(knobs={"budget": 2}))
        stored.queue.add([draft])
        stored.queue.move(draft.id, Place("first"))
        stored.read()
        operator.app.paint()
        await operator.pilot.pause()
        options = operator.app.screen.query_one(OptionList)
        assert options.highlighted == 2
        assert "budget 8" in str(options.get_option_at_index(2).prompt)


# ---- what keys do --------------------------------------------------------------------------------


async def test_one_is_added_and_a_mistake_is_told_beside_the_line(stored: StoredQueue) -> None:
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "a")
        await type_in(operator, "bugdet=4")
        await until(operator, shows(operator, "did you mean budget"))
        assert budgets(stored) == []
        await type_in(operator, "budget=4")
        await until(operator, shows(operator, "1 pending"))
        assert budgets(stored) == [4]


async def test_moving_holding_cancelling_and_clearing(stored: StoredQueue) -> None:
    fill(stored, 4, 8, 12)
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "j", "j", "K")
        await until(operator, lambda: budgets(stored) == [4, 12, 8])
        operator.app.paint()
        await operator.press("F")
        await until(operator, lambda: budgets(stored) == [12, 4, 8])
        operator.app.paint()
        await operator.press("J")
        await until(operator, lambda: budgets(stored) == [4, 12, 8])
        operator.app.paint()
        await operator.press("h")
        await until(operator, lambda: stored.queue.listed()[1].state is State.HELD)
        operator.app.paint()
        await operator.press("h")
        await until(operator, lambda: stored.queue.listed()[1].state is State.PENDING)
        operator.app.paint()
        await operator.press("c")
        await until(operator, lambda: stored.queue.listed()[2].state is State.CANCELLED)
        operator.app.paint()
        await operator.press("t")
        await until(operator, lambda: budgets(stored) == [4, 8, 12])
        operator.app.paint()
        await operator.press("c")
        await until(operator, lambda: stored.queue.listed()[2].state is State.CANCELLED)
        operator.app.paint()
        await operator.press("x")
        await until(operator, lambda: budgets(stored) == [4, 8])


async def test_editing_notes_pause_and_what_is_left(stored: StoredQueue) -> None:
    fill(stored, 4)
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "e")
        await type_in(operator, "budget=6 topk=2")
        await until(operator, lambda: budgets(stored) == [6])
        await operator.press("n")
        await type_in(operator, "for [b]Jonas[/b]")
        await until(operator, lambda: stored.queue.listed()[0].note == "for [b]Jonas[/b]")
        await operator.press("N")
        await type_in(operator, "slower")
        await until(operator, lambda: stored.queue.listed()[0].hypothesis == "slower")
        await operator.press("p")
        await until(operator, shows(operator, "PAUSED"))
        assert "Go on" in operator.text() or stored.queue.settings().paused
        await operator.press("p")
        await until(operator, lambda: not stored.queue.settings().paused)
        await operator.press("L", "k", "k", "enter")
        await until(operator, lambda: stored.queue.settings().leave == "baseline")


async def test_what_ended_can_neither_be_moved_nor_edited() -> None:
    queue = StillQueue()
    async with operating("live", queue=queue) as operator:
        await operator.press("5", "end", "K", "h", "e")
        await until(operator, shows(operator, "Cannot change it: it is cancelled"))
        assert not operator.app.screen.query_one(Prompt).purpose
        await operator.press(*"gm=6", each=0.2)  # meant for the line that did not come up
        await until(operator, shows(operator, "Keys typed right after the question were ignored"))
        assert isinstance(operator.app.screen, QueueScreen)
        assert queue.changed == []


async def test_the_highlight_goes_to_what_was_added(stored: StoredQueue) -> None:
    fill(stored, 4, 8)
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "a")
        await type_in(operator, "budget=16")
        await until(operator, lambda: budgets(stored) == [4, 8, 16])
        screen = operator.app.screen
        assert isinstance(screen, QueueScreen)

        def highlighted() -> object:
            each = screen.highlighted
            return None if each is None else each.request.knobs.get("budget")

        await until(operator, lambda: highlighted() == 16)
        await operator.press("F")
        await until(operator, lambda: budgets(stored) == [16, 4, 8])
        await until(operator, lambda: highlighted() == 16)


async def test_the_same_but_with_a_matching_budget_and_its_control() -> None:
    queue = StillQueue(IDLE)
    async with operating("idle", size=(120, 40), queue=queue) as operator:
        await operator.press("5", "m")
        assert isinstance(operator.app.screen, LikeScreen)
        await operator.press("enter")
        assert (isinstance(operator.app.screen, LikeScreen), queue.changed) == (True, [])
        operator.app.screen.query_one(Input).value = "block_size=16 control"
        await until(operator, shows(operator, "ceil(12 x 15 / 7) = 26"))
        assert "and the control" in operator.text()
        await operator.press("down")
        await operator.press("enter")
        await until(operator, lambda: bool(queue.changed))
        assert queue.changed == [("like", "1", "block_size=16 control", "ratio")]


async def test_a_policy_without_a_budget_is_not_added_and_says_why() -> None:
    queue = StillQueue(IDLE)
    async with operating("idle", size=(120, 40), queue=queue) as operator:
        await operator.press("5", "m")
        operator.app.screen.query_one(Input).value = "block_size=16"
        await operator.pilot.pause()
        await operator.press(*["down"] * 6)
        await operator.press("enter")
        assert isinstance(operator.app.screen, LikeScreen)
        assert "no budget: nothing was measured with block size 16" in operator.text()
        await operator.press("down", "enter")
        await until(operator, lambda: bool(queue.changed))
        assert queue.changed == [("like", "1", "block_size=16", "")]


async def test_a_grid_is_expanded_while_it_is_typed_and_checked_before_it_is_added() -> None:
    queue = StillQueue(IDLE)
    async with operating("idle", size=(120, 40), queue=queue) as operator:
        await operator.press("5", "g")
        screen = operator.app.screen
        assert isinstance(screen, GridScreen)
        screen.query_one(Input).value = "budget=4,8 topk="
        await until(operator, shows(operator, "^"))
        screen.query_one(Input).value = "budget=4,8 topk=4,6"
        await until(operator, shows(operator, "4 configurations"))
        await operator.press("enter")  # asks the host
        await until(operator, shows(operator, "2 blocked"))
        assert queue.changed == []
        assert "adds 2 experiments" in operator.text()
        await operator.press("enter")
        await until(operator, lambda: queue.changed == [("grid", "2")])


async def test_enter_while_the_host_checks_a_grid_says_that_nothing_is_added_yet() -> None:
    queue = SlowQueue(IDLE)
    async with operating("idle", size=(120, 40), queue=queue) as operator:
        await operator.press("5", "g")
        operator.app.screen.query_one(Input).value = "budget=8 topk=4,6"
        await until(operator, shows(operator, "2 configurations"))
        await operator.press("enter")
        await until(operator, shows(operator, "the host checks it"))
        await operator.press("enter")
        await until(operator, shows(operator, "nothing is added yet"))
        queue.checked.set()
        await until(operator, shows(operator, "adds 2 experiments"))
        assert queue.changed == []
        await operator.press("enter")
        await until(operator, lambda: queue.changed == [("grid", "2")])


class SlowQueue(StillQueue):
    """Its host takes its time over a grid."""

    def __init__(self, view: QueueView) -> None:
        super().__init__(view)
        self.checked = asyncio.Event()

    async def work_out(
        self, text: str, *, reuse: bool, on_done: Callable[[int, int], None]
    ) -> Worked:
        await self.checked.wait()
        return await super().work_out(text, reuse=reuse, on_done=on_done)


async def test_a_grid_of_which_nothing_can_run_is_not_added() -> None:
    queue = StillQueue(IDLE)
    async with operating("idle", size=(120, 40), queue=queue) as operator:
        await operator.press("5", "g")
        operator.app.screen.query_one(Input).value = "budget=4 topk=4,6"
        await operator.pilot.pause()
        await operator.press("enter")
        await until(operator, shows(operator, "nothing of it can be run"))
        await operator.press("enter")
        assert isinstance(operator.app.screen, GridScreen)
        assert queue.changed == []
