"""Puts together what watches a host: the way to reach it, its collectors, and what is known of it.

Every verb that looks at a host starts here, so that all of them see the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ddtui.app.past_loads import PastLoads
from ddtui.app.reaching import Overrides, engine_for, host_for, settings_for
from ddtui.collect.monitor import Monitor
from ddtui.collect.settings import HostSettings
from ddtui.config.hosts import HostTarget
from ddtui.core.clock import Clock, system_clock
from ddtui.core.host_state import HostState
from ddtui.core.load_history import LoadHistory
from ddtui.core.log_buffer import CAPACITY
from ddtui.core.snapshot import Snapshot
from ddtui.hosts.base import Host

if TYPE_CHECKING:
    from ddtui.control.carrying_out import Watching


class Watched:
    """A host that is watched: a `ddtui.ui.source.LiveSource`, and what verbs ask beside it."""

    def __init__(
        self,
        target: HostTarget,
        host: Host,
        settings: HostSettings,
        *,
        log_lines: int = CAPACITY,
        clock: Clock = system_clock,
    ) -> None:
        self.target = target
        self.name = target.name
        self.host = host
        self.settings = settings
        self.engine = engine = engine_for(target)
        self._clock = clock
        self._past = PastLoads(target.name, simulated=host.simulated)
        self._keeping: asyncio.Task[None] | None = None
        self._state = HostState(
            target.name,
            engine,
            simulated=host.simulated,
            gpu_interval=settings.gpu_interval,
            history=self._past.history,
            log_lines=log_lines,
        )
        self._monitor = Monitor(host, settings, engine, self._state, clock=clock)

    def snapshot(self, now: float) -> Snapshot:
        """What is known at `now` (Unix seconds)."""
        return self._state.snapshot(now)

    def snapshot_now(self) -> Snapshot:
        """What is known now."""
        return self.snapshot(self._clock())

    async def start(self) -> None:
        """Begin connecting and collecting; a second call changes nothing."""
        if self._keeping is not None:
            return
        keep = self._past.keep(self._state, self.unit_name)
        self._keeping = asyncio.create_task(keep, name="past loads")
        await self._monitor.start()

    async def close(self) -> None:
        """End collecting and the connection. Safe to call twice."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        await self._monitor.close()

    def retry_now(self) -> None:
        """Try to connect at once instead of waiting for the backoff."""
        self._monitor.retry_now()

    @property
    def clock(self) -> Clock:
        """The operator's clock."""
        return self._clock

    @property
    def past_loads(self) -> LoadHistory:
        """Earlier loads of the host; filled once the store is open."""
        return self._past.history

    def watching(self) -> Watching:
        """What a controller and a runner read of it."""
        from ddtui.control.carrying_out import Watching

        return Watching(
            self.engine, self.snapshot_now, lambda: self.engine_address()[1], self.clock
        )

    def unit_name(self) -> str:
        """The unit that is watched; empty while none is known."""
        unit = self.snapshot_now().unit
        return unit.name if unit is not None else self.settings.unit or ""

    def engine_address(self) -> tuple[str, int]:
        """Address and port to reach the engine at, seen from the host."""
        return self._monitor.observed.address, self._monitor.observed.port


async def watched(
    target: HostTarget, overrides: Overrides, *, log_lines: int = CAPACITY
) -> Watched:
    """A host, ready to be started. Raises ConfigError for options that cannot be."""
    settings = settings_for(target, overrides)
    host = await host_for(target, overrides.scenario)
    return Watched(target, host, settings, log_lines=log_lines)
