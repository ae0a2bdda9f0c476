"""A whole change on the simulated host, over real SSH on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ddtui.app.controllers import controller_for
from ddtui.app.live import Watched
from ddtui.app.reaching import Overrides, settings_for
from ddtui.cli.look import collected
from ddtui.config.hosts import find_host
from ddtui.config.load import load
from ddtui.control.controller import Controller, NotPossible
from ddtui.control.lock import LockHeld
from ddtui.control.outcome import Asked
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.launch import Request
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import ReadinessState
from ddtui.demo.host import DemoHost
from ddtui.store import Store


class World:
    def __init__(self, host: DemoHost, source: Watched, control: Controller, store: Store) -> None:
        self.host, self.source, self.control, self.store = host, source, control, store
        self.steps: list[str] = []

    def heard(self, record: ChangeRecord, step: StepRecord) -> None:
        if record.steps[-1] == step:
            self.steps.append(step.step)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DDTUI_CONFIG_DIR", str(tmp_path))
    loaded = load()
    target = find_host(loaded.config, "demo")
    host = await DemoHost.create(speed=300.0)
    source = Watched(target, host, settings_for(target, Overrides()))
    store = await asyncio.to_thread(Store.open)
    try:
        await source.start()
        await collected(source)
        yield World(host, source, controller_for(source, loaded, store.reconfigurations), store)
    finally:
        await source.close()
        store.close()


async def test_a_preset_comes_into_force(world: World) -> None:
    plan = await world.control.plan(Request(knobs={"budget": 12}))
    assert [(each.name, each.before, each.after) for each in plan.changes] == [
        ("speculative-ddtree-budget", "8", "12")
    ]
    record = await world.control.apply(plan, world.heard)
    assert record.ending == "in force"
    assert [each["outcome"] for each in record.proofs] == ["in force"]
    assert world.steps == [
        *("planned", "locked", "written", "reloaded", "stopping", "releasing", "starting"),
        *("loading", "verifying", "in force"),
    ]
    assert world.host.machine.unit.command[-1] != ""
    assert "12" in world.host.machine.unit.command
    (kept,) = await world.control.history()
    assert [each.step for each in kept.steps] == world.steps
    with pytest.raises(NotPossible, match="changed since the plan"):
        await world.control.apply(plan)


async def test_a_failing_change_is_rolled_back_and_proved(world: World) -> None:
    plan = await world.control.plan(Request(flags={"served-model-name": "other"}))
    world.host.machine.failure = "oom"

    async def yes(_why: str) -> bool:
        world.host.machine.failure = None
        return True

    record = await world.control.apply(plan, world.heard, policy="ask", asked=Asked(yes))
    assert record.ending == "rolled back"
    assert record.cause is not None
    assert record.cause["evidence"]
    assert "other" not in world.host.machine.unit.command
    assert world.source.snapshot_now().readiness.state is ReadinessState.READY


async def test_a_second_operator_is_told_who_changes_it(world: World) -> None:
    plan = await world.control.plan(Request(knobs={"budget": 12}))
    unit = world.host.machine.unit.name
    world.host.machine.locks[unit] = "bob@lab since noon: apply x"
    with pytest.raises(LockHeld) as held:
        await world.control.apply(plan, world.heard)
    assert held.value.holder.startswith("bob@lab")
    assert not world.steps
    assert await world.control.unfinished() is None


async def test_a_killed_ddtui_carries_on(world: World) -> None:
    """Cancelled while it stops the unit: another controller finds the change and ends it."""
    plan = await world.control.plan(Request(knobs={"budget": 12}))
    reached = asyncio.Event()

    def heard(_record: ChangeRecord, step: StepRecord) -> None:
        if step.step == "releasing":
            reached.set()

    work = asyncio.create_task(world.control.apply(plan, heard))
    await reached.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    other = controller_for(world.source, load(), world.store.reconfigurations)
    left = await other.unfinished()
    assert left is not None
    with pytest.raises(NotPossible, match="interrupted"):
        await other.restart()
    record = await other.resume(world.heard)
    assert record.ending == "in force"
    assert record.id == left.id
    assert "stopping" not in world.steps


async def test_a_cut_link_is_waited_for(world: World) -> None:
    plan = await world.control.plan(Request(knobs={"budget": 12}))
    cut = False

    def heard(record: ChangeRecord, step: StepRecord) -> None:
        nonlocal cut
        world.heard(record, step)
        if step.step == "starting" and not cut:
            cut = True
            for connection in list(world.host.server.connections):
                connection.abort()

    record = await world.control.apply(plan, heard)
    assert cut
    assert record.ending == "in force"
    assert world.source.host.link.state is LinkState.LIVE
    assert time.time() - record.began < 60
