"""A runner in virtual time: links break, engines die, and people change their mind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ddtui.bench.errors import BadPrompts
from ddtui.control.host_actions import ActionFailed
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ExperimentState
from ddtui.core.launch import Request
from ddtui.core.measurement import MeasurementState
from ddtui.experiments.presence import RunnerHeld
from ddtui.experiments.report import RunEvent
from ddtui.store import Store
from tests.support.run_world import BLOCK, RunWorld, store_in_memory
from tests.support.scripted_host import DROP_IN, FRAGMENT, Script
from tests.support.virtual_time import in_virtual_time

PLAN = BenchPlan(concurrency=(1, 4), coding=False)
Story = Callable[[RunWorld], Awaitable[None]]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with store_in_memory() as opened:
        yield opened


@pytest.fixture
def told(store: Store, request: pytest.FixtureRequest) -> Callable[..., RunWorld]:
    """Plays a story in a world of its own."""

    def play(story: Story, script: Script | None = None, seed: int = 1) -> RunWorld:
        async def work() -> RunWorld:
            default = Script(stop=0.5, memory_late=0.2, load=4.0, travel=0.01)
            world = RunWorld(script or default, store, request.node.name, seed)
            feed = asyncio.create_task(world.watched.run())
            await asyncio.sleep(2)
            async with asyncio.timeout(3600):
                await story(world)
            feed.cancel()
            return world

        return in_virtual_time(work())

    return play


def states(world: RunWorld) -> list[str]:
    return [each.state.value for each in world.experiments()]


def at(what: str, step: str = "", number: int = 1) -> Callable[[RunEvent], bool]:
    """Whether an event is the `number`th of its kind."""
    seen = 0

    def found(event: RunEvent) -> bool:
        nonlocal seen
        seen += event.what == what and (not step or event.step == step)
        return seen == number and event.what == what and (not step or event.step == step)

    return found


def when(world: RunWorld, found: Callable[[RunEvent], bool], do: Callable[[], Any]) -> None:
    """Do something once, right after an event."""

    def heed(event: RunEvent) -> None:
        if found(event):
            result = do()
            if isinstance(result, Coroutine):
                world.later = asyncio.create_task(result)  # type: ignore[attr-defined]

    world.heed = heed


def settings(world: RunWorld, **to: Any) -> None:
    world.kept.experiments.change_settings(world.host.name, simulated=False, **to)


# ---- the host ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["planning", "loading", "measuring"])
def test_a_link_that_breaks_is_waited_for(told: Any, step: str) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        when(world, at("step", step), lambda: asyncio.get_running_loop().call_later(
            0.7, world.host.cut))  # fmt: skip
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 2
    assert [cell.concurrency for cell in world.measurements()[0].cells] == [1, 4]


def test_a_cell_is_not_measured_again_after_a_broken_link(told: Any) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        when(world, at("cell"), lambda: asyncio.get_running_loop().call_later(1.0, world.host.cut))
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.cells == [(8, 1), (8, 4)]


def test_an_engine_that_is_restarted_meanwhile_is_measured_anew(told: Any) -> None:
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


def test_a_unit_that_another_hand_changes_meanwhile_is_not_credited(told: Any) -> None:
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


def test_a_change_by_another_hand_costs_one_load(told: Any) -> None:
    """A restart of what somebody else has written would bring that up again, and again."""

    async def story(world: RunWorld) -> None:
        async def change() -> None:
            await asyncio.sleep(1.0)
            lines = world.machine.loaded[FRAGMENT].replace("\\\n", " ").splitlines()
            start = next(line for line in lines if line.startswith("ExecStart="))
            text = f"[Service]\nExecStart=\n{start.replace(f'--{BLOCK} 8', f'--{BLOCK} 12')}\n"
            assert f"--{BLOCK} 12" in text
            world.machine.files[DROP_IN] = world.machine.loaded[DROP_IN] = text
            await world.machine.stop()
            world.machine.start()

        world.add("a", PLAN)
        when(world, at("cell"), change)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done"]
    assert world.machine.starts == 3  # at first, by the other hand, and back
    assert world.cells == [(8, 1), (8, 1), (8, 4)]


def test_prompts_that_cannot_be_read_cost_no_load(told: Any, monkeypatch: Any) -> None:
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


def test_an_engine_that_dies_is_started_again(told: Any) -> None:
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


def test_an_engine_that_dies_of_being_measured_fails_it_and_the_next_one_goes_on(told: Any) -> None:
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


def test_a_configuration_that_does_not_load_is_recorded_and_left_behind(told: Any) -> None:
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


def test_a_blocked_plan_fails_its_experiment_only(told: Any) -> None:
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
def test_what_the_host_does_not_allow_ends_the_run_and_loses_nothing(told: Any, when_: str) -> None:
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


# ---- what is measured --------------------------------------------------------------------------


def test_requests_of_others_are_told(told: Any) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)

        def others() -> None:
            world.requests += 7

        when(world, at("cell"), others)
        await world.runner().run()

    (measurement,) = told(story).measurements()
    assert measurement.provenance.foreign_requests == 7
    assert measurement.disturbed == ("7 requests of others were seen",)


def test_requests_of_others_are_told_of_a_cell_that_the_next_runner_finds(told: Any) -> None:
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


def test_an_earlier_measurement_is_used_again(told: Any) -> None:
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


def test_experiments_do_not_inherit_from_one_another(told: Any) -> None:
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


def test_the_unit_is_left_in_the_best(told: Any) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave="best")
        world.add("a", PLAN, block=16)
        world.add("b", PLAN, block=12)
        ending = await world.runner().run()
        assert ending.left == "the best one, a"

    world = told(story)
    assert world.block() == 16
    assert world.machine.starts == 4


# ---- people ------------------------------------------------------------------------------------


def test_a_running_one_can_be_cancelled(told: Any) -> None:
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


def test_what_is_queued_meanwhile_is_run_too(told: Any) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        when(world, at("ended"), lambda: world.add("b", PLAN))
        await world.runner().run()

    assert states(told(story)) == ["done", "done"]


def test_a_paused_queue_waits(told: Any) -> None:
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
def test_it_stops_cleanly_and_is_carried_on(told: Any, step: str) -> None:
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


def test_a_wish_in_the_store_stops_it(told: Any) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        when(world, at("step", "measuring"), lambda: settings(world, stop="bob@lab"))
        assert (await world.runner().run()).stopped
        assert any("bob@lab" in event.text for event in world.events)
        assert not (await world.runner().run()).stopped

    assert states(told(story)) == ["done"]


def test_a_second_runner_is_told_of_the_first(told: Any, tmp_path: Path) -> None:
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


def test_once_runs_one(told: Any) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        world.add("b", PLAN)
        await world.runner(most=1).run()

    assert states(told(story)) == ["done", "pending"]


def test_its_view_says_where_it_stands(told: Any) -> None:
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
