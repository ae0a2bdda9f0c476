"""Whether a load still moves."""

from __future__ import annotations

from ddtui.core.events import Phase

FLOOR = 60.0
"""Nothing shorter is a stall, seconds."""
WITHOUT_HISTORY = 180.0
FACTOR = 3.0
"""A stall is this many times longer than the longest gap that earlier loads had in the phase."""

_UNSEEN = 15.0
"""Of a longer time without a sample nobody knows what happened in it, seconds."""
_GROWTH = 16 * 2**20
_READS = 2**20


class StallWatch:
    """Counts observed time without progress by any source.

    Time in which nothing was observed (the link was down) does not count.
    """

    def __init__(self, began: float) -> None:
        self.longest: dict[str, float] = {}
        """By phase: the longest time without progress so far, seconds."""
        self._at = began
        self._idle = 0.0
        self._sampled = False
        self._memory = 0
        self._read = 0

    def grew(self, memory: int) -> bool:
        """Whether GPU memory has grown, bytes over all GPUs."""
        if memory < self._memory + _GROWTH:
            return False
        self._memory = memory
        return True

    def read(self, total: int) -> bool:
        """Whether bytes were read from storage."""
        if total < self._read + _READS:
            return False
        self._read = total
        return True

    def idle(self, at: float) -> None:
        """A sample showed no progress."""
        self._sampled = True
        if at > self._at:
            self._idle += min(at - self._at, _UNSEEN)
            self._at = at

    def progress(self, at: float, phase: Phase) -> None:
        """Something moved."""
        if at >= self._at:
            gap = self._idle + min(at - self._at, _UNSEEN)
            self.longest[phase.value] = max(gap, self.longest.get(phase.value, 0.0))
            self._at = at
        self._idle = 0.0

    def stalled(self, now: float, longest_before: float | None) -> float | None:
        """Seconds without progress, when that is longer than can be explained; else None.

        `longest_before`: the longest gap of earlier loads in this phase.
        """
        limit = WITHOUT_HISTORY
        if longest_before is not None:
            limit = max(FACTOR * longest_before, FLOOR)
        # Without samples only the log tells, and its silence is all there is to go by.
        idle = self._idle if self._sampled else max(0.0, now - self._at)
        return idle if idle > limit else None
