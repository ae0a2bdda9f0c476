"""What is still held on a host after a stop, and by whom: processes, the port, GPU memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from ddtui.collect.systemd_text import unquote
from ddtui.core.bounded import bounded_int
from ddtui.core.redact import redact_text
from ddtui.core.text import clean

MIB = 1 << 20
_MOST_MIB = 1 << 32
"""No GPU has more, and no sum of such sizes leaves 64 bits."""
SLACK = 512 * MIB
"""Bytes of GPU memory that may stay above the level of others: the driver's own moves a little."""
SLACK_UNKNOWN = 2048 * MIB
"""The same where what the unit's processes held was not known."""


class HostProcess(msgspec.Struct, frozen=True):
    """A process of the host."""

    pid: int
    begun: str
    """Its start time, in ticks since the host's boot: tells it from a later one of its number."""
    uid: int | None = None
    group: str = ""
    """Control group."""
    name: str = ""
    command: str = ""
    invocation: str = ""
    """Of the service that it was born in, wherever it is now; empty where that is not known."""

    @property
    def text(self) -> str:
        """For a message."""
        return f"{self.pid} ({self.name or '?'})"


class Held(msgspec.Struct, frozen=True):
    """One look at who holds what."""

    unit_pids: tuple[int, ...] = ()
    port_open: bool = False
    port_pids: tuple[int, ...] = ()
    gpus: dict[str, int] = {}
    """Bytes in use by GPU uuid."""
    indexes: dict[str, int] = {}
    """GPU index by uuid."""
    apps: dict[str, dict[int, int | None]] = {}
    """Bytes by pid and GPU uuid."""
    processes: dict[int, HostProcess] = {}

    def app_pids(self) -> set[int]:
        """Processes that hold GPU memory."""
        return {pid for held in self.apps.values() for pid in held}


class Baseline(msgspec.Struct, frozen=True):
    """What there was before the stop: the unit's processes, and GPU memory without them."""

    processes: tuple[HostProcess, ...] = ()
    """The unit's own."""
    outsiders: tuple[int, ...] = ()
    """Processes outside the unit that held GPU memory already: they do not count."""
    level: dict[str, int] = {}
    """Most bytes by GPU uuid that may be in use once the unit has given its memory back."""


class Remaining(msgspec.Struct, frozen=True):
    """What is not back yet; nothing in it means that all is."""

    processes: tuple[HostProcess, ...] = ()
    """Of the unit, in its control group."""
    orphans: tuple[HostProcess, ...] = ()
    """Of the old invocation, outside its control group."""
    port: str = ""
    gpus: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether all is released."""
        return not (self.processes or self.orphans or self.port or self.gpus)

    @property
    def text(self) -> str:
        """In words."""
        parts = []
        if self.processes:
            parts.append("processes of the unit: " + _names(self.processes))
        if self.orphans:
            parts.append("left over from the last invocation: " + _names(self.orphans))
        parts += [self.port] if self.port else []
        parts += self.gpus
        return "; ".join(parts)


def _names(processes: Sequence[HostProcess]) -> str:
    names = ", ".join(each.text for each in processes[:6])
    return names + (f" and {len(processes) - 6} more" if len(processes) > 6 else "")


def parse_held(text: str, own_group: str = "") -> Held:
    """Read the answer of the program HOLDERS. `own_group` ends the unit's control group."""
    unit: list[int] = []
    listening, port_pids = False, []
    gpus: dict[str, int] = {}
    indexes: dict[str, int] = {}
    apps: dict[str, dict[int, int | None]] = {}
    processes: dict[int, HostProcess] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        fields = [part.strip() for part in rest.split(",")]
        if kind == "@unit" and (pid := bounded_int(rest)) is not None:
            unit.append(pid)
        elif kind == "@socket":
            listening = True
        elif kind == "@listens" and (pid := bounded_int(rest.split(" ")[0])) is not None:
            port_pids.append(pid)
        elif kind == "@gpu" and len(fields) >= 3 and (at := bounded_int(fields[1])) is not None:
            indexes[fields[0]] = at
            if (used := _bytes(fields[2])) is not None:
                gpus[fields[0]] = used
        elif kind == "@app" and len(fields) >= 3 and (pid := bounded_int(fields[0])) is not None:
            apps.setdefault(fields[1], {})[pid] = _bytes(fields[2])
        elif kind == "@process" and (process := _process(rest)) is not None:
            processes[process.pid] = process
    ours = {pid for pid, each in processes.items() if own_group and _within(each.group, own_group)}
    return Held(
        tuple(dict.fromkeys([*unit, *sorted(ours)])),
        listening,
        tuple(dict.fromkeys(port_pids)),
        gpus,
        indexes,
        apps,
        processes,
    )


