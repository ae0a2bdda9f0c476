"""A source that feeds the real reducer with made-up samples, at the pace of a real host."""

from __future__ import annotations

import asyncio
import random
import time

from ddtui.core.clock import Clock, system_clock
from ddtui.core.engine import Engine
from ddtui.core.host_state import HostState
from ddtui.core.samples import (
    Collector,
    EngineCounters,
    EngineSample,
    Gpu,
    GpuSample,
    HealthSample,
    JournalLine,
    JournalSample,
    LinkSample,
    LinkState,
    ListenerOwner,
    ListenerSample,
    SourceSample,
    SourceStatus,
    SystemSample,
    UnitSample,
    UnitStatus,
)
from ddtui.core.snapshot import Snapshot
from ddtui.engines.sglang import SGLANG

GIB = 1 << 30
INVOCATION = "3f2a9c1e7b6d4f508a1c2d3e4f506172"


class FeedSource:
    """Serves requests: `gpus` GPUs read `hertz` times a second, `lines` of log a second."""

    def __init__(
        self,
        *,
        gpus: int = 8,
        hertz: float = 1.0,
        lines: float = 2.0,
        busy: bool = True,
        clock: Clock = system_clock,
    ) -> None:
        self.name = "fed"
        self.engine: Engine = SGLANG
        self._gpus, self._hertz, self._lines, self._busy = gpus, hertz, lines, busy
        self._clock = clock
        self._state = HostState(self.name, SGLANG, gpu_interval=1 / hertz)
        self._random = random.Random(7)
        self._tokens = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    def snapshot(self, now: float) -> Snapshot:
        return self._state.snapshot(now)

    def retry_now(self) -> None:
        """There is nothing to try."""

    async def start(self) -> None:
        now = self._clock()
        self._state.apply(LinkSample(at=now, source="link", state=LinkState.LIVE))
        for each in Collector:
            live = SourceStatus.LIVE
            self._state.apply(SourceSample(at=now, source=each, collector=each, status=live))
        self._unit()
        fired = JournalLine(
            stamp=now - 7700,
            text="[2026-09-21 12:05:01] The server is fired up and ready to roll!",
            invocation=INVOCATION,
            pid=4242,
        )
        self._state.apply(JournalSample(at=now, source="journal", lines=(fired,)))
        for second in range(600, 0, -1):  # a past, so that the charts are full
            self._second(now - second)
        self._tasks = [
            asyncio.create_task(self._every(1 / self._hertz, self._gpu)),
            asyncio.create_task(self._every(1.0, self._second)),
            asyncio.create_task(self._every(0.1 if self._lines > 10 else 1.0, self._log)),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _every(self, seconds: float, take) -> None:  # type: ignore[no-untyped-def]
        due = time.monotonic()
        while True:
            take(self._clock())
            due += seconds
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _second(self, at: float) -> None:
        self._gpu(at)
        self._tokens += self._random.gauss(1200, 60) if self._busy else 0.0
        running, queued = (12, 3) if self._busy else (0, 0)
        counters = EngineCounters(
            decode_tokens_total=self._tokens,
            acceptance_length=self._random.gauss(4.2, 0.1) if self._busy else None,
            running=running,
            queued=queued,
            kv_usage=0.34 if self._busy else 0.0,
        )
        self._state.apply(EngineSample(at=at, source="/metrics", counters=counters))
        if int(at) % 5 == 0:
            self._unit(at)
            self._state.apply(HealthSample(at=at, source="http", endpoint="/health", status=200))
        self._state.apply(
            SystemSample(
                at=at,
                source="/proc",
                host_at=at,
                cpu=self._random.gauss(12, 1) if self._busy else 1.0,
                cores=128,
                load_1m=14.2,
                memory_total=1511 * GIB,
                memory_available=899 * GIB,
                page_cache=547 * GIB,
                disk_read=1.2e6,
                network_in=self._random.gauss(2e6, 2e5) if self._busy else 1e3,
                network_out=self._random.gauss(8e6, 2e5) if self._busy else 1e3,
                uptime=8e5,
            )
        )

    def _gpu(self, at: float) -> None:
        shake = self._random.gauss if self._busy else lambda mean, _spread: 0.0 * mean
        readings = tuple(
            Gpu(
                index=index,
                uuid=f"GPU-{index}",
                name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
                memory_used=88 * GIB + index * (1 << 28),
                memory_total=96 * GIB,
                utilization=min(100.0, round(shake(93, 3))),
                power=round(400 + shake(20, 20)),
                power_limit=600,
                temperature=66 + index % 3,
                sm_clock=2287,
                throttle_reasons=0,
            )
            for index in range(self._gpus)
        )
        self._state.apply(GpuSample(at=at, source="nvidia-smi", gpus=readings))

    def _unit(self, at: float | None = None) -> None:
        now = self._clock() if at is None else at
        unit = UnitStatus(
            name="sglang.service",
            load_state="loaded",
            active_state="active",
            sub_state="running",
            result="success",
            main_pid=4242,
            invocation=INVOCATION,
            started_at=self._clock() - 8000,
            restarts=0,
            memory=612 * GIB,
            tasks=1204,
            command_line=("python", "-m", "sglang.launch_server", "--tp-size", "8"),
        )
        self._state.apply(UnitSample(at=now, source="systemd", unit=unit))
        listener = ListenerSample(at=now, source="ss", port=30000, owner=ListenerOwner.UNIT)
        self._state.apply(listener)

    def _log(self, at: float) -> None:
        count = round(self._lines * 0.1) if self._lines > 10 else round(self._lines)
        lines = tuple(
            JournalLine(
                stamp=at,
                text="[2026-09-21 14:13:14 TP0] Decode batch, #running-req: 12, #token: "
                f"{self._random.randrange(100_000)}, token usage: 0.34, accept len: 4.21, "
                "accept rate: 0.46, cuda graph: True, gen throughput (token/s): 1241.39, "
                "#queue-req: 3",
                invocation=INVOCATION,
                pid=4242,
            )
            for _ in range(count if self._busy else 0)
        )
        if lines:
            self._state.apply(JournalSample(at=at, source="journal", lines=lines))
