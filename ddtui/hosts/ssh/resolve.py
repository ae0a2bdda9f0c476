"""What OpenSSH would do for a name: `ssh -G NAME` says it, so that no second parser disagrees.

Aliases, Include, Match exec, the system's own ssh_config, ProxyJump and every default come from
there. The format is one `key value` a line with keys in lower case (ssh(1), option -G); lists are
repeated keys, or words with a space between them and without quotes.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import signal
import socket
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ddtui.hosts.base import LinkDown, LinkRefused
from ddtui.hosts.ssh.target import (
    CONNECT_TIMEOUT,
    KEEPALIVE_INTERVAL,
    SshTarget,
)

_SSH_PATIENCE = 10.0
"""Seconds for `ssh -G`: a `Match exec` may ask the network."""
_MOST_HOPS = 8
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}

Settings = Mapping[str, list[str]]
"""The answer of `ssh -G`: values by key, in order."""


async def resolve(name: str, *, ssh_config: Path | None = None) -> SshTarget:
    """Ask OpenSSH where `name` leads: an alias, `host`, `user@host` or `ssh://user@host:port`.

    `ssh_config` replaces the user's own configuration file, and the system's, as `ssh -F` does.
    Raises LinkRefused when OpenSSH is not installed or does not accept its configuration, and
    LinkDown when it does not answer in time.
    """
    return await _resolve(name, [], ssh_config, 0)


async def _resolve(name: str, options: list[str], ssh_config: Path | None, depth: int) -> SshTarget:
    if depth > _MOST_HOPS:
        raise LinkRefused(
            f"more than {_MOST_HOPS} jump hosts in a row, the last of them {name}",
            "look for a ProxyJump that also applies to the jump host itself: `ssh -G "
            f"{name} | grep -i proxyjump`",
        )
    settings = parse_settings(await _ask_ssh(name, options, ssh_config))
    target = build_target(name, settings)
    hops = _first(settings, "proxyjump", "none")
    if hops == "none":
        return target
    # The last hop is the one that reaches the target; it is itself reached through those before it.
    *before, last = hops.split(",")
    hop_name, hop_options = _hop_options(last)
    if before:
        hop_options += ["-J", ",".join(before)]
    jump = await _resolve(hop_name, hop_options, ssh_config, depth + 1)
    return replace(target, jump=jump)


def _hop_options(hop: str) -> tuple[str, list[str]]:
    """Take `[user@]host[:port]` apart the way OpenSSH passes it to the ssh of a jump host."""
    if hop.startswith("ssh://"):
        return hop, []
    user, at, rest = hop.rpartition("@")
    host, port = rest, ""
    if match := re.fullmatch(r"\[(.+)\](?::(\d+))?|([^:]+):(\d+)", rest):
        host, port = match[1] or match[3], match[2] or match[4] or ""
    return host, [*(["-l", user] if at else []), *(["-p", port] if port else [])]


async def _ask_ssh(name: str, options: list[str], ssh_config: Path | None) -> str:
    config = ["-F", str(ssh_config)] if ssh_config else []
    try:
        process = await asyncio.create_subprocess_exec(
            *("ssh", "-G", *config, *options, "--", name),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as exc:
        raise LinkRefused(
            "the program `ssh` is not installed here",
            "install OpenSSH's client (package openssh-client or openssh-clients): "
            "it decides where a host's name leads",
        ) from exc
    try:
        async with asyncio.timeout(_SSH_PATIENCE):
            stdout, stderr = await process.communicate()
    except TimeoutError as exc:
        raise LinkDown(
            f"`ssh -G {name}` did not answer within {_SSH_PATIENCE:g} s",
            "a `Match exec` in the SSH configuration may be waiting for something",
        ) from exc
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode != 0:
        said = stderr.decode(errors="replace").strip().splitlines()
        raise LinkRefused(
            f"ssh refuses its configuration for {name}: {said[0] if said else 'no reason given'}",
            f"see `ssh -G {name}`",
        )
    return stdout.decode(errors="surrogateescape")


def parse_settings(text: str) -> Settings:
    """The lines of `ssh -G` as values by key."""
    settings: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key.lower(), []).append(value)
    return settings


def _first(settings: Settings, key: str, default: str = "") -> str:
    return settings.get(key, [default])[0]


def _truth(settings: Settings, key: str) -> bool:
    return _first(settings, key) in ("yes", "true")


def build_target(name: str, settings: Settings) -> SshTarget:
    """A target out of the settings of `ssh -G`, without its jump host."""
    alias = _first(settings, "hostkeyalias")
    tokens = {
        "%": "%",
        "d": str(Path.home()),
        "h": _first(settings, "hostname", name),
        "i": str(os.getuid()),
        "k": alias or name,
        "L": socket.gethostname().partition(".")[0],
        "l": socket.gethostname(),
        "n": _first(settings, "host", name),
        "p": _first(settings, "port", "22"),
        "r": _first(settings, "user"),
        "u": getpass.getuser(),
    }

    def paths(key: str) -> tuple[Path, ...]:
        values = (value for value in settings.get(key, []) if value != "none")
        return tuple(Path(_expand(value, tokens)).expanduser() for value in values)

    wait = _first(settings, "connecttimeout")
    quiet = int(_first(settings, "serveraliveinterval", "0"))
    proxy = _first(settings, "proxycommand", "none")
    return SshTarget(
        name=name,
        host=tokens["h"],
        port=int(tokens["p"]),
        username=tokens["r"],
        identity_files=paths("identityfile"),
        certificate_files=paths("certificatefile"),
        agent_path=_agent_path(_first(settings, "identityagent", "SSH_AUTH_SOCK")),
        identities_only=_truth(settings, "identitiesonly"),
        user_known_hosts=_known_hosts(settings, "userknownhostsfile"),
        global_known_hosts=_known_hosts(settings, "globalknownhostsfile"),
        hash_known_hosts=_truth(settings, "hashknownhosts"),
        host_key_alias=alias,
        proxy_command="" if proxy == "none" else _expand(proxy, tokens),
        connect_timeout=float(wait) if wait.isdecimal() and int(wait) else CONNECT_TIMEOUT,
        # Only ever sooner: the screen must tell of a silent cut within 15 s.
        keepalive_interval=min(float(quiet or KEEPALIVE_INTERVAL), KEEPALIVE_INTERVAL),
        compression=_truth(settings, "compression"),
        address_family=_FAMILIES.get(_first(settings, "addressfamily"), 0),
        bind_address=_first(settings, "bindaddress"),
    )


def _expand(value: str, tokens: Mapping[str, str]) -> str:
    """Expand `%x` and `${NAME}` as ssh_config(5) does; what is unknown stays as it is."""

    def put(match: re.Match[str]) -> str:
        if match[1]:
            return tokens.get(match[1], match[0])
        return os.environ.get(match[2], match[0])

    return re.sub(r"%(.)|\$\{(\w+)\}", put, value)


def _agent_path(value: str) -> str | None:
    """What IdentityAgent means: `none`, `SSH_AUTH_SOCK`, `$VARIABLE`, or a path."""
    if value == "none":
        return None
    if value == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if value.startswith("$") and not value.startswith("${"):
        return os.environ.get(value[1:]) or None
    return str(Path(value).expanduser())


def _known_hosts(settings: Settings, key: str) -> tuple[Path, ...]:
    value = _first(settings, key)
    return () if value == "none" else tuple(_split_paths(value.split(" ")))


def _split_paths(words: Iterable[str]) -> Iterable[Path]:
    """Put paths with spaces together again: ssh prints them unquoted, and absolute."""
    path = ""
    for word in words:
        if path and word.startswith(("/", "~")):
            yield Path(path).expanduser()
            path = word
        else:
            path = f"{path} {word}" if path else word
    if path:
        yield Path(path).expanduser()
