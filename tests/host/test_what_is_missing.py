"""What a host does not have, or does not allow, is said with a remedy; the rest is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ddtui.core.samples import Collector, SourceStatus
from ddtui.core.snapshot import Snapshot
from tests.host.gpuhost import GpuHost
from tests.host.watching import Watcher

UNIT = "llm-quiet.service"


@pytest.fixture
def quiet(gpuhost: GpuHost) -> Iterator[GpuHost]:
    with gpuhost.unit(UNIT, ["/bin/sh", "-c", "echo some words; exec sleep 600"]):
        yield gpuhost
    gpuhost.nvidia_smi()


def source(known: Snapshot, collector: Collector, *wanted: SourceStatus) -> bool:
    found = known.sources.get(collector)
    return found is not None and found.status in wanted


async def test_a_host_without_nvidia_smi(quiet: GpuHost, watcher: Watcher) -> None:
    quiet.nvidia_smi(present=False)
    watching = await watcher.watch(UNIT)
    known = await watching.until(
        lambda known: source(known, Collector.GPU, SourceStatus.ABSENT), what="no nvidia-smi"
    )
    assert "nvidia-smi" in known.sources[Collector.GPU].detail
    assert known.sources[Collector.GPU].remedy
    await watching.until(
        lambda known: known.system and known.unit and watching.own_texts() == ["some words"]
    )
    quiet.nvidia_smi()
    watching.retry_now()
    await watching.until(lambda known: len(known.gpus) == 2, what="GPUs once it is there")


async def test_a_driver_that_does_not_run(quiet: GpuHost, watcher: Watcher) -> None:
    quiet.nvidia_smi(driver="failed")
    watching = await watcher.watch(UNIT)
    known = await watching.until(
        lambda known: source(known, Collector.GPU, SourceStatus.ABSENT), what="no driver"
    )
    assert "driver" in known.sources[Collector.GPU].detail
    assert "modprobe" in known.sources[Collector.GPU].remedy


async def test_an_older_driver_that_knows_fewer_fields(quiet: GpuHost, watcher: Watcher) -> None:
    quiet.nvidia_smi(
        state="loaded", refuse="clocks_event_reasons.active,temperature.memory", na="power.draw"
    )
    watching = await watcher.watch(UNIT)
    known = await watching.until(lambda known: len(known.gpus) == 2, what="GPU rows")
    gpu = known.gpus[1].gpu
    assert gpu.memory_used == 41843 << 20
    assert (gpu.temperature, gpu.temperature and gpu.memory_temperature) == (45.0, None)
    assert gpu.power is None
    assert gpu.power_limit == 700.0


async def test_a_gpu_falls_off_the_bus(quiet: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(UNIT, gpu_interval=0.3)
    await watching.until(lambda known: len(known.gpus) == 2)
    quiet.nvidia_smi(lost="1")
    quiet.kmsg("NVRM: Xid (PCI:0000:00:07): 79, GPU has fallen off the bus.")
    known = await watching.until(
        lambda known: len(known.gpus) == 2 and known.gpus[1].gpu.lost, what="the lost GPU"
    )
    assert not known.gpus[0].gpu.lost
    assert known.gpus[1].gpu.name == "NVIDIA H200"
    assert [alert.key for alert in known.alerts if alert.key.startswith("lost")] == ["lost-1"]
    at = known.gpu_at or 0
    await watching.until(
        lambda known: known.gpus[0].at > at and source(known, Collector.GPU, SourceStatus.LIVE),
        what="the other GPU goes on",
    )
    assert "fallen off the bus" in quiet.exec("journalctl", "-k", "-o", "cat").stdout


async def test_a_user_who_may_not_read_the_journal(quiet: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(UNIT, user="dev")
    known = await watching.until(
        lambda known: source(known, Collector.JOURNAL, SourceStatus.FAILED), what="no rights"
    )
    assert "not allowed" in known.sources[Collector.JOURNAL].detail
    assert "systemd-journal" in known.sources[Collector.JOURNAL].remedy
    await watching.until(lambda known: known.gpus and known.system)
    assert known.unit is not None
    assert known.unit.active_state == "active"
    assert "some words" not in watching.texts()
