"""A live SSH connection: programs on it, and ports of the host through it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import cast

import asyncssh

from ddtui.hosts.base import (
    Completed,
    HostError,
    LinkDown,
    Port,
    Program,
    ProgramTimeout,
    Receiver,
)
from ddtui.hosts.command import command_line
from ddtui.hosts.ssh import failures
from ddtui.hosts.ssh.login import Login
from ddtui.hosts.ssh.ports import ChannelPort
from ddtui.hosts.streams import Read, RunningProgram, attended, behind, capture, exit_status

_MOST_AT_ONCE = 3
"""Short programs at once: sshd allows 10 sessions a connection, and streams need theirs."""
_CHANNEL_PATIENCE = (0.2, 0.5, 1.0, 2.0)
"""Seconds between the tries to get a session that sshd refuses."""

_BEGIN = "@ddtui begins\n"
"""Printed before a program where start-up files of the account's shell print as well."""

Process = asyncssh.SSHClientProcess[bytes]


class Connection:
    """One login's channels. It ends once; the supervisor then makes another."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._ssh = login.leg.connection
        self._target = login.leg.target
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._dropped = ""
        self.is_talkative = False
        """Whether start-up files of the account's shell print: what they say is no program's."""

    @property
    def summary(self) -> str:
        """Where it leads, in words."""
        hops = [leg.name for leg in self._target.legs()][:-1]
        via = f" via {', '.join(hops)}" if hops else ""
        return f"{self._target.username}@{self._target.address}{via}"

    async def wait_lost(self) -> str:
        """Return when the connection is gone: why, in words."""
        await asyncio.wait([self._login.leg.lost])
        return self.reason()

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone."""
        return self._login.leg.lost.done()

    def reason(self) -> str:
        """Why it is gone, in words."""
        exc = self._login.leg.lost.result() if self.is_lost else None
        return self._dropped or failures.lost(exc, self._target)

    async def close(self) -> None:
        """End every channel and the connection."""
        await self._login.close()

    async def drop(self, reason: str) -> None:
        """End the connection without a word to a host that may not hear it."""
        self._dropped = reason
        await self._login.close(abort=True)

    async def run(
        self, program: Program, args: tuple[str, ...], timeout: float, stdin: bytes
    ) -> Completed:
        """See Host.run."""
        async with self._slots:
            try:
                async with asyncio.timeout(timeout):
                    command = command_line(self._marked(program), args, timeout)
                    return await self._complete(command, stdin)
            except TimeoutError as exc:
                raise ProgramTimeout(f"{program.label} did not end within {timeout:g} s") from exc

    async def complete(self, program: Program) -> Completed:
        """Run a short program that is given nothing, however long it takes. Raises HostError."""
        return await self._complete(command_line(program, ()), b"")

    async def _complete(self, command: str, stdin: bytes) -> Completed:
        async with self._process(command) as process:
            with suppress(BrokenPipeError):  # it ended without reading its input
                process.stdin.write(stdin)
                process.stdin.write_eof()
            stdout, stderr = await asyncio.gather(
                capture(self._reads(process.stdout)), capture(self._reads(process.stderr))
            )
            return Completed(await self._finish(process), stdout, stderr)

    @asynccontextmanager
    async def stream(
        self, program: Program, args: tuple[str, ...]
    ) -> AsyncIterator[RunningProgram]:
        """See Host.stream."""
        async with self._process(command_line(self._marked(program), args)) as process:
            running = RunningProgram(
                self._reads(process.stdout),
                self._reads(process.stderr),
                lambda: self._finish(process),
            )
            async with attended(running, process.stdin.write):
                yield running

    def _marked(self, program: Program) -> Program:
        """The program, which says where its own output begins if that must be told."""
        if not self.is_talkative:
            return program
        say = f"printf {shlex.quote(_BEGIN)}"
        return Program(program.label, f"{say}; {say} >&2\n{program.script}")

    @asynccontextmanager
    async def _process(self, command: str) -> AsyncIterator[Process]:
        """A session channel that runs `command`; leaving ends its input and then the channel."""
        process = await self._open_session(command)
        try:
            yield process
        finally:
            with suppress(OSError):  # the connection is gone, and the channel with it
                process.stdin.write_eof()
            process.close()

    async def _open_session(self, command: str) -> Process:
        for pause in (*_CHANNEL_PATIENCE, None):
            try:
                with self._breaks():
                    return await self._ssh.create_process(command, encoding=None)
            except asyncssh.ChannelOpenError as exc:
                if pause is None:
                    raise HostError(
                        f"{self._target.name} refused another session: {exc.reason}",
                        "its sshd allows too few sessions a connection: ddtui needs 8 (MaxSessions "
                        "in sshd_config, 10 by default)",
                    ) from exc
                await asyncio.sleep(pause)
        raise LinkDown(self.reason())

    @contextmanager
    def _breaks(self) -> Iterator[None]:
        """Turn what a broken connection raises into LinkDown; a refused channel is none."""
        try:
            yield
        except (asyncssh.Error, OSError) as exc:
            if self.is_lost or not isinstance(exc, asyncssh.ChannelOpenError):
                raise LinkDown(self.reason()) from exc
            raise

    def _reads(self, reader: asyncssh.SSHReader[bytes]) -> Read:
        async def read(most: int) -> bytes:
            with self._breaks():
                return await reader.read(most)

        return behind(read, _BEGIN.encode()) if self.is_talkative else read

    async def _finish(self, process: Process) -> int:
        with self._breaks():
            await process.wait_closed()
        if process.returncode is None:
            if self.is_lost:
                raise LinkDown(self.reason())
            raise HostError(f"{self._target.name} closed the program's session without a status")
        return exit_status(process.returncode)

    async def open_port(
        self, host: str, port: int
    ) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
        """A connection from the host to `host:port`, inside this one.

        Raises asyncssh.ChannelOpenError when the host cannot or may not connect, LinkDown when the
        link is gone.
        """
        with self._breaks():
            return await self._ssh.open_connection(host, port, encoding=None)

    async def open_timed_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """A connection as `open_port` makes it, with a receiver. Raises LinkDown, PortClosed."""
        try:
            with self._breaks():
                _, session = await self._ssh.create_connection(
                    lambda: ChannelPort(receiver), address, port, encoding=None
                )
        except asyncssh.ChannelOpenError as exc:
            raise failures.port_refused(exc, address, port) from exc
        return cast(ChannelPort, session)
