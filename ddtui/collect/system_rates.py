"""From counters of the machine to rates: the same for every way of reading them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from ddtui.core.samples import SystemSample

_SKIPPED_DISKS = re.compile(r"(?:loop|ram|zram|sr|fd|dm-|md)\d")
"""No disks, or made of disks that are counted themselves."""
_SKIPPED_LINKS = re.compile(
    r"(?:lo|dummy\d|ifb\d|veth|docker|br-|virbr|vnet|tap|tun\d|bond\d|cali|cni|flannel|lxc|podman)"
    r"|.*\.\d+$"
)
"""Not a way out of the machine, or made of links that are counted themselves."""


class DiskCounters(msgspec.Struct, frozen=True):
    """Bytes since boot."""

    read: int
    written: int


class Reading(msgspec.Struct, frozen=True):
    """The machine's counters and levels at one moment. None or empty: not said."""

    monotonic: float
    """Seconds on a clock that never jumps, for the rates."""
    host_at: float | None = None
    cpu_busy: float | None = None
    """Time that all cores together were busy, in any unit."""
    cpu_total: float | None = None
    """All time of all cores, in the same unit."""
    cores: int | None = None
    load_1m: float | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    page_cache: int | None = None
    disks: Mapping[str, DiskCounters] = msgspec.field(default_factory=dict)
    network_in: int | None = None
    network_out: int | None = None
    uptime: float | None = None


def whole_disks(names: Iterable[str]) -> set[str]:
    """Names of whole disks: partitions and devices that are made of other disks left out."""
    named = {name for name in names if not _SKIPPED_DISKS.match(name)}
    return {name for name in named if not any(_is_partition(name, disk) for disk in named)}


def _is_partition(name: str, disk: str) -> bool:
    """Whether `name` is a partition of `disk` (sda1 of sda, nvme0n1p1 of nvme0n1)."""
    if name == disk or not name.startswith(disk):
        return False
    rest = name[len(disk) :]
    return bool(re.fullmatch(r"p\d+" if disk[-1].isdigit() else r"\d+", rest))


def is_link_out(name: str) -> bool:
    """Whether a network interface carries traffic of its own out of the machine."""
    return not _SKIPPED_LINKS.match(name)


class Rates:
    """Turns readings into samples. Holds the previous reading."""

    def __init__(self) -> None:
        self._before: Reading | None = None

    def sample(self, reading: Reading, model_disk: str, *, at: float, source: str) -> SystemSample:
        """The sample of this reading; rates are None at first and after a counter's reset."""
        before, self._before = self._before, reading
        device = model_disk.removeprefix("/dev/")
        result = SystemSample(
            at,
            source,
            host_at=reading.host_at,
            cores=reading.cores,
            load_1m=reading.load_1m,
            memory_total=reading.memory_total,
            memory_available=reading.memory_available,
            page_cache=reading.page_cache,
            model_disk=model_disk,
            uptime=reading.uptime,
        )
        seconds = reading.monotonic - before.monotonic if before is not None else 0.0
        if before is None or seconds <= 0:
            return result
        disks = whole_disks(reading.disks)
        return msgspec.structs.replace(
            result,
            cpu=_share(before, reading),
            disk_read=_disk_rate(before, reading, disks, "read", seconds),
            disk_write=_disk_rate(before, reading, disks, "written", seconds),
            model_disk_read=_disk_rate(before, reading, {device}, "read", seconds),
            network_in=_rate(before.network_in, reading.network_in, seconds),
            network_out=_rate(before.network_out, reading.network_out, seconds),
        )


def _rate(before: int | None, now: int | None, seconds: float) -> float | None:
    if before is None or now is None or now < before:
        return None
    return (now - before) / seconds


def _share(before: Reading, now: Reading) -> float | None:
    if None in (before.cpu_busy, before.cpu_total, now.cpu_busy, now.cpu_total):
        return None
    total = (now.cpu_total or 0) - (before.cpu_total or 0)
    busy = (now.cpu_busy or 0) - (before.cpu_busy or 0)
    return min(100.0, 100.0 * busy / total) if total > 0 and busy >= 0 else None


def _disk_rate(
    before: Reading, now: Reading, names: set[str], field: str, seconds: float
) -> float | None:
    """Sum over disks that both readings have; None when there is none."""
    rates = [
        _rate(getattr(before.disks[name], field), getattr(now.disks[name], field), seconds)
        for name in names
        if name in before.disks and name in now.disks
    ]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
