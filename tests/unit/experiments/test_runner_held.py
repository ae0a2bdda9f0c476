"""A queue of which something may be done yet is not at its end, in virtual time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.launch import Launch, Request
from ddtui.core.measurement import MeasurementState
from ddtui.experiments.baseline import Baseline, BaselineBook, baseline_of
from ddtui.experiments.queue import Queue
from ddtui.experiments.runners_queue import RunnersQueue
from tests.support.run_stories import PLAN, Told, at, settings, states, when
from tests.support.run_world import BLOCK, RunWorld

HELD, PENDING = ExperimentState.HELD, ExperimentState.PENDING
LENGTH = Request(flags={"context-length": 2048})
"""Says nothing of the block size."""


def block_of(world: RunWorld, title: str) -> str:
    whole = [each for each in world.measurements() if each.state is MeasurementState.COMPLETE]
    (found,) = (each for each in whole if each.title == title)
    argv = found.provenance.argv
    return argv[argv.index(f"--{BLOCK}") + 1]


async def first_run(world: RunWorld, leave: str = "last") -> Experiment:
    """One is measured with block size 16 and stays loaded; one is held."""
    settings(world, leave=leave)
    world.add("a", PLAN, block=16)
    held = world.add("b", PLAN, LENGTH)
    world.kept.experiments.change(held.id, {PENDING}, state=HELD)
    await world.runner().run()
    assert world.block() == 16
    return held


def release(world: RunWorld, held: Experiment) -> None:
    world.kept.experiments.change(held.id, {HELD}, state=PENDING)


def kept_baseline(world: RunWorld) -> bool:
    found = world.kept.experiments.settings(world.host.name, simulated=False)
    return baseline_of(found) is not None


def test_what_was_held_is_made_on_what_its_queue_began_with(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        held = await first_run(world)
        assert kept_baseline(world)
        release(world, held)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done", "done"]
    assert block_of(world, "b") == "8"
    assert not kept_baseline(world)


def test_the_best_is_that_of_the_whole_queue(told: Told) -> None:
    """It was measured before the one that was held, and is loaded again."""

    async def story(world: RunWorld) -> None:
        release(world, await first_run(world, "best"))
        ending = await world.runner().run()
        assert ending.left == "the best one, a"

    assert told(story).block() == 16


@pytest.mark.parametrize(("leave", "block"), [("best", 16), ("last", 12)])
def test_a_clock_that_is_set_back_takes_nothing_off_the_queue(
    told: Told, monkeypatch: pytest.MonkeyPatch, leave: str, block: int
) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave=leave)
        world.add("a", PLAN, block=16)
        world.add("b", PLAN, block=12)
        right, wrong = world.watched.clock, 0.0
        monkeypatch.setattr(world.watched, "clock", lambda: right() - wrong)

        def back() -> None:
            nonlocal wrong
            wrong += 3600.0

        when(world, lambda event: event.what == "taken up", back)
        await world.runner().run()
        ended = world.kept.experiments.queue(world.host.name, simulated=False)
        assert [each.title for each in ended] == ["a", "b"]

    assert told(story).block() == block


def test_what_failed_before_a_clock_was_set_forward_is_of_an_earlier_queue() -> None:
    """Or on another machine, whose clock is ahead."""
    failed = Experiment(
        id="a", host="box", title="a", request=LENGTH, state=ExperimentState.FAILED,
        ended=2000.0, ended_as=7,
    )  # fmt: skip
    base = Baseline(launch=Launch(()), at=1000.0, began_as=9)
    assert not base.may_do_yet(failed)
    assert base.may_do_yet(msgspec.structs.replace(failed, ended=500.0, ended_as=10))


def test_what_an_older_ddtui_kept_is_told_by_its_times() -> None:
    failed = Experiment(
        id="a", host="box", title="a", request=LENGTH, state=ExperimentState.FAILED, ended=2000.0
    )
    assert Baseline(launch=Launch(()), at=1000.0, began_as=9).may_do_yet(failed)
    assert not Baseline(launch=Launch(()), at=3000.0, began_as=9).may_do_yet(failed)
    known = msgspec.structs.replace(failed, ended_as=7)
    assert not Baseline(launch=Launch(()), at=3000.0).may_do_yet(known)


def test_a_run_of_nothing_but_what_is_held_does_nothing(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        await first_run(world)
        starts = world.machine.starts
        ending = await world.runner().run()
        assert (ending.done, ending.left, world.machine.starts) == (0, "", starts)

    assert kept_baseline(told(story))


@pytest.mark.parametrize(
    ("change", "block"), [("the unit", "12"), ("nothing is held any more", "16")]
)
def test_another_queue_begins_with_what_is_in_force_then(
    told: Told, change: str, block: str
) -> None:
    async def story(world: RunWorld) -> None:
        held = await first_run(world)
        if change == "the unit":
            controller = world.around().control
            await controller.apply(await controller.plan(Request(flags={BLOCK: 12})))
            release(world, held)
        else:
            world.kept.experiments.change(held.id, {HELD}, state=ExperimentState.CANCELLED)
            world.add("c", PLAN, LENGTH)
        await world.runner().run()

    world = told(story)
    assert block_of(world, "b" if change == "the unit" else "c") == block
    assert block_of(world, "a") == "16"


def test_a_runner_that_dies_after_it_has_taken_the_queue_up_again(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        release(world, await first_run(world))
        around = world.around()
        book = BaselineBook(around, RunnersQueue(around))
        # What it does before it takes up the first one.
        await book.begin(lambda _record, _step: None, lambda _words: None)
        await world.runner().run()

    assert block_of(told(story), "b") == "8"


@pytest.mark.parametrize("cleared", [False, True])
def test_what_is_retried_is_made_on_what_its_queue_began_with(told: Told, cleared: bool) -> None:
    """The unit is left in block size 16 by the other one."""

    async def story(world: RunWorld) -> None:
        settings(world, leave="last")
        again = world.add("b", PLAN, LENGTH)
        world.add("a", PLAN, block=16)
        when(world, at("step", "measuring"), lambda: world.kept.experiments.change(
            again.id, {ExperimentState.RUNNING}, cancel=True))  # fmt: skip
        await world.runner().run()
        assert sorted(states(world)) == ["cancelled", "done"]
        assert world.block() == 16
        queue = Queue(world.kept, world.host.name, simulated=False, who="ada@desk")
        if cleared:
            queue.clear()
        known = queue.find(again.id).configuration
        assert known
        assert queue.retry(again.id).configuration == known
        await world.runner().run()

    world = told(story)
    assert block_of(world, "b") == "8"
    assert not kept_baseline(world)


def test_what_is_edited_after_the_end_is_made_on_what_its_queue_began_with(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        held = await first_run(world)
        queue = Queue(world.kept, world.host.name, simulated=False, who="ada@desk")
        queue.edit(held.id, Request(flags={"context-length": 1024}), title="b")
        queue.release(held.id)
        await world.runner().run()

    assert block_of(told(story), "b") == "8"


def test_a_wish_to_stop_is_heard_while_a_change_is_carried_on_before_the_first(told: Told) -> None:
    """Another ddtui has died in the middle of it; loading takes minutes."""

    async def story(world: RunWorld) -> None:
        controller = world.around().control
        plan = await controller.plan(Request(flags={BLOCK: 12}))
        begun = asyncio.Event()
        change = asyncio.create_task(controller.apply(plan, lambda _record, _step: begun.set()))
        await begun.wait()
        change.cancel()
        await asyncio.gather(change, return_exceptions=True)
        world.add("a", PLAN)
        runner = world.runner()
        when(world, at("change"), runner.ask_to_stop)
        ending = await runner.run()
        assert ending.stopped
        assert await controller.unfinished() is not None
        assert [each.attempts for each in world.experiments()] == [0]
        await world.runner().run()

    assert states(told(story)) == ["done"]


async def stopped(world: RunWorld, *, leave: str) -> None:
    """A run that is stopped while its only experiment is measured, with block size 16."""
    settings(world, leave=leave)
    world.add("a", PLAN, block=16)
    runner = world.runner()
    when(world, at("cell"), runner.ask_to_stop)
    ending = await runner.run()
    assert ending.stopped
    assert (world.block(), states(world)) == (16, ["pending"])


def cancel_all(world: RunWorld) -> None:
    for each in world.experiments():
        world.kept.experiments.change(each.id, {PENDING}, state=ExperimentState.CANCELLED)


async def by_hand(world: RunWorld, block: int) -> None:
    controller = world.around().control
    await controller.apply(await controller.plan(Request(flags={BLOCK: block})))


def test_what_was_applied_by_hand_after_a_stop_is_not_undone(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        await stopped(world, leave="baseline")
        cancel_all(world)
        await by_hand(world, 12)
        starts = world.machine.starts
        ending = await world.runner().run()
        assert (ending.left, world.machine.starts) == ("", starts)

    assert told(story).block() == 12


def test_what_is_added_after_that_is_made_on_it(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        await stopped(world, leave="last")
        cancel_all(world)
        await by_hand(world, 12)
        world.add("c", PLAN, LENGTH)
        await world.runner().run()

    assert block_of(told(story), "c") == "12"


def test_a_queue_that_was_stopped_and_cancelled_is_left_in_its_baseline(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        await stopped(world, leave="baseline")
        cancel_all(world)
        ending = await world.runner().run()
        assert ending.left == "what was in force when the queue began"

    world = told(story)
    assert world.block() == 8
    assert states(world) == ["cancelled"]


def test_a_queue_that_was_stopped_goes_on_with_its_baseline(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        await stopped(world, leave="last")
        world.add("c", PLAN, LENGTH)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done", "done"]
    assert block_of(world, "c") == "8"


def test_a_run_of_a_paused_queue_takes_nothing_up_again(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        held = await first_run(world)
        release(world, held)
        settings(world, paused=True)
        runner = world.runner()
        runner.start()
        await asyncio.sleep(20)
        await runner.stop()
        world.kept.experiments.change(held.id, {PENDING}, state=HELD)
        await by_hand(world, 12)
        settings(world, paused=False)
        starts = world.machine.starts
        await world.runner().run()
        assert world.machine.starts == starts

    assert told(story).block() == 12
