"""A figure's recent past: one value a second, a fixed number of seconds."""

from __future__ import annotations

import math
from collections import deque

from ddtui.core.snapshot import History

SECONDS = 900
"""How much past is kept."""


class Track:
    """A ring of (second, value). Several values in one second keep the largest.

    Keeping the largest shows short peaks, which is what an operator looks for in a history.
    """

    def __init__(self, seconds: int = SECONDS) -> None:
        self._times: deque[float] = deque(maxlen=seconds)
        self._values: deque[float] = deque(maxlen=seconds)
        self._made: History | None = History()

    def add(self, at: float, value: float) -> None:
        """Note a value; one that is older than the last second noted is dropped.

        So is what is no number or has no moment: it would break every chart.
        """
        if not (math.isfinite(at) and math.isfinite(value)):
            return
        second = float(int(at))
        if self._times and second < self._times[-1]:
            return
        if self._times and second == self._times[-1]:
            if value <= self._values[-1]:
                return
            self._values[-1] = value
        else:
            self._times.append(second)
            self._values.append(value)
        self._made = None

    def history(self) -> History:
        """The ring as a frozen value, made anew only after a change."""
        if self._made is None:
            self._made = History(tuple(self._times), tuple(self._values))
        return self._made

    def clear(self) -> None:
        """Forget everything (another model's figures are no past of this one)."""
        self._times.clear()
        self._values.clear()
        self._made = History()
