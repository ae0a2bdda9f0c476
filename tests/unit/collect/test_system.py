from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from ddtui.collect.base import Context
from ddtui.collect.observed import Observed
from ddtui.collect.programs import SYSTEM
from ddtui.collect.settings import HostSettings
from ddtui.collect.system_proc import SystemProcCollector, parse_frame
from ddtui.collect.system_psutil import read_io, read_machine
from ddtui.collect.system_rates import DiskCounters, Rates, Reading, is_link_out, whole_disks
from ddtui.core.samples import (
    CheckpointSample,
    RankIoSample,
    SystemSample,
    UnitSample,
    UnitStatus,
)
from ddtui.engines.sglang import SGLANG
from tests.unit.collect.fakes import FakeHost, Recorder, Script, collecting

FRAME = """@time 1795984879.285254
@cores 128
@file stat
cpu  1000 0 500 8000 500 0 0 0 0 0
@file meminfo
MemTotal:       24683652 kB
MemFree:        24176900 kB
MemAvailable:   24280596 kB
Buffers:            3368 kB
Cached:           296464 kB
@file loadavg
0.13 0.13 0.09 4/111 106
@file net/dev
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:   14148     100    0    0    0     0          0         0    14148     100    0    0
  eth0: 1000 13891    0    0    0     0          0         0  2000    8433    0    0
  eth1: 100 13891    0    0    0     0          0         0  200    8433    0    0
docker0: 7000 13891    0    0    0     0          0         0  7000    8433    0    0
@file diskstats
 259       0 nvme0n1 75868 12859 2000 27505 8170 34833 4000 9972 0 9748 39064
 259       1 nvme0n1p1 75868 12859 1500 27505 8170 34833 3000 9972 0 9748 39064
 253       0 dm-0 1 1 1500 1 1 1 3000 1 1 1 1
@file uptime
1035.14 1885.63
@io
90 4096
91 -
92 8192"""


def test_a_frame() -> None:
    reading, io = parse_frame(FRAME.splitlines())
    assert reading.host_at == 1795984879.285254
    assert reading.cores == 128
    assert (reading.cpu_busy, reading.cpu_total) == (1500.0, 10000.0)
    assert reading.memory_total == 24683652 * 1024
    assert reading.memory_available == 24280596 * 1024
    assert reading.page_cache == 296464 * 1024
    assert reading.load_1m == 0.13
    assert (reading.network_in, reading.network_out) == (1100, 2200)
    assert reading.disks["nvme0n1"] == DiskCounters(2000 * 512, 4000 * 512)
    assert reading.uptime == 1035.14
    assert (io.read_bytes, io.processes, io.unreadable) == (12288, 3, 1)


@pytest.mark.parametrize("lines", [[], ["@time x", "@file stat", "cpu", "@file diskstats", "a b"]])
def test_a_frame_with_nothing_in_it(lines: list[str]) -> None:
    reading, io = parse_frame(lines)
    assert reading.cpu_total is None
    assert reading.memory_total is None
    assert io.read_bytes is None


def test_numbers_without_end_are_left_out() -> None:
    long = "9" * 5000
    lines = [
        *(f"@time {long}", f"@cores {long}", "@file uptime", f"{'9' * 400} 1", "@file loadavg"),
        *("-1 0 0", "@file stat", f"cpu {long} 1 1 1 1", "@file meminfo", f"MemTotal: {long} kB"),
        *("@file diskstats", f"8 0 sda 1 1 {long} 1 1 1 {long}", "@file net/dev"),
        *(f"eth0: {long} 0 0 0 0 0 0 0 {long}", "@io", f"1 {long}", "2 5"),
    ]
    reading, io = parse_frame(lines)
    assert (reading.uptime, reading.load_1m, reading.cores) == (None, None, None)
    assert (reading.memory_total, reading.disks) == (None, {})
    assert io.read_bytes == 5


def test_cores_are_counted_where_they_are_listed() -> None:
    reading, _ = parse_frame(["@file stat", "cpu  1 1 1 1", "cpu0 1 1 1 1", "cpu1 1 1 1 1"])
    assert reading.cores == 2


def test_a_process_that_may_not_be_read_is_no_zero() -> None:
    _, io = parse_frame(["@io", "90 -", "91 -"])
    assert io.read_bytes is None
    assert (io.processes, io.unreadable) == (2, 2)


