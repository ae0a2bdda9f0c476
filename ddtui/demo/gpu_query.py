"""`nvidia-smi --query-gpu ... --format=csv,noheader,nounits` of the simulated GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ddtui.demo.startup import GPU_MEMORY
from ddtui.demo.world import DRIVER, GPU_NAME, POWER_LIMIT, GpuState

_TOTAL_MIB = GPU_MEMORY >> 20
_RESERVED_MIB = 702

FIELDS: dict[str, Callable[[GpuState], object]] = {
    "index": lambda gpu: gpu.index,
    "uuid": lambda gpu: gpu.uuid,
    "name": lambda _: GPU_NAME,
    "gpu_name": lambda _: GPU_NAME,
    "pci.bus_id": lambda gpu: gpu.bus_id,
    "driver_version": lambda _: DRIVER,
    "memory.used": lambda gpu: gpu.memory_used,
    "memory.total": lambda _: _TOTAL_MIB,
    "memory.reserved": lambda _: _RESERVED_MIB,
    "memory.free": lambda gpu: max(0, _TOTAL_MIB - _RESERVED_MIB - gpu.memory_used),
    "utilization.gpu": lambda gpu: gpu.utilization,
    "utilization.memory": lambda gpu: gpu.memory_utilization,
    "power.draw": lambda gpu: f"{gpu.power:.2f}",
    "power.limit": lambda _: f"{POWER_LIMIT:.2f}",
    "temperature.gpu": lambda gpu: round(gpu.temperature),
    "temperature.memory": lambda _: "N/A",
    "fan.speed": lambda _: "[N/A]",
    "clocks.current.sm": lambda gpu: gpu.sm_clock,
    "clocks.sm": lambda gpu: gpu.sm_clock,
    "clocks.current.memory": lambda gpu: gpu.memory_clock,
    "clocks.mem": lambda gpu: gpu.memory_clock,
    "clocks_event_reasons.active": lambda gpu: f"0x{gpu.throttle:016x}",
    "clocks_throttle_reasons.active": lambda gpu: f"0x{gpu.throttle:016x}",
    "ecc.errors.uncorrected.volatile.total": lambda _: 0,
    "mig.mode.current": lambda _: "Disabled",
    "pcie.link.gen.current": lambda gpu: 5 if gpu.pstate == "P1" else 1,
    "pcie.link.width.current": lambda _: 16,
    "pstate": lambda gpu: gpu.pstate,
    "persistence_mode": lambda _: "Enabled",
    "compute_mode": lambda _: "Default",
}
"""Field to value. The board has no fan and reports no memory temperature, like the real one."""


def gpu_row(gpu: GpuState, fields: Sequence[str]) -> str:
    """One CSV row."""
    return ", ".join(str(FIELDS[name](gpu)) for name in fields)
