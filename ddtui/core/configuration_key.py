"""The key of a server's configuration: equal for launches that start the server alike.

Experiments and measurements hold it, so that what is loaded or measured already is told from what
is not. It is made of the program, its flags and the unit's environment.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from ddtui.core.launch import Launch
from ddtui.core.redact import is_secret_name, redact_text

_NEGATIVE = re.compile(r"-\.?\d")
_OWN = re.compile(
    r"DDTUI_\w*|INVOCATION_ID|JOURNAL_STREAM|NOTIFY_SOCKET|MAINPID|MANAGERPID"
    r"|SYSTEMD_EXEC_PID|SYSTEMD_NSS_\w*|MEMORY_PRESSURE_\w*"
)
"""Variables that ddtui or systemd sets anew for every start."""


def configuration_key(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """A short digest of a launch, the same in every process and version of Python.

    The order of flags does not count, nor whether a value stands behind `=` or a blank; of a
    repeated flag the last one counts, as for the server. Secrets are left out, so that the key is
    the same before and after they were masked, and when one is renewed.
    """
    program, flags = _read(argv)
    parts = [f"program {' '.join(map(redact_text, program))}"]
    parts += [
        f"flag {name} {redact_text(value)}"
        for name, value in sorted(flags.items())
        if not is_secret_name(f"--{name}")
    ]
    parts += [
        f"variable {name} {redact_text(value)}"
        for name, value in sorted((environment or {}).items())
        if not is_secret_name(name) and not _OWN.fullmatch(name)
    ]
    return hashlib.blake2s(
        "\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()


def key_of(launch: Launch) -> str:
    """The key of a launch's configuration."""
    return configuration_key(launch.argv, launch.environment)


def flags_of(argv: Sequence[str]) -> dict[str, str]:
    """A command line's long flags by name, without dashes; a bare one is empty."""
    return _read(argv)[1]


def _read(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words that start the program, and its flags by name, values joined by blanks."""
    program: list[str] = []
    flags: dict[str, list[str]] = {}
    name: str | None = None
    for word in argv:
        if not program and not flags and word == "exec":
            continue  # a shell's word: the process is the same without it
        if word.startswith("--") and len(word) > 2:
            name, sign, value = word[2:].partition("=")
            flags[name] = [value] if sign else []
            name = None if sign else name
        elif name is not None and (not word.startswith("-") or _NEGATIVE.match(word)):
            flags[name].append(word)
        else:
            name = None
            program.append(word)
    return program, {name: " ".join(values) for name, values in flags.items()}
