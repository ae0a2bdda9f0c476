"""Whether a host is the one we know: always strict, whatever StrictHostKeyChecking says.

The files are OpenSSH's (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT): plain, hashed and wildcard names,
ports in brackets, @revoked and @cert-authority. As with OpenSSH, lines that make no sense are
passed over, and a host on another port than 22 is also trusted with the key on record for its name
alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

from ddtui.hosts.base import HostError, HostKeyChanged, HostKeyUnknown, LinkRefused
from ddtui.hosts.ssh.target import SshTarget

Keys = list[asyncssh.SSHKey]


@dataclass(frozen=True)
class Record:
    """A line of a known_hosts file that speaks of a host."""

    file: Path | None
    line: int
    key: asyncssh.SSHKey

    @property
    def place(self) -> str:
        """`FILE line N`, or where else the key comes from."""
        return f"{self.file} line {self.line}" if self.file else "the key given for this host"


@dataclass
class KnownHost:
    """All that is on record of one host."""

    trusted: list[Record] = field(default_factory=list)
    by_name_alone: list[Record] = field(default_factory=list)
    """Recorded without the port: trusted if it matches, no evidence of a change if it does not."""
    authorities: list[Record] = field(default_factory=list)
    revoked: list[Record] = field(default_factory=list)

    def for_asyncssh(self) -> tuple[Keys, Keys, Keys]:
        """Trusted keys, trusted authorities, revoked keys."""
        return (
            [record.key for record in (*self.trusted, *self.by_name_alone)],
            [record.key for record in self.authorities],
            [record.key for record in self.revoked],
        )

    def algorithms(self) -> list[str]:
        """Kinds of host key to ask for: those on record first, so that the host shows that key.

        The others follow: without them a host that has lost its old key could not show the new one.
        """
        wanted: list[bytes] = list(get_default_certificate_algs()) if self.authorities else []
        for key in self.for_asyncssh()[0]:
            wanted += key.sig_algorithms
        wanted += get_default_public_key_algs()
        return [name.decode() for name in dict.fromkeys(wanted)]


def look_up(target: SshTarget) -> KnownHost:
    """What the target's known_hosts files say of it. Raises LinkRefused for an unreadable file."""
    found = KnownHost()
    if target.host_keys:
        found.trusted = [Record(None, 0, key) for key in target.host_keys]
        return found
    for path in (*target.user_known_hosts, *target.global_known_hosts):
        for number, line in enumerate(_lines(path), 1):
            _read_line(found, target, line, path, number)
    return found


def _read_line(found: KnownHost, target: SshTarget, line: str, path: Path, number: int) -> None:
    trusted, authorities, revoked = _keys_for(line, target.key_name)
    found.trusted += (Record(path, number, key) for key in trusted)
    if not (trusted or authorities or revoked) and target.key_name != target.host.lower():
        alone = [] if target.host_key_alias else _keys_for(line, target.host.lower())[0]
        found.by_name_alone += (Record(path, number, key) for key in alone)
    found.authorities += (Record(path, number, key) for key in authorities)
    found.revoked += (Record(path, number, key) for key in revoked)


def _keys_for(line: str, name: str) -> tuple[Keys, Keys, Keys]:
    """The keys of one line that count for `name`: trusted ones, authorities, revoked ones."""
    names = line.split(None, 1)[0] if line.strip() else "#"
    if names.startswith("#"):
        return [], [], []
    if names[0] not in "@|" and not set(names) & set("*?!") and name not in names.split(","):
        return [], [], []  # plain names of other hosts, told without decoding a key
    try:
        entry = asyncssh.import_known_hosts(line)
    except ValueError:
        return [], [], []
    trusted, authorities, revoked, *_ = entry.match(name, "", None)
    return list(trusted), list(authorities), list(revoked)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise LinkRefused(
            f"cannot read {path}: {exc.strerror}",
            "host keys are not checked against half of the files: make it readable",
        ) from exc


def refusal(
    target: SshTarget, known: KnownHost, offered: asyncssh.SSHKey | None, said: str
) -> LinkRefused:
    """Why the host's key was not accepted: `offered`, if it showed one; `said` asyncssh of it."""
    if offered is None or offered in (record.key for record in known.revoked):
        places = ", ".join(record.place for record in known.revoked)
        return LinkRefused(
            f"the host key of {target.address} is not valid: {said}",
            f"keys are revoked in {places}; ask the host's administrator" if places else "",
        )
    fingerprint = offered.get_fingerprint()
    kind = offered.get_algorithm()
    if known.trusted:
        return _changed(target, known.trusted, f"{kind} {fingerprint}")
    writable = target.user_known_hosts[0] if target.user_known_hosts else None
    name = _hashed(target.key_name) if target.hash_known_hosts else target.key_name
    key = offered.export_public_key("openssh").decode().split()
    return HostKeyUnknown(
        f"the host key of {target.address} is not known: {kind} {fingerprint}",
        "compare the fingerprint with what the host's administrator gives you, then accept it",
        address=target.address,
        key_type=kind,
        fingerprint=fingerprint,
        known_hosts_file=str(writable or ""),
        known_hosts_line=f"{name} {key[0]} {key[1]}\n",
    )


def _changed(target: SshTarget, records: list[Record], offered: str) -> HostKeyChanged:
    places = ", ".join(record.place for record in records)
    files = dict.fromkeys(record.file for record in records if record.file)
    commands = " and ".join(
        f"ssh-keygen -f {shlex.quote(str(file))} -R {shlex.quote(target.key_name)}"
        for file in files
    )
    return HostKeyChanged(
        f"the host key of {target.address} has CHANGED to {offered}; on record: {places}",
        "somebody may be in between. Only if the host was reinstalled and its administrator "
        f"confirms the new fingerprint, remove the old key: {commands or 'give the new one'}",
    )


def accept_host_key(unknown: HostKeyUnknown) -> None:
    """Record the key that `unknown` tells of, and no other: the operator has said yes to it.

    Appends to the first UserKnownHostsFile, made with mode 0600 if it is missing. Raises HostError
    when there is none or when it cannot be written.
    """
    if unknown.known_hosts_file in ("", os.devnull):
        raise HostError(
            "there is no file to record the host key in",
            "UserKnownHostsFile is `none` or /dev/null for it: set it in the SSH configuration",
        )
    path = Path(unknown.known_hosts_file)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            glue = b""
            if size:
                file.seek(size - 1)
                glue = b"" if file.read(1) == b"\n" else b"\n"
            file.write(glue + unknown.known_hosts_line.encode())
    except OSError as exc:
        raise HostError(f"cannot write {path}: {exc.strerror}", "make it writable") from exc


def _hashed(name: str) -> str:
    """A name as HashKnownHosts writes it: `|1|SALT|HMAC-SHA1(SALT, NAME)`."""
    salt = secrets.token_bytes(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
