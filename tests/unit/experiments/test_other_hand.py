"""The unit is changed by another hand between two runs, whichever way the first one ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from ddtui.core.configuration_key import key_of
from ddtui.core.experiment import Experiment, ExperimentState, QueueSettings
from ddtui.core.launch import Launch, Request
from ddtui.core.measurement import MeasurementState
from ddtui.experiments.baseline import Baseline, baseline_of, moved_ones
from ddtui.experiments.one_experiment import OTHER_BASE
from ddtui.experiments.queue import Queue
from ddtui.experiments.report import RunEvent
from tests.support.run_stories import PLAN, Told, at, settings, states, when
from tests.support.run_world import BLOCK, RunWorld
from tests.support.scripted_machine import Script

LENGTH = Request(flags={"context-length": 2048})
"""Says nothing of the block size."""


def block_of(world: RunWorld, title: str) -> str:
    whole = [each for each in world.measurements() if each.state is MeasurementState.COMPLETE]
    (found,) = (each for each in whole if each.title == title)
    argv = found.provenance.argv
    return argv[argv.index(f"--{BLOCK}") + 1]


async def killed(world: RunWorld, found: Callable[[RunEvent], bool], after: float = 1.0) -> None:
    """A run that is gone without a word, so long after an event."""
    work, loop = world.runner().start(), asyncio.get_running_loop()
    when(world, found, lambda: loop.call_later(after, work.cancel))
    await asyncio.gather(work, return_exceptions=True)
    assert work.cancelled()
    world.heed = lambda _: None
    await asyncio.sleep(20)


async def by_hand(world: RunWorld, block: int) -> None:
    controller = world.around().control
    if await controller.unfinished() is not None:
        await controller.resume()
    await controller.apply(await controller.plan(Request(flags={BLOCK: block})))


def told_of(world: RunWorld) -> list[tuple[str, str]]:
    """Titles and words of what was told of another base."""
    return [(each.title, each.text) for each in world.events if each.what == "other base"]


@pytest.mark.parametrize("step", ["loading", "measuring"])
def test_a_killed_run_goes_on_with_what_its_queue_began_with(told: Told, step: str) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave="baseline")
        world.add("a", PLAN, block=16)
        world.add("c", PLAN, LENGTH)
        await killed(world, at("step", step))
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done", "done"]
    assert (block_of(world, "a"), block_of(world, "c"), world.block()) == ("16", "8", 8)
    assert told_of(world) == []
    assert world.machine.starts == 4  # at first, for each, and for the end


@pytest.mark.parametrize("step", ["loading", "measuring"])
def test_what_another_hand_does_after_a_kill_counts(told: Told, step: str) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave="baseline")
        world.add("a", PLAN, block=16)
        world.add("c", PLAN, LENGTH)
        await killed(world, at("step", step))
        await by_hand(world, 12)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["done", "done"]
    assert (block_of(world, "a"), block_of(world, "c"), world.block()) == ("16", "12", 12)
    words = "the unit was changed by another hand since the last run: 2 experiments are made on"
    (first, *others) = told_of(world)
    assert first == ("", f"{words} what is in force now")
    assert others == [("c", OTHER_BASE)]  # the other one says itself which block size it has


@pytest.mark.parametrize("step", ["loading", "measuring"])
def test_a_secret_that_is_renewed_after_a_kill_is_not_undone(told: Told, step: str) -> None:
    async def renew(world: RunWorld, secret: str) -> None:
        controller = world.around().control
        if await controller.unfinished() is not None:
            await controller.resume()
        request = Request(environment={"ENGINE_API_KEY": secret})
        await controller.apply(await controller.plan(request))

    async def story(world: RunWorld) -> None:
        settings(world, leave="baseline")
        await renew(world, "an-older-key")
        world.add("a", PLAN, block=16)
        await killed(world, at("step", step))
        await renew(world, "a-newer-key")
        await world.runner().run()
        kept = world.kept.experiments.settings(world.host.name, simulated=False)
        assert "a-newer-key" not in str(kept.baseline.get("asked_secrets"))
        assert (await world.around().control.command()).launch.environment == {
            "ENGINE_API_KEY": "a-newer-key"
        }

    assert states(told(story)) == ["done"]


def test_a_run_that_was_killed_goes_on_where_the_secret_is_the_same(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave="baseline")
        controller = world.around().control
        request = Request(environment={"ENGINE_API_KEY": "the-key"})
        await controller.apply(await controller.plan(request))
        world.add("a", PLAN, block=16)
        await killed(world, at("step", "measuring"))
        await world.runner().run()

    world = told(story)
    assert told_of(world) == []
    assert world.block() == 8


def test_it_is_told_still_where_that_run_is_killed_too(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        world.add("c", PLAN, LENGTH)
        await killed(world, at("step", "measuring"))
        await by_hand(world, 12)
        await killed(world, at("cell"))
        world.events.clear()
        await world.runner().run()

    assert ("c", OTHER_BASE) in told_of(told(story))


def test_a_unit_that_another_hand_has_changed_after_a_kill_is_left_as_it_is(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        settings(world, leave="baseline")
        world.add("a", PLAN, block=16)
        await killed(world, at("leaving"), after=0.0)
        await by_hand(world, 12)
        starts = world.machine.starts
        ending = await world.runner().run()
        assert (ending.left, world.machine.starts) == ("", starts)
        assert any("it is left as it is" in each.text for each in world.events)

    assert told(story).block() == 12


def test_what_another_hand_does_while_a_change_is_not_ended_counts(told: Told) -> None:
    """The run was killed before it had touched anything; somebody else's ddtui was too."""

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, LENGTH)
        await killed(world, at("step", "measuring"))
        controller = world.around().control
        plan = await controller.plan(Request(flags={BLOCK: 12}))
        begun = asyncio.Event()
        change = asyncio.create_task(controller.apply(plan, lambda _record, _step: begun.set()))
        await begun.wait()
        change.cancel()
        await asyncio.gather(change, return_exceptions=True)
        await world.runner().run()

    world = told(story)
    assert block_of(world, "a") == "12"
    assert told_of(world)


