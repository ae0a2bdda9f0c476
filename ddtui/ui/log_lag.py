"""How far the lines that arrive are behind: a flood is read later than it is written."""

from __future__ import annotations

from ddtui.ui import format as fmt
from ddtui.ui.shown import Shown

LAG_SHOWN = 5.0
"""Seconds of delay from which it is said."""
_ARRIVING = 3.0
"""Seconds after a line within which lines are said to keep arriving."""


class Lag:
    """Looks at the log whenever it is painted."""

    def __init__(self) -> None:
        self._total = -1
        self._arrived = float("-inf")

    def seconds(self, shown: Shown) -> float | None:
        """Seconds from the newest line to now, by the host's clock; None while it keeps up.

        A log in which nothing happens is not behind, and nor is a picture that is paused.
        """
        log = shown.snapshot.log
        if log.total != self._total:
            # What was there at the first look came before it: history, not a flood.
            self._arrived = shown.now if self._total >= 0 else self._arrived
            self._total = log.total
        newest = log.tail(1)
        if shown.paused_at is not None or not newest or shown.now - self._arrived > _ARRIVING:
            return None
        behind = shown.host_now - newest[0].stamp
        return behind if behind > LAG_SHOWN else None

    def words(self, shown: Shown) -> str:
        """What to say of it; empty while it keeps up."""
        seconds = self.seconds(shown)
        return "" if seconds is None else f"{fmt.duration(seconds)} behind"
