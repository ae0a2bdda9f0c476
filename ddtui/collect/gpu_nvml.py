"""GPUs of this machine by NVML, in one worker thread. No CUDA context is made.

NVML: nvidia-ml-py's `pynvml`. Calls that block (PCIe throughput samples for 20 ms) are not made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psutil
import pynvml

from ddtui.collect.base import Context, Emit, Report, SourceTrouble, supervise
from ddtui.collect.gpu_smi import GpuProcessCollector, GpuSmiCollector, mark_members
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.collect.system_psutil import unit_processes
from ddtui.collect.worker import Worker
from ddtui.core.gpus import possible_gpu
from ddtui.core.redact import safe_text
from ddtui.core.samples import (
    Collector,
    Gpu,
    GpuProcess,
    GpuProcessSample,
    GpuSample,
    SourceStatus,
)
from ddtui.hosts.base import Host

SOURCE = "nvml"
SILENCE_LIMIT = 5.0
_TEXT_LIMIT = 120
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)


class _Lost(Exception):
    """This GPU does not answer any more."""


def _ask(call: Callable[..., Any], *args: object) -> Any:
    """One NVML call; None where board or driver do not have it. Raises _Lost."""
    try:
        return call(*args)
    except pynvml.NVMLError as exc:
        if exc.value in _LOST:
            raise _Lost(str(exc)) from exc
        return None


def _text(value: object) -> str:
    raw = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
    return safe_text(raw, _TEXT_LIMIT)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


class _Device:
    """One GPU: its handle and what never changes."""

    def __init__(self, index: int, driver: str) -> None:
        self.index = index
        self.driver = driver
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        self.uuid = _text(_ask(pynvml.nvmlDeviceGetUUID, self.handle))
        self.name = _text(_ask(pynvml.nvmlDeviceGetName, self.handle))
        pci = _ask(pynvml.nvmlDeviceGetPciInfo, self.handle)
        self.bus_id = _text(pci.busId) if pci is not None else ""

    def read(self) -> Gpu:
        """The GPU's reading now."""
        try:
            return self._read()
        except _Lost as exc:
            return Gpu(self.index, self.uuid, self.name, self.bus_id, self.driver, lost=_text(exc))

    def _read(self) -> Gpu:
        handle = self.handle
        memory = self._memory()
        used = _ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
        mig = _ask(pynvml.nvmlDeviceGetMigMode, handle)
        state = _ask(pynvml.nvmlDeviceGetPerformanceState, handle)
        return Gpu(
            index=self.index,
            uuid=self.uuid,
            name=self.name,
            bus_id=self.bus_id,
            driver=self.driver,
            memory_used=memory.used if memory is not None else None,
            memory_total=memory.total if memory is not None else None,
            utilization=used.gpu if used is not None else None,
            memory_utilization=used.memory if used is not None else None,
            power=_scaled(_ask(pynvml.nvmlDeviceGetPowerUsage, handle), 0.001),
            power_limit=_scaled(_ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle), 0.001),
            temperature=_ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
            memory_temperature=self._memory_temperature(),
            fan=_ask(pynvml.nvmlDeviceGetFanSpeed, handle),
            sm_clock=_ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
            memory_clock=_ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM),
            throttle_reasons=self._reasons(),
            ecc_uncorrected=_ask(
                pynvml.nvmlDeviceGetTotalEccErrors,
                handle,
                pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                pynvml.NVML_VOLATILE_ECC,
            ),
            mig_enabled=None if mig is None else mig[0] == pynvml.NVML_DEVICE_MIG_ENABLE,
            pcie_generation=_ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            pcie_width=_ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
            performance_state="" if state is None or state > 15 else f"P{state}",
        )

    def _memory(self) -> Any:
        """Used memory without the driver's own reserve, as nvidia-smi tells it."""
        memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, self.handle, pynvml.nvmlMemory_v2)
        return memory or _ask(pynvml.nvmlDeviceGetMemoryInfo, self.handle)

    def _memory_temperature(self) -> float | None:
        values = _ask(
            pynvml.nvmlDeviceGetFieldValues, self.handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP]
        )
        if not values or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
            return None
        return float(values[0].value.uiVal)

    def _reasons(self) -> int | None:
        reasons = _ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons, self.handle)
        if reasons is None:  # a driver before 535 knows the old name only
            reasons = _ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self.handle)
        return reasons if reasons is None else int(reasons)

    def processes(self) -> list[GpuProcess]:
        """The compute processes on this GPU."""
        try:
            found = _ask(pynvml.nvmlDeviceGetComputeRunningProcesses, self.handle) or []
        except _Lost:
            return []
        return [
            GpuProcess(process.pid, self.uuid, _process_name(process.pid), process.usedGpuMemory)
            for process in found
        ]


