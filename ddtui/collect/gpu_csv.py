"""Reads what nvidia-smi prints for `--query-gpu` and `--query-compute-apps` (csv,noheader,nounits).

Formats and error texts: `nvidia-smi --help-query-gpu`, the driver's NVML return values (nvml.h: the
exit status of nvidia-smi is one of them) and captures of drivers 535 to 580.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from ddtui.collect.base import SourceTrouble
from ddtui.core.bounded import bounded_float, bounded_int
from ddtui.core.gpus import HIGHEST_INDEX, possible_gpu, possible_memory
from ddtui.core.redact import safe_text
from ddtui.core.samples import Gpu, GpuProcess, SourceStatus

MIB = 1 << 20
_TEXT_LIMIT = 120

OLDER_NAMES = {
    "clocks_event_reasons.active": "clocks_throttle_reasons.active",
    "power.draw": "power.draw.average",
    "power.limit": "enforced.power.limit",
    "pcie.link.gen.current": "pcie.link.gen.gpucurrent",
    "clocks.current.sm": "clocks.sm",
    "clocks.current.memory": "clocks.mem",
}
"""Fields of `--query-gpu` that some drivers know under another name only."""

_REFUSED = re.compile(r'Field "([^"]+)" is not a valid field to query')
_LOST_LINE = re.compile(
    r"(?:Unable to determine the device handle for|Unable to .{1,60}?)\s*[gG][pP][uU]\s*"
    r"(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?):?\s*(?P<why>.*)"
)
_LOST_WORDS = ("gpu is lost", "gpu requires reset", "unknown error", "fallen off")
_UUID = re.compile(r"(?:GPU|MIG)-[\w/-]{1,100}")
_BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f])?")
_MASK = re.compile(r"(?:0x)?[0-9A-Fa-f]{1,16}")
_NOTHING = frozenset({"", "n/a", "not supported", "not available", "unknown error", "err!"})


def refused_field(text: str) -> str | None:
    """The field that the driver does not know, when `text` says so."""
    match = _REFUSED.search(text)
    return match.group(1) if match else None


def without_field(fields: Sequence[str], refused: str) -> tuple[str, ...]:
    """The fields to ask for next: `refused` under its older name, else left out."""
    older = OLDER_NAMES.get(refused)
    kept = (older if field == refused else field for field in fields)
    return tuple(field for field in kept if field is not None)


def lost_gpu(line: str) -> tuple[str, str] | None:
    """`(bus id, the driver's words)` when a line says that a GPU does not answer."""
    match = _LOST_LINE.search(line)
    if match is None:
        return None
    return normal_bus_id(match["bus"]), safe_text(match["why"].strip() or line, _TEXT_LIMIT)


def normal_bus_id(bus_id: str) -> str:
    """One spelling of a bus id: the driver writes the domain with 4 or 8 digits, in either case."""
    domain, _, rest = bus_id.strip().lower().partition(":")
    return f"{domain[-4:].zfill(4)}:{rest if '.' in rest else rest + '.0'}"


def parse_gpu_row(line: str, fields: Sequence[str]) -> Gpu | None:
    """One GPU's reading from one CSV line; None when the line is no row."""
    cells = _cells(line)
    surplus = len(cells) - len(fields)
    if surplus > 0 and "name" in fields:  # the driver does not quote a name with a comma in it
        at = fields.index("name")
        cells[at : at + surplus + 1] = [", ".join(cells[at : at + surplus + 1])]
    if len(cells) != len(fields):
        return None
    row = dict(zip(fields, cells, strict=True))
    index = bounded_int(row.get("index", ""))
    if index is None or index > HIGHEST_INDEX:
        return None
    # Columns that were shifted, by a comma in a number say, would give figures of other things.
    uuid, bus_id = row.get("uuid", ""), row.get("pci.bus_id", "")
    if not (_fits(_UUID, uuid) and _fits(_BUS_ID, bus_id)):
        return None
    if surplus > 0 and _BUS_ID.fullmatch(bus_id) is None:
        return None  # only a name may hold the commas that were too many
    return possible_gpu(_gpu(index, row))


def _fits(shape: re.Pattern[str], cell: str) -> bool:
    """Whether a cell has its shape, or says that there is nothing (`[N/A]`, `[GPU is lost]`)."""
    nothing = cell.startswith("[") or _inner(cell) in _NOTHING
    return nothing or shape.fullmatch(cell) is not None


def _cells(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]
    except csv.Error:
        return []


