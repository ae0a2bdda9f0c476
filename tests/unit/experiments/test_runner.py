"""A runner in virtual time: links break, engines die, and other hands change the unit."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ddtui.bench.errors import BadPrompts
from ddtui.control.host_actions import ActionFailed
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.launch import Request
from ddtui.experiments.report import RunEvent
from tests.support.run_stories import PLAN, Told, at, settings, states, when
from tests.support.run_world import BLOCK, RunWorld
from tests.support.scripted_machine import DROP_IN, FRAGMENT, Script


@pytest.mark.parametrize("step", ["planning", "loading", "measuring"])
def test_a_link_that_breaks_is_waited_for(told: Told, step: str) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        when(world, at("step", step), lambda: asyncio.get_running_loop().call_later(
            0.7, world.host.cut))  # fmt: skip
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 2
    assert [cell.concurrency for cell in world.measurements()[0].cells] == [1, 4]


def test_a_cell_is_not_measured_again_after_a_broken_link(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        when(world, at("cell"), lambda: asyncio.get_running_loop().call_later(1.0, world.host.cut))
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.cells == [(8, 1), (8, 4)]


def test_an_engine_that_is_restarted_meanwhile_is_measured_anew(told: Told) -> None:
    """By another hand, under the same configuration: figures of two starts do not mix."""

    async def story(world: RunWorld) -> None:
        async def restart() -> None:
            await asyncio.sleep(1.0)
            await world.machine.stop()
            world.machine.start()

        world.add("a", PLAN)
        when(world, at("cell"), restart)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 2
    assert world.cells == [(8, 1), (8, 1), (8, 4)]
    (measurement,) = world.measurements()
    assert world.machine.engine is not None
    assert measurement.provenance.invocation == world.machine.engine.invocation


def test_a_unit_that_another_hand_changes_meanwhile_is_not_credited(told: Told) -> None:
    """A variable that no report tells: what runs with it is another configuration."""

    async def story(world: RunWorld) -> None:
        async def change() -> None:
            await asyncio.sleep(1.0)
            text = "[Service]\nEnvironment=SGLANG_DDTREE_DEPTH_BONUS=9\n"
            world.machine.files[DROP_IN] = world.machine.loaded[DROP_IN] = text
            await world.machine.stop()
            world.machine.start()

        world.add("a", PLAN)
        when(world, at("cell"), change)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.engine is not None
    assert "DEPTH_BONUS" not in world.machine.engine.drop_in
    assert world.cells == [(8, 1), (8, 1), (8, 4)]
    (measurement,) = world.measurements()
    assert measurement.provenance.invocation == world.machine.engine.invocation


async def change_by_another_hand(world: RunWorld) -> None:
    lines = world.machine.loaded[FRAGMENT].replace("\\\n", " ").splitlines()
    start = next(line for line in lines if line.startswith("ExecStart="))
    text = f"[Service]\nExecStart=\n{start.replace(f'--{BLOCK} 8', f'--{BLOCK} 12')}\n"
    assert f"--{BLOCK} 12" in text
    world.machine.files[DROP_IN] = world.machine.loaded[DROP_IN] = text
    await world.machine.stop()
    world.machine.start()


def test_a_change_by_another_hand_costs_one_load(told: Told) -> None:
    """A restart of what somebody else has written would bring that up again, and again."""

    async def story(world: RunWorld) -> None:
        async def change() -> None:
            await asyncio.sleep(1.0)
            await change_by_another_hand(world)

        world.add("a", PLAN)
        when(world, at("cell"), change)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 3  # at first, by the other hand, and back
    assert world.cells == [(8, 1), (8, 1), (8, 4)]


def test_a_change_by_another_hand_after_all_is_measured_costs_no_load(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same engine was proved to run after the last cell: that is recorded."""

    async def story(world: RunWorld) -> None:
        around = world.around()

        async def requests() -> float | None:
            if len(world.cells) == len(PLAN.concurrency) and world.machine.starts == 1:
                cells = world.measurements()[0].cells
                assert len(cells) == len(PLAN.concurrency)
                counted.append(len(cells))
                if len(counted) == 2:  # with the last cell, and at the end
                    await change_by_another_hand(world)
            return 0.0

        counted: list[int] = []
        tools = msgspec.structs.replace(around.tools, requests=requests)
        monkeypatch.setattr(world, "around", lambda: msgspec.structs.replace(around, tools=tools))
        world.add("a", PLAN)
        await world.runner(most=1).run()
        assert len(counted) == 2

    world = told(story)
    assert states(world) == ["done"]
    assert [each.reloaded for each in world.experiments()] == [False]
    assert world.cells == [(8, 1), (8, 4)]


