"""Where `ddtui diagnose` takes its lines from: a stream of bytes, or a host."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO

import msgspec

from ddtui.app.reaching import Overrides, engine_for, host_for, settings_for
from ddtui.cli.context import no_unit
from ddtui.cli.first_contact import reach
from ddtui.collect.base import SourceTrouble, lines_of
from ddtui.collect.journal_entries import JournalReader
from ddtui.collect.programs import (
    JOURNAL,
    JOURNAL_INVOCATION,
    KERNEL,
    UNIT,
    UNIT_PROPERTIES,
)
from ddtui.collect.saved_log import NotALog, SavedLog
from ddtui.collect.settings import HostSettings
from ddtui.collect.unit import Frames, find_units, status_of
from ddtui.collect.unit_older import Starts
from ddtui.config.hosts import HostTarget
from ddtui.core.diagnosis import LogExamination
from ddtui.core.engine import Engine, LogDialect
from ddtui.core.examination import Diagnosis
from ddtui.core.kernel_words import KernelLine
from ddtui.core.log_wrapping import Wrapping
from ddtui.core.samples import JournalLine, UnitStatus
from ddtui.engines import dialect_of_log
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Host, HostError, LinkDown, Program

LOOKED_AT = 20_000
"""Lines of a saved log in which the engine must be recognized."""
FIRST_LINES, LAST_LINES = 4_000, 20_000
"""Entries of an invocation that are read from a host: its beginning and its end."""
OLD_LINES = 5_000
"""Entries of a unit that are read where its invocation is not known."""
PATIENCE = 20.0
QUIET = 2.0
"""Seconds without a line after which what a follower had to say at first is complete."""
LISTENED = 30.0
"""Seconds after which a follower that never falls quiet is listened to no more."""
KERNEL_LINES = 200
_REVERSED = 3
"""Steps back in time, without one forward, after which a log stands upside down."""
_ENGINE_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z_]+\d+)*\] ")
"""What begins each line of SGLang's log."""
_SPOKEN = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\([A-Za-z][\w.-]* pid=\d+\)|(?:[A-Z]+:? )?[A-Z]+ \d\d-\d\d "
    r"|\[aiter\] |(?:Prefill|Decode) batch|.{0,80}\.py:\d+: \w*Warning"
)
"""How lines of engines begin; they may be bare where they were logged otherwise."""


class Diagnosed(msgspec.Struct, frozen=True):
    """A diagnosis with where it comes from."""

    diagnosis: Diagnosis
    source: str
    before: Diagnosis | None = None
    """Of the start before it, in the same log."""
    remarks: tuple[str, ...] = ()


def of_stream(stream: IO[bytes], name: str, now: float, unit: str = "") -> Diagnosed:
    """Diagnose a saved log. `now`: Unix seconds. Raises NotALog, OSError."""
    log = SavedLog(stream, now=now, unit=unit)
    lines = log.lines()
    head: list[JournalLine] = []
    dialect = None
    for line in itertools.islice(lines, LOOKED_AT):
        head.append(line)
        dialect = dialect_of_log([line.text]) if not line.from_manager else None
        if dialect is not None:
            log.settle_unit()
            break
    engine = dialect or SGLANG
    examination = LogExamination(engine)
    forms, order = _Forms(engine), _Order()
    for line in itertools.chain(_drained(head), lines):
        forms.look_at(line.text)
        order.look_at(line.stamp)
        examination.take(line)
    if order.is_reversed:
        raise NotALog(
            "its newest lines come first",
            "turn it round: `tac FILE | ddtui diagnose -`, or leave out journalctl's -r",
        )
    result = examination.conclude(kernel=log.kernel())
    remarks: tuple[str, ...] = ()
    if log.cut:
        remarks = (
            f"its compressed data is {log.cut}: read as far as it goes, {log.lines_read} lines;"
            " what comes after is not known: copy it once more, whole",
        )
    if forms.foreign:
        form = f"its lines have a form that is not known: {forms.foreign[:160]}"
        remarks = (*remarks, form)
        if not result.failed:
            raise NotALog(form, "cut off what stands before the engine's own `[date time]`")
    is_log = dialect is not None and forms.is_log
    if not is_log and not result.failed and len(result.phases) <= 1 and not result.ready:
        raise NotALog(
            f"none of its {log.lines_read} lines is from an engine's log"
            + (f" (its compressed data is {log.cut})" if log.cut else ""),
            "give the output of `journalctl -u UNIT`, or the engine's own",
        )
    if dialect is None:
        result = msgspec.structs.replace(result, engine="")
    return Diagnosed(result, f"{name} ({log.lines_read} lines)", examination.before, remarks)


class _Forms:
    """Whether the engine's lines stand where they are looked for: at the beginning of a line."""

    def __init__(self, engine: LogDialect) -> None:
        self._engine = engine
        self._understood = False
        self._foreign = ""
        self.is_log = False
        """Whether a line was written by the engine, not about it: metrics and help name it too."""

    def look_at(self, text: str) -> None:
        if self._understood:
            return
        if not self.is_log:
            self.is_log = _SPOKEN.match(text) is not None or self._engine.begins_run(text)
        stamp = _ENGINE_STAMP.search(text[:400])
        if stamp is not None:
            self._understood = stamp.start() == 0
            self._foreign = self._foreign or text

    @property
    def foreign(self) -> str:
        """A line that has something else before the engine's own stamp, if all of them have."""
        return "" if self._understood else self._foreign


