"""Where an SSH connection leads and with what it may prove itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

CONNECT_TIMEOUT = 10.0
"""Seconds for one leg, login included, where the configuration does not say."""
KEEPALIVE_INTERVAL = 4.0
KEEPALIVE_COUNT = 2
"""Silence for interval * (count + 1) = 12 s ends a connection; any byte restarts the count."""


@dataclass(frozen=True, kw_only=True)
class SshTarget:
    """Everything that a connection needs; `resolve()` makes one from OpenSSH's settings."""

    name: str
    """As the operator calls it; `%n` in OpenSSH's words."""
    host: str
    port: int = 22
    username: str
    identity_files: tuple[Path, ...] = ()
    """Private keys to try, in order; missing ones are skipped."""
    certificate_files: tuple[Path, ...] = ()
    client_keys: tuple[asyncssh.SSHKey, ...] = ()
    """Keys given as such, tried before the files."""
    agent_path: str | None = None
    """The agent's socket; None: no agent."""
    identities_only: bool = False
    """Of the agent's keys, use only those that `identity_files` name."""
    user_known_hosts: tuple[Path, ...] = ()
    """The first one is where an accepted key is written."""
    global_known_hosts: tuple[Path, ...] = ()
    hash_known_hosts: bool = False
    host_key_alias: str = ""
    host_keys: tuple[asyncssh.SSHKey, ...] = ()
    """When given, exactly these are trusted and no file is read."""
    jump: SshTarget | None = None
    """The host through which this one is reached."""
    proxy_command: str = ""
    """A command whose standard input and output are the connection; tokens expanded."""
    connect_timeout: float = CONNECT_TIMEOUT
    keepalive_interval: float = KEEPALIVE_INTERVAL
    keepalive_count: int = KEEPALIVE_COUNT
    compression: bool = False
    address_family: int = 0
    """A socket.AF_... number; 0: any."""
    bind_address: str = ""

    @property
    def address(self) -> str:
        """`HOST:PORT`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def key_name(self) -> str:
        """Under what name known_hosts files record the host's key."""
        if self.host_key_alias:
            return self.host_key_alias.lower()
        host = self.host.lower()
        return host if self.port == 22 else f"[{host}]:{self.port}"

    def legs(self) -> Iterator[SshTarget]:
        """The hosts to log in to, the nearest first and this one last."""
        if self.jump is not None:
            yield from self.jump.legs()
        yield self
