"""What a GPU can read, and what its throttle mask says in words.

Bits: NVML's nvmlClocksEventReasons (nvml.h), the same mask as `clocks_event_reasons.active`.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from ddtui.core.bounded import within
from ddtui.core.samples import Gpu


class Concern(enum.IntEnum):
    """How much a reason for lower clocks matters."""

    NONE = 0
    """Normal: idle, or clocks that somebody set."""
    LIMITED = 1
    """Held at its power limit: slower than it could be, by design."""
    SLOWED = 2
    """Slowed by heat or by the power supply: somebody should look."""


class Reason(NamedTuple):
    """One reason why the clocks are not at their maximum."""

    bit: int
    word: str
    concern: Concern


REASONS = (
    Reason(0x080, "hw power brake", Concern.SLOWED),
    Reason(0x040, "hw thermal", Concern.SLOWED),
    Reason(0x008, "hw slowdown", Concern.SLOWED),
    Reason(0x020, "sw thermal", Concern.SLOWED),
    Reason(0x004, "power cap", Concern.LIMITED),
    Reason(0x010, "sync boost", Concern.NONE),
    Reason(0x002, "app clocks", Concern.NONE),
    Reason(0x100, "display clocks", Concern.NONE),
    Reason(0x001, "idle", Concern.NONE),
)
"""Most serious first."""

_KNOWN = sum(reason.bit for reason in REASONS)


def throttle_reasons(mask: int | None) -> tuple[Reason, ...]:
    """The reasons in a mask, most serious first. A bit that nobody knows is named by its number."""
    if not mask:
        return ()
    reasons = [reason for reason in REASONS if mask & reason.bit]
    unknown = mask & ~_KNOWN
    if unknown:
        reasons.append(Reason(unknown, f"reason {unknown:#x}", Concern.LIMITED))
    return tuple(reasons)


def throttle_words(mask: int | None) -> tuple[str, ...]:
    """The reasons in words, most serious first; none for an unknown or empty mask."""
    return tuple(reason.word for reason in throttle_reasons(mask))


HIGHEST_INDEX = 1023
"""No host has as many GPUs."""
_MOST_MEMORY = 1 << 50
_USED_ABOVE_TOTAL = 1.01
"""Used and total memory are rounded apart."""


def possible_memory(size: int | None) -> int | None:
    """Bytes of a GPU's memory; None for a size that no GPU has."""
    return size if size is not None and 0 <= size <= _MOST_MEMORY else None


def possible_gpu(gpu: Gpu) -> Gpu:
    """The same reading without the figures that no GPU can have: they are None, not shown."""
    used, total = possible_memory(gpu.memory_used), possible_memory(gpu.memory_total)
    if used is not None and total is not None and used > total * _USED_ABOVE_TOTAL:
        used = None
    return msgspec.structs.replace(
        gpu,
        memory_used=used,
        memory_total=total or None,
        utilization=within(gpu.utilization, 0, 100),
        memory_utilization=within(gpu.memory_utilization, 0, 100),
        power=within(gpu.power, 0, 10_000),
        power_limit=within(gpu.power_limit, 0, 10_000),
        temperature=within(gpu.temperature, -50, 200),
        memory_temperature=within(gpu.memory_temperature, -50, 200),
        fan=within(gpu.fan, 0, 200),  # the driver may call for more than the usual full speed
        sm_clock=within(gpu.sm_clock, 0, 20_000),
        memory_clock=within(gpu.memory_clock, 0, 50_000),
        pcie_generation=gpu.pcie_generation if (gpu.pcie_generation or 99) <= 20 else None,
        pcie_width=gpu.pcie_width if (gpu.pcie_width or 99) <= 64 else None,
    )
