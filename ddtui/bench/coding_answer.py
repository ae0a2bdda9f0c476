"""Finds the code in a model's answer to a coding task.

The answer is only searched, never parsed as Python: that could crash the interpreter, and is the
sandbox's work.
"""

from __future__ import annotations

import enum
import re

import msgspec

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_FENCE = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<rest>.*)")
_LANGUAGES = {"", "python", "python3", "py"}


class Answer(msgspec.Struct, frozen=True):
    """What a model answered to a task, without what came in a channel of its own for reasoning."""

    text: str
    finish_reason: str = "stop"
    """As the engine told it: `length` if the answer was cut off."""


class Missing(enum.Enum):
    """Why an answer has no code to run."""

    NO_CODE = "no code"
    TRUNCATED = "truncated"


def extract_code(answer: Answer, entry: str) -> str | Missing:
    """The last complete Python block that defines `entry` at its top level.

    An answer that was cut off counts as truncated if it has no such block, or was in the middle of
    a later one.
    """
    visible = _without_thoughts(answer.text)
    blocks, unfinished = _blocks(visible)
    cut_off = answer.finish_reason == "length"
    if not (cut_off and unfinished):
        name = re.escape(entry)
        defines = re.compile(rf"^(?:(?:async +)?def +{name}\b|class +{name}\b|{name} *[:=])", re.M)
        for code in reversed(blocks):
            if defines.search(code):
                return code
    return Missing.TRUNCATED if cut_off else Missing.NO_CODE


def _without_thoughts(text: str) -> str:
    """The text after its thoughts; some templates open them, so that only their end is seen."""
    text = _THOUGHT.sub("", text)
    return text.rpartition("</think>")[2]


def _blocks(text: str) -> tuple[list[str], bool]:
    """All complete fenced blocks of Python, and whether the text ends within a block."""
    blocks: list[str] = []
    lines: list[str] = []
    opened: re.Match[str] | None = None
    # Not splitlines(): code may have other line ends within its strings.
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.fullmatch(line)
        if opened is None:
            if fence and not (fence["fence"][0] == "`" and "`" in fence["rest"]):
                opened, lines = fence, []
        elif fence and _closes(fence, opened):
            words = opened["rest"].strip().lower().split(maxsplit=1)
            if (words[0] if words else "") in _LANGUAGES:
                blocks.append("\n".join(lines) + "\n")
            opened = None
        else:
            lines.append(_outdented(line, len(opened["indent"])))
    return blocks, opened is not None


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    same = fence["fence"][0] == opened["fence"][0]
    return same and len(fence["fence"]) >= len(opened["fence"]) and not fence["rest"].strip()


def _outdented(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip(" "))) :]
