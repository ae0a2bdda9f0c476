"""Who listens on the engine's port: the unit, or somebody else."""

from __future__ import annotations

import msgspec

from ddtui.collect.base import Context, Emit, Report, SourceTrouble, supervise
from ddtui.collect.observed import PORT_UNKNOWN, Observed
from ddtui.collect.programs import LISTENER
from ddtui.core.bounded import bounded_int
from ddtui.core.redact import safe_text
from ddtui.core.samples import Collector, ListenerOwner, ListenerSample, SourceStatus
from ddtui.hosts.base import Host

SOURCE = "/proc/net/tcp"
INTERVAL = 2.0
INTERVAL_WHEN_OWNED = 10.0
NAME_AGAIN = 60.0
"""Seconds between two searches for a foreign holder's name, which look at every process."""


_OWNED = frozenset({ListenerOwner.UNIT, ListenerOwner.SAME_USER})


class Sockets(msgspec.Struct, frozen=True):
    """What the program LISTENER found."""

    listening: dict[int, int] = msgspec.field(default_factory=dict)
    """Uid by inode of each listening socket of the port."""
    held: dict[int, int] = msgspec.field(default_factory=dict)
    """Pid of the unit's process by inode."""
    uids: frozenset[int] = frozenset()
    """Users of the unit's processes."""
    readable: int = 0
    unreadable: int = 0
    others: dict[int, tuple[int, str]] = msgspec.field(default_factory=dict)
    """Pid and name of any process by inode."""
    configured: int | None = None
    """The user that the unit is started as, where its processes are hidden."""


def parse_sockets(text: str) -> Sockets:
    """Read the program's lines. What is malformed is left out."""
    listening: dict[int, int] = {}
    held: dict[int, int] = {}
    others: dict[int, tuple[int, str]] = {}
    uids: set[int] = set()
    configured: int | None = None
    counts = {"readable": 0, "unreadable": 0}
    for line in text.splitlines():
        words = line.split(" ", 3)
        numbers = [number for word in words[1:3] if (number := bounded_int(word)) is not None]
        match words:
            case ["@socket", _, _] if len(numbers) == 2:
                listening[numbers[1]] = numbers[0]
            case ["@holds", _, _] if len(numbers) == 2:
                held[numbers[1]] = numbers[0]
            case ["@process", _, uid, access] if access in counts:
                counts[access] += 1
                if (number := bounded_int(uid)) is not None:
                    uids.add(number)
            case ["@unit", uid, *_]:
                configured = 0 if uid == "[not" else bounded_int(uid)  # `[not set]`: root
            case ["@other", _, _, name] if len(numbers) == 2:
                others[numbers[1]] = (numbers[0], safe_text(name, 40))
            case _:
                pass
    return Sockets(
        listening,
        held,
        frozenset(uids),
        counts["readable"],
        counts["unreadable"],
        others,
        configured,
    )


def owner_of(
    sockets: Sockets, *, in_container: bool = False
) -> tuple[ListenerOwner, int | None, str]:
    """Who holds the port: the owner, its pid where it is known, and the reason in words."""
    if not sockets.listening:
        return ListenerOwner.NOBODY, None, "nobody listens"
    for inode in sockets.listening:
        if inode in sockets.held:
            pid = sockets.held[inode]
            return ListenerOwner.UNIT, pid, f"process {pid} of the unit has the socket"
    named = [sockets.others[inode] for inode in sockets.listening if inode in sockets.others]
    if in_container:
        return ListenerOwner.UNKNOWN, None, "the unit starts a container: its sockets are not seen"
    if sockets.readable and not sockets.unreadable:
        return ListenerOwner.FOREIGN, *_foreign(named, "no process of the unit has the socket")
    if sockets.unreadable and (found := _by_user(sockets, named)) is not None:
        return found
    if named:
        return ListenerOwner.FOREIGN, *_foreign(named, "the unit has no processes")
    return ListenerOwner.UNKNOWN, None, "its owner cannot be seen"


