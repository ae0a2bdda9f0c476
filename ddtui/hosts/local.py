"""The machine that ddtui itself runs on."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

import httpx

from ddtui.core.clock import Clock, system_clock
from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import (
    Completed,
    HostError,
    LinkDown,
    Port,
    Program,
    ProgramTimeout,
    Receiver,
)
from ddtui.hosts.command import argv
from ddtui.hosts.ports import DirectPorts
from ddtui.hosts.streams import RunningProgram, attended, capture, exit_status

_MOST_AT_ONCE = 3
_TERM_PATIENCE = 1.0
"""Seconds a program gets to end by itself before it is killed."""


@dataclass(frozen=True, eq=False)
class _Child:
    """A process with its three pipes."""

    process: Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    async def finish(self) -> int:
        return exit_status(await self.process.wait())


class LocalHost:
    """A Host without a network: programs are children of this process, the link is always live."""

    kind = Reach.LOCAL
    simulated = False

    def __init__(self, name: str = "local", *, clock: Clock = system_clock) -> None:
        self.name = name
        self._clock = clock
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._listeners: list[Callable[[LinkSample], None]] = []
        self._running: set[_Child] = set()
        self._link = LinkSample(at=clock(), source="local", state=LinkState.CONNECTING)

    @property
    def link(self) -> LinkSample:
        """See Host."""
        return self._link

    def on_link(self, listener: Callable[[LinkSample], None]) -> None:
        """See Host."""
        self._listeners.append(listener)

    def _publish(self, state: LinkState, detail: str) -> None:
        self._link = LinkSample(at=self._clock(), source="local", state=state, detail=detail)
        for listener in self._listeners:
            listener(self._link)

    async def start(self) -> None:
        """See Host."""
        self._publish(LinkState.LIVE, "this machine")

    async def close(self) -> None:
        """See Host."""
        await asyncio.gather(*(_end(child) for child in self._running))
        if self._link.state is not LinkState.CLOSED:
            self._publish(LinkState.CLOSED, "closed")

    async def wait_live(self) -> None:
        """Return at once; raises LinkDown before `start` and after `close`."""
        if self._link.state is not LinkState.LIVE:
            raise LinkDown(f"{self.name} is not started" if not self._link.detail else "closed")

    def retry_now(self) -> None:
        """Nothing to do: the link is never down."""

    @asynccontextmanager
    async def _started(self, words: list[str]) -> AsyncIterator[_Child]:
        """A child in a session of its own: no terminal, and one group to end."""
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except FileNotFoundError as exc:
            raise HostError(
                f"{words[0]} is not installed here",
                f"install {words[0]}: every program that ddtui runs on a host is a bash script",
            ) from exc
        except OSError as exc:
            raise HostError(f"cannot start {words[0]}: {exc.strerror}") from exc
        child = _Child(
            process,
            cast(asyncio.StreamWriter, process.stdin),
            cast(asyncio.StreamReader, process.stdout),
            cast(asyncio.StreamReader, process.stderr),
        )
        self._running.add(child)
        try:
            yield child
        finally:
            await _end(child)
            self._running.discard(child)

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        """See Host."""
        limit = timeout if shutil.which("timeout") else None
        try:
            async with (
                self._slots,
                asyncio.timeout(timeout),
                self._started(argv(program, args, limit)) as child,
            ):
                return await _complete(child, stdin)
        except TimeoutError as exc:
            raise ProgramTimeout(f"{program.label} did not end within {timeout:g} s") from exc

    @asynccontextmanager
    async def stream(self, program: Program, *args: str) -> AsyncIterator[RunningProgram]:
        """See Host."""
        async with self._started(argv(program, args)) as child:
            running = RunningProgram(child.stdout.read, child.stderr.read, child.finish)
            async with attended(running, child.stdin.write):
                yield running

    def transport(self) -> httpx.AsyncBaseTransport:
        """See Host. Proxies of the environment are not used: they lead away from this machine."""
        return httpx.AsyncHTTPTransport(trust_env=False)

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host."""
        return await DirectPorts().open_port(address, port, receiver)


async def _complete(child: _Child, stdin: bytes) -> Completed:
    child.stdin.write(stdin)
    child.stdin.close()
    stdout, stderr = await asyncio.gather(capture(child.stdout.read), capture(child.stderr.read))
    return Completed(await child.finish(), stdout, stderr)


async def _end(child: _Child) -> None:
    """End a child and what it started: by the end of its input, else by signals to its group."""
    process = child.process
    child.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # all of the group have ended
            os.killpg(process.pid, number)
        with suppress(TimeoutError):  # deaf to it: next comes a signal that nothing is deaf to
            async with asyncio.timeout(_TERM_PATIENCE):
                await process.wait()
                if not _group_lives(process.pid):
                    return


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so when only a zombie is left
        return False
    return True
