"""What people do to a queue that a runner has in hand, in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ddtui.core.experiment import ExperimentState
from ddtui.core.measurement import MeasurementState
from ddtui.experiments.presence import RunnerHeld
from tests.support.run_stories import PLAN, Told, at, settings, states, when
from tests.support.run_world import RunWorld


def test_a_running_one_can_be_cancelled(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        first = world.add("a", PLAN)
        world.add("b", PLAN)
        when(world, at("cell"), lambda: world.kept.experiments.change(
            first.id, {ExperimentState.RUNNING}, cancel=True))  # fmt: skip
        await world.runner().run()

    world = told(story)
    assert states(world) == ["cancelled", "done"]
    cut, whole = world.measurements()
    assert (cut.state, len(cut.cells)) == (MeasurementState.PARTIAL, 1)
    assert (whole.state, len(whole.cells)) == (MeasurementState.COMPLETE, 2)
    assert world.machine.starts == 1


def test_what_is_queued_meanwhile_is_run_too(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        when(world, at("ended"), lambda: world.add("b", PLAN))
        await world.runner().run()

    assert states(told(story)) == ["done", "done"]


def test_a_paused_queue_waits(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        settings(world, paused=True)
        runner = world.runner()
        work = runner.start()
        await asyncio.sleep(30)
        assert runner.state.waiting == "the queue is paused"
        assert states(world) == ["pending"]
        settings(world, paused=False)
        await work

    assert states(told(story)) == ["done"]


@pytest.mark.parametrize("step", ["loading", "measuring"])
def test_it_stops_cleanly_and_is_carried_on(told: Told, step: str) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        runner = world.runner()
        when(world, at("step", step), lambda: asyncio.get_running_loop().call_later(
            1.0, runner.ask_to_stop))  # fmt: skip
        ending = await runner.run()
        assert ending.stopped
        assert not world.machine.locks
        left = states(world)
        assert left == (["pending"] if step == "measuring" else ["running"])
        assert not (await world.runner().run()).stopped

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 2
    assert world.cells == [(16, 1), (16, 4)]


def test_a_cell_that_is_whole_in_the_moment_of_the_stop_is_kept(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        runner = world.runner()
        work = runner.start()
        while not world.cells:  # noqa: ASYNC110 - nothing tells of it before it is kept
            await asyncio.sleep(0.01)
        runner.ask_to_stop()
        assert (await work).stopped
        await world.runner().run()

    assert told(story).cells == [(8, 1), (8, 4)]


def test_what_is_added_while_one_is_measured_does_not_come_before_it(told: Told) -> None:
    """Else it would be loaded once more after that, and its whole cell measured twice."""

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        world.add("b", PLAN, block=16)
        runner, loop = world.runner(), asyncio.get_running_loop()

        def meanwhile() -> None:
            world.add("c", PLAN, block=12)
            loop.call_later(1.0, runner.ask_to_stop)

        when(world, at("cell", number=3), meanwhile)
        assert (await runner.run()).stopped
        world.heed = lambda _: None
        await world.runner().run()

    world = told(story)
    assert world.cells == [(8, 1), (8, 4), (16, 1), (16, 4), (12, 1), (12, 4)]
    assert world.machine.starts == 3


def test_a_wish_in_the_store_stops_it(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        when(world, at("step", "measuring"), lambda: settings(world, stop="bob@lab"))
        assert (await world.runner().run()).stopped
        assert any("bob@lab" in event.text for event in world.events)
        assert not (await world.runner().run()).stopped

    assert states(told(story)) == ["done"]


def test_a_second_runner_is_told_of_the_first(told: Told, tmp_path: Path) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        work = world.runner().start()
        await asyncio.sleep(1)
        with pytest.raises(RunnerHeld, match=r"run by ada@desk since .*experiments"):
            await world.runner().run()
        await work
        first = world.runner(presence=tmp_path / "here.json")
        world.add("b", PLAN)
        work = first.start()
        await asyncio.sleep(1)
        with pytest.raises(RunnerHeld, match="on this machine"):
            await world.runner(presence=tmp_path / "here.json").run()
        await work

    assert states(told(story)) == ["done", "done"]


def test_what_is_held_is_told_at_the_end(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        held = world.add("b", PLAN)
        world.kept.experiments.change(
            held.id, {ExperimentState.PENDING}, state=ExperimentState.HELD
        )
        assert (await world.runner().run()).words.startswith("1 done; 1 held, and not run; ")

    assert states(told(story)) == ["done", "held"]


def test_once_runs_one(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        world.add("b", PLAN)
        await world.runner(most=1).run()

    assert states(told(story)) == ["done", "pending"]


def test_its_view_says_where_it_stands(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        runner = world.runner()
        work = runner.start()
        steps: dict[str, float | None] = {}
        while not work.done():
            view = runner.state
            if view.experiment is not None:
                assert view.running
                steps[view.step] = view.eta_seconds or steps.get(view.step)
            await asyncio.sleep(0.2)
        assert {"loading", "measuring"} <= set(steps)
        assert steps["measuring"] is not None
        assert not runner.state.running

    told(story)
