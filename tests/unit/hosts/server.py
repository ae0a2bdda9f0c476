"""An SSH server inside the test process: real SSH, no machine behind it but this one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import asyncssh

from ddtui.hosts.ssh import SshTarget


class _Server(asyncssh.SSHServer):
    def __init__(self, lab: SshLab) -> None:
        self.lab = lab

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.lab.connections.append(conn)
        self.lab.open += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.lab.open -= 1

    def session_requested(self) -> bool | asyncssh.SSHServerProcess[bytes]:
        if self.lab.refuse_sessions:
            self.lab.refuse_sessions -= 1
            return False
        return asyncssh.SSHServerProcess(self.lab.run_command, None, 3, False)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        if not self.lab.forwarding:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed"
            )
        return True


async def _pump(
    reader: asyncio.StreamReader | asyncssh.SSHReader[bytes],
    writer: asyncio.StreamWriter | asyncssh.SSHWriter[bytes],
) -> None:
    """Copy until either side is gone."""
    with suppress(OSError, asyncssh.Error):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    if isinstance(writer, asyncio.StreamWriter):
        writer.close()


@dataclass
class SshLab:
    """The server, its keys, and what it has seen."""

    host_key: asyncssh.SSHKey = field(
        default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519")
    )
    client_key: asyncssh.SSHKey = field(
        default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519")
    )
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    forwarding: bool = True
    refuse_sessions: int = 0
    """So many sessions are refused before the next one is accepted."""
    host_certificate: asyncssh.SSHCertificate | None = None
    open: int = 0
    """Connections that are there now."""
    shell: str = 'eval "$1"'
    """How the account's login shell treats a command."""
    commands: list[str] = field(default_factory=list)
    children: list[asyncio.subprocess.Process] = field(default_factory=list)
    running: list[asyncio.Task[None]] = field(default_factory=list)
    acceptor: asyncssh.SSHAcceptor | None = None
    port: int = 0

    async def listen(self) -> None:
        keys = asyncssh.import_authorized_keys(
            self.client_key.export_public_key("openssh").decode()
        )
        self.acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            config=None,
            server_host_keys=[(self.host_key, self.host_certificate)],
            authorized_client_keys=keys,
            server_factory=lambda: _Server(self),
            encoding=None,
        )
        self.port = self.acceptor.get_port()

    async def run_command(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run the command as sshd does: by a shell, with pipes, and not ended by a lost client."""
        self.commands.append(process.command or "")
        child = await asyncio.create_subprocess_exec(
            *("sh", "-c", self.shell, "sh", process.command or ""),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self.children.append(child)
        outputs = [
            asyncio.create_task(_pump(child.stdout, process.stdout)),
            asyncio.create_task(_pump(child.stderr, process.stderr)),
        ]
        inputs = asyncio.create_task(_pump(process.stdin, child.stdin))
        self.running += [*outputs, inputs]
        await asyncio.gather(*outputs)
        process.exit(await child.wait())

    async def end_children(self) -> None:
        """End whatever was started."""
        for child in self.children:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        await asyncio.gather(*self.running)
        for child in self.children:
            await child.wait()

    def cut(self) -> None:
        """Drop every connection without a word."""
        for connection in self.connections:
            connection.abort()
        self.connections.clear()

    async def stop(self) -> None:
        """Close the port."""
        if self.acceptor is not None:
            self.acceptor.close()
            await self.acceptor.wait_closed()
            self.acceptor = None

    def target(self, **changes: object) -> SshTarget:
        """Where it is reached, with its key pinned."""
        settings: dict[str, object] = {
            "name": "lab",
            "host": "127.0.0.1",
            "port": self.port,
            "username": "ops",
            "client_keys": (self.client_key,),
            "host_keys": (asyncssh.import_public_key(self.host_key.export_public_key()),),
        }
        return SshTarget(**(settings | changes))  # type: ignore[arg-type]


@asynccontextmanager
async def ssh_lab() -> AsyncIterator[SshLab]:
    """A listening server; everything is closed at the end."""
    lab = SshLab()
    await lab.listen()
    try:
        yield lab
    finally:
        lab.cut()
        await lab.end_children()
        await lab.stop()
