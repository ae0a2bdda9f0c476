"""How a program's script becomes a command, for this machine and for a host's login shell."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from ddtui.hosts.base import Program

_GRACE = 2
"""Seconds between asking an overdue program to end and killing it."""


def argv(program: Program, args: Sequence[str], limit: float | None = None) -> list[str]:
    """The words that start `program`.

    With a `limit` in seconds the program ends itself (by coreutils' `timeout`, children included) a
    little after it, so that a short program that hangs is not left behind by a broken link.
    """
    words = ["bash", "-c", program.script, program.label, *args]
    if limit is None:
        return words
    return ["timeout", "-k", str(_GRACE), str(math.ceil(limit) + 1), *words]


def quote(text: str) -> str:
    r"""Quote one word for any login shell.

    As shlex.quote, but with the backslashes outside of the quotes: inside single quotes fish takes
    `\\` and `\'` for escapes, where the POSIX shells take them as they are.
    """
    return "\\\\".join(shlex.quote(part) for part in text.split("\\"))


def command_line(program: Program, args: Sequence[str], limit: float | None = None) -> str:
    """The line for the host's login shell, which the program replaces."""
    return "exec " + " ".join(quote(word) for word in argv(program, args, limit))


def parse_command_line(line: str) -> tuple[Program, list[str]]:
    """What `command_line` was made of: the program and its arguments. For hosts that are made up.

    Raises ValueError when the line is no such command.
    """
    words = shlex.split(line)
    if "-c" not in words or words[0] != "exec":
        raise ValueError("not a command line of ddtui")
    start = words.index("-c")
    script, label, *args = words[start + 1 :]
    return Program(label, script), args
