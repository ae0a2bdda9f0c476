"""Runs one program in the sandbox, bounded in time and output, and leaves nothing of it behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

_START_SECONDS = 10.0
"""Until the sandbox stands."""
_GONE_SECONDS = 20.0
"""Until the kernel has ended what was killed; a process in an endless driver call takes longer."""
_MOST_ERRORS = 4096

_T = TypeVar("_T")


class SandboxStuck(Exception):
    """Something killed does not end: nothing more may be started beside it."""


class SandboxFailed(Exception):
    """The sandbox could not be set up; the message says what it reported."""


@dataclass(frozen=True)
class Command:
    """How a confined interpreter is started."""

    argv: tuple[str, ...]
    """For bubblewrap without its `--info-fd` and `--seccomp`: they are put after the first word."""
    bubblewrap: bool
    filter_program: bytes
    uid: int | None
    """User (and group) to become first; None to stay."""


@dataclass(frozen=True)
class Ending:
    """How a confined program ended."""

    output: bytes
    errors: str
    """What came on its standard error, where that was asked for."""
    status: int | None
    """Exit status; negative, or 128 and more, after a signal. None if it was ended from here."""
    timed_out: bool = False
    flooded: bool = False
    """It wrote more than it may."""


async def run_confined(
    command: Command, given: bytes, *, seconds: float, most: int, errors: bool = False
) -> Ending:
    """Run `command` with `given` on its standard input, until everything of it is gone.

    Args:
        command: How to start it.
        given: Its standard input. Nothing untrusted runs before it has been read to its end.
        seconds: Longest time it may take; it is killed then.
        most: Bytes that it may write to standard output; it is killed when it writes more.
        errors: Keep the beginning of its standard error too.

    Raises:
        SandboxFailed: It could not be started.
        SandboxStuck: It was killed, and does not end.
    """
    async with _started(command, errors) as (process, inner):
        assert process.stdin is not None  # noqa: S101 - all three are asked for in _start
        assert process.stdout is not None  # noqa: S101
        output, said, timed_out, flooded = bytearray(), "", False, False
        try:
            async with asyncio.timeout(seconds):
                # A program that ends early does not read it all.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    process.stdin.write(given)
                    await process.stdin.drain()
                process.stdin.close()
                while chunk := await process.stdout.read(1 << 16):
                    output += chunk
                    if len(output) > most:
                        flooded = True
                        break
                if process.stderr is not None and not flooded:
                    said = (await process.stderr.read(_MOST_ERRORS)).decode(errors="replace")
                if not flooded:
                    await process.wait()
        except TimeoutError:
            timed_out = True
        status = process.returncode
        await _end(process, inner)
    return Ending(bytes(output[:most]), said, status, timed_out, flooded)


@contextlib.asynccontextmanager
async def _started(
    command: Command, errors: bool
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int | None]]:
    """The running process, and a pidfd of the first process inside; both are ended at the exit.

    Also when this task is cancelled: what runs must not outlive it.
    """
    (process, inner), cancelled = await _to_its_end(_stand(command, errors))
    try:
        if cancelled:
            raise asyncio.CancelledError
        yield process, inner
    finally:
        try:
            _, cancelled = await _to_its_end(_end(process, inner))
        finally:
            if inner is not None:
                os.close(inner)
    if cancelled:
        raise asyncio.CancelledError


async def _to_its_end(work: Coroutine[Any, Any, _T]) -> tuple[_T, bool]:
    """Do short work that must not be left half done; and whether this task was cancelled."""
    task, cancelled = asyncio.create_task(work), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled


async def _stand(command: Command, errors: bool) -> tuple[asyncio.subprocess.Process, int | None]:
    """Start the process, and find the first one inside.

    Until bubblewrap lets that one run, it would leave it behind when killed: so it is waited for.
    """
    process, information = await _start(command, errors)
    try:
        return process, None if information is None else await _inner(process, information)
    except BaseException:
        await _end(process, None)
        raise


async def _start(command: Command, errors: bool) -> tuple[asyncio.subprocess.Process, int | None]:
    argv, handed, ours = list(command.argv), [], None
    try:
        if command.bubblewrap:
            ours, information = os.pipe()
            handed.append(information)
            filtering, writing = os.pipe()
            handed.append(filtering)
            # It fits into the pipe, and is read once the sandbox stands.
            os.write(writing, command.filter_program)
            os.close(writing)
            argv[1:1] = ["--info-fd", str(information), "--seccomp", str(filtering)]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if errors else asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
            pass_fds=handed,
            user=command.uid,
            group=command.uid,
            extra_groups=None if command.uid is None else [],
        )
    except (OSError, ValueError) as error:
        if ours is not None:
            os.close(ours)
        raise SandboxFailed(f"{argv[0]} cannot be started: {error}") from error
    finally:
        for each in handed:
            os.close(each)
    return process, ours


async def _inner(process: asyncio.subprocess.Process, information: int) -> int | None:
    """A pidfd of bubblewrap's process inside; None where bubblewrap gave up.

    Its end is the end of all in the sandbox: it is the first process of a PID namespace.
    """
    try:
        async with asyncio.timeout(_START_SECONDS):
            told = await _read_to_end(information)
    except TimeoutError as late:
        raise SandboxFailed(f"no sandbox stands after {_START_SECONDS:.0f} s") from late
    if not told:
        return None
    pid = int(json.loads(told)["child-pid"])
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    # Only untrusted code could take long to end, and none has been given yet: so a number that was
    # used anew is possible here only after bubblewrap gave up, and is told by its parent.
    if _parent_of(pid) == process.pid:
        return pidfd
    os.close(pidfd)
    return None


def _parent_of(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name stands in parentheses, and may have some itself.
    return int(status.rpartition(")")[2].split()[1])


async def _read_to_end(descriptor: int) -> bytes:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        return await reader.read()
    finally:
        transport.close()


async def _end(process: asyncio.subprocess.Process, inner: int | None) -> None:
    """Kill both, and wait until they are gone; nothing happens to what is gone already."""
    if inner is not None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(inner, signal.SIGKILL)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    try:
        async with asyncio.timeout(_GONE_SECONDS):
            if inner is not None:
                await _gone(inner)
            # Reading to the end lets the process's transport close.
            for stream in (process.stdout, process.stderr):
                while stream is not None and await stream.read(1 << 16):
                    pass
            await process.wait()
    except TimeoutError as late:
        raise SandboxStuck(
            f"process {process.pid} was killed and has not ended after {_GONE_SECONDS:.0f} s"
        ) from late


async def _gone(pidfd: int) -> None:
    """Return once the process has ended; a pidfd becomes readable then."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
