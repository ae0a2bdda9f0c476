"""ddtui watching the test host: its own host, monitor and state, and what tests ask of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from ddtui.collect.monitor import Monitor
from ddtui.collect.settings import HostSettings
from ddtui.core.engine import Engine
from ddtui.core.host_state import HostState
from ddtui.core.samples import AnySample, LinkSample, LinkState, UnitSample, UnitStatus
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.ssh.host import SshHost
from tests.host.gpuhost import PATIENCE, GpuHost

_LOOK = 0.1
"""Seconds between two looks when nothing was heard: figures grow old without a sample."""


class Watching:
    """One unit of the host, watched as `ddtui connect` does: a `ddtui.ui.source.LiveSource`."""

    def __init__(self, host: GpuHost, unit: str | None, user: str = "ops", **settings: Any) -> None:
        self.name = host.name if user == "ops" else f"{host.name}-{user}"
        self.engine: Engine = SGLANG
        self.host = SshHost(self.name, ssh_config=host.ssh_config)
        self.settings = HostSettings(unit=unit, **settings)
        self.state = HostState(self.name, SGLANG, gpu_interval=self.settings.gpu_interval)
        self.monitor = Monitor(self.host, self.settings, SGLANG, self.state)
        self.monitor.add_listener(self._heard)
        self.links: list[LinkSample] = []
        self.units: list[UnitSample] = []
        self.readiness: list[tuple[float, ReadinessState]] = []
        """Each state of readiness with the time since when it was seen."""
        self._changed = asyncio.Event()
        self._started = False

    def _heard(self, sample: AnySample) -> None:
        if isinstance(sample, LinkSample):
            self.links.append(sample)
        elif isinstance(sample, UnitSample):
            self.units.append(sample)
        self._note()
        self._changed.set()

    def _note(self) -> None:
        now = time.time()
        state = self.state.snapshot(now).readiness.state
        if not self.readiness or self.readiness[-1][1] is not state:
            self.readiness.append((now, state))

    # ---- LiveSource --------------------------------------------------------------------------

    def snapshot(self, now: float) -> Snapshot:
        """See LiveSource."""
        return self.state.snapshot(now)

    async def start(self) -> None:
        """See LiveSource. A second call changes nothing."""
        if not self._started:
            self._started = True
            await self.monitor.start()

    async def close(self) -> None:
        """See LiveSource."""
        await self.monitor.close()

    def retry_now(self) -> None:
        """See LiveSource."""
        self.monitor.retry_now()

    # ---- what tests ask ------------------------------------------------------------------------

    def now(self) -> Snapshot:
        """What is known now."""
        return self.snapshot(time.time())

    async def until(
        self, wanted: Callable[[Snapshot], object], seconds: float = PATIENCE, what: str = ""
    ) -> Snapshot:
        """The first snapshot of which `wanted` holds. Fails with what is known instead."""
        end = time.monotonic() + seconds
        while True:
            self._changed.clear()
            snapshot = self.now()
            self._note()
            if wanted(snapshot):
                return snapshot
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds:g} s: {what}\n{described(snapshot)}")
            with contextlib.suppress(TimeoutError):  # the usual case while nothing happens
                async with asyncio.timeout(_LOOK):
                    await self._changed.wait()

    async def until_state(self, *states: ReadinessState, seconds: float = PATIENCE) -> Snapshot:
        """The first snapshot with one of these states of readiness."""
        wanted = ", ".join(states)
        return await self.until(lambda known: known.readiness.state in states, seconds, wanted)

    async def until_live(self, seconds: float = PATIENCE) -> Snapshot:
        """The first snapshot with a live link."""
        return await self.until(lambda known: known.link.state is LinkState.LIVE, seconds, "live")

    async def unit_seen(
        self, wanted: Callable[[UnitStatus], object], since: float, seconds: float = PATIENCE
    ) -> float:
        """When, after `since`, the unit's state was first seen to be as wanted: Unix seconds."""

        def found(_: Snapshot) -> float:
            return next(
                (each.at for each in self.units if each.at >= since and wanted(each.unit)), 0.0
            )

        await self.until(found, seconds, "the unit's state")
        return found(self.now())

    def texts(self) -> list[str]:
        """All journal lines kept, oldest first."""
        return [line.text for line in self.state.log.since(0)]

    def own_texts(self) -> list[str]:
        """Those that the unit's processes wrote."""
        return [line.text for line in self.state.log.since(0) if not line.from_manager]


def described(snapshot: Snapshot) -> str:
    """What a failed test should say of a host."""
    unit = snapshot.unit
    lines = [
        f"link: {snapshot.link.state} {snapshot.link.detail}",
        f"unit: {unit and (unit.name, unit.load_state, unit.active_state, unit.sub_state)}",
        f"readiness: {snapshot.readiness.state}: {snapshot.readiness.summary}",
        *(f"  {each.name}: {each.verdict}: {each.detail}" for each in snapshot.readiness.evidence),
        *(
            f"{collector}: {source.status} {source.detail}"
            for collector, source in snapshot.sources.items()
        ),
        *(f"alert {alert.key}: {alert.text}" for alert in snapshot.alerts),
        *(f"log: {line.text[:160]}" for line in snapshot.log.tail(12)),
    ]
    return "\n".join(lines)


class Watcher:
    """Starts watching, and ends all of it."""

    def __init__(self, host: GpuHost) -> None:
        self._host = host
        self._running: list[Watching] = []

    async def watch(self, unit: str | None, user: str = "ops", **settings: Any) -> Watching:
        """Watch a unit from now on; returns once the link is live."""
        watching = Watching(self._host, unit, user, **settings)
        self._running.append(watching)
        await watching.start()
        await watching.until_live()
        return watching

    async def close(self) -> None:
        """End all."""
        for each in self._running:
            await each.close()


@contextlib.asynccontextmanager
async def watching(host: GpuHost) -> AsyncIterator[Watcher]:
    """A watcher, closed at the end."""
    watcher = Watcher(host)
    try:
        yield watcher
    finally:
        await watcher.close()
