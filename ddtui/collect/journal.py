"""The unit's journal: first the present invocation from its beginning, then whatever comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ddtui.collect.base import Context, Emit, Report, Restart, SourceTrouble, lines_of, supervise
from ddtui.collect.journal_entries import JournalReader
from ddtui.collect.observed import Observed
from ddtui.collect.programs import JOURNAL, JOURNAL_INVOCATION
from ddtui.collect.settings import HostSettings
from ddtui.core.samples import Collector, JournalLine, JournalSample, SourceStatus
from ddtui.hosts.base import Host, ProgramStream

log = logging.getLogger(__name__)

SOURCE = "journal"
MOST_LINES = 2000
"""Lines of one sample, and entries that may wait to be read."""
GATHERING = 0.05
"""Seconds between two samples at least, so that a flood comes in few of them."""
SLICE = 200
"""Entries that are read at a time, so that keys are answered in between."""
FIRST_LOOK = 0.3
LOOK = 1.0
"""Seconds between two looks at what journalctl says on its standard error."""
UNIT_PATIENCE = 5.0
"""Seconds that the unit's invocation is waited for at first."""
OLD_LINES = 200
"""Lines of the unit that are shown when it has no invocation."""

_RIGHTS = (
    "not allowed to read the unit's journal",
    "add the user to the group systemd-journal on the host and log in again: "
    "`sudo usermod -aG systemd-journal USER`",
)
_RIGHTS_SIGNS = ("insufficient permissions", "not seeing messages from other users")


class JournalCollector:
    """Lines of the unit's journal, each once, across reconnects."""

    def __init__(self, settings: HostSettings, observed: Observed, context: Context) -> None:
        self._settings = settings
        self._observed = observed
        self._context = context
        self._reader = JournalReader()
        self._unit = ""
        self._newer_than = 0.0
        self._emitted_at = 0.0

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.JOURNAL, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._work(host, emit, report), self._context.nudge)

    async def _work(self, host: Host, emit: Emit, report: Report) -> None:
        while self._observed.unit_name is None:
            report(SourceStatus.WAITING, "the unit has not been found yet")
            await self._observed.wait_change(UNIT_PATIENCE)
        if report.status is SourceStatus.WAITING:
            report(SourceStatus.STARTING)
        if self._observed.unit_name != self._unit:
            self._unit = self._observed.unit_name
            self._reader = JournalReader()
            self._newer_than = 0.0
        if not self._reader.cursor:
            await self._observed.wait_for(lambda: self._observed.unit is not None, UNIT_PATIENCE)
            await self._read_invocation(host, emit)
        await self._follow(host, emit, report)

    # ---- the present invocation -----------------------------------------------------------------

    async def _read_invocation(self, host: Host, emit: Emit) -> None:
        """Read the invocation's beginning and its last lines."""
        invocation = self._observed.invocation
        if not invocation:
            return
        most = self._settings.journal_lines
        last = await self._invocation(host, invocation, "last")
        first: list[bytes] = []
        if len(last) >= most:
            known = set(last)
            first = await self._invocation(host, invocation, "first")
            first = [line for line in first if line not in known]
        await self._emit(first, emit)
        if len(first) >= most:
            emit(self._gap(most, invocation))
        await self._emit(last, emit)

    async def _invocation(self, host: Host, invocation: str, end: str) -> list[bytes]:
        most = str(self._settings.journal_lines)
        answer = await host.run(
            JOURNAL_INVOCATION, self._settings.scope, self._unit, invocation, most, end, timeout=60
        )
        return [line for line in answer.stdout.split(b"\n") if line.startswith(b"{")]

    def _gap(self, most: int, invocation: str) -> JournalSample:
        text = (
            f"[ddtui] lines between the first and the last {most} of this start were not read:"
            " they are in the host's journal"
        )
        line = JournalLine(self._reader.stamp, text, invocation, from_manager=True)
        return JournalSample(self._context.clock(), SOURCE, (line,), self._reader.cursor)

    # ---- what comes -----------------------------------------------------------------------------

    async def _follow(self, host: Host, emit: Emit, report: Report) -> None:
        cursor = self._reader.cursor
        old = self._settings.journal_lines if self._observed.invocation or cursor else OLD_LINES
        async with (
            host.stream(JOURNAL, self._settings.scope, self._unit, cursor, str(old)) as stream,
            lines_of(stream, MOST_LINES) as lines,
        ):
            wait = FIRST_LOOK
            while (batch := await lines.batch(wait)) is not None:
                wait = LOOK
                if batch:
                    await self._emit(batch, emit)
                self._look(stream, report)
                if self._observed.unit_name != self._unit:
                    raise Restart
                await self._gather()
            status, errors = stream.status, " ".join(stream.stderr_tail.split())
        self._ended(status, errors)

    async def _gather(self) -> None:
        """Let lines come together when samples follow one another fast."""
        wait = self._emitted_at + GATHERING - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)

    def _look(self, stream: ProgramStream, report: Report) -> None:
        said = stream.stderr_tail
        limited = any(sign in said for sign in _RIGHTS_SIGNS)
        if not limited or self._settings.scope == "user":
            report.live()
        elif self._reader.cursor:
            report(SourceStatus.LIVE, "only this user's own lines may be read", _RIGHTS[1])
        else:
            report(SourceStatus.FAILED, *_RIGHTS)

    def _ended(self, status: int | None, errors: str) -> None:
        """Say why journalctl ended. Raises SourceTrouble, or Restart to resume in another way."""
        if "cursor" in errors.lower() and self._reader.cursor:
            log.warning("journalctl does not take the cursor: %s", errors)
            self._newer_than, self._reader.cursor = self._reader.stamp, ""
            raise Restart
        if any(sign in errors for sign in _RIGHTS_SIGNS):
            raise SourceTrouble(*_RIGHTS)
        if status == 127 or "not found" in errors:
            raise SourceTrouble(f"no journalctl on the host: {errors}", "", SourceStatus.ABSENT)
        raise SourceTrouble(f"journalctl ended with status {status}: {errors}".rstrip(": "))

    async def _emit(self, raw: Sequence[bytes], emit: Emit) -> None:
        for begin in range(0, len(raw), SLICE):
            batch = self._reader.read(raw[begin : begin + SLICE], newer_than=self._newer_than)
            for start in range(0, max(len(batch.lines), 1), MOST_LINES):
                lines = tuple(batch.lines[start : start + MOST_LINES])
                if lines or batch.suppressed:
                    emit(
                        JournalSample(
                            self._context.clock(), SOURCE, lines, batch.cursor, batch.suppressed
                        )
                    )
                    batch.suppressed = 0
            await asyncio.sleep(0)
        self._emitted_at = asyncio.get_running_loop().time()
