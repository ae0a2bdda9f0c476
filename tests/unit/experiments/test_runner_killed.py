"""The runner is killed at every write to its stores, and at 200 random moments.

However often that happens: the set of measurements is the one of an undisturbed run, no experiment
is lost, none is measured twice, and the engine is not loaded once more than it must be.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ExperimentState
from ddtui.experiments.baseline import baseline_of
from ddtui.store import Store
from tests.support.run_world import BLOCK, RunWorld
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time

SEEDS = 200
PARTS = 8
"""So that no test takes long."""
PLAN = BenchPlan(concurrency=(1, 4))
QUICK = BenchPlan(concurrency=(2,), coding=False)
LOADS = 3
"""For block size 16, the one that fails, and the baseline at the end."""


def fails(argv: tuple[str, ...]) -> bool:
    return argv[argv.index(f"--{BLOCK}") + 1] == "10"


def script() -> Script:
    return Script(stop=0.5, memory_late=0.2, load=3.0, travel=0.01, fails=fails)


def queued(world: RunWorld) -> RunWorld:
    """Configurations: as it is, two plans of another one, and one that fails."""
    world.add("1 block 8", PLAN, block=8)
    world.add("2 block 16", PLAN, block=16)
    world.add("3 block 16 quick", QUICK, block=16)
    world.add("4 block 10", QUICK, block=10)
    world.kept.experiments.change_settings(world.host.name, simulated=False, leave="baseline")
    return world


async def run(world: RunWorld) -> RunWorld:
    feed = asyncio.create_task(world.watched.run())
    await asyncio.sleep(2)
    async with asyncio.timeout(3600):
        await world.to_the_end()
    feed.cancel()
    return world


@pytest.fixture(scope="module")
def undisturbed(store: Store) -> RunWorld:
    async def work() -> RunWorld:
        return await run(queued(RunWorld(script(), store, "undisturbed")))

    return in_virtual_time(work())


def check(world: RunWorld, undisturbed: RunWorld) -> None:
    assert world.outcome() == undisturbed.outcome()
    assert world.machine.starts == undisturbed.machine.starts
    assert world.machine.stops <= undisturbed.machine.stops
    assert world.block() == 8
    assert world.machine.http == 200
    assert not world.machine.locks
    assert not [each for each in world.events if each.what == "other base"]
    kept = baseline_of(world.kept.experiments.settings(world.host.name, simulated=False))
    failed = [each.id for each in world.experiments() if each.state is ExperimentState.FAILED]
    assert kept is not None
    assert kept.left is not None
    assert list(kept.rest) == failed


def test_an_undisturbed_run(undisturbed: RunWorld) -> None:
    world = undisturbed
    assert [(row[0], row[1], row[3]) for row in world.outcome()] == [
        ("1 block 8", "done", ("complete", True)),
        ("2 block 16", "done", ("complete", True)),
        ("3 block 16 quick", "done", ("complete", False)),
        ("4 block 10", "failed", None),
    ]
    assert [each.reloaded for each in world.experiments()] == [False, True, False, True]
    assert world.machine.starts == 1 + LOADS
    assert world.cells == [(8, 1), (8, 4), (16, 1), (16, 4), (16, 2)]
    for each in world.measurements():
        blocks = {note for cell in each.cells for note in cell.notes}
        assert blocks == {f"block {each.title.split()[2]}"}
        assert each.provenance.invocation
        assert each.provenance.evidence
        assert not each.disturbed


def of_changes(undisturbed: RunWorld, number: int) -> bool:
    """Whether a write is one of a reconfiguration, which has its own tests."""
    return undisturbed.stores[number] == "changes"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_write(store: Store, undisturbed: RunWorld, part: int, when: str) -> None:
    """Before it, when all is still to be done; and after it, when nobody knows that it is done."""
    failures = []
    assert len(undisturbed.writes) > 60
    for number in range(part, len(undisturbed.writes), PARTS):
        if when == "before" and of_changes(undisturbed, number):
            continue

        async def work(number: int = number) -> None:
            world = queued(RunWorld(script(), store, f"write {number} {when}"))
            world.kill_at = (number, when)
            check(await run(world), undisturbed)
            assert world.kill_at is None, "nobody was killed"

        try:
            in_virtual_time(work())
        except AssertionError as error:
            failures.append(f"{when} write {number} ({undisturbed.writes[number]}): {error}")
    assert not failures, "\n".join(failures[:10])


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_random_moments(store: Store, undisturbed: RunWorld, part: int) -> None:
    failures = []
    for seed in range(part, SEEDS, PARTS):

        async def work(seed: int = seed) -> None:
            world = queued(RunWorld(script(), store, f"moment {seed}", seed))
            chance = random.Random(seed)
            feed = asyncio.create_task(world.watched.run())
            await asyncio.sleep(2)
            async with asyncio.timeout(3600):
                for _ in range(chance.randrange(1, 3)):
                    runner = world.runner().start()
                    await asyncio.wait({runner}, timeout=chance.uniform(0.0, 40.0))
                    runner.cancel()
                    await asyncio.gather(runner, return_exceptions=True)
                    await asyncio.sleep(chance.choice((0.0, 0.3, 20.0)))
                await world.to_the_end()
            feed.cancel()
            check(world, undisturbed)

        try:
            in_virtual_time(work())
        except AssertionError as error:
            failures.append(f"seed {seed}: {error}")
    assert not failures, "\n".join(failures[:10])
