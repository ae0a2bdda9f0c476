"""What the scenes are put together from: GPUs, figures that wander, an engine that has loaded.

The host is an eight-GPU machine that serves a 548 GB model with a block-diffusion drafter; figures
are plausible, not measured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from ddtui.core.events import Phase
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import Gpu, JournalLine
from ddtui.core.snapshot import (
    EngineView,
    Evidence,
    Figure,
    GpuView,
    History,
    LoadView,
    PhaseStatus,
    PhaseView,
    Readiness,
    ReadinessState,
    Verdict,
)

NOW = 1_790_000_000.0
GIB = 1 << 30
INVOCATION = "3f2a9c1e7b6d4f508a1c2d3e4f506172"


def past(now: float, seconds: int, value: Callable[[float], float], *, every: int = 1) -> History:
    """A history of `seconds`, one value each `every` seconds."""
    times = [float(int(now)) - back for back in range(seconds - 1, -1, -every)]
    return History(tuple(times), tuple(value(each) for each in times))


def wave(seed: int, low: float, high: float, period: float = 40.0) -> Callable[[float], float]:
    """A figure that wanders between two values, the same for the same seed."""

    def value(at: float) -> float:
        noise = random.Random(int(at) * 31 + seed).uniform(-0.5, 0.5)
        swing = math.sin(at / period + seed) * 0.35 + math.sin(at / 7.3 + 2 * seed) * 0.1
        return low + (high - low) * min(1.0, max(0.0, 0.55 + swing + noise * 0.25))

    return value


def gpu(index: int, now: float = NOW, *, busy: float = 95.0, used: float = 88.1) -> GpuView:
    utilization = wave(index, max(0.0, busy - 9), min(100.0, busy + 5 * (busy > 0)))
    reading = Gpu(
        index=index,
        uuid=f"GPU-0000000{index:x}-0000-4000-8000-00000000000{index % 10}",
        name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        memory_used=int((used + 0.31 * (index % 3)) * GIB),
        memory_total=int(95.59 * GIB),
        utilization=round(utilization(now)),
        power=round(wave(index + 50, 380, 470)(now)),
        power_limit=600.0,
        temperature=round(wave(index + 90, 61, 74, 400.0)(now)),
        sm_clock=2_287.0 - 15 * (index % 4),
        memory_clock=12_481.0,
        throttle_reasons=0x4 if index == 5 else 0,
        ecc_uncorrected=0,
        mig_enabled=False,
    )
    return GpuView(
        gpu=reading,
        at=now - 0.4,
        memory_history=past(now, 600, lambda _at: used * GIB),
        utilization_history=past(now, 600, utilization),
        unit_memory=int(used * GIB),
    )


LINES = (
    "[2026-09-21 14:13:12 TP0] Prefill batch, #new-seq: 2, #new-token: 8192, #cached-token: 18176, "
    "token usage: 0.31, #running-req: 10, #queue-req: 3, input throughput (token/s): 9120.11",
    "[2026-09-21 14:13:14 TP0] Decode batch, #running-req: 12, #token: 118533, token usage: 0.34, "
    "accept len: 4.21, accept rate: 0.46, cuda graph: True, "
    "gen throughput (token/s): 1241.39, #queue-req: 3",
    '[2026-09-21 14:13:14] INFO:     127.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "[2026-09-21 14:13:16 TP0] Decode batch, #running-req: 12, #token: 121869, token usage: 0.35, "
    "accept len: 4.20, accept rate: 0.46, cuda graph: True, "
    "gen throughput (token/s): 1239.17, #queue-req: 3",
    "[2026-09-21 14:13:18 TP0] Decode batch, #running-req: 11, #token: 114437, token usage: 0.33, "
    "accept len: 4.27, accept rate: 0.47, cuda graph: True, "
    "gen throughput (token/s): 1254.08, #queue-req: 2",
)


def log_of(lines: tuple[str, ...], now: float = NOW) -> LogBuffer:
    buffer = LogBuffer()
    buffer.extend(
        JournalLine(
            stamp=now - 2.0 * (len(lines) - index), text=text, invocation=INVOCATION, pid=4242
        )
        for index, text in enumerate(lines)
    )
    return buffer


def engine(now: float) -> EngineView:
    speed, length = wave(7, 1_100, 1_330), wave(11, 3.9, 4.6)
    quiet = (now - 260, now - 215)

    def throughput(at: float) -> float:
        return 0.0 if quiet[0] < at < quiet[1] else speed(at)

    return EngineView(
        throughput=Figure(speed(now), "/metrics counter", now - 0.6, 5.0),
        prefill_throughput=Figure(9_120.0, "/metrics counter", now - 0.6, 5.0),
        acceptance_length=Figure(length(now), "decode line", now - 1.8, 8.0),
        running=Figure(12, "/v1/loads", now - 0.6, 5.0),
        queued=Figure(3, "/v1/loads", now - 0.6, 5.0),
        kv_usage=Figure(0.34, "/v1/loads", now - 0.6, 5.0),
        graph_in_use=True,
        throughput_history=past(now, 600, throughput),
        acceptance_history=past(now, 600, length, every=2),
        version="0.5.23",
        model="/models/Kimi-K2.6",
        knobs={
            "algorithm": "DFLASH",
            "block size": "8",
            "budget": "60",
            "top-k": "8",
            "window": "4096",
            "tp": "8",
        },
        knobs_source="/server_info",
    )


def ready(now: float) -> Readiness:
    detail = {
        "unit": "active (running), main pid 4242",
        "log": "says it is ready, under this invocation",
        "port owner": "port 30000 is the unit's, pid 4242",
        "health": "/health 200",
        "configuration": "reports the unit's own command line",
    }
    evidence = tuple(
        Evidence(name, Verdict.PROVED, words, now - 12) for name, words in detail.items()
    )
    return Readiness(ReadinessState.READY, now - 7_980, "ready (proved)", evidence)


def loaded(now: float) -> LoadView:
    began = now - 8_352
    spans = (21.0, 251.0, 14.0, 9.0, 62.0, 15.0)
    phases, at = [], began
    for phase, seconds in zip(Phase, spans, strict=False):
        phases.append(PhaseView(phase, PhaseStatus.DONE, at, at + seconds, 1.0))
        at += seconds
    return LoadView(
        INVOCATION, began, tuple(phases), Phase.READY, finished=True, ended=at, fraction=1.0
    )
