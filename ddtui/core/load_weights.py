"""How far the weights of one model have come, from whichever source can tell.

Three sources, none of which is always there: the bar in the log (newer engines print it only when
it closes), GPU memory against its expected end, and bytes read from storage against the size of
the checkpoint (nothing when the checkpoint lies in the page cache).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ddtui.core.load_history import LoadRecord
from ddtui.core.load_memory import GpuMemory, straggler
from ddtui.core.load_phases import Stretch, rank_index

ALMOST = 0.99
"""No source may say more than this before every rank has said that it is done."""

LATE = 2.0
"""Memory that was first observed this long after the weights began is no baseline, seconds."""

_STEP = 0.001
"""Points nearer than this share are not kept."""
_MOVED = 1e-5
"""Less than this share is noise and no progress."""
_FINE_BAR = 8
"""A bar with fewer steps than this is coarser than the other sources."""
_COLD_SHARE = 0.01
"""Reading less of the checkpoint than this is no loading from storage."""
_CLEARLY = 5.0
"""A rank that is behind for less than this is none to name, seconds."""
_STARTUP_READS = 300_000_000
"""Libraries that are read before the weights, bytes (measured)."""

Points = list[tuple[float, float]]
"""Time (Unix seconds, host's clock) and share of the bytes."""


class Bar:
    """A progress bar in the log, with the stamps at which it moved."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self._moved: list[float] = []

    def move(self, stamp: float, done: int, total: int) -> bool:
        """Take one state; returns whether it advanced."""
        if total <= 0 or done <= self.done:
            self.total = max(self.total, total)
            return False
        self.done, self.total = done, total
        if not self._moved or stamp - self._moved[-1] > 0.05:
            self._moved.append(stamp)
        return True

    @property
    def fraction(self) -> float:
        """Share of its steps that are done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def live(self, now: float) -> bool:
        """Whether it moves as the work goes on.

        States that came all at once do not count, nor does one that has stood still for much
        longer than its steps took.
        """
        if len(self._moved) < 2:
            return False
        steps = [late - early for early, late in pairwise(self._moved)]
        return now - self._moved[-1] < 5.0 + 4 * median(steps[-9:])


@dataclass(frozen=True)
class Reading:
    """How far the weights are, by one source."""

    fraction: float
    source: str
    detail: str = ""


class WeightsProgress:
    """The weights of the target or of the drafter, from the begin of their load to its end."""

    def __init__(self, *, target: bool) -> None:
        self.target = target
        self.checkpoint: int | None = None
        self.shards: int | None = None
        self.bar = Bar()
        self.points: Points = []
        """Of the slowest rank: the load ends with it."""
        self.lead: Points = []
        """Of the fastest rank, as far as memory shows it."""
        self.straggler = ""
        self.reading: Reading | None = None
        self._slowest: int | None = None
        self._slow_since = 0.0
        self.reads_before: int | None = None
        self.reads: int | None = None
        self._reads_before_at = float("-inf")

    def observe_reads(self, at: float, total: int, began: float | None, first: bool) -> None:
        """Take the bytes that the unit has read from storage since it started.

        `began`: when these weights began to load, by the last rank; None before that.
        `first`: no figure is known from before the weights began.

        What was read until just before a drafter began is the target's, and may be many times the
        drafter: its own reads count from the first figure that is not older than its begin.
        """
        if began is None or (not self.target and self._reads_before_at < began):
            self.reads_before, self._reads_before_at = total, at
            return
        if self.reads_before is None:
            self.reads_before = min(total, _STARTUP_READS) if first else total
        self.reads = max(self.reads or 0, total)

    @property
    def read_bytes(self) -> int | None:
        """Bytes read from storage for these weights; None where nobody may say."""
        if self.reads is None or self.reads_before is None:
            return None
        return max(0, self.reads - self.reads_before)

    def expected(
        self, stretch: Stretch, taken: Sequence[int], record: LoadRecord | None
    ) -> list[int]:
        """Bytes that each GPU will have taken at the end; empty where nothing tells.

        What has already been exceeded is no longer believed, as long as there is something else.
        """
        count, candidates = len(taken), []
        if count and (figures := [each for each in stretch.memory_used.values() if each > 0]):
            # A rank that is done has said it: the others take the same.
            candidates.append([max(figures)] * count)
        if count and record is not None:
            before, after = (
                (record.memory_before, record.memory_target)
                if self.target
                else (record.memory_drafter_before, record.memory_drafter)
            )
            earlier = [late - early for early, late in zip(before, after, strict=False)]
            if len(earlier) == count and min(earlier) > 0.5 * max(earlier):
                candidates.append(earlier)
            elif len(earlier) == count and max(earlier) > 0:
                candidates.append([max(earlier)] * count)
            elif sum(earlier) > 0:
                candidates.append([sum(earlier) // count] * count)
        if count and self.checkpoint:
            candidates.append([self.checkpoint // count] * count)
        for whole in candidates:
            if all(part <= 1.03 * end for part, end in zip(taken, whole, strict=True)):
                return whole
        return candidates[-1] if candidates else []

    def observe(
        self,
        at: float,
        stretch: Stretch,
        memory: GpuMemory,
        gpus: Sequence[int],
        record: LoadRecord | None,
    ) -> bool:
        """Weigh the sources at one moment; returns whether there was progress."""
        taken = self._taken(at, stretch, memory, gpus, record)
        expected = self.expected(stretch, taken, record)
        shares = [part / whole for part, whole in zip(taken, expected, strict=False) if whole > 0]
        self.straggler = self._behind(shares, gpus, stretch, at)
        lead = min(ALMOST, max(shares, default=0.0))
        if len(self.lead) < 1000 and lead > (self.lead[-1][1] if self.lead else 0.0):
            self.lead.append((at, lead))
        reading = self._choose(at, shares, sum(taken), sum(expected))
        if reading is None:
            return False
        held = self.reading.fraction if self.reading is not None else -1.0
        fraction = min(ALMOST, max(reading.fraction, held, 0.0))
        self.reading = Reading(fraction, reading.source, reading.detail)
        last = self.points[-1][1] if self.points else -1.0
        if last < fraction and fraction >= min(ALMOST, last + _STEP):
            self.points.append((at, fraction))
        return fraction > held + _MOVED

    def _taken(
        self,
        at: float,
        stretch: Stretch,
        memory: GpuMemory,
        gpus: Sequence[int],
        record: LoadRecord | None,
    ) -> list[int]:
        """Bytes that the weights have taken of each GPU; empty before memory was observed."""
        first = memory.first_at
        if first is None or at < first:
            return []
        if not self.target and first <= stretch.began:
            # Until then the target's weights grew, by more than a drafter takes.
            before = per_gpu(memory.since(stretch.all_began), gpus)
        elif first <= stretch.began + LATE:
            before = per_gpu(memory.at(stretch.began), gpus)
        else:
            # ddtui came later: what was there before the weights is known from earlier loads only.
            earlier = record and (
                record.memory_before if self.target else record.memory_drafter_before
            )
            if earlier and len(earlier) == len(gpus):
                before = earlier
            else:
                before = (0,) * len(gpus) if self.target else per_gpu(memory.at(first), gpus)
        now = per_gpu(memory.at(at), gpus)
        return [max(0, late - early) for early, late in zip(before, now, strict=True)]

    def _choose(self, at: float, shares: list[float], taken: int, whole: int) -> Reading | None:
        read = self.read_bytes
        read_share = read / self.checkpoint if read and self.checkpoint else 0.0
        by_reads = (
            Reading(min(1.0, read_share), "storage reads", _of(read or 0, self.checkpoint or 0))
            if read_share > _COLD_SHARE
            else None
        )
        steps = f"{self.bar.done} of {self.bar.total} shards"
        slowest = min(shares, default=0.0)
        if self.bar.total >= _FINE_BAR and self.bar.live(at):
            # The bar is rank 0's: where another one is behind it, the load ends with that one.
            behind = slowest / shares[0] if shares and shares[0] > 0.02 else 1.0
            return Reading(self.bar.fraction * min(1.0, behind), "log bar", steps)
        if shares and slowest < 0.01 and by_reads is not None and max(shares) < 0.01:
            return by_reads
        if shares and max(shares) > 0.002:
            return Reading(slowest, "GPU memory", _of(taken, whole))
        if by_reads is not None:
            return by_reads
        if self.bar.done:
            return Reading(self.bar.fraction, "log bar", steps)
        return None

    def _behind(
        self,
        shares: Sequence[float],
        gpus: Sequence[int],
        stretch: Stretch,
        at: float,
    ) -> str:
        """The rank that is clearly behind: by the log where ranks are done, else by memory."""
        done = stretch.ended_ranks
        names = {rank_index(rank): rank for rank in stretch.ranks if rank}
        if done and len(done) * 2 >= len(gpus) > 1 and at - max(done.values()) > 2.0:
            missing = set(range(len(gpus))) - {rank_index(rank) for rank in done}
            if len(missing) == 1 or (missing and len(missing) <= len(shares)):
                slowest = min(
                    missing, key=lambda index: shares[index] if index < len(shares) else 0
                )
                return names.get(slowest, f"TP{slowest}")
        position = straggler(shares)
        if position is None or position != self._slowest:
            self._slowest, self._slow_since = position, at
        if position is None or at - self._slow_since < _CLEARLY:
            return ""
        return f"{names.get(position, f'TP{position}')} (GPU {gpus[position]})"


def _of(part: float, whole: float) -> str:
    return f"{min(part, whole) / 1e9:.1f} of {whole / 1e9:.1f} GB"


def per_gpu(growth: Mapping[int, int], gpus: Sequence[int]) -> tuple[int, ...]:
    """Growth of the given GPUs, by their order."""
    return tuple(growth.get(gpu, 0) for gpu in gpus)
