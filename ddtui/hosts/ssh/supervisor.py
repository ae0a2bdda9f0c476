"""Keeps one connection alive, and stops trying where only a person can help.

CONNECTING ──▶ LIVE ──▶ RETRYING ──▶ CONNECTING        (1, 2, 4, ... 30 s between tries)
    ├──▶ RETRYING
    └──▶ REFUSED ──retry_now──▶ CONNECTING              (authentication, host key, configuration)
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ddtui.core.clock import Clock, system_clock
from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import HostError, LinkDown, LinkRefused
from ddtui.hosts.ssh.connection import Connection

LONGEST_PAUSE = 30.0
_SHORTEST_PAUSE = 1.0
_JITTER = 0.2
"""Pauses vary by this share, so that many clients do not come back to a host in one moment."""
_STEADY = 10.0
"""Seconds that a connection must live for its end not to count as one more failure in a row."""
_FLAPPING = 2
"""The failures in a row that count at most when connections come and go: a try every 2 s."""
_TICK = 2.0
_JUMP = 20.0
"""Seconds of standstill that are taken for sleep: no keepalive outlives it."""


class SleepDetector:
    """Notices that the computer, or this process, stood still."""

    def __init__(self, wall: Clock, monotonic: Clock) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._last = (wall(), monotonic())

    def slept(self, expected: float) -> float:
        """Seconds of standstill since the last call, where `expected` seconds were to pass; else 0.

        A suspended computer's monotonic clock stands still on Linux and macOS, a stopped process's
        does not: so both clocks are asked.
        """
        wall, monotonic = self._wall(), self._monotonic()
        ahead = max(wall - self._last[0], monotonic - self._last[1]) - expected
        self._last = (wall, monotonic)
        return ahead if ahead > _JUMP else 0.0


class Supervisor:
    """One host's link and its state."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        *,
        source: str = "ssh",
        clock: Clock = system_clock,
        monotonic: Clock = time.monotonic,
    ) -> None:
        """`connect` makes one try; it raises LinkDown, or LinkRefused when another is no use."""
        self._connect = connect
        self._source = source
        self._clock = clock
        self._monotonic = monotonic
        self._listeners: list[Callable[[LinkSample], None]] = []
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._attempt = 0
        self.refusal: LinkRefused | None = None
        """Why nothing is retried, while the state is REFUSED."""
        self.link = LinkSample(at=clock(), source=source, state=LinkState.CONNECTING)

    def on_link(self, listener: Callable[[LinkSample], None]) -> None:
        """See Host."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Begin. A second call changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"link:{self._source}")

    async def close(self) -> None:
        """End the connection and all trying."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.link.state is not LinkState.CLOSED:
            self._publish(LinkState.CLOSED, "closed")

    def retry_now(self) -> None:
        """End the present pause."""
        self._wake.set()

    def live(self) -> Connection:
        """The connection; raises LinkDown, or LinkRefused, when there is none."""
        if self._connection is not None:
            if self._connection.is_lost:  # just now: the state follows within this turn of the loop
                raise LinkDown(self._connection.reason())
            return self._connection
        if self.refusal is not None:
            raise self.refusal
        raise LinkDown(self.link.detail or "not connected yet", self.link.remedy)

    async def wait_live(self) -> None:
        """See Host."""
        while True:
            if self.refusal is not None:
                raise self.refusal
            if self.link.state is LinkState.CLOSED:
                raise LinkDown("closed")
            if self._connection is not None and not self._connection.is_lost:
                return
            await self._changed.wait()

    def _publish(
        self, state: LinkState, detail: str = "", remedy: str = "", retry_in: float | None = None
    ) -> None:
        now = self._clock()
        self.link = LinkSample(
            at=now,
            source=self._source,
            state=state,
            detail=detail,
            remedy=remedy,
            attempt=self._attempt,
            retry_at=None if retry_in is None else now + retry_in,
        )
        self._changed.set()
        self._changed = asyncio.Event()
        for listener in self._listeners:
            listener(self.link)

    async def _run(self) -> None:
        while True:
            self._attempt += 1
            # What failed before stays on the screen while the next try runs.
            self._publish(LinkState.CONNECTING, self.link.detail, self.link.remedy)
            self._wake.clear()
            began = self._monotonic()
            try:
                self._connection = await self._connect()
            except LinkRefused as exc:
                self.refusal = exc
                self._publish(LinkState.REFUSED, exc.what, exc.remedy)
                await self._wake.wait()
                self.refusal = None
            except HostError as exc:
                await self._pause(exc.what, exc.remedy, self._monotonic() - began)
            else:
                await self._pause(await self._live_through(self._connection))

    async def _live_through(self, connection: Connection) -> str:
        """Be live until the connection is gone; returns why."""
        began = self._monotonic()
        tries, self._attempt = self._attempt, 0
        self._publish(LinkState.LIVE, connection.summary)
        try:
            reason = await self._watch(connection)
        except asyncio.CancelledError:
            await connection.close()
            raise
        finally:
            self._connection = None
        await connection.drop(reason)  # its jump hosts and its ProxyCommand may still be there
        if self._monotonic() - began < _STEADY:
            self._attempt = min(tries, _FLAPPING)
        return reason

    async def _watch(self, connection: Connection) -> str:
        detector = SleepDetector(self._clock, self._monotonic)
        gone = asyncio.create_task(connection.wait_lost())
        try:
            while not gone.done():
                await asyncio.wait([gone], timeout=_TICK)
                if not gone.done() and (seconds := detector.slept(_TICK)):
                    await connection.drop(f"this computer stood still for {seconds:.0f} s")
            return await gone
        finally:
            gone.cancel()

    async def _pause(self, reason: str, remedy: str = "", taken: float = 0.0) -> None:
        """Wait before the next try; cut short by retry_now, and by waking from sleep.

        `taken` seconds, which the last try took, are part of the wait.
        """
        jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311
        every = _SHORTEST_PAUSE * 2.0 ** min(max(self._attempt - 1, 0), 10) * jitter
        pause = max(_SHORTEST_PAUSE * jitter, min(LONGEST_PAUSE, every) - taken)
        self._publish(LinkState.RETRYING, reason, remedy, pause)
        detector = SleepDetector(self._clock, self._monotonic)
        left = pause
        while left > 0 and not self._wake.is_set():
            step = min(left, _TICK)
            with suppress(TimeoutError):  # the usual case: nobody was in a hurry
                async with asyncio.timeout(step):
                    await self._wake.wait()
            if detector.slept(step):
                return
            left -= step