def _process_name(pid: int) -> str:
    try:
        return _text(psutil.Process(pid).name())
    except psutil.Error:
        return ""


class Nvml:
    """The library, initialized; only used in the worker thread."""

    def __init__(self) -> None:
        """Raises pynvml.NVMLError."""
        pynvml.nvmlInit()
        driver = _text(_ask(pynvml.nvmlSystemGetDriverVersion))
        self._devices = [_Device(index, driver) for index in range(pynvml.nvmlDeviceGetCount())]

    def read(self) -> tuple[Gpu, ...]:
        """All GPUs' readings now."""
        return tuple(possible_gpu(device.read()) for device in self._devices)

    def processes(self) -> list[GpuProcess]:
        """The compute processes on all GPUs."""
        return [process for device in self._devices for process in device.processes()]

    def close(self) -> None:
        """Let the library go."""
        pynvml.nvmlShutdown()


class GpuNvmlCollector:
    """Readings and processes of this machine's GPUs; by nvidia-smi where NVML is not to be had."""

    def __init__(self, settings: HostSettings, observed: Observed, context: Context) -> None:
        self._settings = settings
        self._observed = observed
        self._context = context

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        with Worker("nvml") as worker:
            try:
                nvml = await worker.call(Nvml)
            except (pynvml.NVMLError, OSError):
                await self._by_program(host, emit)
                return
            gpus = Report(Collector.GPU, SOURCE, emit, self._context.clock)
            others = Report(Collector.GPU_PROCESSES, SOURCE, emit, self._context.clock)
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    supervise(
                        host,
                        gpus,
                        lambda: self._read(worker, nvml, emit, gpus),
                        self._context.nudge,
                    )
                )
                group.create_task(
                    supervise(
                        host,
                        others,
                        lambda: self._processes(worker, nvml, emit, others),
                        self._context.nudge,
                    )
                )

    async def _by_program(self, host: Host, emit: Emit) -> None:
        """The driver is missing or broken: nvidia-smi says how, and is there after a repair."""
        async with asyncio.TaskGroup() as group:
            group.create_task(GpuSmiCollector(self._settings, self._context).run(host, emit))
            group.create_task(
                GpuProcessCollector(self._settings, self._observed, self._context).run(host, emit)
            )

    async def _read(self, worker: Worker, nvml: Nvml, emit: Emit, report: Report) -> None:
        interval = self._settings.gpu_interval
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            gpus = await self._patiently(worker, nvml.read)
            emit(GpuSample(self._context.clock(), SOURCE, gpus))
            lost = [gpu for gpu in gpus if gpu.lost]
            if lost:
                numbers = ", ".join(str(gpu.index) for gpu in lost)
                report(
                    SourceStatus.LIVE,
                    f"GPU {numbers} does not answer: {lost[0].lost}",
                    "look for Xid errors in `journalctl -k`; it takes a reset or a reboot",
                )
            else:
                report.live()
            due = max(due + interval, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _patiently(
        self, worker: Worker, call: Callable[[], tuple[Gpu, ...]]
    ) -> tuple[Gpu, ...]:
        limit = 3 * self._settings.gpu_interval + SILENCE_LIMIT
        try:
            async with asyncio.timeout(limit):
                return await worker.call(call)
        except TimeoutError as exc:
            raise SourceTrouble(
                f"the driver has not answered for {limit:.0f} s",
                "a hanging driver often means a failing GPU: see `journalctl -k`",
            ) from exc
        except pynvml.NVMLError as exc:
            raise SourceTrouble(f"NVML: {exc}") from exc

    async def _processes(self, worker: Worker, nvml: Nvml, emit: Emit, report: Report) -> None:
        while True:
            try:
                found = await worker.call(nvml.processes)
            except pynvml.NVMLError as exc:
                raise SourceTrouble(f"NVML: {exc}") from exc
            pids = unit_processes(self._observed.control_group)
            processes = mark_members(found, pids, self._observed.in_container)
            emit(GpuProcessSample(self._context.clock(), SOURCE, processes))
            report.live()
            await asyncio.sleep(self._settings.processes_interval)