class _Order:
    """Whether the lines stand from the newest to the oldest."""

    def __init__(self) -> None:
        self._last = 0.0
        self._later = 0
        self._earlier = 0

    def look_at(self, stamp: float) -> None:
        self._later += stamp > self._last > 0
        self._earlier += 0 < stamp < self._last
        self._last = stamp or self._last

    @property
    def is_reversed(self) -> bool:
        """Lines of several processes may pass one another; all of a log does not."""
        return self._earlier >= _REVERSED and self._later == 0


def _drained(head: list[JournalLine]) -> Iterator[JournalLine]:
    """The lines kept so far, each given up when it has been taken."""
    head.reverse()
    while head:
        yield head.pop()


async def of_host(target: HostTarget, overrides: Overrides) -> Diagnosed:
    """Diagnose the last start of the unit on a host. Raises HostError, ConfigError, VerbFailed."""
    engine = engine_for(target)
    settings = settings_for(target, overrides)
    host = await host_for(target, overrides.scenario)
    try:
        await host.start()
        if not await reach(host, ask=False):
            raise LinkDown(host.link.detail or f"{target.name} cannot be reached", host.link.remedy)
        return await _on_host(host, settings, engine)
    finally:
        await host.close()


async def _on_host(host: Host, settings: HostSettings, engine: Engine) -> Diagnosed:
    name = settings.unit or await _find(host, settings, engine)
    unit = await _unit(host, settings.scope, name)
    if unit.load_state == "not-found":
        raise no_unit(host.name, unit)
    examination = LogExamination(engine)
    _take(examination, await _invocation(host, settings.scope, unit))
    if not examination.current.heard:
        # journald does not know the invocation of a process that ended at once.
        examination = LogExamination(engine)
        _take(examination, await _recent(host, settings.scope, name, OLD_LINES))
    began = unit.started_at or unit.state_changed_at
    kernel, remarks = await _kernel(host, began)
    diagnosis = examination.conclude(unit, kernel)
    before = examination.before
    if before is None and unit.restarts and not (diagnosis.failed or diagnosis.ready):
        before = await _start_before(host, settings.scope, name, engine)
    if not examination.current.lines:
        remarks = (*remarks, f"the journal shows no line of {name}: see `ddtui doctor {host.name}`")
    source = f"{host.name}: {name}{' (simulated)' if host.simulated else ''}"
    return Diagnosed(diagnosis, source, before, remarks)


async def _find(host: Host, settings: HostSettings, engine: Engine) -> str:
    found = await find_units(host, engine, settings.scope)
    if not found:
        raise no_unit(host.name)
    return found[0].name


async def _unit(host: Host, scope: str, name: str) -> UnitStatus:
    frames = Frames()
    async with (
        host.stream(UNIT, scope, name, ",".join(UNIT_PROPERTIES)) as stream,
        lines_of(stream) as lines,
    ):
        while batch := await lines.batch(PATIENCE):
            for raw in batch:
                frame = frames.add(raw.decode("utf-8", "replace"))
                if frame is not None:
                    try:
                        return status_of(name, frame, Starts())
                    except SourceTrouble as trouble:
                        raise HostError(trouble.detail, trouble.remedy) from trouble
    raise HostError(f"the host said nothing about {name}")


async def _invocation(host: Host, scope: str, unit: UnitStatus) -> list[bytes]:
    """Entries of the unit's present or last invocation: all, or its beginning and its end."""
    if not unit.invocation:
        return []
    arguments = (scope, unit.name, unit.invocation)
    last = await _all(host, JOURNAL_INVOCATION, *arguments, str(LAST_LINES), "last")
    if len(last) < LAST_LINES:
        return last
    first = await _all(host, JOURNAL_INVOCATION, *arguments, str(FIRST_LINES), "first")
    known = set(last)
    return [*(line for line in first if line not in known), *last]


async def _recent(host: Host, scope: str, name: str, most: int) -> list[bytes]:
    return await _all(host, JOURNAL, scope, name, "", str(most))


async def _all(host: Host, program: Program, *arguments: str) -> list[bytes]:
    """What a program prints, until it ends or falls quiet.

    One that follows a unit which dies again and again never falls quiet.
    """
    entries: list[bytes] = []
    now = asyncio.get_running_loop().time
    async with host.stream(program, *arguments) as stream, lines_of(stream) as lines:
        until = now() + LISTENED
        while batch := await lines.batch(PATIENCE if not entries else QUIET):
            entries += batch
            if now() > until:
                break
    return entries


_UNIX = re.compile(r"(\d{9,11}\.\d{1,6}) ")
"""What `short-unix` puts before a line."""


async def _kernel(
    host: Host, began: float | None
) -> tuple[tuple[KernelLine, ...], tuple[str, ...]]:
    """Lines of the kernel since then, and remarks about what could not be read."""
    if began is None:
        return (), ()
    try:
        answer = await host.run(KERNEL, str(int(began)), str(KERNEL_LINES), timeout=PATIENCE)
    except HostError as error:
        return (), (f"the kernel's log was not read: {error.what}",)
    text = answer.stdout.decode("utf-8", "replace")
    return tuple(_kernel_line(line) for line in text.splitlines() if line.strip()), ()


def _kernel_line(text: str) -> KernelLine:
    stamp = _UNIX.match(text)
    return KernelLine(float(stamp[1]) if stamp is not None else 0.0, text)


async def _start_before(host: Host, scope: str, name: str, engine: Engine) -> Diagnosis | None:
    """In a crash loop: what the start before the present one came to."""
    examination = LogExamination(engine)
    with suppress(HostError):  # it is an extra
        _take(examination, await _recent(host, scope, name, OLD_LINES))
    return examination.before


def _take(examination: LogExamination, entries: Iterable[bytes]) -> None:
    wrapping = Wrapping()
    for entry in JournalReader().read(list(entries)).lines:
        for line in wrapping.lines(entry):
            examination.take(line)
