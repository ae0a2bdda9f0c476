"""Watches one host: runs its collectors and passes what they find to the state and to listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ddtui.collect.base import Context, Emit, Nudge, SourceCollector
from ddtui.collect.checkpoint import CheckpointCollector
from ddtui.collect.engine_http import EngineHttpCollector
from ddtui.collect.gpu_nvml import GpuNvmlCollector
from ddtui.collect.gpu_smi import GpuProcessCollector, GpuSmiCollector
from ddtui.collect.journal import JournalCollector
from ddtui.collect.listener import ListenerCollector
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.collect.system_proc import SystemProcCollector
from ddtui.collect.system_psutil import SystemPsutilCollector
from ddtui.collect.unit import UnitCollector
from ddtui.core.clock import Clock, system_clock
from ddtui.core.engine import Engine
from ddtui.core.host_state import HostState
from ddtui.core.reach import Reach
from ddtui.core.samples import AnySample
from ddtui.hosts.base import Host


def collectors_for(
    kind: Reach, settings: HostSettings, engine: Engine, observed: Observed, context: Context
) -> list[SourceCollector]:
    """The collectors of a host: this machine is asked directly where a library can."""
    machine: list[SourceCollector]
    if kind is Reach.LOCAL:
        machine = [
            GpuNvmlCollector(settings, observed, context),
            SystemPsutilCollector(settings, observed, context),
        ]
    else:
        machine = [
            GpuSmiCollector(settings, context),
            GpuProcessCollector(settings, observed, context),
            SystemProcCollector(settings, observed, context),
        ]
    return [
        UnitCollector(settings, engine, observed, context),
        *machine,
        JournalCollector(settings, observed, context),
        ListenerCollector(observed, context, settings.scope),
        EngineHttpCollector(settings, engine, observed, context),
        CheckpointCollector(settings, engine, observed, context),
    ]


class Monitor:
    """Owns a host's collectors from `start` to `close`."""

    def __init__(
        self,
        host: Host,
        settings: HostSettings,
        engine: Engine,
        state: HostState,
        *,
        clock: Clock = system_clock,
    ) -> None:
        self.host = host
        self.settings = settings
        self.engine = engine
        self.state = state
        self.observed = Observed(
            engine,
            unit_name=settings.unit,
            port=settings.port,
            bind_host=settings.bind_host,
        )
        self._nudge = Nudge()
        self._context = Context(clock, self._nudge)
        self._listeners: list[Callable[[AnySample], None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def add_listener(self, listener: Callable[[AnySample], None]) -> None:
        """Call `listener` with every sample, after the state has taken it."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Begin to connect and to collect, in the background."""
        self.host.on_link(self._take)
        self._take(self.host.link)
        await self.host.start()
        collectors = collectors_for(
            self.host.kind, self.settings, self.engine, self.observed, self._context
        )
        self._tasks = [
            asyncio.create_task(self._run(collector, self._take), name=type(collector).__name__)
            for collector in collectors
        ]

    async def _run(self, collector: SourceCollector, emit: Emit) -> None:
        await collector.run(self.host, emit)

    def _take(self, sample: AnySample) -> None:
        self.observed.apply(sample)
        self.state.apply(sample)
        for listener in self._listeners:
            listener(sample)

    def retry_now(self) -> None:
        """Try to connect, and ask every source again, at once."""
        self.host.retry_now()
        self._nudge.fire()

    async def close(self) -> None:
        """End all collectors and the connection. Safe to call twice."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.host.close()
