"""Throughput and acceptance over a whole log, in little memory."""

from __future__ import annotations

import itertools
import math
import statistics
from array import array
from collections.abc import Sequence

import msgspec

from ddtui.core.events import Decoded

MOST_KEPT = 1 << 15
"""Figures kept of each series. Beyond it every other one is dropped, evenly over the log."""


class Series:
    """Figures in order, thinned out evenly once there are many."""

    def __init__(self) -> None:
        self._kept = array("d")
        self._step = 1
        self._seen = 0

    def add(self, value: float) -> None:
        """Append a figure."""
        if self._seen % self._step == 0:
            self._kept.append(value)
            if len(self._kept) >= MOST_KEPT:
                self._kept = self._kept[::2]
                self._step *= 2
        self._seen += 1

    @property
    def count(self) -> int:
        """Figures ever appended."""
        return self._seen

    def median(self) -> float | None:
        """The median; None of nothing."""
        return statistics.median(self._kept) if self._kept else None

    def sketch(self, points: int) -> tuple[float, ...]:
        """At most so many means over equal stretches, oldest first."""
        values = self._kept
        if len(values) <= points:
            return tuple(values)
        edges = [round(n * len(values) / points) for n in range(points + 1)]
        return tuple(
            statistics.fmean(values[begin:end]) for begin, end in itertools.pairwise(edges)
        )


class DecodeSummary(msgspec.Struct, frozen=True):
    """The engine's periodic decode lines in brief."""

    count: int = 0
    median_tokens_per_second: float | None = None
    """Over all requests together."""
    median_acceptance_length: float | None = None
    """None without speculation."""
    throughput: Sequence[float] = ()
    acceptance: Sequence[float] = ()
    """Both series over the log, thinned out, oldest first."""


class DecodeFigures:
    """Gathers decode events."""

    def __init__(self) -> None:
        self._throughput = Series()
        self._acceptance = Series()

    def add(self, event: Decoded) -> None:
        """Take a decode line. Lines that an idle engine writes have no throughput."""
        speed, length = event.throughput, event.acceptance_length
        if speed is not None and math.isfinite(speed) and (speed > 0 or event.running):
            self._throughput.add(speed)
        if length is not None and math.isfinite(length):
            self._acceptance.add(length)

    @property
    def acceptance_count(self) -> int:
        """Decode lines that told an acceptance length."""
        return self._acceptance.count

    def summary(self, points: int = 60) -> DecodeSummary:
        """What has been gathered, the series in so many points at most."""
        return DecodeSummary(
            self._throughput.count,
            self._throughput.median(),
            self._acceptance.median(),
            self._throughput.sketch(points),
            self._acceptance.sketch(points),
        )
