"""What is left of a measurement whose experiment was not carried to its end, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.experiments.interrupted import GIVEN_UP, WAITS, as_they_ended
from ddtui.experiments.queue import Queue
from ddtui.experiments.results import results_view
from tests.support.run_stories import PLAN, Told, at, when
from tests.support.run_world import BLOCK, RunWorld

Do = Callable[[Queue, Experiment], object]


def queue_of(world: RunWorld) -> Queue:
    return Queue(world.kept, world.host.name, simulated=False, who="ada@desk")


async def cut_short(world: RunWorld, *, kill: bool) -> Experiment:
    """One experiment, whose run is stopped or killed within its second cell."""
    added = world.add("a", PLAN, block=16)
    runner, loop = world.runner(), asyncio.get_running_loop()
    work = runner.start()
    end = work.cancel if kill else runner.ask_to_stop
    when(world, at("cell"), lambda: loop.call_later(1.0, end))
    await asyncio.gather(work, return_exceptions=True)
    world.heed = lambda _: None
    await asyncio.sleep(20)
    return added


def told_of(world: RunWorld) -> list[tuple[str, str]]:
    """State and cause of each row, as the results show them."""
    experiments = world.experiments()
    found = as_they_ended(world.measurements(), experiments)
    view = results_view(world.host.name, found, experiments)
    return [(row.state, row.cause) for row in view.rows]


@pytest.mark.parametrize(
    ("do", "why"),
    [
        (lambda queue, each: queue.cancel(each.id), "its experiment was ended: cancelled"),
        (lambda queue, each: queue.hold(each.id), WAITS),
        (lambda _queue, _each: None, WAITS),
        (lambda queue, each: queue.edit(each.id, Request(flags={BLOCK: 12})), GIVEN_UP),
        (lambda queue, each: queue.retry(queue.cancel(each.id).id), GIVEN_UP),
    ],
    ids=["cancelled", "held", "waiting", "edited", "retried"],
)
def test_it_is_partial_once_its_run_was_stopped(told: Told, do: Do, why: str) -> None:
    async def story(world: RunWorld) -> None:
        do(queue_of(world), await cut_short(world, kill=False))

    assert told_of(told(story)) == [("partial", why)]


def test_it_is_partial_where_the_next_runner_only_ends_its_experiment(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        killed = await cut_short(world, kill=True)
        assert told_of(world) == [("running", "")]  # whoever carries it on
        queue_of(world).cancel(killed.id)
        await world.runner().run()

    assert told_of(told(story)) == [("partial", "its experiment was ended: cancelled")]


def test_what_was_given_up_does_not_hide_what_was_measured_then(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        stopped = await cut_short(world, kill=False)
        queue_of(world).edit(stopped.id, Request(flags={BLOCK: 12}))
        await world.runner().run()

    assert sorted(told_of(told(story))) == [("measured", ""), ("partial", GIVEN_UP)]


def test_of_an_experiment_that_cannot_be_read_nothing_is_told() -> None:
    running = Measurement(
        id="a", host="h", simulated=False, unit="u", configuration="c", plan=PLAN, began=1.0,
        experiment="e",
    )  # fmt: skip
    assert as_they_ended([running], []) == [running]
    assert running.state is MeasurementState.RUNNING
