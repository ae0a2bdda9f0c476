"""Learns the flags of the server that is installed on a host, and keeps them by its version.

The help is asked of the unit's own interpreter. That takes some 10 s, so it is kept in a file by
what identifies the server: its version, and when the files that define its arguments last changed.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ddtui.config.whole_file import write_whole
from ddtui.control.programs import HELP_LIMIT, SERVER_HELP
from ddtui.core.redact import MASK
from ddtui.core.text import clean
from ddtui.engines.sglang.flags import arguments_start
from ddtui.engines.sglang.server_flags import NotUnderstood, ServerFlags, parse_help
from ddtui.hosts.base import Host

log = logging.getLogger(__name__)

_CARRIED = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_HOME")
_CARRIED_PREFIX = "SGLANG_"
_SETTING = re.compile(r"SGLANG_\w+=(?![01]\Z)[-+]?[\d.]+")
"""A number, such as a sweep tries: which flags there are hangs on paths, names and switches."""


class HelpUnavailable(Exception):
    """The server's help could not be had; the message says why, `remedy` what to do."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


async def learn_server_flags(
    host: Host,
    command: Sequence[str],
    *,
    working_directory: str = "",
    environment: Mapping[str, str] | None = None,
    cache: Path | None = None,
    refresh: bool = False,
) -> ServerFlags:
    """The flags of the server that `command` (the unit's ExecStart) starts.

    `cache` is a folder that they are kept in. Raises HelpUnavailable, LinkDown, ProgramTimeout.
    """
    start = arguments_start(command)
    if start is None:
        raise HelpUnavailable(
            "the unit's command is a wrapper: its interpreter cannot be told",
            "let ExecStart start the engine itself",
        )
    carried = _carried(environment or {})
    words = [*carried, *command[:start]]
    key = [*(each for each in carried if not _SETTING.fullmatch(each)), *command[:start]]
    kept, identity = None, ""
    if cache is not None and not refresh:
        identity = await _identity(host, words, working_directory)
        kept = _read(_file(cache, host.name, key, identity)) if identity else None
    if kept is not None:
        return kept
    answer = await host.run(
        SERVER_HELP, "help", working_directory, *words, timeout=HELP_LIMIT + 25.0
    )
    text = answer.stdout.decode("utf-8", "replace")
    server, _, shown = text.partition("\n@help\n")
    identity = _identifying(server)
    try:
        flags = parse_help(shown, _version(identity))
    except NotUnderstood as error:
        raise HelpUnavailable(_why(answer.status, answer.stderr, shown, words)) from error
    if cache is not None and identity:
        _write(_file(cache, host.name, key, identity), flags)
    return flags


def _carried(environment: Mapping[str, str]) -> list[str]:
    """`env NAME=value ...`: what the unit sets that decides which server is found."""
    pairs = [
        f"{name}={value}"
        for name, value in environment.items()
        if (name in _CARRIED or name.startswith(_CARRIED_PREFIX)) and MASK not in value
    ]
    return ["env", *pairs] if pairs else []


async def _identity(host: Host, words: Sequence[str], working_directory: str) -> str:
    answer = await host.run(SERVER_HELP, "identity", working_directory, *words, timeout=25.0)
    return _identifying(answer.stdout.decode("utf-8", "replace"))


def _identifying(text: str) -> str:
    """The words behind `@server`; empty where the server does not tell what it is."""
    line = next((each for each in text.splitlines() if each.startswith("@server ")), "")
    identity = clean(line.removeprefix("@server ").strip(), 500)
    parts = identity.split(" ")
    return identity if len(parts) >= 2 and parts[1] not in ("", "0") else ""


def _version(identity: str) -> str:
    version = identity.split(" ", maxsplit=1)[0]
    return "" if version == "-" else version


def _why(status: int, stderr: bytes, shown: str, words: Sequence[str]) -> str:
    if status == 124:
        return f"the server did not print its help within {HELP_LIMIT} s"
    lines = [*stderr.decode("utf-8", "replace").splitlines(), *shown.splitlines()]
    last = next((line for line in reversed(lines) if line.strip()), f"exit status {status}")
    return f"`{clean(shlex.join(words), 200)} --help` printed no usage: {clean(last, 200)}"


def _file(cache: Path, host: str, key: Sequence[str], identity: str) -> Path:
    name = hashlib.blake2s(
        "\0".join([host, *key, identity]).encode("utf-8", "surrogatepass"), digest_size=12
    ).hexdigest()
    return cache / f"server-flags-{name}.json"


def _read(file: Path) -> ServerFlags | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=ServerFlags)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("asking the server again: %s cannot be read: %s", file, error)
        return None


def _write(file: Path, flags: ServerFlags) -> None:
    """Keep them for the next time; without a cache everything else goes on."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, msgspec.json.encode(flags))
    except OSError as error:
        log.warning("the server's flags are not kept: %s", error)
