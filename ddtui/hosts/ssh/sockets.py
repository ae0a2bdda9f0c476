"""Sockets for a connection: TCP to a name, or the ends of a ProxyCommand."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from ddtui.hosts.base import LinkDown
from ddtui.hosts.ssh.failures import unreachable
from ddtui.hosts.ssh.target import SshTarget
from ddtui.hosts.streams import capture

_TRY_AGAIN_AFTER = 3.0
"""Seconds for one attempt at one address.

The kernel repeats a lost first packet after 1, 3, 7, ... s. A new attempt every 3 s keeps those
gaps short, so that a link that comes back is noticed soon; the caller's timeout ends the attempts.
"""

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]


async def open_tcp(target: SshTarget) -> socket.socket:
    """Connect, address by address. Raises LinkDown, but on silence it goes on trying."""
    try:
        infos = await _addresses(target.host, target.port, target.address_family)
    except OSError as exc:
        raise unreachable(exc, target.host, target.address) from exc
    while True:
        failure: LinkDown | None = None
        silent = False
        for family, kind, protocol, _, address in infos:
            try:
                return await _connect(family, kind, protocol, address, target.bind_address)
            except TimeoutError:
                silent = True
            except OSError as exc:
                at = (
                    f"[{address[0]}]:{address[1]}"
                    if ":" in address[0]
                    else f"{address[0]}:{address[1]}"
                )
                failure = unreachable(exc, target.host, at)
        if failure and not silent:
            raise failure


async def _connect(
    family: int, kind: int, protocol: int, address: tuple[object, ...], bind_address: str
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        if bind_address:
            sock.bind((bind_address, 0))
        async with asyncio.timeout(_TRY_AGAIN_AFTER):
            await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def _addresses(host: str, port: int, family: int) -> list[AddressInfo]:
    """Look a name up in a thread that nobody waits for: a dead resolver must not delay quitting."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[AddressInfo]] = loop.create_future()

    def settle(infos: list[AddressInfo] | None, failure: OSError | None) -> None:
        if answer.done():
            return
        if infos is not None:
            answer.set_result(infos)
        elif failure is not None:
            answer.set_exception(failure)

    def look_up() -> None:
        infos: list[AddressInfo] | None = None
        failure: OSError | None = None
        try:
            infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)  # type: ignore[assignment]
        except UnicodeError:
            failure = socket.gaierror(socket.EAI_NONAME, f"not a host name: {host}")
        except OSError as exc:
            failure = exc
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, infos, failure)

    threading.Thread(target=look_up, name="look-up", daemon=True).start()
    return await answer


class ProxyCommand:
    """A command whose standard input and output carry the connection."""

    def __init__(self, process: Process, stderr: asyncio.Task[bytes]) -> None:
        self._process = process
        self._stderr = stderr

    @classmethod
    async def start(cls, command: str) -> tuple[ProxyCommand, socket.socket]:
        """Start it, and return it with our end of the connection."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", f"exec {command}"),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=PIPE,
                start_new_session=True,  # no terminal that it could ask for a password
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        reader = process.stderr or asyncio.StreamReader()
        return cls(process, asyncio.create_task(capture(reader.read, 4096))), ours

    async def failure(self) -> str:
        """The last line that it wrote on standard error, or its exit status."""
        with suppress(TimeoutError):  # it is still running: it may have said something nevertheless
            async with asyncio.timeout(0.5):
                said = await asyncio.shield(self._stderr)
                status = await self._process.wait()
                lines = said.decode(errors="replace").strip().splitlines()
                return lines[-1] if lines else f"it ended with status {status}"
        return ""

    async def stop(self) -> None:
        """End it and whatever it started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        self._stderr.cancel()
        await asyncio.gather(self._stderr, return_exceptions=True)
