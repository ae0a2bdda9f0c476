"""The time, injected wherever it matters so that tests and pictures can freeze it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Returns Unix seconds."""

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that goes on while the machine sleeps and is never set."""


class SteadyClock:
    """Unix time that never goes back, however the machine's clock is set.

    Ages and orders are told by it: a clock that is set back must not make what is old look new. One
    that is set forward is followed.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = lambda: time.clock_gettime(_STEADY),
    ) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        """Unix seconds."""
        steady = self._steady()
        self._offset = max(self._offset, self._wall() - steady)
        return steady + self._offset


system_clock: Clock = SteadyClock()
