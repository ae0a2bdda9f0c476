"""The reducer's part for GPUs: last reading and recent past of each, and who holds their memory."""

from __future__ import annotations

from collections.abc import Iterable

from ddtui.core.history import Track
from ddtui.core.samples import Gpu, GpuProcess, GpuProcessSample, GpuSample
from ddtui.core.snapshot import GpuView


class GpuState:
    """Reduces GPU samples."""

    def __init__(self) -> None:
        self.source = ""
        self.at: float | None = None
        self.processes: tuple[GpuProcess, ...] = ()
        self._gpus: dict[int, Gpu] = {}
        self._memory: dict[int, Track] = {}
        self._utilization: dict[int, Track] = {}

    def apply(self, sample: GpuSample) -> None:
        """Take a reading of all GPUs. A GPU that the driver no longer lists is marked lost."""
        self.source, self.at = sample.source, sample.at
        present = {gpu.index for gpu in sample.gpus}
        for index, known in self._gpus.items():
            if index not in present and not known.lost:
                self._gpus[index] = Gpu(
                    index=index, uuid=known.uuid, name=known.name, lost="no longer listed"
                )
        for gpu in sample.gpus:
            self._gpus[gpu.index] = gpu
            if gpu.memory_used is not None:
                self._track(self._memory, gpu.index).add(sample.at, float(gpu.memory_used))
            if gpu.utilization is not None:
                self._track(self._utilization, gpu.index).add(sample.at, gpu.utilization)

    def apply_processes(self, sample: GpuProcessSample) -> None:
        """Take the list of processes that hold GPU memory."""
        self.processes = sample.processes

    def readings(self) -> Iterable[Gpu]:
        """Last reading of each GPU."""
        return self._gpus.values()

    def unit_memory(self) -> dict[int, int] | None:
        """Bytes held by the unit's processes on each GPU; None while no process is known as its."""
        by_uuid: dict[str, int] = {}
        known = False
        for process in self.processes:
            if process.in_unit and process.memory is not None:
                known = True
                by_uuid[process.gpu_uuid] = by_uuid.get(process.gpu_uuid, 0) + process.memory
        if not known:
            return None
        return {gpu.index: by_uuid.get(gpu.uuid, 0) for gpu in self._gpus.values()}

    def views(self) -> tuple[GpuView, ...]:
        """Frozen views, by index."""
        ours = self.unit_memory()
        return tuple(
            GpuView(
                gpu=gpu,
                at=self.at or 0.0,
                memory_history=self._track(self._memory, index).history(),
                utilization_history=self._track(self._utilization, index).history(),
                unit_memory=None if ours is None else ours.get(index),
            )
            for index, gpu in sorted(self._gpus.items())
        )

    @staticmethod
    def _track(tracks: dict[int, Track], index: int) -> Track:
        track = tracks.get(index)
        if track is None:
            track = tracks[index] = Track()
        return track
