"""The phases of one load as the engine's log tells them, over all ranks.

Ranks pass the phases side by side, and lines can be missing (journald drops lines under load) or
come in another order (older engines load the drafter after capturing graphs). What comes out is
one sequence of stretches without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ddtui.core.events import Phase

WEIGHTS = (Phase.TARGET, Phase.DRAFTER)
"""Phases that end only when every rank has said so: ranks differ here, and wait for the last."""

USUAL_ORDER = tuple(phase for phase in Phase if phase is not Phase.READY)


@dataclass
class Stretch:
    """One uninterrupted run through a phase."""

    phase: Phase
    began: float
    """Unix seconds on the host's clock, as all times here."""
    ended: float | None = None
    ranks: dict[str, float] = field(default_factory=dict)
    """When each rank began it."""
    ended_ranks: dict[str, float] = field(default_factory=dict)
    memory_used: dict[str, int] = field(default_factory=dict)
    """By rank: the engine's own figure of the bytes that the phase took."""

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    @property
    def all_began(self) -> float:
        """When the last rank began it."""
        return max(self.ranks.values(), default=self.began)


class PhaseTimeline:
    """Reduces the ranks' begins and ends to stretches."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.stretches = [Stretch(Phase.STARTING, began)]
        self.ready_at: float | None = None
        self.tp = 1

    def take_tp(self, value: object) -> None:
        """Take the number of ranks as the arguments have it."""
        self.tp = value if isinstance(value, int) and value > 0 else 1

    def begin(self, phase: Phase, stamp: float, rank: str = "") -> None:
        """A rank began a phase."""
        if self.ready_at is not None or phase is Phase.STARTING:
            return
        if phase is Phase.READY:
            self.finish(stamp)
            return
        stretch = self.last_of(phase)
        if stretch is not None and (
            stretch.open or stretch is self.stretches[-1] or rank not in stretch.ranks
        ):
            # More ranks, or more of the same (a KV cache for the drafter right after the target's).
            stretch.ranks.setdefault(rank, stamp)
            self._pull_back(stretch, stamp)
            if stretch is self.stretches[-1]:
                stretch.ended = None
                stretch.ended_ranks.pop(rank, None)
            return
        for earlier in self._open():
            if phase is Phase.WARMUP or earlier.phase not in WEIGHTS:
                earlier.ended = max(stamp, earlier.began)
            else:
                self._end_rank(earlier, max(stamp, earlier.began), rank)
        before = self.stretches[-1]
        # Without gaps: what lies between two phases is counted to the later one.
        self.stretches.append(Stretch(phase, before.ended or max(stamp, before.began)))
        self.stretches[-1].ranks[rank] = stamp

    def _pull_back(self, stretch: Stretch, stamp: float) -> None:
        """Its begin was only guessed, and the log tells an earlier one."""
        before = self.stretches[self.stretches.index(stretch) - 1]
        if before.began < stamp < stretch.began and before.ended == stretch.began:
            before.ended = stretch.began = stamp

    def end(
        self,
        phase: Phase,
        stamp: float,
        rank: str = "",
        seconds: float | None = None,
        memory_used: int | None = None,
    ) -> None:
        """A rank ended a phase; its begin may have been lost."""
        if self.ready_at is not None or phase in {Phase.STARTING, Phase.READY}:
            return
        stretch = self.last_of(phase)
        if stretch is None or (not stretch.open and rank in stretch.ended_ranks):
            self.begin(phase, stamp - (seconds or 0.0), rank)
            stretch = self.last_of(phase)
        if stretch is None:
            return
        if memory_used is not None:
            stretch.memory_used[rank] = memory_used
        stretch.ranks.setdefault(rank, stretch.began)
        for earlier in self.stretches[: self.stretches.index(stretch)]:
            if earlier.open:  # its end was lost
                earlier.ended = max(earlier.began, stretch.began)
        self._end_rank(stretch, max(stamp, stretch.began), rank)

    def finish(self, stamp: float) -> None:
        """The engine is ready."""
        if self.ready_at is not None:
            return
        self.ready_at = max(stamp, self.stretches[-1].began)
        for stretch in self._open():
            stretch.ended = self.ready_at
        self.stretches[-1].ended = self.ready_at

    def _end_rank(self, stretch: Stretch, stamp: float, rank: str) -> None:
        stretch.ended_ranks.setdefault(rank, stamp)
        if stretch.open and not self.waiting_for(stretch):
            stretch.ended = max(stretch.ended_ranks.values())

    def waiting_for(self, stretch: Stretch) -> set[str]:
        """Ranks that have not ended a stretch, those that were never heard of included."""
        missing = stretch.ranks.keys() - stretch.ended_ranks.keys()
        known = {rank for rank in stretch.ranks if rank}
        if stretch.phase in WEIGHTS and known and len(known) < self.tp:
            named = {rank_index(rank): rank for rank in known}
            missing |= {f"TP{index}" for index in range(self.tp) if index not in named}
        return missing

    def _open(self) -> Iterator[Stretch]:
        return (stretch for stretch in self.stretches if stretch.open)

    def last_of(self, phase: Phase) -> Stretch | None:
        """The latest stretch of a phase."""
        return next((each for each in reversed(self.stretches) if each.phase == phase), None)

    def first_of(self, phase: Phase) -> Stretch | None:
        """The first stretch of a phase."""
        return next((each for each in self.stretches if each.phase == phase), None)

    @property
    def current(self) -> Stretch:
        """The stretch in which the slowest rank is; the last one where none is open."""
        return next(self._open(), self.stretches[-1])


def rank_index(rank: str) -> int:
    """The number of a rank within its host: of `TP3` 3, of `DP1 TP3 EP3` 3, of no prefix 0."""
    found = re.search(r"TP(\d+)", rank) or re.search(r"(\d+)$", rank)
    return int(found.group(1)) if found else 0
