"""Why a connection could not be made, in the operator's words, with what to do about it."""

from __future__ import annotations

import errno
import os
import socket

import asyncssh

from ddtui.hosts.base import HostError, LinkDown, LinkRefused, PortClosed
from ddtui.hosts.ssh.keys import Identities
from ddtui.hosts.ssh.target import SshTarget

_NO_ROUTE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN}
FORBIDDEN = 1
"""SSH_OPEN_ADMINISTRATIVELY_PROHIBITED of RFC 4254, 5.1."""


def unreachable(exc: OSError, host: str, address: str) -> LinkDown:
    """A socket that could not be opened to `address`."""
    if isinstance(exc, socket.gaierror):
        return LinkDown(
            f"name not known: {host}",
            "check the name, the network and the VPN; an alias must stand in ~/.ssh/config",
        )
    if exc.errno == errno.ECONNREFUSED:
        return LinkDown(
            f"connection refused by {address}",
            "the machine is up, but no SSH server listens there: it may be booting",
        )
    if exc.errno in _NO_ROUTE:
        return LinkDown(f"no route to {address}", "check the network and the VPN")
    if exc.errno == errno.ETIMEDOUT:
        return timed_out(address, None)
    reason = os.strerror(exc.errno) if exc.errno else str(exc)
    return LinkDown(f"cannot connect to {address}: {reason.lower()}")


def timed_out(address: str, seconds: float | None, *, connected: bool = False) -> LinkDown:
    """Nothing came in time; `connected`: the port was open and SSH then said nothing."""
    span = f" after {seconds:g} s" if seconds else ""
    if connected:
        return LinkDown(
            f"timed out{span}: {address} accepts connections, but its SSH server does not answer",
            "the machine may be overloaded, frozen, or shutting down",
        )
    return LinkDown(
        f"timed out{span} connecting to {address}",
        "the machine is off, or a firewall or a missing VPN drops the packets",
    )


def through_jump(exc: asyncssh.ChannelOpenError, jump: SshTarget, target: SshTarget) -> HostError:
    """A jump host that would not, or could not, connect onwards."""
    if exc.code == FORBIDDEN:
        return LinkRefused(
            f"the jump host {jump.name} does not forward connections to {target.address}",
            f"set AllowTcpForwarding (and PermitOpen) in the sshd_config of {jump.name}",
        )
    return LinkDown(f"the jump host {jump.name} cannot reach {target.address}: {exc.reason}")


def denied(target: SshTarget, identities: Identities, methods: list[str]) -> LinkRefused:
    """No key was accepted."""
    tried = ", ".join(identities.tried) or "none found"
    what = f"permission denied ({', '.join(methods) or 'publickey'}): user {target.username}"
    problems = "".join(f"; {problem}" for problem in identities.problems)
    locked = "".join(f"; {path} has a passphrase" for path in identities.locked)
    if methods and "publickey" not in methods:
        remedy = f"{target.address} accepts no keys, and ddtui never asks for a password"
    else:
        remedy = identities.remedy or (
            f"put a public key into ~{target.username}/.ssh/authorized_keys on the host, "
            "or choose the right one with User and IdentityFile in the SSH configuration"
        )
    return LinkRefused(f"{what}; keys tried: {tried}{locked}{problems}", remedy)


def login_failure(exc: Exception, target: SshTarget) -> HostError:
    """What came between the connection and the end of the login, host key and denial aside."""
    text = str(exc)
    if isinstance(exc, asyncssh.DisconnectError) and "oo many auth" in text:
        return LinkRefused(
            f"{target.address} ended the login: too many keys were tried",
            "set IdentitiesOnly yes and the right IdentityFile for it in the SSH configuration",
        )
    if isinstance(exc, asyncssh.KeyExchangeFailed):
        return LinkRefused(
            f"{target.address} and ddtui have no algorithm in common: {text}",
            "the SSH server is very old, or allows very little: see its sshd_config",
        )
    if isinstance(exc, asyncssh.ConnectionLost | ConnectionError):
        return LinkDown(
            f"connection closed by {target.address} during login",
            "it may be booting or shutting down (/run/nologin), or limit logins (MaxStartups)",
        )
    if isinstance(exc, asyncssh.Error):
        return LinkDown(f"{target.address} ended the login: {text}")
    if isinstance(exc, OSError):
        return unreachable(exc, target.host, target.address)
    if isinstance(exc, ValueError):
        return LinkRefused(f"cannot connect to {target.name} as configured: {text}")
    return LinkDown(f"login to {target.address} failed: {type(exc).__name__}: {text}")


def lost(exc: Exception | None, target: SshTarget) -> str:
    """Why a connection that was live is gone."""
    if isinstance(exc, asyncssh.ConnectionLost):
        if "keepalive" in str(exc):
            silence = target.keepalive_interval * (target.keepalive_count + 1)
            return f"no answer from {target.address} for {silence:g} s"
        return f"connection closed by {target.address}"
    if isinstance(exc, ConnectionResetError):
        return f"connection reset by {target.address}"
    if isinstance(exc, OSError):
        reason = os.strerror(exc.errno) if exc.errno else str(exc)
        return f"connection to {target.address} broke: {reason.lower()}"
    if exc is None:
        return f"connection to {target.address} closed"
    return f"connection to {target.address} broke: {exc}"


def port_refused(exc: asyncssh.ChannelOpenError, address: str, port: int) -> PortClosed:
    """A port of the host that its sshd did not connect to."""
    if exc.code == FORBIDDEN:
        return PortClosed(
            f"the host's sshd forbids forwarding to {address}:{port}",
            "allow it: AllowTcpForwarding and PermitOpen in the host's sshd_config",
        )
    return PortClosed(
        f"{address}:{port} on the host: {exc.reason.lower()}",
        "see that the engine runs, and that it listens on this address and port",
    )
