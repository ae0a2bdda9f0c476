"""A unit of the system and one of a user may have one name; each has its own changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from ddtui.collect.settings import HostSettings, Scope
from ddtui.control.carrying_out import Watching
from ddtui.control.controller import Controller, NotPossible
from ddtui.control.host_actions import UnitActions
from ddtui.control.of_scope import OfScope
from ddtui.control.planner import Planner
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.launch import Request
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Host
from ddtui.store import Store
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import PORT, UNIT, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = Request(flags={"speculative-dflash-block-size": 16})


def of_the_user(world: ChangeWorld) -> Controller:
    host = cast(Host, world.host)
    return Controller(
        lambda: UnitActions(host, "user", UNIT),
        Watching(SGLANG, world.watched.snapshot, lambda: PORT, world.watched.clock),
        Planner(host, HostSettings(unit=UNIT)),
        world.store,
        who="ada@desk",
    )


def test_what_was_left_of_the_systems_unit_is_not_carried_on_for_the_users() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control, reached = world.control(), asyncio.Event()
        plan = await control.plan(BLOCK)
        going_on = asyncio.create_task(
            control.apply(plan, lambda _, at: reached.set() if at.step == "stopping" else None)
        )
        await reached.wait()
        going_on.cancel()
        await asyncio.gather(going_on, return_exceptions=True)
        assert await of_the_user(world).unfinished() is None
        assert await of_the_user(world).history() == []
        with pytest.raises(NotPossible, match="no change of this unit was interrupted") as told:
            await of_the_user(world).resume()
        command = "ddtui apply ct200 --resume --unit llm.service --system-unit"
        assert told.value.remedy == f"one of llm.service was: {command}"
        assert (await world.control().resume()).ending == "in force"
        with pytest.raises(NotPossible, match="no earlier configuration"):
            await of_the_user(world).rollback_plan()
        feed.cancel()

    in_virtual_time(work())


def record(name: str, scope: Scope, ending: str = "in force") -> ChangeRecord:
    return ChangeRecord(
        id=name, kind="apply", host="gpu", unit=UNIT, scope=scope, who="ada@desk", began=1.0,
        ended=2.0 if ending else None, ending=ending, drop_in=f"# {name}\n",
    )  # fmt: skip


@pytest.mark.parametrize(("scope", "last"), [("system", "# one\n"), ("user", "# two\n")])
def test_what_was_proved_last_is_of_the_same_manager(
    tmp_path: Path, scope: Scope, last: str
) -> None:
    store = Store.open(tmp_path / "s.sqlite3")
    for each in (
        record("one", "system"), record("left", "user", ""), record("two", "user"),
        record("open", "system", ""),
    ):  # fmt: skip
        store.reconfigurations.step(each, StepRecord("planned", 1.0))
    own = OfScope(store.reconfigurations, scope)
    assert own.last_in_force("gpu", UNIT) == last
    left = own.unfinished("gpu", UNIT)
    assert (left.id if left else "") == ("open" if scope == "system" else "")
    store.close()