def test_a_baseline_that_an_older_ddtui_has_kept_goes_on(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        world.add("c", PLAN, LENGTH)
        await killed(world, at("step", "measuring"))
        kept = dict(world.kept.experiments.settings(world.host.name, simulated=False).baseline)
        del kept["asked"], kept["moved"]
        settings(world, baseline=kept)
        await world.runner().run()

    world = told(story)
    assert block_of(world, "c") == "8"
    assert told_of(world) == []


def test_a_load_that_fails_is_no_other_hand(told: Told) -> None:
    def fails(argv: tuple[str, ...]) -> bool:
        return argv[argv.index(f"--{BLOCK}") + 1] == "10"

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=10)
        world.add("c", PLAN, LENGTH)
        await killed(world, at("step", "loading"), after=3.0)
        await world.runner().run()

    script = Script(stop=0.5, memory_late=0.2, load=4.0, travel=0.01, fails=fails)
    world = told(story, script)
    assert states(world) == ["failed", "done"]
    assert block_of(world, "c") == "8"
    assert told_of(world) == []


@pytest.mark.parametrize("ended", ["at the end", "stopped", "killed"])
def test_what_was_edited_before_is_told_of_too(told: Told, ended: str) -> None:
    """What it would have been is not known any more; that its base is another one is."""

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        held = world.add("c", PLAN, LENGTH)
        queue = Queue(world.kept, world.host.name, simulated=False, who="ada@desk")
        queue.hold(held.id)
        if ended == "killed":
            await killed(world, at("step", "measuring"))
        else:
            runner = world.runner()
            if ended == "stopped":
                when(world, at("cell"), runner.ask_to_stop)
            await runner.run()
        await by_hand(world, 12)
        queue.edit(held.id, Request(flags={"context-length": 1024}), title="c")
        queue.release(held.id)
        world.events.clear()
        await world.runner().run()
        log = world.kept.experiments.log(held.id)
        assert [each.detail for each in log if each.what == "planning"] == ["", OTHER_BASE]

    world = told(story)
    assert block_of(world, "c") == "12"
    assert ("c", OTHER_BASE) in told_of(world)


def test_what_is_added_after_it_is_told_of_only_where_it_was_worked_out(told: Told) -> None:
    """A sweep knows what it was made on; an experiment of the verb means what is in force."""

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN, block=16)
        await world.runner().run()
        plain, swept = world.add("b", PLAN, LENGTH), world.add("c", PLAN, LENGTH)
        control = world.around().control
        after = (await control.plan(swept.request)).after
        world.kept.experiments.change(
            swept.id, {ExperimentState.PENDING}, configuration=key_of(after)
        )
        await by_hand(world, 12)
        await world.runner().run()
        assert plain.configuration == ""

    world = told(story)
    assert states(world) == ["done", "done", "done"]
    assert told_of(world) == [("c", OTHER_BASE)]


# ---- without a run -------------------------------------------------------------------------------


def launch(block: int) -> Launch:
    return Launch(("serve", f"--{BLOCK}", str(block)))


@pytest.mark.parametrize(
    ("kept", "now", "moved"),
    [
        (Baseline(launch=launch(8), at=1.0, asked=(key_of(launch(16)),)), launch(16), set()),
        (Baseline(launch=launch(8), at=1.0, asked=(key_of(launch(16)),)), launch(8), set()),
        (Baseline(launch=launch(8), at=1.0, asked=(key_of(launch(16)),)), launch(12), {"x", "y"}),
        (Baseline(launch=launch(8), at=1.0), launch(12), set()),
        (Baseline(launch=launch(8), at=1.0, asked=()), None, set()),
        (Baseline(launch=launch(8), at=1.0, left=launch(16), rest=("x",)), launch(16), set()),
        (Baseline(launch=launch(8), at=1.0, left=launch(16), rest=("x",)), launch(12), {"x"}),
        (Baseline(launch=launch(8), at=1.0, left=launch(16), rest=("x",)), launch(8), set()),
        (Baseline(launch=launch(12), at=1.0, asked=(), moved=("y",)), launch(12), {"y"}),
        (Baseline(launch=launch(12), at=1.0, asked=(), moved=("y",)), None, {"y"}),
    ],
)
def test_what_waits_for_another_base(kept: Baseline, now: Launch | None, moved: set[str]) -> None:
    world = [Experiment(id=each, host="h", title=each, request=LENGTH) for each in "xy"]
    record = QueueSettings(host="h", baseline=msgspec.to_builtins(kept))
    assert baseline_of(record) == kept
    assert moved_ones(record, world, now) == moved
