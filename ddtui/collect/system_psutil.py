"""The load of the machine that ddtui runs on, by psutil: no program is started for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psutil

from ddtui.collect.base import Context, Emit, Report, supervise
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.collect.system_proc import RankIo
from ddtui.collect.system_rates import DiskCounters, Rates, Reading, is_link_out
from ddtui.core.samples import Collector, RankIoSample
from ddtui.hosts.base import Host

SOURCE = "psutil"


def read_machine() -> Reading:
    """The machine's counters now."""
    times = psutil.cpu_times()._asdict()
    # guest time is in user time already, as in /proc/stat
    total = sum(value for name, value in times.items() if not name.startswith("guest"))
    memory = psutil.virtual_memory()
    links = {
        name: counters
        for name, counters in psutil.net_io_counters(pernic=True).items()
        if is_link_out(name)
    }
    disks = psutil.disk_io_counters(perdisk=True) or {}
    return Reading(
        monotonic=time.monotonic(),
        host_at=time.time(),
        cpu_busy=total - times["idle"] - times.get("iowait", 0.0),
        cpu_total=total,
        cores=psutil.cpu_count(),
        load_1m=psutil.getloadavg()[0],
        memory_total=memory.total,
        memory_available=memory.available,
        page_cache=getattr(memory, "cached", None),
        disks={
            name: DiskCounters(counters.read_bytes, counters.write_bytes)
            for name, counters in disks.items()
        },
        network_in=sum(counters.bytes_recv for counters in links.values()) if links else None,
        network_out=sum(counters.bytes_sent for counters in links.values()) if links else None,
        uptime=time.time() - psutil.boot_time(),
    )


def unit_processes(control_group: str) -> set[int]:
    """Pids in a control group of this machine; empty when there is no such group."""
    if not control_group:
        return set()
    try:
        text = Path(f"/sys/fs/cgroup{control_group}/cgroup.procs").read_text("ascii")
    except OSError:
        return set()  # the unit has just ended, or there are no control groups here
    return {int(line) for line in text.split() if line.isdecimal()}


def read_io(pids: set[int]) -> RankIo:
    """Bytes that processes have read from storage."""
    total, readable, unreadable = 0, 0, 0
    for pid in pids:
        try:
            total += psutil.Process(pid).io_counters().read_bytes
            readable += 1
        except psutil.AccessDenied:
            unreadable += 1
        except psutil.NoSuchProcess:
            continue
    return RankIo(total if readable else None, readable + unreadable, unreadable)


class SystemPsutilCollector:
    """The machine's load, and what the unit's processes read from storage."""

    def __init__(self, settings: HostSettings, observed: Observed, context: Context) -> None:
        self._interval = settings.system_interval
        self._observed = observed
        self._context = context

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.SYSTEM, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._poll(emit, report), self._context.nudge)

    async def _poll(self, emit: Emit, report: Report) -> None:
        rates = Rates()
        while True:
            reading = read_machine()
            at = self._context.clock()
            emit(rates.sample(reading, self._observed.model_disk, at=at, source=SOURCE))
            pids = unit_processes(self._observed.control_group)
            if pids:
                io = read_io(pids)
                emit(RankIoSample(at, SOURCE, io.read_bytes, io.processes, io.unreadable))
            report.live()
            await asyncio.sleep(self._interval)
