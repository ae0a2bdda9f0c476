"""Log in to a target, hop by hop, and say precisely what went wrong when it fails."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import asyncssh

from ddtui.hosts.base import HostError, LinkDown
from ddtui.hosts.ssh import failures, known_hosts
from ddtui.hosts.ssh.keys import Identities, gather_identities
from ddtui.hosts.ssh.sockets import ProxyCommand, open_tcp
from ddtui.hosts.ssh.target import SshTarget

_CLOSE_PATIENCE = 2.0


class _Witness(asyncssh.SSHClient):
    """Sees the key that the host shows, trusts none, and knows how the connection ended."""

    def __init__(self) -> None:
        self.offered: asyncssh.SSHKey | None = None
        self.connection: asyncssh.SSHClientConnection | None = None
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(exc)

    def validate_host_public_key(
        self,
        host: str,  # noqa: ARG002 - the interface's
        addr: str,  # noqa: ARG002
        port: int,  # noqa: ARG002
        key: asyncssh.SSHKey,
    ) -> bool:
        self.offered = key
        return False

    @property
    def methods(self) -> list[str]:
        """The ways to log in that the host offers."""
        return list(self.connection.get_server_auth_methods()) if self.connection else []


@dataclass(frozen=True)
class Leg:
    """One login that succeeded."""

    target: SshTarget
    connection: asyncssh.SSHClientConnection
    lost: asyncio.Future[Exception | None]
    """Done when the connection is gone, with the reason; None: closed in good order."""
    proxy: ProxyCommand | None = None


class Login:
    """The logins to a target and to its jump hosts, the nearest first."""

    def __init__(self, legs: list[Leg]) -> None:
        self._legs = legs

    @property
    def leg(self) -> Leg:
        """The last one: the target's."""
        return self._legs[-1]

    async def close(self, *, abort: bool = False) -> None:
        """Close all of them, the farthest first; `abort` does not wait for the host's consent."""
        for leg in reversed(self._legs):
            if abort:
                leg.connection.abort()
            else:
                leg.connection.close()
            try:
                async with asyncio.timeout(_CLOSE_PATIENCE):
                    await leg.connection.wait_closed()
            except TimeoutError:
                leg.connection.abort()
            if leg.proxy:
                await leg.proxy.stop()


async def log_in(target: SshTarget) -> Login:
    """Connect and log in.

    Raises LinkDown (worth another try) or LinkRefused (the operator must act).
    """
    legs: list[Leg] = []
    try:
        for step in target.legs():
            try:
                legs.append(await _one_leg(step, legs[-1] if legs else None))
            except HostError as exc:
                if step is not target:
                    exc.what = f"jump host {step.name}: {exc.what}"
                    exc.args = (exc.what,)
                raise
    except BaseException:
        await Login(legs).close(abort=True)
        raise
    return Login(legs)


async def _one_leg(target: SshTarget, via: Leg | None) -> Leg:
    known = await asyncio.to_thread(known_hosts.look_up, target)
    identities = await gather_identities(target)
    witness = _Witness()
    sock: socket.socket | None = None
    proxy: ProxyCommand | None = None
    try:
        async with asyncio.timeout(target.connect_timeout):
            if target.proxy_command and via is None:
                proxy, sock = await ProxyCommand.start(target.proxy_command)
            elif via is None:
                sock = await open_tcp(target)
            connection = await _handshake(target, known, identities, witness, sock, via)
    except BaseException as exc:
        if sock is not None and witness.connection is None:
            sock.close()
        failure = await _explain(exc, target, via, known, identities, witness, proxy)
        if proxy is not None:
            await proxy.stop()
        if failure is exc:
            raise
        raise failure from exc
    finally:
        identities.close()
    return Leg(target, connection, witness.lost, proxy)


async def _handshake(
    target: SshTarget,
    known: known_hosts.KnownHost,
    identities: Identities,
    witness: _Witness,
    sock: socket.socket | None,
    via: Leg | None,
) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        target.host,
        target.port,
        sock=sock,
        tunnel=via.connection if via else None,
        config=None,
        client_factory=lambda: witness,
        username=target.username,
        known_hosts=known.for_asyncssh(),
        host_key_alias=target.host_key_alias or None,
        server_host_key_algs=known.algorithms(),
        # An empty list would mean the keys of ~/.ssh, None means none.
        client_keys=identities.keys or None,
        agent_path=None,
        agent_forwarding=False,
        x509_trusted_certs=None,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,
        keepalive_interval=target.keepalive_interval,
        keepalive_count_max=target.keepalive_count,
        compression_algs=["zlib@openssh.com", "none"] if target.compression else ["none"],
    )


async def _explain(
    exc: BaseException,
    target: SshTarget,
    via: Leg | None,
    known: known_hosts.KnownHost,
    identities: Identities,
    witness: _Witness,
    proxy: ProxyCommand | None,
) -> BaseException:
    """The failure in the operator's words; what is none of ours (a cancellation) stays as it is."""
    if isinstance(exc, HostError) or not isinstance(exc, Exception):
        return exc
    if isinstance(exc, asyncssh.HostKeyNotVerifiable):
        return known_hosts.refusal(target, known, witness.offered, exc.reason)
    if isinstance(exc, asyncssh.PermissionDenied):
        return failures.denied(target, identities, witness.methods)
    if proxy is not None and (reason := await proxy.failure()):
        return LinkDown(f"the ProxyCommand to {target.address} failed: {reason}")
    if isinstance(exc, TimeoutError):
        connected = witness.connection is not None
        return failures.timed_out(target.address, target.connect_timeout, connected=connected)
    if isinstance(exc, asyncssh.ChannelOpenError) and via is not None:
        return failures.through_jump(exc, via.target, target)
    return failures.login_failure(exc, target)