def test_prompts_that_cannot_be_read_cost_no_load(told: Told, monkeypatch: Any) -> None:
    def unreadable(plan: BenchPlan) -> str:
        raise BadPrompts(f"the prompts {plan.prompts!r} cannot be read", "No such file", "name one")

    async def story(world: RunWorld) -> None:
        around = world.around()
        tools = msgspec.structs.replace(around.tools, prompts_hash=unreadable)
        monkeypatch.setattr(world, "around", lambda: msgspec.structs.replace(around, tools=tools))
        world.add("a", PLAN, block=16)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["failed"]
    assert world.machine.starts == 1
    cause = world.experiments()[0].cause
    assert cause is not None
    assert cause["title"] == "the prompts 'coding' cannot be read"
    assert cause["remedy"] == "name one"


def test_an_engine_that_dies_is_started_again(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        engine = world.machine.engine
        assert engine is not None
        when(world, at("step", "measuring"), lambda: asyncio.get_running_loop().call_later(
            1.0, world.machine.die, engine))  # fmt: skip
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 2
    assert [each.reloaded for each in world.experiments()] == [True]


def test_an_engine_that_dies_of_being_measured_fails_it_and_the_next_one_goes_on(
    told: Told,
) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        world.add("b", PLAN, block=12)

        def heed(event: RunEvent) -> None:
            if event.what == "step" and event.step == "measuring" and event.title == "a":
                engine = world.machine.engine
                assert engine is not None
                asyncio.get_running_loop().call_later(1.0, world.machine.die, engine)

        world.heed = heed
        await world.runner().run()

    world = told(story)
    assert states(world) == ["failed", "done"]
    failed = world.experiments()[0]
    assert failed.cause is not None
    assert "broken off" in failed.cause["title"] or "broken off" in failed.cause.get("seen", "")
    assert world.machine.starts <= 1 + 3 + 1


def test_a_configuration_that_does_not_load_is_recorded_and_left_behind(told: Told) -> None:
    def fails(argv: tuple[str, ...]) -> bool:
        return argv[argv.index(f"--{BLOCK}") + 1] == "16"

    async def story(world: RunWorld) -> None:
        settings(world, leave="last")
        world.add("a", PLAN, block=16)
        await world.runner().run()
        assert world.machine.http == 200

    world = told(story, Script(stop=0.5, memory_late=0.2, load=4.0, travel=0.01, fails=fails))
    assert states(world) == ["failed"]
    assert world.experiments()[0].cause is not None
    assert world.block() == 8  # nothing was done: the last one is the baseline


def test_a_blocked_plan_fails_its_experiment_only(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, Request(knobs={"no_such_knob": 1}))
        world.add("b", PLAN)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["failed", "done"]
    assert world.machine.starts == 1
    cause = world.experiments()[0].cause
    assert cause is not None
    assert "no_such_knob" in cause["title"]


@pytest.mark.parametrize("when_", ["at first", "later"])
def test_what_the_host_does_not_allow_ends_the_run_and_loses_nothing(
    told: Told, when_: str
) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        refused = {"ddtui:unit-files"}
        if when_ == "at first":
            world.machine.script.refuses = refused
        else:
            when(world, at("taken up"), lambda: world.machine.script.refuses.update(refused))
        with pytest.raises(ActionFailed, match="cannot read the files"):
            await world.runner().run()
        assert states(world) == ["pending"]
        world.machine.script.refuses.clear()
        await world.runner().run()

    assert states(told(story)) == ["done"]
