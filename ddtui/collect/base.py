"""What all collectors share: how they live, fail and try again.

A collector's module holds how its source is asked and understood. Waiting for the link, backing
off, and saying what is wrong is done here, once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from ddtui.core.clock import Clock, system_clock
from ddtui.core.redact import safe_text
from ddtui.core.samples import AnySample, Collector, LinkState, SourceSample, SourceStatus
from ddtui.hosts.base import Host, HostError, LinkDown, LinkRefused, ProgramStream

log = logging.getLogger(__name__)

Emit = Callable[[AnySample], None]

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 30.0
LINK_POLL = 0.25
"""Seconds between two looks at a link that is refused or has just broken."""
DETAIL_LIMIT = 400


class SourceCollector(Protocol):
    """One source of samples."""

    async def run(self, host: Host, emit: Emit) -> None:
        """Collect until cancelled. Raises nothing but CancelledError."""
        ...


class SourceTrouble(Exception):
    """The source does not give what it should: what is wrong, and what to do about it.

    `pauses` are the shortest and the longest seconds before the next try where the usual ones are
    too short.
    """

    def __init__(
        self,
        detail: str,
        remedy: str = "",
        status: SourceStatus = SourceStatus.FAILED,
        *,
        pauses: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy
        self.status = status
        self.pauses = pauses


class Restart(Exception):
    """The collector wants to begin anew at once (its parameters changed)."""


class Report:
    """Says where a source stands; only changes are emitted."""

    def __init__(self, collector: Collector, source: str, emit: Emit, clock: Clock) -> None:
        self._collector = collector
        self._emit = emit
        self._clock = clock
        self._last: tuple[SourceStatus, str, str] | None = None
        self.source = source

    def __call__(self, status: SourceStatus, detail: str = "", remedy: str = "") -> None:
        """Emit the status, unless it is the one that was emitted last."""
        state = (status, safe_text(detail, DETAIL_LIMIT), safe_text(remedy, DETAIL_LIMIT))
        if state != self._last:
            self._last = state
            self._emit(SourceSample(self._clock(), self.source, self._collector, *state))

    @property
    def status(self) -> SourceStatus | None:
        """The status emitted last."""
        return self._last[0] if self._last is not None else None

    def live(self, detail: str = "") -> None:
        """The source gives what it should."""
        self(SourceStatus.LIVE, detail)


class Nudge:
    """Ends the waits of every collector at once: the operator wants a try now."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        """End all present waits."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait; True when it was cut short."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


async def wait_live(host: Host) -> None:
    """Return once the link is live, however long that takes and whatever the operator must do."""
    while True:
        try:
            await host.wait_live()
        except (LinkRefused, LinkDown):
            # Told by the link's own samples. It may become live when the operator acts.
            await asyncio.sleep(LINK_POLL)
        else:
            return


async def supervise(
    host: Host,
    report: Report,
    work: Callable[[], Awaitable[None]],
    nudge: Nudge,
    *,
    longest: float = LONGEST_BACKOFF,
) -> None:
    """Run `work` again and again, as long as this task lives.

    A broken link is waited for; every other end of `work` is reported and followed by a pause that
    doubles from FIRST_BACKOFF to `longest` seconds, until the source has been live again.
    """
    backoff = FIRST_BACKOFF
    while True:
        await wait_live(host)
        if report.status is None:
            report(SourceStatus.STARTING)
        try:
            await work()
            trouble = SourceTrouble("it ended")
        except LinkDown:
            await asyncio.sleep(LINK_POLL)
            continue
        except Restart:
            continue
        except SourceTrouble as exc:
            trouble = exc
        except HostError as exc:
            trouble = SourceTrouble(exc.what, exc.remedy)
        except Exception as exc:  # our own mistake must not take the other sources along
            log.exception("collector of %s", report.source)
            trouble = SourceTrouble(
                f"{type(exc).__name__}: {exc}", "this is a fault in ddtui: see its log file"
            )
        if host.link.state is not LinkState.LIVE:
            continue
        if report.status is SourceStatus.LIVE:
            backoff = FIRST_BACKOFF
        report(trouble.status, trouble.detail, trouble.remedy)
        shortest, most = trouble.pauses or (FIRST_BACKOFF, longest)
        pause = min(max(backoff, shortest), most)
        backoff = FIRST_BACKOFF if await nudge.wait(pause) else min(most, pause * 2)


class Lines:
    """Lines of a running program in batches, readable with a time-out that loses nothing."""

    def __init__(self, stream: ProgramStream, most: int) -> None:
        self._stream = stream
        self._most = most
        self._held: list[bytes] = []
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None

    async def pump(self) -> None:
        """Read until the end. Waits when `most` lines have not been taken."""
        try:
            async for line in self._stream.lines():
                self._held.append(line)
                self._arrived.set()
                if len(self._held) >= self._most:
                    self._taken.clear()
                    await self._taken.wait()
        except (HostError, OSError) as exc:
            self._error = exc
        finally:
            self._ended = True
            self._arrived.set()

    async def batch(self, timeout: float) -> list[bytes] | None:
        """What has come: at least a line, or nothing after `timeout` seconds; None at the end.

        Raises LinkDown when the link broke.
        """
        if not self._held and not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
        held, self._held = self._held, []
        self._taken.set()
        if not self._ended:
            self._arrived.clear()
        if held or not self._ended:
            return held
        if self._error is not None:
            raise self._error
        return None


@asynccontextmanager
async def lines_of(stream: ProgramStream, most: int = 2000) -> AsyncIterator[Lines]:
    """Read a program's lines beside the caller, until the context is left."""
    lines = Lines(stream, most)
    task = asyncio.create_task(lines.pump())
    try:
        yield lines
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Context:
    """What a collector is given beside its host."""

    def __init__(self, clock: Clock = system_clock, nudge: Nudge | None = None) -> None:
        self.clock = clock
        self.nudge = nudge or Nudge()
