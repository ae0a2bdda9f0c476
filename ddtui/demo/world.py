"""The simulated hardware: eight GPUs, and the machine's CPU, memory, disk and network.

Figures follow what the engine does (what a rank holds, whether it decodes, what it reads) with
small noise from a seed. Nothing runs in the background: each reading works out what became of the
time since the last one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from ddtui.core.clock import Clock
from ddtui.core.events import Phase
from ddtui.demo.engine import SimulatedEngine
from ddtui.demo.startup import GPU_MEMORY

GPU_COUNT = 8
GPU_NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
DRIVER = "580.95.05"
POWER_LIMIT = 600.0
CORES = 64
MEMORY_TOTAL = 504 << 30
"""Bytes of the machine's memory; less than the checkpoint, so that every load reads the disk."""
MODEL_DISK = "nvme1n1"
_IDLE_MEMORY = 4 << 20
_MIB = 1 << 20
_THROTTLE_IDLE, _THROTTLE_POWER = 0x1, 0x4
_RELEASE_DELAY, _RELEASE_SECONDS = 0.8, 1.2


@dataclass
class GpuState:
    """One GPU's reading, in nvidia-smi's units (MiB, W, degrees Celsius, MHz, percent)."""

    index: int
    memory_used: int = 0
    utilization: int = 0
    memory_utilization: int = 0
    power: float = 82.0
    temperature: float = 33.0
    fan: int = 30
    sm_clock: int = 180
    memory_clock: int = 405
    throttle: int = _THROTTLE_IDLE
    pstate: str = "P8"

    @property
    def uuid(self) -> str:
        """Its UUID."""
        return f"GPU-d3d0{self.index:04x}-5e1f-4a7c-8b2e-{0xC7200000000 + self.index:012x}"

    @property
    def bus_id(self) -> str:
        """Its PCI address."""
        return (
            f"00000000:{(0x16, 0x27, 0x38, 0x49, 0xA3, 0xB4, 0xC5, 0xD6)[self.index % 8]:02X}:00.0"
        )


@dataclass
class _Leftover:
    """Memory that an ended engine's rank still holds."""

    size: int
    ended_at: float


class World:
    """The hardware of the simulated host."""

    def __init__(
        self, clock: Clock, rng: random.Random, engine: Callable[[], SimulatedEngine | None]
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._engine = engine
        self.gpus = [GpuState(index) for index in range(GPU_COUNT)]
        self.booted_at = clock() - 1_843_200.0
        self._leftovers: dict[int, list[_Leftover]] = {index: [] for index in range(GPU_COUNT)}
        self._seen_at = clock()
        self._settled = False
        self.busy_seconds = 311_040.0
        """CPU time used since boot, over all cores."""
        self._read_before = 0
        """Bytes read by engines that have ended."""
        self.received = self.sent = 0.0

    def engine_ended(self, engine: SimulatedEngine) -> None:
        """Its memory is given back a little later."""
        now = self._clock()
        for rank in range(min(GPU_COUNT, engine.config.tp)):
            size = engine.plan.memory(engine.elapsed, rank)
            self._leftovers[rank].append(_Leftover(size, now + self._rng.uniform(0.0, 0.8)))
        self._read_before += engine.read_bytes()

    @property
    def disk_read(self) -> int:
        """Bytes that the model's disk has given since boot."""
        engine = self._engine()
        return 4_812_000_000_000 + self._read_before + (engine.read_bytes() if engine else 0)

    def page_cache(self) -> int:
        """Bytes of the page cache: the checkpoint, as far as it fits."""
        engine = self._engine()
        read = self._read_before + (engine.read_bytes() if engine else 0)
        return min(MEMORY_TOTAL - (122 << 30), (18 << 30) + read)

    def advance(self) -> None:
        """Bring every figure up to now."""
        now = self._clock()
        passed = max(0.0, now - self._seen_at)
        engine = self._engine()
        if passed < 0.02 and self._settled:
            return
        self._seen_at = now
        for gpu in self.gpus:
            self._advance_gpu(gpu, engine, passed, now)
        self._settled = True
        self.busy_seconds += passed * self.cpu_cores(engine)
        activity = engine.activity if engine else 0.0
        self.received += passed * (24_000 + 90_000 * activity)
        self.sent += passed * (31_000 + 260_000 * activity)

    def cpu_cores(self, engine: SimulatedEngine | None) -> float:
        """Cores that are busy."""
        if engine is None:
            return 0.4
        if engine.phase is Phase.READY:
            return 1.1 + 9.0 * engine.activity
        return 1.0 if engine.hung else 11.0

    def memory_of(self, index: int, now: float, engine: SimulatedEngine | None) -> int:
        """Bytes in use on a GPU, what ended engines still hold included."""
        held = engine.memory(index) if engine and index < engine.config.tp else 0
        kept = []
        for leftover in self._leftovers[index]:
            gone = (now - leftover.ended_at - _RELEASE_DELAY) / _RELEASE_SECONDS
            if gone < 1.0:
                kept.append(leftover)
                held += int(leftover.size * min(1.0, 1.0 - gone))
        self._leftovers[index] = kept
        return min(GPU_MEMORY - (300 << 20), held + _IDLE_MEMORY)

    def _advance_gpu(
        self, gpu: GpuState, engine: SimulatedEngine | None, passed: float, now: float
    ) -> None:
        activity = engine.activity if engine and gpu.index < engine.config.tp else 0.0
        if engine and engine.phase in (Phase.TARGET, Phase.DRAFTER) and not engine.hung:
            activity = 0.04
        # At the first look, what an engine that has been serving for long has settled at.
        long_served = engine and engine.traffic and engine.phase is Phase.READY
        duty = 0.7 if long_served and not self._settled else activity
        noise = self._rng.gauss(0.0, 1.0)
        gpu.memory_used = self.memory_of(gpu.index, now, engine) // _MIB
        gpu.utilization = _percent(activity * 104 + noise * 2.0 if activity else 0.0)
        gpu.memory_utilization = _percent(activity * 68 + noise * 1.5 if activity else 0.0)
        spread = (-6.0, 4.0, 9.0, 1.0, -3.0, 12.0, 6.0, -1.0)[gpu.index % 8]
        awake = engine is not None and engine.phase is not Phase.STARTING
        target_power = (88.0 if awake else 34.0) + duty * 470.0 + spread * (0.3 + duty)
        blend = 1.0 if not self._settled else 1.0 - math.exp(-passed / 0.8)
        gpu.power += (target_power - gpu.power) * blend + noise * (0.4 + 3.0 * activity)
        gpu.power = min(POWER_LIMIT, max(28.0, gpu.power))
        target_heat = 27.0 + gpu.power * 0.093 + spread * 0.35
        blend = 1.0 if not self._settled else 1.0 - math.exp(-passed / 25.0)
        gpu.temperature += (target_heat - gpu.temperature) * blend
        gpu.fan = _percent(30 + max(0.0, gpu.temperature - 45.0) * 1.3)
        gpu.pstate = "P1" if awake else "P8"
        gpu.sm_clock = int(2310 - 3.2 * gpu.temperature + noise * 8) if activity > 0.1 else 180
        if awake and activity <= 0.1:
            gpu.sm_clock = 1590
        gpu.memory_clock = 12481 if awake else 405
        capped = activity > 0.5 and gpu.power > POWER_LIMIT * 0.87
        gpu.throttle = _THROTTLE_POWER if capped else 0 if activity else _THROTTLE_IDLE


def _percent(value: float) -> int:
    return int(min(100.0, max(0.0, value)))