def _by_user(
    sockets: Sockets, named: list[tuple[int, str]]
) -> tuple[ListenerOwner, int | None, str] | None:
    """Who holds the port by its socket's user; None where that does not tell."""
    users = set(sockets.listening.values())
    if users & sockets.uids:
        return ListenerOwner.SAME_USER, None, "a process of the unit's user has the socket"
    if not sockets.uids and sockets.configured in users:
        return ListenerOwner.SAME_USER, None, "the user that the unit runs as has the socket"
    # What is started as root may become another user: that speaks against nobody.
    if sockets.uids or sockets.configured:
        why = f"user {min(users)} has it, not the unit's user"
        return ListenerOwner.FOREIGN, *_foreign(named, why)
    return None


def _foreign(named: list[tuple[int, str]], why: str) -> tuple[int | None, str]:
    if not named:
        return None, why
    pid, name = named[0]
    return pid, f"process {pid} ({name}) has it"


class ListenerCollector:
    """Looks at the port every 2 s until the unit has it, then every 10 s."""

    def __init__(self, observed: Observed, context: Context, scope: str = "system") -> None:
        self._observed = observed
        self._context = context
        self._is_system = scope == "system"
        self._named_for: frozenset[int] = frozenset()
        self._named_at = 0.0
        self._others: dict[int, tuple[int, str]] = {}

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.LISTENER, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._poll(host, emit, report), self._context.nudge)

    async def _poll(self, host: Host, emit: Emit, report: Report) -> None:
        observed = self._observed
        await observed.wait_for(lambda: observed.unit is not None, INTERVAL_WHEN_OWNED)
        while True:
            if not observed.port_known:
                report(SourceStatus.WAITING, PORT_UNKNOWN)
                await observed.wait_change(INTERVAL_WHEN_OWNED)
                continue
            announced = observed.announced
            sample = await self._look(host)
            if sample is not None:
                emit(sample)
            report.live()
            owned = sample is not None and sample.owner in _OWNED
            await self._pause(INTERVAL_WHEN_OWNED if owned else INTERVAL, announced)

    async def _look(self, host: Host) -> ListenerSample | None:
        """Look once; None when the unit was started anew meanwhile."""
        observed = self._observed
        invocation, port = observed.invocation, observed.port
        sockets = await self._ask(host, port, "")
        owner, pid, detail = owner_of(sockets, in_container=observed.in_container)
        if sockets.listening and owner in {ListenerOwner.FOREIGN, ListenerOwner.UNKNOWN}:
            inodes = frozenset(sockets.listening)
            if inodes != self._named_for or self._context.clock() - self._named_at > NAME_AGAIN:
                self._others = (await self._ask(host, port, "name")).others
                self._named_for, self._named_at = inodes, self._context.clock()
            sockets = msgspec.structs.replace(sockets, others=self._others)
            owner, pid, detail = owner_of(sockets, in_container=observed.in_container)
        if observed.invocation != invocation or observed.port != port:
            return None
        uid = next(iter(sockets.listening.values()), None)
        return ListenerSample(self._context.clock(), SOURCE, port, owner, pid, uid, detail)

    async def _ask(self, host: Host, port: int, name: str) -> Sockets:
        observed = self._observed
        main = str(observed.unit.main_pid if observed.unit is not None else 0)
        unit = observed.unit_name or "" if self._is_system else ""
        answer = await host.run(LISTENER, str(port), observed.control_group, name, main, unit)
        text = answer.stdout.decode("utf-8", "replace")
        if "@end" not in text:
            said = safe_text(answer.stderr.decode("utf-8", "replace"), 200)
            raise SourceTrouble(f"cannot see who has port {port}: {said}".rstrip(": "))
        return parse_sockets(text)

    async def _pause(self, seconds: float, announced: int) -> None:
        """Wait, but no longer than until the next invocation or its word that the port is open."""
        observed = self._observed
        invocation = observed.invocation
        await observed.wait_for(
            lambda: observed.invocation != invocation or observed.announced != announced, seconds
        )
