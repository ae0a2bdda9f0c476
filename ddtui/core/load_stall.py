"""Whether a load still moves, and what to say when it does not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

from ddtui.core.events import Phase
from ddtui.core.snapshot import LoadView, Snapshot
from ddtui.core.spans import duration

FLOOR = 60.0
"""With earlier loads to compare: nothing shorter is a stall, seconds."""
WITHOUT_HISTORY = 180.0
FACTOR = 3.0
"""A stall is this many times longer than the longest gap that earlier loads had in the phase."""
SUSPICION = 20.0
"""Where something moved at every sample: nothing shorter is a stall, seconds."""
OWN_FACTOR = 5.0
"""There, a stall is this many times longer than the longest gap of this load in the phase."""

_QUIET, _QUIET_FACTOR = 5.0, 3.0
"""A rate is none any more after this, seconds and times the usual gap."""
_QUIET_UNKNOWN = 20.0
"""The same where too little has moved to tell a usual gap, seconds."""
_FEW = 4
_FINE, _FINE_GAP = 10, 2.5
"""A phase is finely seen after so many gaps, whose median is not above this, seconds."""
_BURST = 0.2
"""Ranks say the same within this: one movement, seconds."""
_UNSEEN = 15.0
"""Of a longer time without a sample nobody knows what happened in it, seconds."""
_GROWTH = 16 * 2**20
_READS = 2**20
_DISK_BUSY = 20e6
"""Bytes per second, read or written by whomever: the load may be waiting for them."""

MEMORY, READS, LOG = "GPU memory", "storage reads", "the log"
"""The sources of progress."""


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
        self._disk = 0.0
        self._phase = Phase.STARTING
        self._gaps: deque[float] = deque(maxlen=30)
        """Of the present phase."""
        self._moving: set[str] = set()
        """Sources that have moved in the present phase."""

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

    def disk(self, rate: float) -> None:
        """Take what the host's disks read and write, bytes per second."""
        self._disk = rate

    def idle(self, at: float) -> None:
        """A sample showed no progress."""
        self._sampled = True
        if at > self._at:
            self._idle += min(at - self._at, _UNSEEN)
            self._at = at

    def progress(self, at: float, phase: Phase, source: str) -> None:
        """Something moved in a phase, by one of the sources."""
        if phase is not self._phase:
            self._phase = phase
            self._gaps.clear()
            self._moving.clear()
        self._moving.add(source)
        if at >= self._at:
            gap = self._idle + min(at - self._at, _UNSEEN)
            self.longest[phase.value] = max(gap, self.longest.get(phase.value, 0.0))
            if gap >= _BURST:
                self._gaps.append(gap)
            self._at = at
        self._idle = 0.0

    def _silence(self, now: float) -> float:
        """Seconds without progress. Without samples only the log tells, and its silence counts."""
        return self._idle if self._sampled else max(0.0, now - self._at)

    def quiet(self, now: float, phase: Phase, longest_before: float | None) -> float | None:
        """Seconds without progress, when a rate seen before them is none any more; else None.

        `longest_before`: the longest gap of earlier loads in this phase.
        """
        limit = max(_QUIET_UNKNOWN, longest_before or 0.0)
        if phase is self._phase and len(self._gaps) >= _FEW:
            limit = max(_QUIET, _QUIET_FACTOR * median(self._gaps))
        silence = self._silence(now)
        return silence if silence > limit else None

    def stalled(self, now: float, phase: Phase, longest_before: float | None) -> float | None:
        """Seconds without progress, when that is longer than can be explained; else None.

        `longest_before`: the longest gap of earlier loads in this phase.
        """
        limit = WITHOUT_HISTORY
        if longest_before is not None:
            limit = max(FACTOR * longest_before, FLOOR)
        if self._finely_seen(phase) and self._disk < _DISK_BUSY:
            own = OWN_FACTOR * self.longest.get(phase.value, 0.0)
            limit = min(limit, max(SUSPICION, own, FACTOR * (longest_before or 0.0)))
        silence = self._silence(now)
        return silence if silence > limit else None

    def _finely_seen(self, phase: Phase) -> bool:
        """Whether something other than the log has moved at nearly every sample."""
        return (
            phase is self._phase
            and len(self._gaps) >= _FINE
            and median(self._gaps) <= _FINE_GAP
            and bool(self._moving & {MEMORY, READS})
        )

    def advice(self, phase: Phase) -> str:
        """Which sources have stopped: `GPU memory and the log stand still`."""
        stopped = [
            source
            for source in (MEMORY, READS, LOG)
            if phase is self._phase and source in self._moving
        ]
        if not stopped:
            return "nothing has moved since the phase began"
        return f"{_listed(stopped)} {'stand' if len(stopped) > 1 else 'stands'} still"


def stall_words(load: LoadView, snapshot: Snapshot) -> str:
    """What to say of a load that stands still: for how long, what stopped, what to look at.

    Empty where it does not.
    """
    if load.stalled_for is None:
        return ""
    where = next((each for each in load.phases if each.phase is load.current), None)
    share = f" at {where.fraction * 100:.0f} %" if where is not None and where.fraction else ""
    words = f"{load.current.value} stands still{share} for {duration(load.stalled_for)}"
    signs = [load.advice] if load.advice else []
    busy = [view.gpu.utilization for view in snapshot.gpus if view.gpu.utilization is not None]
    if busy:
        signs.append(f"GPU utilization {_span(busy)} %")
    system = snapshot.system.sample if snapshot.system is not None else None
    rates = (
        [rate for rate in (system.disk_read, system.disk_write) if rate is not None]
        if (system is not None)
        else []
    )
    if rates:
        signs.append(f"disks {sum(rates) / 1e6:.0f} MB/s")
    found = f": {', '.join(signs)}" if signs else ""
    return f"{words}{found}. {_look_at(busy, sum(rates))}"


def _look_at(busy: Iterable[float], disk: float) -> str:
    """Where the cause of a standstill is seen, the likeliest place first."""
    ranks = "`py-spy dump --pid PID` of a rank says where it waits"
    kernel = "`dmesg` tells of Xid, disk and out-of-memory errors"
    if disk >= _DISK_BUSY:
        return f"The disks are busy: it may only wait for them (`iotop`). Else {ranks}; {kernel}"
    if any(each > 90 for each in busy):
        return f"Busy GPUs that load nothing: ranks may wait for each other in NCCL; {ranks}"
    return f"{ranks[0].upper()}{ranks[1:]} (NCCL: one rank missing); {kernel}"


def _span(values: list[float]) -> str:
    low, high = round(min(values)), round(max(values))
    return f"{low}" if low == high else f"{low} to {high}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
