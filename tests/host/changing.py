"""A controller on the test host, as the verbs make it, and what tests ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ddtui.control.carrying_out import Watching as WatchedBy
from ddtui.control.controller import Controller
from ddtui.control.host_actions import UnitActions
from ddtui.control.outcome import Asked
from ddtui.control.planner import Planner
from ddtui.control.reconfiguration import Limits
from ddtui.control.rights import sudoers_lines
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.launch import Plan, Request
from ddtui.core.snapshot import ReadinessState
from ddtui.store import Store
from tests.host.gpuhost import GpuHost
from tests.host.watching import Watcher, Watching

SUDOERS = "/etc/sudoers.d/ddtui"
QUICK = Limits(stop=60.0, release=60.0, load=120.0, stall=90.0, verify=60.0)
"""What is quicker on a quiet machine by far."""


class Changer:
    """One operator's ddtui: watches a unit and changes it."""

    def __init__(
        self,
        watching: Watching,
        unit: str,
        store: Store,
        who: str,
        scope: Any,
        limits: Limits,
    ) -> None:
        self.watching = watching
        self.unit = unit
        self.store = store
        self.steps: list[str] = []
        self.said: list[str] = []
        self.on: Callable[[StepRecord], None] = lambda _: None
        """Called at each step."""
        host = watching.host
        observed = watching.monitor.observed
        self.actions = UnitActions(host, scope, unit)
        self.control = Controller(
            lambda: self.actions,
            WatchedBy(watching.engine, watching.now, lambda: observed.port, time.time),
            Planner(host, watching.settings),
            store.reconfigurations,
            limits=limits,
            who=who,
        )

    def heard(self, record: ChangeRecord, step: StepRecord) -> None:
        """A step, or words within one."""
        self.said.append(step.detail)
        if record.steps and record.steps[-1] == step:
            self.steps.append(step.step)
            self.on(step)

    async def apply(self, **options: Any) -> ChangeRecord:
        """Plan and apply knobs (or a whole `request`)."""
        request = options.pop("request", None) or Request(knobs=options.pop("knobs"))
        plan = await self.plan(request)
        options.setdefault("policy", "always")
        return await self.control.apply(plan, self.heard, asked=Asked(), **options)

    async def ready_anew(self, host: GpuHost) -> None:
        """Wait until it is seen as ready by the start that is the present one."""
        now = await asyncio.to_thread(host.show, self.unit, "InvocationID")
        await self.watching.until(lambda known: known.unit and known.unit.invocation == now)
        await self.watching.until_state(ReadinessState.READY)

    async def plan(self, request: Request) -> Plan:
        """The plan of a request, which must not be blocked."""
        plan = await self.control.plan(request)
        assert not plan.blocked, plan.findings
        return plan


@contextlib.asynccontextmanager
async def changer(
    watcher: Watcher,
    unit: str,
    folder: Path,
    *,
    user: str = "ops",
    who: str = "ada@desk",
    scope: str = "system",
    limits: Limits = QUICK,
) -> AsyncIterator[Changer]:
    """A changer that watches the unit already."""
    watching = await watcher.watch(unit, user, scope=scope)
    await watching.until(lambda known: known.unit is not None)
    store = await asyncio.to_thread(Store.open, folder / f"{who}.sqlite3")
    try:
        yield Changer(watching, unit, store, who, scope, limits)
    finally:
        store.close()


def grant(host: GpuHost, unit: str, user: str = "ops", without: str = "") -> None:
    """Give the rights that doctor prints; not those that hold `without`."""
    lines = [line for line in sudoers_lines(user, unit) if not without or without not in line]
    host.write(SUDOERS, "\n".join([*lines, ""]), mode=0o440)
