"""An external bench under a runner whose link breaks: what came stays, and it runs anew."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from ddtui.bench.bench import Bench
from ddtui.core.measurement import MeasurementState
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Host
from ddtui.hosts.ports import DirectPorts
from tests.support import run_world
from tests.support.external_host import ExternalHost, result
from tests.support.run_stories import PLAN, Told, at, states, when
from tests.support.run_world import RunWorld

COMMAND = msgspec.structs.replace(PLAN, command=("any",))
TWO = [(3.0, result(100)), (3.0, result(104))]


def external(monkeypatch: pytest.MonkeyPatch, *runs: Any) -> ExternalHost:
    """The runner's bench, on a host of its own."""
    host = ExternalHost(*runs)

    def bench(_world: RunWorld) -> Bench:
        clock = asyncio.get_running_loop().time
        return Bench(DirectPorts(), "127.0.0.1", 1, SGLANG, host=cast(Host, host), clock=clock)

    monkeypatch.setattr(run_world, "FakeBench", bench)
    return host


def rates(world: RunWorld) -> list[tuple[tuple[float, ...], bool]]:
    (measurement,) = world.measurements()
    return [
        (cell.total_rate.values if cell.total_rate else (), cell.partial)
        for cell in measurement.cells
    ]


def test_it_runs_anew_after_the_link_broke_and_is_whole_then(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = external(monkeypatch, [*TWO, (3.0, b"")], [(3.0, result(90)), (3.0, result(92))])

    async def story(world: RunWorld) -> None:
        world.add("a", COMMAND)
        await world.runner().run()

    world = told(story)
    assert host.begun == 2
    assert states(world) == ["done"]
    assert rates(world) == [((90.0, 92.0), False)]
    assert len([each for each in world.events if each.what == "cell"]) == 1


def test_what_came_is_kept_where_it_never_gets_further(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    external(monkeypatch, [*TWO, (3.0, b"")])

    async def story(world: RunWorld) -> None:
        world.add("a", COMMAND)
        await world.runner().run()

    world = told(story)
    assert states(world) == ["failed"]
    assert rates(world) == [((100.0, 104.0), True)]
    assert world.measurements()[0].state is MeasurementState.PARTIAL
    assert "partial" in world.measurements()[0].cells[0].notes[-1]


def test_what_came_is_kept_when_the_runner_is_stopped(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    external(monkeypatch, [*TWO, (3000.0, b"")])

    async def story(world: RunWorld) -> None:
        world.add("a", COMMAND)
        first, loop = world.runner(), asyncio.get_running_loop()
        when(
            world,
            at("step", "measuring"),
            lambda: loop.call_later(10.0, first.ask_to_stop),
        )
        assert (await first.run()).stopped

    assert rates(told(story)) == [((100.0, 104.0), True)]
