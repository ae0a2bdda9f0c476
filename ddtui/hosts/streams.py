"""A running program's output as lines, whatever carries it: an SSH channel or a local pipe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

LINE_LIMIT = 1 << 20
"""Most bytes of a line; the rest of a longer one is dropped."""
OUTPUT_LIMIT = 8 << 20
"""Most bytes kept of a short program's output; the rest is read and dropped."""
STDERR_TAIL = 4096
HEARTBEAT_INTERVAL = 10.0
"""Seconds between two heartbeats; see `ddtui.collect.programs.HEARTBEAT_LIMIT`."""
CHUNK = 1 << 16

Read = Callable[[int], Awaitable[bytes]]
"""Reads up to so many bytes as soon as there are any; empty at the end."""


class LineSplitter:
    """Turns chunks of bytes into whole lines; what has no newline at the end is dropped."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newlines."""
        first, *rest = chunk.split(b"\n")
        self._held += first[: self._limit - len(self._held)]
        if not rest:
            return []
        lines = [bytes(self._held)]
        lines += [line[: self._limit] for line in rest[:-1]]
        self._held = bytearray(rest[-1][: self._limit])
        return lines


class RunningProgram:
    """A ProgramStream over two readers."""

    def __init__(self, stdout: Read, stderr: Read, finish: Callable[[], Awaitable[int]]) -> None:
        """`finish` waits for the program's end and returns its exit status."""
        self._stdout = stdout
        self._stderr = stderr
        self._finish = finish
        self._tail = bytearray()
        self._status: int | None = None

    async def lines(self) -> AsyncIterator[bytes]:
        """See ProgramStream."""
        splitter = LineSplitter()
        while chunk := await self._stdout(CHUNK):
            for line in splitter.feed(chunk):
                yield line
        self._status = await self._finish()

    @property
    def status(self) -> int | None:
        """See ProgramStream."""
        return self._status

    @property
    def stderr_tail(self) -> str:
        """See ProgramStream."""
        return self._tail.decode(errors="replace")

    async def keep_stderr(self) -> None:
        """Read standard error to its end: unread, it would block the program some time."""
        while chunk := await self._stderr(CHUNK):
            self._tail += chunk
            del self._tail[:-STDERR_TAIL]


async def capture(read: Read, limit: int = OUTPUT_LIMIT) -> bytes:
    """Everything up to the end, capped at `limit` bytes."""
    kept = bytearray()
    while chunk := await read(CHUNK):
        kept += chunk[: limit - len(kept)]
    return bytes(kept)


def behind(read: Read, mark: bytes) -> Read:
    """Reads what comes behind a mark; all of it where that never comes."""
    held = bytearray()
    seen = False

    async def more(most: int) -> bytes:
        nonlocal seen
        while not seen:
            chunk = await read(most)
            held.extend(chunk)
            del held[:-OUTPUT_LIMIT]
            _, found, rest = held.partition(mark)
            seen = bool(found) or not chunk
            if seen and (what := bytes(rest if found else held)):
                return what
        return await read(most)

    return more


@asynccontextmanager
async def attended(
    program: RunningProgram,
    write: Callable[[bytes], None],
    interval: float = HEARTBEAT_INTERVAL,
) -> AsyncIterator[RunningProgram]:
    """Send heartbeats and drain standard error for as long as the context lasts."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(interval)
            write(b"\n")

    tasks = [asyncio.create_task(beat()), asyncio.create_task(program.keep_stderr())]
    try:
        yield program
    finally:
        for task in tasks:
            task.cancel()
        # When the carrier breaks these fail as well; the lines' reader is told by its own read.
        await asyncio.gather(*tasks, return_exceptions=True)


def exit_status(returncode: int) -> int:
    """A shell's way to tell of a signal: 128 + its number, where Python says minus its number."""
    return returncode if returncode >= 0 else 128 - returncode
