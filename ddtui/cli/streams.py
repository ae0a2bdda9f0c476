"""Standard streams that are closed, full, or have nobody at their other end any more."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import stat
import sys
from contextlib import suppress
from typing import IO, NamedTuple, TextIO

_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN}
"""What may be over by the next line, which is tried."""


class Lost(NamedTuple):
    """A text that could not be written."""

    gone: bool
    """Whether nobody is there to read it: a pipe without a reader, a terminal that was closed."""
    why: str


def complete() -> None:
    """Have every standard stream, also those that were closed before the start.

    Else Python has None for it, and the next file that is opened has its descriptor. A character
    that standard output has no code for is a question mark there, and no fault.
    """
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, _nothing(descriptor, mode))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _nothing(descriptor: int, mode: str) -> IO[str]:
    """A stream with nothing to read, and nobody to hear."""
    nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest descriptor that is free
    if nowhere == descriptor:
        os.set_inheritable(nowhere, True)  # programs that are started have it too
    return os.fdopen(nowhere, mode, encoding="utf-8")


def write(stream: TextIO, text: str) -> Lost | None:
    """Write a text at once. One that cannot be written is dropped, and told.

    A stream that nobody reads any more takes all that follows, for nobody.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        gone = error.errno == errno.EPIPE or (error.errno == errno.EIO and _is_terminal(stream))
        with suppress(OSError):  # what has failed once is given up
            _drop(stream, for_good=error.errno not in _PASSING)
        return Lost(gone, error.strerror or str(error))
    return None


def _is_terminal(stream: TextIO) -> bool:
    """Whether it is or was one: that is not told of one that was closed."""
    return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)


def _drop(stream: TextIO, *, for_good: bool) -> None:
    """Empty a stream's buffer into nothing, or each later line and the end fail of it again."""
    descriptor = stream.fileno()
    kept = None if for_good else os.dup(descriptor)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, descriptor)
        stream.flush()
        if kept is not None:
            os.dup2(kept, descriptor)
    finally:
        for each in (nowhere, kept):
            if each is not None:
                os.close(each)


async def typed_line() -> str:
    """A line typed on the terminal; empty where it has gone.

    No thread waits for it, so that Ctrl+C ends at once.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def readable() -> None:
        if line.done():
            return
        try:
            line.set_result(sys.stdin.readline())
        except OSError:
            line.set_result("")

    loop.add_reader(sys.stdin.fileno(), readable)
    try:
        return await line
    finally:
        loop.remove_reader(sys.stdin.fileno())
