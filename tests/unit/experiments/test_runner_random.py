"""Random days of a queue, in virtual time: people change it, runs are stopped and killed, the link
breaks, the engine dies.

Whatever comes: nothing that was queued is lost, every measurement is of the configuration that was
asked for and of one start of the engine, nothing whole is measured again, the unit ends ready, and
the results show all that the store holds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, Place
from ddtui.core.launch import Request
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.experiments.interrupted import as_they_ended
from ddtui.experiments.queue import Queue, QueueProblem
from ddtui.experiments.report import RunEvent
from ddtui.experiments.results import results_view
from ddtui.store import Store
from tests.support.run_world import BLOCK, RunWorld
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time

SEEDS = 24
PARTS = 4
"""So that no test takes long."""
PLANS = (
    BenchPlan(concurrency=(1, 2, 4), coding=False),
    BenchPlan(concurrency=(1, 4), coding=False),
    BenchPlan(concurrency=(2,), coding=True),
)
BLOCKS = (8, 12, 16, 10)
FAILING = 10
FREED = 20.0
"""Seconds after which the host has freed the lock of a link that broke."""


def block_of(argv: tuple[str, ...]) -> int:
    return int(argv[argv.index(f"--{BLOCK}") + 1])


def script() -> Script:
    return Script(
        stop=0.5, memory_late=0.2, load=3.0, travel=0.01,
        fails=lambda argv: block_of(argv) == FAILING,
    )  # fmt: skip


class Day:
    """One world, and what chance does in it."""

    def __init__(self, store: Store, name: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = RunWorld(script(), store, name, seed)
        self.queue = Queue(store, name, simulated=False, who="bob@lab")
        self.breaks = 0
        """Times that a cell may have been given up when it was nearly kept."""

    def draft(self) -> Experiment:
        block = self.chance.choice(BLOCKS)
        request = Request(flags={BLOCK: block})
        return self.queue.draft(request, self.chance.choice(PLANS), title=f"block {block}")

    async def people(self, changes: int) -> None:
        """Change the queue now and then, whatever is in it."""
        for _ in range(changes):
            await asyncio.sleep(self.chance.choice((0.0, 0.3, 1.0, 3.0, 8.0, 15.0)))
            self.change(self.chance.choice(self.queue.listed(cleared=True)).id)

    def change(self, word: str, what: str = "") -> None:
        """One change of the queue, any or this one, of this experiment where it needs one."""
        queue, chance = self.queue, self.chance
        over = Request(flags={BLOCK: chance.choice(BLOCKS[:-1])})
        do: dict[str, Callable[[str], Any]] = {
            "add": lambda _: queue.add([self.draft()], chance.choice((None, Place("first")))),
            "like": lambda word: queue.add([queue.draft_like(word, over)]),
            "edit": lambda word: queue.edit(word, over, chance.choice((None, *PLANS))),
            "move": lambda word: queue.move(word, Place("first")),
            "hold": queue.hold,
            "release": queue.release,
            "cancel": queue.cancel,
            "retry": queue.retry,
            "clear": lambda word: queue.clear([word]),
            "pause": lambda _: queue.pause(),
            "resume": lambda _: queue.resume(),
        }
        with suppress(QueueProblem):  # it is not in a state for that: nothing is changed
            do[what or chance.choice(("add", *do))](word)

    async def trouble(self, times: int) -> None:
        """Break the link, or kill the engine."""
        machine = self.world.machine
        for _ in range(times):
            await asyncio.sleep(self.chance.uniform(0.0, 12.0))
            if self.chance.random() < 0.5:
                self.world.host.cut()
            elif machine.engine is not None:
                machine.die(machine.engine)

    async def broken_runs(self) -> None:
        """Runs that are killed or stopped at any moment, or with a part of them measured."""
        for _ in range(self.chance.randrange(5)):
            runner, a_cell = self.world.runner(), asyncio.Event()
            self.world.heed = partial(_note_cell, a_cell)
            work = runner.start()
            if self.chance.random() < 0.6:
                waiting = asyncio.create_task(a_cell.wait())
                await asyncio.wait(
                    {work, waiting}, timeout=60.0, return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
            await asyncio.wait({work}, timeout=self.chance.uniform(0.0, 15.0))
            at = runner.state.experiment
            self.breaks += not work.done()
            self.chance.choice((work.cancel, runner.ask_to_stop))()
            (ended,) = await asyncio.gather(work, return_exceptions=True)
            assert not isinstance(ended, Exception), ended
            if at is not None:
                self.change(at.id, self.chance.choice(("add", "cancel", "edit", "hold", "pause")))
            await asyncio.sleep(FREED)
            self.world.machine.locks.clear()

    async def to_its_end(self, *, troubled: bool) -> None:
        feed = asyncio.create_task(self.world.watched.run())
        await asyncio.sleep(2)
        self.queue.leave(self.chance.choice(("baseline", "last", "best")))
        self.queue.add([self.draft() for _ in range(self.chance.randrange(2, 5))])
        async with asyncio.timeout(20_000), asyncio.TaskGroup() as group:
            group.create_task(self.people(self.chance.randrange(3, 12)))
            if troubled:
                group.create_task(self.trouble(self.chance.randrange(1, 4)))
            await self.broken_runs()
        await asyncio.sleep(60)
        self.queue.resume()
        self.world.machine.locks.clear()
        ending = await self.world.runner().run()
        assert not ending.stopped
        assert not ending.trouble
        if ending.left:
            assert self.world.machine.http == 200
        feed.cancel()


def _note_cell(known: asyncio.Event, event: RunEvent) -> None:
    if event.what == "cell":
        known.set()


def check(day: Day, *, troubled: bool) -> None:
    world, every = day.world, day.queue.listed(cleared=True)
    found = {each.id: each for each in world.measurements()}
    for each in every:
        assert each.state not in {ExperimentState.RUNNING, ExperimentState.PENDING}, each.title
        if each.state is ExperimentState.DONE:
            check_measured(each, found[each.measurement])
        elif each.state is ExperimentState.FAILED and not troubled:
            assert each.request.flags[BLOCK] == FAILING, each.cause
    stored = sum(len(each.cells) for each in found.values())
    if not troubled:
        assert stored <= len(world.cells) <= stored + day.breaks
        assert not world.machine.locks
    view = results_view(world.host.name, as_they_ended(found.values(), every), every)
    shown = {each.id for row in view.rows for each in row.measurements}
    assert {each.id for each in found.values() if each.cells} <= shown
    assert "running" not in {row.state for row in view.rows}


def check_measured(experiment: Experiment, measured: Measurement) -> None:
    wanted = f"block {experiment.request.flags[BLOCK]}"
    assert measured.state is MeasurementState.COMPLETE
    assert measured.plan == experiment.plan
    assert measured.configuration == experiment.configuration
    assert tuple(each.concurrency for each in measured.cells) == experiment.plan.concurrency
    assert (measured.coding is not None) == experiment.plan.coding
    assert {each.notes for each in measured.cells} == {(wanted,)}
    assert f"block {block_of(measured.provenance.argv)}" == wanted


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("troubled", [False, True], ids=["people", "trouble"])
def test_a_random_day(store: Store, part: int, troubled: bool) -> None:
    for seed in range(part, SEEDS, PARTS):

        async def work(seed: int = seed) -> None:
            day = Day(store, f"day {seed} {troubled}", seed)
            await day.to_its_end(troubled=troubled)
            check(day, troubled=troubled)

        try:
            in_virtual_time(work())
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
