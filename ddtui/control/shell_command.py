"""Finds and rewrites the engine's command within the script of `bash -c '...'`.

Only where it is one simple command without expansions that could change its words: everything else
is refused. Rules: POSIX shell, 2.2 "Quoting", 2.10 "Shell Grammar".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

import msgspec

from ddtui.control.rewriting import pieces

_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_OPERATORS = ("&&", "||", ";;", "|&", "|", "&", ";", "\n", "(", ")")
_REDIRECTION = re.compile(r"\d*(?:>>|>&|>\||<>|<&|&>>|&>|>|<)")


_DETACHING = frozenset(
    {"setsid", "daemonize", "coproc", "screen", "tmux", "start-stop-daemon", "systemd-run"}
)
"""What may leave its command running and end itself."""


class NotSimple(ValueError):
    """The script cannot be changed safely: why, and a way out where one is known."""

    def __init__(self, why: str, way_out: str = "") -> None:
        super().__init__(why)
        self.way_out = way_out


class ShellWord(msgspec.Struct, frozen=True):
    """A word of a shell command."""

    raw: str
    value: str
    opaque: bool = False
    """It holds an expansion: one word, whose value is not known here. `value` is its text."""


class ShellCommand(msgspec.Struct, frozen=True):
    """The engine's command in a script, with what stands before and after it."""

    before: str
    words: tuple[ShellWord, ...]
    after: str

    @property
    def argv(self) -> tuple[str, ...]:
        """The words' values; those with an expansion as they are written."""
        return tuple(word.value for word in self.words)

    def rewritten(self, wanted: Sequence[str]) -> str:
        """The script with these words in place of the command's; unchanged ones stay as written."""
        parts: list[str] = []
        for piece in pieces([[word.value] for word in self.words], wanted):
            if piece.words is None and piece.token is not None:
                parts.append(self.words[piece.token].raw)
            else:
                parts.extend(map(shlex.quote, piece.words or ()))
        return self.before + " ".join(parts) + self.after


def script_index(argv: Sequence[str]) -> int | None:
    """Where the script stands in `bash -c SCRIPT`; None when it is no such command."""
    if not argv or PurePosixPath(argv[0]).name not in _SHELLS:
        return None
    for index, word in enumerate(argv[1:], start=1):
        if not word.startswith("-") or word.startswith("--"):
            return None
        if word.endswith("c"):
            return index + 1 if index + 1 < len(argv) else None
    return None


def find_command(script: str, is_engine: Callable[[Sequence[str]], bool]) -> ShellCommand | None:
    """The one simple command of a script that starts the engine; None when none does.

    Raises NotSimple when it cannot be changed safely.
    """
    found: list[ShellCommand] = []
    at, detached = 0, False
    while at < len(script):
        command, at, operator = _simple_command(script, at, is_engine)
        if command is not None:
            found.append(command)
            detached = any(PurePosixPath(word).name in _DETACHING for word in command.argv[:4])
        # Also one that follows: the engine may stand in braces before it.
        detached = detached or (bool(found) and operator == "&")
    if len(found) > 1:
        raise NotSimple("the script starts the engine in more than one place")
    if detached:
        raise NotSimple(
            "the engine is put into the background: systemd then does not know its process, and"
            " neither its end nor its command line can be told for sure",
            "let the engine be the script's last command, in the foreground, begun with exec"
            " (`exec python -m sglang.launch_server ...`, without `&` and `wait`)",
        )
    return found[0] if found else None


def _simple_command(
    script: str, begin: int, is_engine: Callable[[Sequence[str]], bool]
) -> tuple[ShellCommand | None, int, str]:
    """Scan up to the next operator: the engine's command if it is one, where to go on, and it."""
    words: list[ShellWord] = []
    trouble, redirected, operator = "", False, ""
    at, first, last = begin, begin, begin
    while at < len(script):
        if script.startswith("\\\n", at):
            at += 2
            continue
        if script[at] in " \t":
            at += 1
            continue
        here = next((each for each in _OPERATORS if script.startswith(each, at)), "")
        operator = "" if script.startswith("&>", at) else here
        if operator:
            at += len(operator)
            break
        if script[at] == "#":
            newline = script.find("\n", at)
            at = len(script) if newline < 0 else newline
            continue
        if match := _REDIRECTION.match(script, at):
            if script.startswith("<<", match.start()):
                trouble = trouble or "it has a here-document"
            at = _redirection_end(script, match.end())
            redirected = True
            continue
        if redirected and words:
            trouble = trouble or "words follow a redirection"
        word, at, odd = _shell_word(script, at)
        trouble = trouble or odd
        if not words:
            first = at - len(word.raw)
        words.append(word)
        last = last if redirected else at
    if not words or not is_engine([word.value for word in words]):
        return None, at, operator
    if trouble:
        raise NotSimple(trouble)
    return ShellCommand(script[:first], tuple(words), script[last:]), at, operator


def _redirection_end(script: str, at: int) -> int:
    while at < len(script) and script[at] in " \t":
        at += 1
    return _shell_word(script, at)[1]


def _shell_word(script: str, begin: int) -> tuple[ShellWord, int, str]:
    """A word, where it ends, and what makes it unfit to be kept or changed."""
    value, opaque, trouble = "", False, ""
    at = begin
    while at < len(script):
        char = script[at]
        if char in " \t\n;&|<>()":
            break
        if char == "'":
            end = script.find("'", at + 1)
            if end < 0:
                raise NotSimple("a quote is not closed")
            value, at = value + script[at + 1 : end], end + 1
        elif char == '"':
            inner, at, expands, splits = _double_quoted(script, at + 1)
            value, opaque = value + inner, opaque or expands
            trouble = trouble or splits
        elif char == "\\":
            value, at = value + script[at + 1 : at + 2].replace("\n", ""), at + 2
        elif char in "$`":
            trouble = trouble or f"{script[at : at + 24]!r} is expanded by the shell into words"
            opaque, value, at = True, value + char, at + 1
        else:
            if char in "*?[{":
                trouble = trouble or f"{char} is expanded by the shell"
            opaque = opaque or (char == "~" and at == begin)
            value, at = value + char, at + 1
    raw = script[begin:at]
    return ShellWord(raw, raw if opaque else value, opaque), at, trouble


def _double_quoted(script: str, at: int) -> tuple[str, int, bool, str]:
    """The inside of double quotes: text, end, whether something is expanded, and what splits."""
    value, expands, trouble = "", False, ""
    while at < len(script):
        char = script[at]
        if char == '"':
            return value, at + 1, expands, trouble
        if char == "\\" and script[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n"):
            value, at = value + script[at + 1].replace("\n", ""), at + 2
            continue
        if char == "`" or script.startswith("$(", at):
            trouble = trouble or "a command is substituted in it"
        if script.startswith(("$@", "${@", "${!"), at) or re.match(r"\$\{[^}]*\[@\]", script[at:]):
            trouble = trouble or "it takes its words from elsewhere"
        expands = expands or char in "$`"
        value, at = value + char, at + 1
    raise NotSimple("a quote is not closed")
