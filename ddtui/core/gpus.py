"""What a GPU's throttle mask says in words.

Bits: NVML's nvmlClocksEventReasons (nvml.h), the same mask as `clocks_event_reasons.active`.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


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


def throttle_concern(mask: int | None) -> Concern:
    """The most serious reason's concern."""
    return max((reason.concern for reason in throttle_reasons(mask)), default=Concern.NONE)
