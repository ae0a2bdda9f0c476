"""A bench by hand: what is in force is compared again after each break, and no end is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import psutil
import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Measurement, MeasurementState, Owner
from ddtui.experiments import single
from ddtui.experiments.interrupted import CAUSE, as_they_ended, is_gone, this_process
from ddtui.experiments.results import results_view
from ddtui.experiments.single import NotProved, measure_now
from ddtui.hosts.base import LinkRefused
from tests.support.run_stories import PLAN, Told
from tests.support.run_world import RunWorld
from tests.support.scripted_machine import Script

SERVICE = "[Service]\n"


class Bench:
    """`ddtui bench` over a world; does something once its first cell is whole."""

    def __init__(self, world: RunWorld, then: Callable[[], Awaitable[None]] | None = None) -> None:
        self.world = world
        self.words: list[str] = []
        self._then = then
        self._later: asyncio.Task[None] | None = None

    async def run(self, plan: BenchPlan = PLAN) -> Measurement:
        await asyncio.sleep(4)  # it is ready
        return await measure_now(
            self.world.around(), plan, on_cell=self._cell, on_words=self.words.append
        )

    def _cell(self, _words: str) -> None:
        if self._then is not None and self._later is None:
            self._later = asyncio.ensure_future(self._then())


def kept(world: RunWorld) -> Measurement:
    (found,) = world.measurements()
    return found


def concurrencies(found: Measurement) -> list[int]:
    return [each.concurrency for each in found.cells]


def test_it_measures_what_is_in_force_and_names_its_process_while_it_does(told: Told) -> None:
    seen: list[Measurement] = []

    async def story(world: RunWorld) -> None:
        async def look() -> None:
            seen.append(kept(world))

        await Bench(world, look).run()

    world = told(story)
    assert (seen[0].state, seen[0].owner) == (MeasurementState.RUNNING, this_process())
    assert (kept(world).state, kept(world).owner) == (MeasurementState.COMPLETE, None)


def test_a_process_that_is_older_than_its_unit_is_not_measured(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.machine.edit(SERVICE, f"{SERVICE}Environment=A=1\n")
        with pytest.raises(NotProved, match="older") as refused:
            await Bench(world).run()
        assert "ddtui restart" in refused.value.remedy

    script = Script(stop=0.5, memory_late=0.2, load=4.0, travel=0.01)
    assert told(story, script).measurements() == []


def test_after_a_break_it_goes_on_where_all_is_as_it_was(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        async def cut() -> None:
            world.host.cut()

        await Bench(world, cut).run()

    world = told(story)
    assert kept(world).state is MeasurementState.COMPLETE
    assert world.cells == [(8, 1), (8, 4)]


def test_an_engine_that_is_restarted_is_waited_for_and_measured_anew(told: Told) -> None:
    benches: list[Bench] = []

    async def story(world: RunWorld) -> None:
        async def restart() -> None:
            await world.machine.stop()
            await asyncio.sleep(5)
            world.machine.start()

        benches.append(Bench(world, restart))
        await benches[0].run()

    world = told(story)
    assert kept(world).state is MeasurementState.COMPLETE
    assert world.cells == [(8, 1), (8, 1), (8, 4)]
    assert world.machine.engine is not None
    assert kept(world).provenance.invocation == world.machine.engine.invocation
    waited = [each for each in benches[0].words if each.startswith("waiting: ")]
    assert waited == ["waiting: the engine is down", "waiting: the engine is not ready yet"]


def test_one_that_is_configured_otherwise_after_a_break_is_not_gone_on_with(told: Told) -> None:
    """Restarted with another command: nothing of that is credited to the one that was measured."""

    async def story(world: RunWorld) -> None:
        async def change() -> None:
            world.machine.edit("size 8", "size 4")
            await world.machine.stop()
            world.machine.start()

        await Bench(world, change).run()

    world = told(story)
    found = kept(world)
    assert (found.state, concurrencies(found)) == (MeasurementState.PARTIAL, [1])
    assert "the unit is configured otherwise by now: " in found.cause
    assert "8 > 4" in found.cause
    assert world.cells == [(8, 1)]


def test_one_whose_unit_was_edited_while_the_link_was_cut_is_not_gone_on_with(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        async def change() -> None:
            world.host.cut()
            world.machine.edit(SERVICE, f"{SERVICE}Environment=A=1\n")

        await Bench(world, change).run()

    found = kept(told(story))
    assert (found.state, concurrencies(found)) == (MeasurementState.PARTIAL, [1])
    assert "A not set > 1" in found.cause


def test_an_engine_that_stays_down_is_given_up(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        await Bench(world, world.machine.stop).run()

    found = kept(told(story))
    assert (found.state, concurrencies(found)) == (MeasurementState.PARTIAL, [1])
    assert found.cause.endswith("the engine is down")


def test_a_host_that_refuses_leaves_no_measurement_under_way(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> str:
        raise LinkRefused("the key is not accepted any more")

    async def story(world: RunWorld) -> None:
        with pytest.raises(LinkRefused):
            await Bench(world, world.machine.stop).run()

    monkeypatch.setattr(single, "_otherwise_by_now", refuse)
    found = kept(told(story))
    assert (found.state, found.cause) == (
        MeasurementState.PARTIAL,
        "the key is not accepted any more",
    )


# ---- killed --------------------------------------------------------------------------------------

GONE = Owner(2**22 + 1, 1.0, this_process().machine)


def test_a_process_is_told_by_its_start_and_its_machine() -> None:
    mine = this_process()
    assert not is_gone(mine)
    assert is_gone(GONE)
    assert is_gone(msgspec.structs.replace(mine, started=mine.started - 60))
    assert not is_gone(msgspec.structs.replace(GONE, machine="another"))
    assert psutil.pid_exists(mine.pid)


def test_a_bench_whose_process_is_gone_is_told_as_interrupted_with_its_cells(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        async def die() -> None:
            first = kept(world)
            world.kept.measurements.put(msgspec.structs.replace(first, id="f" * 32, owner=GONE))
            other = msgspec.structs.replace(first, id="e" * 32, owner=GONE, cells=())
            world.kept.measurements.put(msgspec.structs.replace(other, configuration="other"))

        await Bench(world, die).run()

    world = told(story)
    by_id = {each.id: each for each in as_they_ended(world.measurements())}
    killed, empty = by_id["f" * 32], by_id["e" * 32]
    assert (killed.state, killed.cause) == (MeasurementState.PARTIAL, CAUSE)
    assert concurrencies(killed) == [1]
    assert (empty.state, empty.cause) == (MeasurementState.FAILED, CAUSE)

    alone = results_view(world.host.name, [killed, empty], [])
    assert [(row.state, row.cause) for row in alone.rows] == [("partial", CAUSE), ("failed", CAUSE)]

    async def again(next_one: RunWorld) -> None:
        await Bench(next_one).run()

    states = {each.id: each.state for each in told(again).measurements()}
    assert states["f" * 32] is MeasurementState.PARTIAL  # the next bench keeps it so
    assert states["e" * 32] is MeasurementState.FAILED


def test_what_a_runner_measures_is_the_next_runners_matter() -> None:
    running = Measurement(
        id="a", host="h", simulated=False, unit="u", configuration="c", plan=PLAN, began=1.0,
        experiment="e",
    )  # fmt: skip
    assert as_they_ended([running]) == [running]
    (ended,) = as_they_ended([msgspec.structs.replace(running, experiment="")])
    assert ended.state is MeasurementState.FAILED  # of a ddtui that did not note its process