def _gpu(index: int, row: dict[str, str]) -> Gpu:
    def value(*names: str) -> str:
        return next((row[name] for name in names if name in row), "")

    return Gpu(
        index=index,
        uuid=_words(value("uuid")),
        name=_words(value("name")),
        bus_id=_words(value("pci.bus_id")),
        driver=_words(value("driver_version")),
        memory_used=_mebibytes(value("memory.used")),
        memory_total=_mebibytes(value("memory.total")),
        utilization=_number(value("utilization.gpu")),
        memory_utilization=_number(value("utilization.memory")),
        power=_number(value("power.draw", "power.draw.average")),
        power_limit=_number(value("power.limit", "enforced.power.limit")),
        temperature=_number(value("temperature.gpu")),
        memory_temperature=_number(value("temperature.memory")),
        fan=_number(value("fan.speed")),
        sm_clock=_number(value("clocks.current.sm", "clocks.sm")),
        memory_clock=_number(value("clocks.current.memory", "clocks.mem")),
        throttle_reasons=_mask(
            value("clocks_event_reasons.active", "clocks_throttle_reasons.active")
        ),
        ecc_uncorrected=bounded_int(value("ecc.errors.uncorrected.volatile.total")),
        mig_enabled={"enabled": True, "disabled": False}.get(value("mig.mode.current").lower()),
        pcie_generation=bounded_int(value("pcie.link.gen.current", "pcie.link.gen.gpucurrent")),
        pcie_width=bounded_int(value("pcie.link.width.current")),
        performance_state=_words(value("pstate")),
        lost=_lost(row),
    )


def _inner(cell: str) -> str:
    """The words of `[Not Supported]` and the like, in lower case, without brackets."""
    return cell.strip("[] ").lower()


def _number(cell: str) -> float | None:
    return bounded_float(cell)


def _mebibytes(cell: str) -> int | None:
    number = _number(cell)
    return None if number is None else int(number * MIB)


def _mask(cell: str) -> int | None:
    return int(cell, 16) if _MASK.fullmatch(cell) is not None else None


def _words(cell: str) -> str:
    return "" if _inner(cell) in _NOTHING else safe_text(cell, _TEXT_LIMIT)


def _lost(row: dict[str, str]) -> str:
    """The driver's words when it has lost this GPU: most of its cells say so, none has a figure."""
    memory = row.get("memory.used", "0")
    inner = _inner(memory)
    if _number(memory) is None and any(word in inner for word in _LOST_WORDS):
        return safe_text(memory.strip("[] "), _TEXT_LIMIT)
    return ""


def parse_processes(text: str) -> list[GpuProcess]:
    """Rows `pid, gpu_uuid, used_gpu_memory, process_name`: the name may hold commas."""
    processes = []
    for line in text.splitlines():
        cells = line.split(",", 3)
        pid = bounded_int(cells[0].strip())
        if len(cells) < 3 or pid is None:
            continue
        name = cells[3].strip() if len(cells) == 4 else ""
        processes.append(
            GpuProcess(
                pid, _words(cells[1].strip()), _words(name), possible_memory(_mebibytes(cells[2]))
            )
        )
    return processes


_MEANINGS: dict[int, tuple[str, str, SourceStatus]] = {
    4: (
        "nvidia-smi was refused access to the GPUs",
        "check the permissions of /dev/nvidia* on the host",
        SourceStatus.FAILED,
    ),
    6: (
        "the driver found no GPU",
        "check `lspci | grep -i nvidia` on the host",
        SourceStatus.ABSENT,
    ),
    9: (
        "the NVIDIA driver is not running",
        "load it on the host (`modprobe nvidia`), or look for it in `journalctl -k`",
        SourceStatus.ABSENT,
    ),
    12: (
        "nvidia-smi did not find libnvidia-ml.so",
        "install the driver's libraries on the host, of the same version as its kernel module",
        SourceStatus.ABSENT,
    ),
    15: (
        "a GPU has fallen off the bus",
        "look for Xid errors in `journalctl -k`; it takes a reset or a reboot of the host",
        SourceStatus.FAILED,
    ),
    18: (
        "the driver's library and its kernel module differ in version",
        "reboot the host, or reload the nvidia modules, after the driver's update",
        SourceStatus.FAILED,
    ),
    127: (
        "no nvidia-smi on the host",
        "install the NVIDIA driver's tools, or set `nvidia_smi` to its path",
        SourceStatus.ABSENT,
    ),
}


def ended(status: int | None, output: str, errors: str) -> SourceTrouble:
    """Why nvidia-smi ended, from its exit status (NVML's return values) and its words."""
    said = safe_text((errors.strip() or output.strip()).replace("\n", " "), 200)
    if status in _MEANINGS:
        detail, remedy, state = _MEANINGS[status]
        return SourceTrouble(f"{detail}: {said}" if said else detail, remedy, state)
    return SourceTrouble(f"nvidia-smi ended with status {status}" + (f": {said}" if said else ""))
