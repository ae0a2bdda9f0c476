"""What is told before a change is the same before a restart and a rollback; nothing comes late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from ddtui.control.controller import Controller, NotPossible
from ddtui.control.host_actions import UnitActions
from ddtui.control.lock import LockHeld
from ddtui.control.unit_files import Trouble, UnitText
from ddtui.core.launch import Finding, Request
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time

BLOCK = Request(flags={"speculative-dflash-block-size": 16})


def read_with(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """The unit is read with these fields from now on."""
    read = UnitActions.read

    async def changed(actions: UnitActions) -> UnitText:
        return msgspec.structs.replace(await read(actions), **changes)

    monkeypatch.setattr(UnitActions, "read", changed)


async def before_a_change(control: Controller) -> tuple[Finding, ...]:
    return (await control.plan(BLOCK)).findings


async def before_a_rollback(control: Controller) -> tuple[Finding, ...]:
    return (await control.rollback_plan()).findings


@pytest.mark.parametrize(
    "findings", [before_a_change, before_a_rollback, Controller.against_restart]
)
def test_what_the_unit_warns_of_is_told_before_each(
    monkeypatch: pytest.MonkeyPatch,
    findings: Callable[[Controller], Coroutine[Any, Any, tuple[Finding, ...]]],
) -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()
        await control.apply(await control.plan(BLOCK))
        read_with(
            monkeypatch,
            passing=True,
            stopped_with_it=("proxy.service",),
            unread=("/etc/x.conf",),
            closed=("/etc/y.conf",),
        )
        world.machine.edit("/models/draft", "/models/other")
        told = {each.rule for each in await findings(control)}
        wanted = {"no-linger", "others-stop", "drop-in-not-read", "drop-in-closed", "unit-edited"}
        assert wanted <= told
        feed.cancel()

    in_virtual_time(work())


def test_what_cannot_be_restarted_is_refused_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        read_with(monkeypatch, trouble=Trouble("llm.service is a transient unit", "give it a file"))
        with pytest.raises(NotPossible, match="transient"):
            await ChangeWorld(Script()).control().against_restart()

    in_virtual_time(work())


async def left(world: ChangeWorld, step: str) -> asyncio.Task[Any]:
    """A change that has come to that step, and goes on."""
    control, reached = world.control(), asyncio.Event()
    plan = await control.plan(BLOCK)
    work = asyncio.create_task(
        control.apply(plan, lambda _, at: reached.set() if at.step == step else None)
    )
    await reached.wait()
    return work


OTHERS = (
    Controller.restart,
    Controller.rollback,
    Controller.rollback_plan,
    Controller.against_restart,
)
"""What comes to nothing beside another change, and how that is told before anybody is asked."""


@pytest.mark.parametrize("other", OTHERS)
def test_beside_a_change_that_goes_on_nothing_is_said_to_be_interrupted(
    other: Callable[[Controller], Coroutine[Any, Any, Any]],
) -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        going_on = await left(world, "loading")
        with pytest.raises(LockHeld, match="ada@desk"):
            await other(world.control())
        plan = await world.control().plan(BLOCK, rights=True)
        (found,) = [each for each in plan.findings if each.rule == "being-changed"]
        assert "ada@desk" in found.text
        assert (await going_on).ending == "in force"
        feed.cancel()

    in_virtual_time(work())


@pytest.mark.parametrize("other", OTHERS)
def test_over_one_that_was_interrupted_nothing_else_is_begun_or_shown_as_possible(
    other: Callable[[Controller], Coroutine[Any, Any, Any]],
) -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        going_on = await left(world, "stopping")
        going_on.cancel()
        await asyncio.gather(going_on, return_exceptions=True)
        with pytest.raises(NotPossible, match="interrupted") as told:
            await other(world.control())
        assert told.value.remedy == "carry it on: ddtui apply ct200 --resume"
        feed.cancel()

    in_virtual_time(work())


def test_a_rollback_is_the_one_that_was_shown() -> None:
    """Another change comes into force while it is looked at."""

    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()
        await control.apply(await control.plan(BLOCK))
        shown = await control.rollback_plan()
        other = Request(flags={"speculative-dflash-block-size": 12})
        await control.apply(await control.plan(other))
        with pytest.raises(NotPossible, match="changed since what was shown"):
            await control.rollback(plan=shown)
        assert (await control.rollback(plan=await control.rollback_plan())).ending == "rolled back"
        feed.cancel()

    in_virtual_time(work())
