"""A change that goes on in another process is left to it; one that is left behind is taken up."""

from __future__ import annotations

import asyncio

import pytest

from ddtui.control.controller import Controller
from ddtui.control.lock import LockHeld
from ddtui.core.change_record import StepRecord
from ddtui.core.launch import Request
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time

BLOCK = Request(flags={"speculative-dflash-block-size": 16})
OTHER = "f" * 32
"""Another process."""


async def begun(world: ChangeWorld, step: str) -> tuple[Controller, asyncio.Task[object]]:
    """A change that has come to a step."""
    await asyncio.sleep(3)
    control, reached = world.control(), asyncio.Event()

    def heard(_: object, at: StepRecord) -> None:
        if at.step == step:
            reached.set()

    plan = await control.plan(BLOCK)
    work: asyncio.Task[object] = asyncio.create_task(control.apply(plan, heard))
    await reached.wait()
    return control, work


def test_a_resume_does_not_take_the_lock_of_the_process_that_carries_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        first, going_on = await begun(world, "loading")
        (holder,) = world.machine.locks.values()
        known = await first.unfinished()
        assert known is not None
        monkeypatch.setattr("ddtui.control.to_its_end.PROCESS", OTHER)
        monkeypatch.setattr("ddtui.control.controller.LOCK_FREES", 1.0)
        second = world.control()
        with pytest.raises(LockHeld):
            await second.resume()
        assert second.running is None
        assert list(world.machine.locks.values()) == [holder]
        assert await second.unfinished() is not None
        await going_on
        assert first.running is not None
        assert first.running.ending == "in force"
        (record,) = world.store.history("")
        assert record.ending == "in force"
        assert not [each for each in record.steps if each.step == "unknown"]
        feed.cancel()

    in_virtual_time(work())


def test_what_another_process_has_taken_up_meanwhile_is_left_to_it() -> None:
    """This one's connection was down for long: its record is the other's by now."""

    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        first, going_on = await begun(world, "loading")
        ((key, (token, text)),) = world.machine.locks.items()
        world.machine.locks[key] = (token + OTHER, text)
        world.host.cut()
        with pytest.raises(LockHeld):
            await going_on
        assert first.running is None
        left = await first.unfinished()
        assert left is not None
        feed.cancel()

    in_virtual_time(work())


def test_the_lock_of_a_process_that_was_killed_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        _, going_on = await begun(world, "loading")
        locks = dict(world.machine.locks)
        going_on.cancel()
        await asyncio.gather(going_on, return_exceptions=True)
        world.machine.locks.update(locks)  # the host has not seen yet that it is gone
        asyncio.get_running_loop().call_later(4, world.machine.locks.clear)
        monkeypatch.setattr("ddtui.control.to_its_end.PROCESS", OTHER)
        record = await world.control().resume()
        assert record.ending == "in force"
        feed.cancel()

    in_virtual_time(work())


def test_what_was_left_behind_stands_in_the_way_of_a_plan_for_the_same() -> None:
    """Its drop-in is written by then: "nothing to change" would leave the unit half-way."""

    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        _, going_on = await begun(world, "stopping")
        control = world.control()
        plan = await control.plan(BLOCK, rights=True)
        assert "unfinished-change" not in {each.rule for each in plan.findings}  # it is carried on
        going_on.cancel()
        await asyncio.gather(going_on, return_exceptions=True)
        await asyncio.sleep(30)  # the lock is free, and the unit is down
        assert not world.machine.locks
        plan = await control.plan(BLOCK, rights=True)
        assert not plan.changes
        (found,) = [each for each in plan.findings if each.rule == "unfinished-change"]
        assert plan.blocked
        assert "--resume" in found.remedy
        await control.resume()
        plan = await control.plan(BLOCK, rights=True)
        assert "unfinished-change" not in {each.rule for each in plan.findings}
        feed.cancel()

    in_virtual_time(work())
