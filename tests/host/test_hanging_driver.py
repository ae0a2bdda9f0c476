"""An nvidia-smi that hangs and is deaf to signals leaves no pile of processes on the host."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Iterator

import pytest

from ddtui.collect import gpu_smi
from ddtui.core.samples import Collector, SourceStatus
from tests.host.gpuhost import GpuHost, wait_until
from tests.host.measured import measured
from tests.host.watching import Watcher

UNIT = "llm-quiet.service"
SMI = "/usr/local/bin/nvidia-smi"
DEAF = "#!/bin/bash\ntrap '' TERM HUP INT\nwhile :; do sleep 1; done\n"


@pytest.fixture
def hanging(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", SMI)
    gpuhost.write(SMI, DEAF, mode=0o755)
    with gpuhost.unit(UNIT, ["/bin/sleep", "600"]):
        yield gpuhost
    gpuhost.exec("rm", "-f", SMI)
    gpuhost.nvidia_smi()


def pids(host: GpuHost) -> set[str]:
    """Those that run."""
    return set(host.exec("pgrep", "-x", "nvidia-smi", check=False).stdout.split())


async def test_it_is_ended_before_the_next_one(
    hanging: GpuHost, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_smi, "SILENCE_LIMIT", 0.2)
    monkeypatch.setattr(gpu_smi, "HANGS", (1.0, 1.0))
    watching = await watcher.watch(UNIT, gpu_interval=0.2, processes_interval=1)
    known = await watching.until(
        lambda known: (
            (source := known.sources.get(Collector.GPU)) and source.status is SourceStatus.FAILED
        ),
        what="that it hangs",
    )
    assert "said nothing" in known.sources[Collector.GPU].detail
    most, started = 0, set[str]()
    while len(started) < 6:  # several of them have hung, one after another
        now = await to_thread(pids, hanging)
        most, started = max(most, len(now)), started | now
        await asyncio.sleep(0.2)
    # A program has 2 s to end before it is killed, and the processes are asked for beside.
    assert most <= 6
    await watching.close()
    await to_thread(wait_until, lambda: not pids(hanging))
    measured("most nvidia-smi at a time that hang (number)", most)


async def test_none_is_started_beside_one_that_nothing_ends(
    hanging: GpuHost, watcher: Watcher
) -> None:
    left = ["runuser", "-u", "ops", "--", "env", "DDTUI_CHILD_OF=4194305", SMI]
    with hanging.unit("left-over.service", left):
        watching = await watcher.watch(UNIT)
        known = await watching.until(
            lambda known: (
                (source := known.sources.get(Collector.GPU))
                and source.status is SourceStatus.FAILED
            ),
            what="what is left over",
        )
        assert "cannot be ended: process " in known.sources[Collector.GPU].detail
        seen = await to_thread(pids, hanging)
        await asyncio.sleep(3)
        assert len(seen) == 1
        assert await to_thread(pids, hanging) == seen
