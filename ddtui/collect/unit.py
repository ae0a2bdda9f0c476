"""The unit: its state as the program `ddtui:unit` prints it, and the search for it."""

from __future__ import annotations

import msgspec

from ddtui.collect.base import Context, Emit, Report, Restart, SourceTrouble, lines_of, supervise
from ddtui.collect.observed import Observed
from ddtui.collect.programs import UNIT, UNIT_PROPERTIES, UNITS
from ddtui.collect.settings import HostSettings
from ddtui.collect.systemd_text import parse_exec_start, parse_properties, unit_status, unquote
from ddtui.collect.unit_older import Starts
from ddtui.collect.unit_start import Start, parse_start
from ddtui.core.bounded import bounded_float, bounded_int
from ddtui.core.clock import Clock
from ddtui.core.engine import Engine
from ddtui.core.redact import safe_text
from ddtui.core.samples import Collector, SourceStatus, UnitSample, UnitStatus
from ddtui.hosts.base import Host, HostError

SOURCE = "systemd"
SILENCE_LIMIT = 15.0
SIGN_OF_LIFE = 2.0
"""Seconds after which an unchanged state is passed on again."""
_NEEDS_SYSTEMD = (
    "run the engine as a systemd service, or name the host on which it is one;"
    " GPU and system figures need none"
)
_KNOWN = frozenset(UNIT_PROPERTIES)
_PARTS = frozenset({"@cmdline", "@environ", "@written"})
"""Lines that begin the parts of a frame behind the properties."""


class Candidate(msgspec.Struct, frozen=True):
    """A service that starts the engine."""

    name: str
    active_state: str
    command_line: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, str]:
        """Sorts those that run first, then by name."""
        order = {"active": 0, "reloading": 0, "activating": 1, "deactivating": 2, "failed": 3}
        return order.get(self.active_state, 4), self.name


def parse_units(text: str, engine: Engine) -> list[Candidate]:
    """Services whose command starts the engine, the likeliest first, from the program UNITS."""
    names = frozenset({"Id", "ActiveState", "LoadState", "ExecStart", "FragmentPath"})
    found: dict[str, Candidate] = {}
    for block in text.split("\n\n"):
        values = parse_properties(block.strip("\n").split("\n"), names)
        argv = parse_exec_start(values.get("ExecStart", ""))
        name = values.get("Id", "")
        if name and argv and engine.is_command(argv):
            found[name] = Candidate(name, values.get("ActiveState", ""), argv)
    return sorted(found.values(), key=lambda candidate: candidate.rank)


class NoServiceManager(HostError):
    """Nothing on the host tells of its services: it has no systemd, or its manager is silent."""

    def __init__(self, trouble: SourceTrouble) -> None:
        super().__init__(trouble.detail, trouble.remedy)
        self.trouble = trouble


async def find_units(host: Host, engine: Engine, scope: str) -> list[Candidate]:
    """The host's engine services, the likeliest first.

    Raises:
        NoServiceManager: there is nothing that knows of services, or it does not answer.
        HostError: the program did not run.
    """
    answer = await host.run(UNITS, scope, timeout=30.0)
    text = answer.stdout.decode("utf-8", "replace")
    if text.startswith("@none ") and (said := text.removeprefix("@none ").strip()):
        raise NoServiceManager(trouble_of(said))
    return parse_units(text, engine)


class Frame(msgspec.Struct, frozen=True):
    """One answer of `systemctl show` with the main process's command line."""

    status: int
    host_at: float | None
    lines: list[str]
    command_line: list[str]
    start: Start = Start()


