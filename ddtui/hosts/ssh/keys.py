"""The keys an operator may log in with: from the agent and from files. Nobody is ever asked.

The order is OpenSSH's, because a server counts attempts: the agent's keys that a file names, the
agent's other keys (unless IdentitiesOnly), then the files that the agent does not hold.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from asyncssh.agent import SSHAgentClient

from ddtui.hosts.ssh.target import SshTarget

_AGENT_PATIENCE = 3.0
"""Seconds: the socket of a forwarded agent whose connection is gone may not answer at all."""


@dataclass
class Identities:
    """What there is to log in with, and what stood in the way of more."""

    keys: list[asyncssh.SSHKeyPair] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """What `keys` are, in words."""
    locked: list[Path] = field(default_factory=list)
    """Files with a passphrase whose key the agent does not hold."""
    problems: list[str] = field(default_factory=list)
    agent: SSHAgentClient | None = None
    """Open for as long as its keys are needed: it signs with them."""

    def close(self) -> None:
        """Let go of the agent."""
        if self.agent is not None:
            self.agent.close()

    @property
    def remedy(self) -> str:
        """What would make more keys usable."""
        if self.locked:
            paths = " ".join(shlex.quote(str(path)) for path in self.locked)
            return f"unlock the key in the agent: ssh-add {paths}"
        return ""


@dataclass
class _File:
    path: Path
    public: bytes | None
    """The public key that the agent would name it by."""
    pairs: list[asyncssh.SSHKeyPair]
    locked: bool = False


async def gather_identities(target: SshTarget) -> Identities:
    """Everything that may be offered to the host, in the order to try."""
    found = Identities()
    for key in target.client_keys:
        found.keys += asyncssh.load_keypairs([key])
        found.tried.append("the given key")
    files = await asyncio.to_thread(_read_files, target, found.problems)
    held = await _agent_keys(target, found)
    named = [file.public for file in files if file.public]
    first = [pair for public in named for pair in held if pair.key_public_data == public]
    others = [] if target.identities_only else [pair for pair in held if pair not in first]
    for pair in (*first, *others):
        found.keys.append(pair)
        found.tried.append(f"{pair.get_comment() or pair.get_algorithm()} (agent)")
    in_agent = {pair.key_public_data for pair in held}
    for file in files:
        if file.public in in_agent:
            continue
        if file.locked:
            found.locked.append(file.path)
        if file.pairs:
            found.keys += file.pairs
            found.tried.append(str(file.path))
    return found


async def _agent_keys(target: SshTarget, found: Identities) -> list[asyncssh.SSHKeyPair]:
    if target.agent_path is None or target.client_keys:
        return []
    agent = SSHAgentClient(target.agent_path)
    try:
        async with asyncio.timeout(_AGENT_PATIENCE):
            keys = list(await agent.get_keys())
    except (TimeoutError, ValueError) as exc:
        reason = str(exc) or f"no answer within {_AGENT_PATIENCE:g} s"
        found.problems.append(f"the SSH agent does not answer: {reason}")
        agent.close()
        return []
    found.agent = agent
    return keys


def _read_files(target: SshTarget, problems: list[str]) -> list[_File]:
    certificates = [path for path in target.certificate_files if path.exists()]
    files = []
    for path in target.identity_files:
        try:
            if file := _read_file(path, certificates):
                files.append(file)
        except (OSError, ValueError, asyncssh.Error) as exc:
            problems.append(f"{path}: {exc.strerror if isinstance(exc, OSError) else exc}")
    return files


def _read_file(path: Path, certificates: Iterable[Path]) -> _File | None:
    """One IdentityFile; a public key alone is good enough to choose a key of the agent."""
    public = None
    for candidate in (path.with_name(path.name + ".pub"), path):
        with suppress(OSError, ValueError):  # not a public key: the other place may have it
            public = asyncssh.read_public_key(candidate).public_data
            break
    if not path.exists():
        return _File(path, public, []) if public else None
    try:
        pairs = asyncssh.load_keypairs(path, certlist=[str(cert) for cert in certificates])
    except asyncssh.KeyImportError as exc:
        if not str(exc).startswith("Passphrase"):
            if public:  # the file itself is the public key
                return _File(path, public, [])
            raise
        return _File(path, public, [], locked=True)
    return _File(path, public or pairs[0].key_public_data, list(pairs))