def _bytes(mebibytes: str) -> int | None:
    size = bounded_int(mebibytes)
    return size * MIB if size is not None and size <= _MOST_MIB else None


def _within(group: str, own: str) -> bool:
    return f"{group}/".find(f"{own}/") >= 0


def _process(text: str) -> HostProcess | None:
    words = re.findall(r"\$'(?:[^'\\]|\\.)*'|(?:\\.|\S)+", text)
    if len(words) < 6 or (pid := bounded_int(words[0])) is None:
        return None
    group, name, command, invocation = (unquote(word) for word in [*words[3:7], "''"][:4])
    return HostProcess(
        pid,
        words[1],
        bounded_int(words[2]),
        clean(group, 300),
        clean(name, 40),
        clean(redact_text(command), 400),
        clean(invocation, 40),
    )


def baseline(held: Held, invocations: Collection[str] = ()) -> Baseline:
    """What to come back to, from a look before the stop; `invocations` of the unit so far."""
    ours = set(held.unit_pids) | {
        pid
        for pid, each in held.processes.items()
        if each.invocation and each.invocation in invocations
    }
    level: dict[str, int] = {}
    for gpu, used in held.gpus.items():
        of_unit = [held.apps.get(gpu, {}).get(pid) for pid in ours & held.apps.get(gpu, {}).keys()]
        known = [size for size in of_unit if size is not None]
        if len(known) < len(of_unit):
            others = sum(
                size or 0 for pid, size in held.apps.get(gpu, {}).items() if pid not in ours
            )
            level[gpu] = others + SLACK_UNKNOWN
        else:
            level[gpu] = max(0, used - sum(known)) + SLACK
    return Baseline(
        tuple(held.processes[pid] for pid in sorted(ours) if pid in held.processes),
        tuple(sorted(held.app_pids() - ours)),
        level,
    )


def remaining(
    before: Baseline, held: Held, port: int, is_engine: Callable[[Sequence[str]], bool]
) -> Remaining:
    """What of the old invocation is still there."""
    orphans = tuple(_orphans(before, held, is_engine))
    orphan_pids = {each.pid for each in orphans}
    unit = tuple(
        held.processes.get(pid) or HostProcess(pid, "")
        for pid in held.unit_pids
        if pid not in orphan_pids
    )
    return Remaining(unit, orphans, _port(held, port), tuple(_gpus(before, held)))


def _orphans(
    before: Baseline, held: Held, is_engine: Callable[[Sequence[str]], bool]
) -> Iterable[HostProcess]:
    """Processes of the old invocation, and engines that hold GPUs or the port for no service."""
    born = {(each.pid, each.begun) for each in before.processes}
    for pid, process in held.processes.items():
        if pid in held.unit_pids:
            continue
        if (pid, process.begun) in born:
            yield process
        elif pid in held.app_pids() | set(held.port_pids) and pid not in before.outsiders:
            engine = process.name.startswith("sglang") or is_engine(process.command.split(" "))
            if engine and ".service" not in process.group:
                yield process


def _port(held: Held, port: int) -> str:
    if not held.port_open:
        return ""
    who = [held.processes[pid].text for pid in held.port_pids if pid in held.processes]
    return f"port {port} is held by {', '.join(who) or 'a process that may not be seen'}"


def _gpus(before: Baseline, held: Held) -> Iterable[str]:
    later = _later(before, held)
    over: dict[int, float] = {}
    who: dict[int, str] = {}
    for gpu, used in held.gpus.items():
        # Memory that newcomers took since is theirs, and no sign of what the unit has not returned.
        level = before.level.get(gpu, SLACK_UNKNOWN) + later.get(gpu, 0)
        if used <= level:
            continue
        over[held.indexes.get(gpu, -1)] = (used - level) / (1 << 30)
        for pid in held.apps.get(gpu, {}):
            if pid not in before.outsiders:
                who[pid] = held.processes[pid].text if pid in held.processes else str(pid)
    if not over:
        return
    least, most = min(over.values()), max(over.values())
    much = f"{most:.1f}" if most - least < 0.05 else f"{least:.1f} to {most:.1f}"
    name = "GPU" if len(over) == 1 else "GPUs"
    indexes = ", ".join(map(str, sorted(over)))
    words = f"{name} {indexes}: {much} GiB not given back"
    yield words + (f", held by {', '.join(who.values())}" if who else "")


def _later(before: Baseline, held: Held) -> Mapping[str, int]:
    """Bytes by GPU of processes of other services that came after the stop."""
    found: dict[str, int] = {}
    for gpu, apps in held.apps.items():
        for pid, size in apps.items():
            process = held.processes.get(pid)
            newcomer = pid not in before.outsiders and pid not in held.unit_pids
            if newcomer and process is not None and ".service" in process.group and size:
                found[gpu] = found.get(gpu, 0) + size
    return found
