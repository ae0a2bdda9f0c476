"""Which lines of the kernel's log belong to the end of an engine.

The kernel's log is one for the whole machine and for all starts: what it said of an earlier start,
or long before the end of an engine that served on, or after that end, is of something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_BEFORE = 900.0
"""Seconds that an engine that served may take to end of what the kernel tells: watchdogs wait."""
_AFTER = 60.0
"""Seconds after the engine's own word of its end in which the kernel may tell of it."""
_GRANULE = 1.0
"""Most logs have whole seconds."""


class KernelLine(NamedTuple):
    """A line of the kernel's log."""

    stamp: float
    """Unix seconds by the clock of the engine's lines; 0 where that is not known."""
    text: str


class Life(NamedTuple):
    """An engine's time, Unix seconds; 0 for what is not known."""

    began: float
    was_ready: bool
    ended: float
    """When it told that it was done for, or systemd did."""
    last: float
    """When anything was heard of it last."""


def belonging(lines: Iterable[KernelLine], life: Life) -> list[KernelLine]:
    """Those that may tell of this engine's end."""
    return [line for line in lines if not line.stamp or _belongs(line.stamp, life)]


def _belongs(stamp: float, life: Life) -> bool:
    if life.began and stamp < life.began - _GRANULE:
        return False
    end = life.ended or life.last
    if life.was_ready and end and stamp < end - _BEFORE:
        return False
    return not life.ended or stamp <= life.ended + _AFTER