class Frames:
    """Puts the program's lines together. A line `@same` gives the last frame again."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._lines: list[str] = []
        self._parts: dict[str, list[str]] = {}
        self._part: list[str] = self._lines
        self._last: Frame | None = None

    def add(self, line: str) -> Frame | None:
        """Take a line; returns the frame that it completes."""
        if line.startswith("@show "):
            self._head, self._lines, self._parts = line.split(), [], {}
            self._part = self._lines
        elif line.startswith("@same"):
            return self._last
        elif line in _PARTS and self._head:
            self._part = self._parts[line] = []
        elif line == "@end" and self._head:
            self._last = self._frame()
            self._head = []
            return self._last
        elif self._head:
            self._part.append(line)
        return None

    def _frame(self) -> Frame:
        status = self._head[1] if len(self._head) > 1 else ""
        stamp = self._head[2] if len(self._head) > 2 else ""
        environ = self._parts.get("@environ")
        words = None if environ is None else [each[:1] + unquote(each[1:]) for each in environ]
        return Frame(
            1 if (code := bounded_int(status)) is None else code,
            bounded_float(stamp),
            self._lines,
            [unquote(word) for word in self._parts.get("@cmdline", ())],
            parse_start(words, self._parts.get("@written", ())),
        )


def status_of(name: str, frame: Frame, starts: Starts) -> UnitStatus:
    """The unit's state from a frame; its start is noted in `starts`.

    Raises SourceTrouble when systemctl did not answer.
    """
    values = parse_properties(frame.lines, _KNOWN)
    if "LoadState" not in values:
        raise trouble_of("\n".join(frame.lines))
    return unit_status(name, values, frame.command_line, frame.start, frame.host_at, starts)


def trouble_of(text: str) -> SourceTrouble:
    """What systemctl's complaint means."""
    said = safe_text(" ".join(text.split()), 300)
    lowered = said.lower()
    if "command not found" in lowered:
        what = "no systemd on this host (systemctl not found)"
        return SourceTrouble(what, _NEEDS_SYSTEMD, SourceStatus.ABSENT)
    if "not been booted with systemd" in lowered:
        what = "this host was not booted with systemd (a container?)"
        return SourceTrouble(what, _NEEDS_SYSTEMD, SourceStatus.ABSENT)
    if "failed to connect to" in lowered or "$dbus_session_bus_address" in lowered:
        return SourceTrouble(
            f"the service manager does not answer: {said}",
            "a user's unit needs `loginctl enable-linger USER` on the host",
        )
    if "permission denied" in lowered or "access denied" in lowered:
        return SourceTrouble(
            f"not allowed to ask the service manager: {said}",
            "the user that ddtui logs in as needs read access to the system bus",
        )
    return SourceTrouble(f"systemctl: {said}" if said else "systemctl gave no answer")


class UnitCollector:
    """The unit's state: each change, and a sign of life."""

    def __init__(
        self, settings: HostSettings, engine: Engine, observed: Observed, context: Context
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._observed = observed
        self._context = context
        self._last: UnitStatus | None = None
        self._starts = Starts()
        self._emitted_at = 0.0

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.UNIT, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._work(host, emit, report), self._context.nudge)

    async def _work(self, host: Host, emit: Emit, report: Report) -> None:
        if self._observed.unit_name is None:
            await self._find(host)
        await self._watch(host, emit, report)

    async def _find(self, host: Host) -> None:
        scope = self._settings.scope
        try:
            found = await find_units(host, self._engine, scope)
        except NoServiceManager as exc:
            raise exc.trouble from exc
        except HostError as exc:
            raise SourceTrouble(f"cannot list the services: {exc.what}", exc.remedy) from exc
        if not found:
            where = "user services" if scope == "user" else "services"
            raise SourceTrouble(
                f"none of the host's {where} starts {self._engine.name}",
                f"name the unit: `ddtui init {host.name}`",
                SourceStatus.ABSENT,
            )
        self._observed.found_unit(found[0].name)

    async def _watch(self, host: Host, emit: Emit, report: Report) -> None:
        name = self._observed.unit_name or ""
        frames = Frames()
        last: tuple[Frame, UnitStatus] | None = None
        self._starts.interrupted()
        async with (
            host.stream(UNIT, self._settings.scope, name, ",".join(UNIT_PROPERTIES)) as stream,
            lines_of(stream) as lines,
        ):
            while (batch := await lines.batch(SILENCE_LIMIT)) is not None:
                if not batch:
                    raise SourceTrouble("the host said nothing about the unit: started anew")
                for raw in batch:
                    frame = frames.add(raw.decode("utf-8", "replace"))
                    if frame is None:
                        continue
                    if last is None or frame is not last[0]:
                        last = frame, status_of(name, frame, self._starts)
                    self._take(last[1], emit, report, self._context.clock)
                if self._observed.unit_name != name:
                    raise Restart
            errors = stream.stderr_tail.strip()
        raise SourceTrouble(f"the program that watches the unit ended: {errors}".rstrip(": "))

    def _take(self, unit: UnitStatus, emit: Emit, report: Report, clock: Clock) -> None:
        at = clock()
        if unit != self._last or at - self._emitted_at >= SIGN_OF_LIFE or at < self._emitted_at:
            self._last, self._emitted_at = unit, at
            emit(UnitSample(at, SOURCE, unit))
        if unit.load_state == "not-found" and self._settings.unit is None:
            self._observed.found_unit(None)  # the one that was found is gone: look again
            return
        if unit.load_state == "not-found":
            report(
                SourceStatus.ABSENT,
                f"the host has no unit {unit.name}",
                "see `ddtui init` for the host's engine units, or `systemctl list-unit-files`",
            )
        else:
            report.live("" if self._settings.unit else f"found {unit.name}")
