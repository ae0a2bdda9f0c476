"""What a runner measures, uses again and leaves behind, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ddtui.bench.errors import EngineBusy
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ExperimentState
from ddtui.core.launch import Request
from ddtui.core.measurement import Cell
from ddtui.experiments.report import RunEvent
from ddtui.experiments.runner import Runner
from tests.support.run_stories import PLAN, Told, at, settings, states, when
from tests.support.run_world import BLOCK, FakeBench, RunWorld


def test_requests_of_others_are_told(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)

        def others() -> None:
            world.requests += 7

        when(world, at("cell"), others)
        await world.runner().run()

    (measurement,) = told(story).measurements()
    assert measurement.provenance.foreign_requests == 7
    assert measurement.disturbed == ("7 requests of others were seen",)


def test_requests_of_others_are_told_of_a_cell_that_the_next_runner_finds(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)

        def others() -> None:
            world.requests += 7

        first, loop = world.runner(), asyncio.get_running_loop()

        def heed(event: RunEvent) -> None:
            if (event.what, event.step) == ("step", "measuring"):
                loop.call_later(1.0, others)
            elif event.what == "cell":
                loop.call_later(0.5, first.ask_to_stop)

        world.heed = heed
        assert (await first.run()).stopped
        world.heed = lambda _: None
        await world.runner().run()

    world = told(story)
    (measurement,) = world.measurements()
    assert world.cells == [(8, 1), (8, 4)]
    assert measurement.provenance.foreign_requests == 7
    assert measurement.disturbed == ("7 requests of others were seen",)


def test_an_earlier_measurement_is_used_again(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        await world.runner().run()
        (earlier,) = world.measurements()
        again = world.add("b", PLAN, block=12)
        world.kept.experiments.change(
            again.id, {ExperimentState.PENDING}, reused=True, measurement=earlier.id
        )
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done", "done"]
    assert len(world.measurements()) == 1
    assert world.machine.starts == 2


def test_experiments_do_not_inherit_from_one_another(told: Told) -> None:
    """Each is made on what was in force when the queue began, in whatever order they run."""

    async def story(world: RunWorld) -> None:
        settings(world, leave="baseline")
        world.add("a", PLAN, Request(flags={BLOCK: 16, "context-length": 4096}))
        world.add("b", PLAN, Request(flags={"context-length": 2048}))
        await world.runner().run()

    world = told(story)
    argv = {each.title: each.provenance.argv for each in world.measurements()}
    assert argv["b"][argv["b"].index(f"--{BLOCK}") + 1] == "8"
    assert "--context-length" in argv["a"]
    assert world.machine.engine is not None
    assert "--context-length" not in world.machine.engine.argv


def test_the_unit_is_left_in_the_best(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave="best")
        world.add("a", PLAN, block=16)
        world.add("b", PLAN, block=12)
        ending = await world.runner().run()
        assert ending.left == "the best one, a"

    world = told(story)
    assert world.block() == 16
    assert world.machine.starts == 4


def asking(world: RunWorld, prompts: dict[str, str]) -> Runner:
    """A runner that finds these prompts, as they are then."""
    around = world.around()
    tools = msgspec.structs.replace(around.tools, prompts_hash=lambda _plan: prompts["hash"])
    return Runner(msgspec.structs.replace(around, tools=tools), on_event=world.note)


@pytest.mark.parametrize("edited", [True, False])
def test_cells_of_prompts_that_were_edited_meanwhile_do_not_count(told: Told, edited: bool) -> None:
    prompts = {"hash": "before"}

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        first, loop = asking(world, prompts), asyncio.get_running_loop()
        when(world, at("cell"), lambda: loop.call_later(0.5, first.ask_to_stop))
        assert (await first.run()).stopped
        prompts["hash"] = "after" if edited else "before"
        await asking(world, prompts).run()

    world = told(story)
    (measurement,) = world.measurements()
    assert [each.concurrency for each in measurement.cells] == [1, 4]
    assert measurement.provenance.prompts_hash == prompts["hash"]
    assert world.cells == ([(8, 1), (8, 1), (8, 4)] if edited else [(8, 1), (8, 4)])


def test_prompts_that_are_edited_after_the_last_cell_take_nothing_away(told: Told) -> None:
    prompts = {"hash": "before"}

    async def story(world: RunWorld) -> None:
        world.add("a", BenchPlan(concurrency=(1,)))
        first, loop = asking(world, prompts), asyncio.get_running_loop()
        when(world, at("step", "coding"), lambda: loop.call_later(0.5, first.ask_to_stop))
        assert (await first.run()).stopped
        prompts["hash"] = "after"
        await asking(world, prompts).run()

    world = told(story)
    (measurement,) = world.measurements()
    assert (states(world), world.cells) == (["done"], [(8, 1)])
    assert measurement.provenance.prompts_hash == "before"


@pytest.mark.parametrize("times", [1, 9])
def test_an_engine_that_is_busy_is_tried_again_but_not_for_ever(told: Told, times: int) -> None:
    busy = [EngineBusy("503: The request queue is full.")] * times

    class Busy(FakeBench):
        async def run(self, plan: BenchPlan, **options: Any) -> tuple[Cell, ...]:
            if busy:
                raise busy.pop()
            return await super().run(plan, **options)

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        around = world.around()
        tools = msgspec.structs.replace(around.tools, bench=lambda _: Busy(world))
        around = msgspec.structs.replace(around, tools=tools)
        await Runner(around, on_event=world.note).run()

    world = told(story)
    assert states(world) == ["done" if times == 1 else "failed"]
    assert world.machine.starts == 1
    (found,) = world.experiments()
    if times > 1:
        assert "The request queue is full" in str((found.cause or {}).get("title"))
