"""The host's load, from its /proc files (proc(5)) as the program `ddtui:system` prints them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ddtui.collect.base import Context, Emit, Report, Restart, SourceTrouble, lines_of, supervise
from ddtui.collect.observed import Observed
from ddtui.collect.programs import SYSTEM
from ddtui.collect.settings import HostSettings
from ddtui.collect.system_rates import DiskCounters, Rates, Reading, is_link_out
from ddtui.core.bounded import LARGEST, bounded_float, bounded_int, within
from ddtui.core.clock import Clock
from ddtui.core.samples import Collector, RankIoSample
from ddtui.hosts.base import Host

SOURCE = "/proc"
SECTOR = 512
"""/proc/diskstats counts in sectors of 512 bytes, whatever the disk's own are."""
SILENCE_LIMIT = 10.0
UNIT_PATIENCE = 0.5
"""Seconds that the unit's control group is waited for at first."""


class RankIo(msgspec.Struct, frozen=True):
    """Bytes that the unit's processes have read from storage."""

    read_bytes: int | None
    processes: int
    unreadable: int


def parse_frame(lines: Iterable[str]) -> tuple[Reading, RankIo]:
    """One frame, without its `@end`. What is missing or malformed is left out."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    said: dict[str, str] = {}
    for line in lines:
        if line.startswith("@"):
            word, _, value = line[1:].partition(" ")
            current = sections.setdefault(value if word == "file" else word, [])
            said[word] = value
        else:
            current.append(line)
    uptime = _first_number(sections.get("uptime"))
    host_at = _float(said.get("time", ""))
    busy, total, cores = _cpu(sections.get("stat", []))
    memory = _memory(sections.get("meminfo", []))
    received, sent = _network(sections.get("net/dev", []))
    reading = Reading(
        monotonic=uptime if uptime is not None else host_at or 0.0,
        host_at=host_at,
        cpu_busy=busy,
        cpu_total=total,
        cores=bounded_int(said.get("cores", "")) or cores,
        load_1m=_first_number(sections.get("loadavg")),
        memory_total=memory.get("MemTotal"),
        memory_available=memory.get("MemAvailable"),
        page_cache=memory.get("Cached"),
        disks=_disks(sections.get("diskstats", [])),
        network_in=received,
        network_out=sent,
        uptime=uptime,
    )
    return reading, _rank_io(sections.get("io", []))


def _float(text: str) -> float | None:
    return within(bounded_float(text), 0, LARGEST)


def _first_number(lines: list[str] | None) -> float | None:
    words = lines[0].split() if lines else []
    return _float(words[0]) if words else None


def _cpu(lines: list[str]) -> tuple[float | None, float | None, int | None]:
    """Busy and total time of all cores, in ticks, and their number where it is listed."""
    cores = sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())
    words = lines[0].split() if lines else []
    if len(words) < 5 or words[0] != "cpu":
        return None, None, cores or None
    # user nice system idle iowait irq softirq steal; guest time is in user time already
    ticks = [_float(word) or 0.0 for word in words[1:9]]
    idle = ticks[3] + (ticks[4] if len(ticks) > 4 else 0.0)
    return sum(ticks) - idle, sum(ticks), cores or None


def _memory(lines: list[str]) -> dict[str, int]:
    result = {}
    for line in lines:
        name, _, rest = line.partition(":")
        kilobytes = bounded_int(rest.split()[0]) if rest.split() else None
        if kilobytes is not None:
            result[name] = kilobytes * 1024
    return result


def _network(lines: list[str]) -> tuple[int | None, int | None]:
    received = sent = None
    for line in lines:
        name, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or len(words) < 9 or not is_link_out(name.strip()):
            continue
        received = (received or 0) + (bounded_int(words[0]) or 0)
        sent = (sent or 0) + (bounded_int(words[8]) or 0)
    return received, sent


def _disks(lines: list[str]) -> dict[str, DiskCounters]:
    result = {}
    for line in lines:
        words = line.split()
        if len(words) < 10:
            continue
        read, written = bounded_int(words[5]), bounded_int(words[9])
        if read is not None and written is not None:
            result[words[2]] = DiskCounters(read * SECTOR, written * SECTOR)
    return result


def _rank_io(lines: list[str]) -> RankIo:
    total, readable, unreadable = 0, 0, 0
    for line in lines:
        _, _, value = line.partition(" ")
        number = bounded_int(value)
        if number is not None:
            total += number
            readable += 1
        elif value == "-":
            unreadable += 1
    return RankIo(total if readable else None, readable + unreadable, unreadable)


class SystemProcCollector:
    """The host's load, and what the unit's processes read from storage."""

    def __init__(self, settings: HostSettings, observed: Observed, context: Context) -> None:
        self._interval = settings.system_interval
        self._observed = observed
        self._context = context
        self._rates = Rates()

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.SYSTEM, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._stream(host, emit, report), self._context.nudge)

    async def _stream(self, host: Host, emit: Emit, report: Report) -> None:
        await self._observed.wait_for(lambda: self._observed.unit is not None, UNIT_PATIENCE)
        group = self._observed.control_group
        self._rates = Rates()
        frame: list[str] = []
        async with (
            host.stream(SYSTEM, f"{self._interval:g}", group) as stream,
            lines_of(stream) as lines,
        ):
            while (batch := await lines.batch(3 * self._interval + SILENCE_LIMIT)) is not None:
                if not batch:
                    raise SourceTrouble("the host said nothing about its load: started anew")
                for raw in batch:
                    if raw != b"@end":
                        frame.append(raw.decode("utf-8", "replace"))
                        continue
                    self._emit(frame, bool(group), emit, self._context.clock)
                    report.live()
                    frame = []
                now = self._observed.control_group
                if now and now != group:
                    raise Restart
            errors = stream.stderr_tail.strip()
        raise SourceTrouble(f"the program that reads /proc ended: {errors}".rstrip(": "))

    def _emit(self, frame: list[str], with_io: bool, emit: Emit, clock: Clock) -> None:
        reading, io = parse_frame(frame)
        at = clock()
        emit(self._rates.sample(reading, self._observed.model_disk, at=at, source=SOURCE))
        if with_io:
            emit(RankIoSample(at, SOURCE, io.read_bytes, io.processes, io.unreadable))
