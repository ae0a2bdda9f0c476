"""GPU memory that a load has taken, from the memory in use on the whole GPU.

The figure of a GPU includes other processes and, for a while, the unit's previous run. What counts
here is the growth above that baseline.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from statistics import median

MIB = 2**20
_UNIT_SLACK = 256 * MIB
"""The figures per GPU and per process are not read at the same moment."""
_PART = 512 * MIB
"""A GPU that has grown by this much is one that the unit uses."""


class GpuMemory:
    """Growth of GPU memory since a load began, bytes by GPU index. Times are Unix seconds."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._growth: list[dict[int, int]] = []
        self._baseline: dict[int, int] = {}
        self._used: dict[int, int] = {}
        self._unit_known: set[int] = set()
        self._unit_gpus: set[int] = set()

    @property
    def first_at(self) -> float | None:
        """When memory was first observed."""
        return self._times[0] if self._times else None

    @property
    def latest(self) -> Mapping[int, int]:
        """The present growth."""
        return self._growth[-1] if self._growth else {}

    def add(self, at: float, used: Mapping[int, int], unit: Mapping[int, int] | None) -> None:
        """Take one reading; those that are out of order are left out."""
        if self._times and at <= self._times[-1]:
            return
        growth = dict(self.latest)
        for gpu, now in used.items():
            self._drop(gpu, now)
            if unit is not None and (own := unit.get(gpu, 0)) > 0:
                self._by_process(gpu, now, own)
            growth[gpu] = max(0, now - self._baseline[gpu])
            self._used[gpu] = now
        if len(self._times) > 2 and at - self._times[-2] < self._spacing(at):
            self._times[-1], self._growth[-1] = at, growth
        else:
            self._times.append(at)
            self._growth.append(growth)

    def _spacing(self, at: float) -> float:
        """Readings nearer than this replace the last one: at most some 2,000 are kept."""
        return max(0.19, (at - self._times[0]) / 500)

    def _drop(self, gpu: int, now: int) -> None:
        """Below the baseline: memory of others was released, what this load has stays."""
        before = self._used.get(gpu)
        if before is None:
            self._baseline[gpu] = now
        elif now < self._baseline[gpu]:
            self._baseline[gpu] = max(0, self._baseline[gpu] - (before - now))

    def _by_process(self, gpu: int, now: int, own: int) -> None:
        """The driver names the unit's processes: all above their memory is others'."""
        self._unit_known.add(gpu)
        self._unit_gpus.add(gpu)
        others = now - own
        if -_UNIT_SLACK <= others < self._baseline[gpu] - _UNIT_SLACK:
            self._lower(gpu, max(0, others))

    def _lower(self, gpu: int, baseline: int) -> None:
        """The baseline was too high all along."""
        difference = self._baseline[gpu] - baseline
        self._baseline[gpu] = baseline
        for row in self._growth:
            if gpu in row:
                row[gpu] += difference

    def came_late(self) -> None:
        """Say that the first reading was taken when weights were already loading.

        Its memory counts as the unit's own, where no process list says otherwise.
        """
        for gpu in self._baseline.keys() - self._unit_known:
            self._lower(gpu, 0)

    def at(self, time: float) -> Mapping[int, int]:
        """Growth by the last reading that is not later; by the first one for earlier times."""
        if not self._times:
            return {}
        return self._growth[max(0, bisect_right(self._times, time) - 1)]

    def since(self, time: float) -> Mapping[int, int]:
        """Growth by the first reading that is not earlier; by the last one where there is none."""
        if not self._times:
            return {}
        return self._growth[min(len(self._times) - 1, bisect_left(self._times, time))]

    def gpus(self, tp: int) -> tuple[int, ...]:
        """The GPUs of the unit's ranks, by index.

        Those of its processes where the driver names them, else all where there are as many as
        ranks, else those that have grown most.
        """
        if len(self._unit_gpus) == tp:
            return tuple(sorted(self._unit_gpus))
        growth = self.latest
        if len(growth) <= tp:
            return tuple(sorted(growth))
        most = sorted(growth, key=lambda gpu: (-(growth[gpu] if growth[gpu] > _PART else 0), gpu))
        return tuple(sorted(most[:tp]))


def straggler(shares: Sequence[float]) -> int | None:
    """Position of the one that is clearly behind the others, if one is."""
    if len(shares) < 2:
        return None
    slowest = min(range(len(shares)), key=shares.__getitem__)
    others = median(share for at, share in enumerate(shares) if at != slowest)
    behind = others - shares[slowest]
    return slowest if behind > 0.05 and shares[slowest] < 0.75 * others else None
