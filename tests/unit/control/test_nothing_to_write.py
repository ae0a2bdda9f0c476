"""What is asked for is written already: it is in force only where the engine runs with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ddtui.control.controller import NotPossible
from ddtui.core.launch import Level, Plan, Request
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import Machine, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = "speculative-dflash-block-size"
SAME = Request(flags={BLOCK: 8})


def told(story: Callable[[ChangeWorld], Awaitable[None]]) -> None:
    """A story of a host whose engine is ready."""

    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        await story(world)
        feed.cancel()

    in_virtual_time(work())


async def plan_of(world: ChangeWorld) -> Plan:
    await asyncio.sleep(1)  # the unit's watcher has looked
    return await world.control().plan(SAME, rights=True)


def rules(plan: Plan) -> set[str]:
    return {each.rule for each in plan.findings}


async def stopped(machine: Machine) -> None:
    await machine.stop()


async def died(machine: Machine) -> None:
    assert machine.engine is not None
    machine.die(machine.engine)


async def dies_again_and_again(machine: Machine) -> None:
    await died(machine)
    machine.active, machine.sub, machine.restarts = "activating", "auto-restart", 7


@pytest.mark.parametrize("falls", [stopped, died, dies_again_and_again])
def test_an_engine_that_is_down_is_started_and_proved(
    falls: Callable[[Machine], Awaitable[None]],
) -> None:
    async def story(world: ChangeWorld) -> None:
        assert not (await plan_of(world)).restart_only
        await falls(world.machine)
        plan = await plan_of(world)
        assert (plan.changes, plan.restart_only, plan.blocked) == ((), True, False)
        assert plan.restart_due.startswith("the engine is down: ")
        assert "engine-down" in rules(plan)
        record = await world.control().apply(plan)
        assert (record.kind, record.ending) == ("restart", "in force")
        assert (world.machine.active, world.machine.sub) == ("active", "running")
        plan = await plan_of(world)
        assert (plan.restart_due, rules(plan) & {"engine-down", "engine-not-ready"}) == ("", set())

    told(story)


def test_one_that_loads_is_left_alone_and_said_not_to_be_ready() -> None:
    async def story(world: ChangeWorld) -> None:
        await world.machine.stop()
        world.machine.script.load = 60.0
        world.machine.start()
        plan = await plan_of(world)
        assert (plan.changes, plan.restart_due) == ((), "")
        assert "engine-not-ready" in rules(plan)
        assert all(each.level is not Level.ERROR for each in plan.findings)

    told(story)


def test_one_that_somebody_has_started_meanwhile_is_not_stopped_for_an_older_plan() -> None:
    async def story(world: ChangeWorld) -> None:
        await world.machine.stop()
        plan = await plan_of(world)
        assert plan.restart_only
        world.machine.start()
        await asyncio.sleep(1)
        with pytest.raises(NotPossible, match="was started since"):
            await world.control().apply(plan)
        assert (world.machine.stops, world.machine.active) == (1, "active")

    told(story)


def test_a_restart_that_was_confirmed_is_of_the_unit_that_was_shown() -> None:
    async def story(world: ChangeWorld) -> None:
        await world.machine.stop()
        plan = await plan_of(world)
        world.machine.edit("size 8", "size 12")
        with pytest.raises(NotPossible, match="changed since the plan"):
            await world.control().apply(plan)
        assert world.machine.active == "inactive"

    told(story)