def test_only_whole_disks_are_counted() -> None:
    names = [
        *("sda", "sda1", "sda2", "sdb", "nvme0n1", "nvme0n1p1", "nvme10n1", "vda", "vda15"),
        *("dm-0", "md127", "loop3", "ram0", "zram0", "sr0", "mmcblk0", "mmcblk0p2", "xvda1"),
    ]
    assert whole_disks(names) == {
        *("sda", "sdb", "nvme0n1", "nvme10n1", "vda", "mmcblk0", "xvda1"),
    }


def test_only_links_out_are_counted() -> None:
    names = ["lo", "eth0", "enp3s0f0", "bond0", "eth0.12", "veth1a2b", "docker0", "br-1", "ib0"]
    assert [name for name in names if is_link_out(name)] == ["eth0", "enp3s0f0", "ib0"]


class TestRates:
    def reading(self, at: float, read: int, received: int = 0) -> Reading:
        return Reading(
            at,
            cpu_busy=at * 0.25,
            cpu_total=at,
            disks={"sda": DiskCounters(read, 2 * read), "sda1": DiskCounters(read // 2, 0)},
            network_in=received,
            network_out=received,
        )

    def test_rates_come_from_two_readings(self) -> None:
        rates = Rates()
        first = rates.sample(self.reading(10, 1000), "", at=1.0, source="x")
        assert (first.disk_read, first.cpu, first.network_in) == (None, None, None)
        second = rates.sample(self.reading(12, 3000, 500), "/dev/sda1", at=2.0, source="x")
        assert second.disk_read == 1000
        assert second.disk_write == 2000
        assert second.model_disk_read == 500
        assert second.model_disk == "/dev/sda1"
        assert second.network_in == 250
        assert second.cpu == 25.0

    def test_a_counter_that_was_reset_gives_no_rate(self) -> None:
        rates = Rates()
        rates.sample(self.reading(10, 1000, 1000), "", at=1.0, source="x")
        after = rates.sample(self.reading(1, 10, 10), "", at=2.0, source="x")
        assert (after.disk_read, after.network_in, after.cpu) == (None, None, None)
        later = rates.sample(self.reading(2, 30, 5), "", at=3.0, source="x")
        assert later.disk_read == 20
        assert later.network_in is None

    def test_a_file_system_without_a_device_has_no_rate(self) -> None:
        rates = Rates()
        rates.sample(self.reading(1, 0), "server:/models", at=1.0, source="x")
        sample = rates.sample(self.reading(2, 10), "server:/models", at=2.0, source="x")
        assert sample.model_disk_read is None
        assert sample.model_disk == "server:/models"


async def test_the_collector(host: FakeHost, recorder: Recorder, context: Context) -> None:
    later = FRAME.replace("1035.14", "1036.14").replace(" 2000 27505", " 4000 27505")
    host.scripts[SYSTEM.label] = [
        Script([*FRAME.splitlines(), "@end", *later.splitlines(), "@end"], stays=True)
    ]
    observed = Observed(SGLANG, unit_name="a")
    observed.apply(UnitSample(0.0, "x", UnitStatus("a", control_group="/g", invocation="i")))
    observed.apply(CheckpointSample(0.0, "x", "m", "target", disk="/dev/nvme0n1"))
    async with collecting(SystemProcCollector(HostSettings(), observed, context), host, recorder):
        await recorder.until(lambda: len(recorder.of(RankIoSample)) == 2)
    assert host.arguments(SYSTEM.label) == [("1", "/g")]
    sample = recorder.of(SystemSample)[-1]
    assert sample.disk_read == pytest.approx(2000 * 512)
    assert sample.model_disk_read == pytest.approx(2000 * 512)
    assert recorder.of(RankIoSample)[0].read_bytes == 12288


def test_psutil_reads_the_same_machine() -> None:
    reading = read_machine()
    lines = ["@time 1", "@file stat", *Path("/proc/stat").read_text().splitlines()[:1]]
    lines += ["@file meminfo", *Path("/proc/meminfo").read_text().splitlines()]
    lines += ["@file diskstats", *Path("/proc/diskstats").read_text().splitlines()]
    by_program, _ = parse_frame(lines)
    assert reading.memory_total == by_program.memory_total
    assert reading.cores == psutil.cpu_count()
    shared = set(reading.disks) & set(by_program.disks)
    assert shared
    for name in shared:
        assert by_program.disks[name].read >= reading.disks[name].read


def test_psutil_reads_what_a_process_has_read() -> None:
    io = read_io({psutil.Process().pid, 2**22 + 1})
    assert io.processes == 1
    assert io.read_bytes is not None
