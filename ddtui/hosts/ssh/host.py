"""A machine reached by SSH."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from ddtui.core.clock import Clock, system_clock
from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample
from ddtui.hosts.base import (
    Completed,
    HostError,
    HostKeyUnknown,
    Port,
    Program,
    Receiver,
)
from ddtui.hosts.ssh.connection import Connection
from ddtui.hosts.ssh.http import SshTransport
from ddtui.hosts.ssh.known_hosts import accept_host_key
from ddtui.hosts.ssh.login import log_in
from ddtui.hosts.ssh.probe import probe
from ddtui.hosts.ssh.resolve import resolve
from ddtui.hosts.ssh.supervisor import Supervisor
from ddtui.hosts.ssh.target import SshTarget
from ddtui.hosts.streams import RunningProgram


class SshHost:
    """A Host over a supervised SSH connection.

    `target` is where it leads, or a coroutine function that says so before every try; without one,
    OpenSSH resolves `name` (with `ssh_config` in place of its own files when given), anew every
    time, so that a changed configuration counts at the next try.
    """

    def __init__(
        self,
        name: str,
        target: SshTarget | Callable[[], Awaitable[SshTarget]] | None = None,
        *,
        ssh_config: Path | None = None,
        kind: Reach = Reach.SSH,
        simulated: bool = False,
        clock: Clock = system_clock,
        monotonic: Clock = time.monotonic,
    ) -> None:
        self.name = name
        self.kind = kind
        self.simulated = simulated
        self._target = target
        self._ssh_config = ssh_config
        self._supervisor = Supervisor(
            self._connect, source=kind.value, clock=clock, monotonic=monotonic
        )

    async def _connect(self) -> Connection:
        if self._target is None:
            target = await resolve(self.name, ssh_config=self._ssh_config)
        elif isinstance(self._target, SshTarget):
            target = self._target
        else:
            target = await self._target()
        connection = Connection(await log_in(target))
        try:
            await probe(connection, target)
        except BaseException as exc:
            await connection.drop(str(exc))
            raise
        return connection

    @property
    def link(self) -> LinkSample:
        """See Host."""
        return self._supervisor.link

    def on_link(self, listener: Callable[[LinkSample], None]) -> None:
        """See Host."""
        self._supervisor.on_link(listener)

    async def start(self) -> None:
        """See Host."""
        self._supervisor.start()

    async def close(self) -> None:
        """See Host."""
        await self._supervisor.close()

    async def wait_live(self) -> None:
        """See Host."""
        await self._supervisor.wait_live()

    def retry_now(self) -> None:
        """See Host."""
        self._supervisor.retry_now()

    @property
    def pending_key(self) -> HostKeyUnknown | None:
        """The host key that waits for the operator's word; None when none does."""
        refusal = self._supervisor.refusal
        return refusal if isinstance(refusal, HostKeyUnknown) else None

    def accept_host_key(self, fingerprint: str) -> None:
        """Record the pending host key, whose `fingerprint` the operator has accepted, and go on.

        Raises HostError when another key, or none, is pending by now, or it cannot be recorded.
        """
        pending = self.pending_key
        if pending is None or pending.fingerprint != fingerprint:
            raise HostError("no host key with this fingerprint waits to be accepted")
        accept_host_key(pending)
        self.retry_now()

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        """See Host."""
        return await self._supervisor.live().run(program, args, timeout, stdin)

    @asynccontextmanager
    async def stream(self, program: Program, *args: str) -> AsyncIterator[RunningProgram]:
        """See Host."""
        async with self._supervisor.live().stream(program, args) as running:
            yield running

    def transport(self) -> httpx.AsyncBaseTransport:
        """See Host."""
        return SshTransport(self._supervisor.live)

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host."""
        return await self._supervisor.live().open_timed_port(address, port, receiver)
