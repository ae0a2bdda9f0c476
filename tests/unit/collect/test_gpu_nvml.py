from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from ddtui.collect.base import Context
from ddtui.collect.gpu_nvml import GpuNvmlCollector, Nvml
from ddtui.collect.observed import Observed
from ddtui.collect.programs import GPU, GPU_PROCESSES
from ddtui.collect.settings import HostSettings
from ddtui.core.samples import Collector, GpuProcessSample, GpuSample, SourceSample, SourceStatus
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from tests.unit.collect.fakes import FakeHost, Recorder, Script, collecting


class Driver:
    """Answers NVML's calls; what is not set is not supported by the board."""

    def __init__(self, gpus: int = 2) -> None:
        self.gpus = gpus
        self.lost: set[int] = set()
        self.values: dict[str, Any] = {
            "nvmlDeviceGetUUID": b"GPU-1",
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:06:00.0"),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5, total=100),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=7, memory=3),
            "nvmlDeviceGetPowerUsage": 97410,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
            "nvmlDeviceGetPerformanceState": 0,
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None)
            ],
        }

    def call(self, name: str) -> Any:
        def answer(handle: int = 0, *_: object) -> Any:
            if handle in self.lost:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
            if name not in self.values:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return self.values[name]

        return answer


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    for name in dir(pynvml):
        if name.startswith("nvmlDeviceGet"):
            monkeypatch.setattr(pynvml, name, driver.call(name))
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: "580.1")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: driver.gpus)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    return driver


@pytest.mark.usefixtures("driver")
def test_what_a_board_does_not_have_is_none() -> None:
    gpu = Nvml().read()[1]
    assert (gpu.index, gpu.uuid, gpu.name, gpu.driver) == (1, "GPU-1", "NVIDIA H200", "580.1")
    assert (gpu.memory_used, gpu.memory_total, gpu.utilization) == (5, 100, 7)
    assert gpu.power == pytest.approx(97.41)
    assert gpu.throttle_reasons == 4  # an older driver's name for it
    assert gpu.mig_enabled is False
    assert gpu.performance_state == "P0"
    missing = (gpu.temperature, gpu.fan, gpu.ecc_uncorrected, gpu.memory_temperature, gpu.sm_clock)
    assert missing == (None,) * 5
    assert not gpu.lost


def test_a_lost_gpu_leaves_the_others(driver: Driver) -> None:
    nvml = Nvml()
    driver.lost = {0}
    first, second = nvml.read()
    assert first.lost
    assert first.name == "NVIDIA H200"
    assert second.memory_used == 5


@pytest.mark.usefixtures("driver")
async def test_readings_and_processes(host: FakeHost, recorder: Recorder, context: Context) -> None:
    collector = GpuNvmlCollector(HostSettings(), Observed(SGLANG), context)
    async with collecting(collector, host, recorder):
        await recorder.until(
            lambda: bool(recorder.of(GpuSample)) and bool(recorder.of(GpuProcessSample))
        )
    assert recorder.of(GpuSample)[0].source == "nvml"
    assert recorder.of(GpuProcessSample)[0].processes[0].in_unit is None
    assert host.calls == []


async def test_without_nvml_nvidia_smi_is_asked(
    host: FakeHost, recorder: Recorder, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    host.scripts[GPU.label] = [Script([], status=127)]
    host.answers[GPU_PROCESSES.label] = lambda *_: Completed(127, b"", b"")
    collector = GpuNvmlCollector(HostSettings(), Observed(SGLANG), context)

    def absent() -> set[Collector]:
        return {
            sample.collector
            for sample in recorder.of(SourceSample)
            if sample.status is SourceStatus.ABSENT
        }

    async with collecting(collector, host, recorder):
        await recorder.until(lambda: absent() == {Collector.GPU, Collector.GPU_PROCESSES})
