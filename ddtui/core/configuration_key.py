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
    shown = {n: redact_text(v) for n, v in flags.items() if not is_secret_name(f"--{n}")}
    variables = {n: redact_text(v) for n, v in _given(environment) if not is_secret_name(n)}
    return _digest([redact_text(word) for word in program], shown, variables)


def key_of(launch: Launch) -> str:
    """The key of a launch's configuration."""
    return configuration_key(launch.argv, launch.environment)


def key_with_secrets(launch: Launch, salt: str) -> str:
    """Like `key_of`, but another one too where nothing but a secret is another one.

    To be compared with keys of the same salt, which is as good as a secret: who has both can try
    whether a guess is right.
    """
    program, flags = _read(launch.argv)
    return _digest(program, flags, dict(_given(launch.environment)), salt)


def flags_of(argv: Sequence[str]) -> dict[str, str]:
    """A command line's long flags by name, without dashes; a bare one is empty."""
    return _read(argv)[1]


def _given(environment: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """Variables but those that every start has anew."""
    return [(n, v) for n, v in (environment or {}).items() if not _OWN.fullmatch(n)]


def _digest(
    program: Sequence[str],
    flags: Mapping[str, str],
    variables: Mapping[str, str],
    salt: str = "",
) -> str:
    parts = [f"program {' '.join(program)}"]
    parts += [f"flag {name} {value}" for name, value in sorted(flags.items())]
    parts += [f"variable {name} {value}" for name, value in sorted(variables.items())]
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2s(text, digest_size=8, key=salt.encode()[:32]).hexdigest()


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
