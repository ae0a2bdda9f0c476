"""The SSH server of the simulated host: programs by their label, and HTTP to the engine's port.

It listens on loopback only, with a host key made at each start, and lets in one client key, made at
each start too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncssh

from ddtui.demo.http import serve_connection
from ddtui.demo.machine import Machine
from ddtui.demo.programs import run_program
from ddtui.demo.routes import Routes

USERNAME = "ops"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_HttpSession = Callable[["asyncssh.SSHReader[bytes]", "asyncssh.SSHWriter[bytes]"], Awaitable[None]]


class DemoServer:
    """Serves one Machine over SSH on 127.0.0.1."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.client_key = asyncssh.generate_private_key("ssh-ed25519", comment="ddtui demo")
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.port = 0
        self._acceptor: asyncssh.SSHAcceptor | None = None

    async def start(self) -> None:
        """Listen; `port` says where."""
        public = self.client_key.export_public_key().decode()
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            0,
            config=None,
            server_factory=lambda: _Guard(self),
            server_host_keys=[self.host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(public),
            process_factory=self._process,
            encoding=None,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            agent_forwarding=False,
            x11_forwarding=False,
            allow_pty=False,
        )
        self.port = self._acceptor.get_port()

    async def close(self) -> None:
        """End every connection and stop listening."""
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None
        connections = list(self.connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()

    async def _process(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        await run_program(self.machine, process)

    def http_session(self, port: int, client: str) -> _HttpSession:
        """What answers connections to a port. Raises ChannelOpenError when nobody listens."""
        engine = self.machine.engine_on(port)
        if engine is None:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "Connection refused")
        routes = Routes(engine)

        async def answer(
            reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]
        ) -> None:
            serving = asyncio.create_task(serve_connection(reader, writer, routes, client))
            ended = asyncio.create_task(engine.wait_ended())
            try:
                await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (serving, ended):
                    task.cancel()
                await asyncio.gather(serving, ended, return_exceptions=True)

        return answer


class _Guard(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, server: DemoServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._server.connections.add(conn)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._connection is not None:
            self._server.connections.discard(self._connection)

    def connection_requested(
        self, dest_host: str, dest_port: int, _orig_host: str, orig_port: int
    ) -> _HttpSession:
        if dest_host not in _LOOPBACK:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_CONNECT_FAILED, "Name or service not known"
            )
        return self._server.http_session(dest_port, f"127.0.0.1:{orig_port or 40000}")
