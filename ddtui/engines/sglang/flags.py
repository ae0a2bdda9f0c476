"""SGLang's command lines, bare or wrapped.

`python -m sglang.launch_server ...`, `sglang serve ...` and the script's path, each also behind
`env`, `numactl` and the like, or within `bash -c '...'`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

DEFAULT_PORT = 30000
DEFAULT_HOST = "127.0.0.1"

_MODULES = ("sglang.launch_server", "sglang.launch_server.__main__")
_PROGRAMS = ("sglang", "sglang.cli.main", "sglang.cli")
_TARGET = ("model-path", "model")
_DRAFTER = ("speculative-draft-model-path", "speculative-draft-model")

_OPERATOR = re.compile(r"[();<>|&]+")
_DESCRIPTOR = re.compile(r"(?<=\s)\d(?=[<>])")
_NEGATIVE = re.compile(r"-\.?\d")
_DEEPEST = 4
"""Shells within shells that are looked into."""


def engine_arguments(command_line: Sequence[str]) -> list[str] | None:
    """The engine's own arguments within a command line; None when it does not start SGLang."""
    return _find(list(command_line), _DEEPEST)


def arguments_start(command_line: Sequence[str]) -> int | None:
    """Where the engine's own arguments begin in a command line that starts SGLang itself.

    None when it does not, and when the engine is started within a script (`bash -c '...'`), whose
    words are not those of the command line.
    """
    found = _find(list(command_line), 0)
    return None if found is None else len(command_line) - len(found)


def _find(words: list[str], depth: int) -> list[str] | None:
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "-m" and following in _MODULES:
            return words[index + 2 :]
        if following == "serve" and (
            PurePosixPath(word).name == "sglang" or (word in _PROGRAMS and words[index - 1] == "-m")
        ):
            return words[index + 2 :]
        if word.endswith("/launch_server.py") and "sglang" in word:
            return words[index + 1 :]
        if depth and "sglang" in word and any(char.isspace() for char in word):
            inner = _within_script(word, depth - 1)
            if inner is not None:
                return inner
    return None


def _within_script(script: str, depth: int) -> list[str] | None:
    words = _find(_split_script(script), depth)
    if words is None:
        return None
    for index, word in enumerate(words):
        if _OPERATOR.fullmatch(word):
            return words[:index]  # a pipe, a redirection or the next command
    return words


def _split_script(script: str) -> list[str]:
    script = script.replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(_DESCRIPTOR.sub("", script), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return script.split()


def is_command(command_line: Sequence[str]) -> bool:
    """Whether a command line starts SGLang."""
    return engine_arguments(command_line) is not None


def flags(command_line: Sequence[str]) -> dict[str, str]:
    """Flags by name without dashes, in the order of their last use.

    Values are as given, those of lists joined by blanks, `true` for bare flags; a repeated flag
    counts as last given. A command line that does not start SGLang is taken for its arguments.
    """
    found = engine_arguments(command_line)
    words = list(command_line) if found is None else found
    result: dict[str, str] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("--") or word == "--":
            continue
        name, separator, value = word[2:].partition("=")
        if not separator:
            values = []
            while index < len(words) and is_value(words[index]):
                values.append(words[index])
                index += 1
            value = " ".join(values) if values else "true"
        result.pop(name, None)
        result[name] = value
    return result


def is_value(word: str) -> bool:
    """Whether a word after a flag is its value, as argparse sees it: no dash, or a number."""
    return not word.startswith("-") or _NEGATIVE.match(word) is not None


def port(command_line: Sequence[str]) -> int:
    """The HTTP port asked for; SGLang's default where none, or no valid one, is given."""
    text = flags(command_line).get("port", "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0
    return number if 0 < number < 65536 else DEFAULT_PORT


def bind_host(command_line: Sequence[str]) -> str:
    """The address to bind to, or SGLang's default."""
    host = flags(command_line).get("host", "true")
    return DEFAULT_HOST if host == "true" else host


def models(command_line: Sequence[str]) -> dict[str, str]:
    """`{"target": path, "drafter": path}`, each only where it is given."""
    given = flags(command_line)
    result = {}
    for role, names in (("target", _TARGET), ("drafter", _DRAFTER)):
        paths = [value for name, value in given.items() if name in names and value != "true"]
        if paths:
            result[role] = paths[-1]
    return result
