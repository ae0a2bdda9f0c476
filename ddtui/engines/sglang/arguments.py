"""Reads the server arguments that SGLang logs.

They stand as `{'model_path': 'x', ...}` in 0.5.23, as `ServerArgs(model_path='x', ...)` before.
The line may be cut (journald breaks at 48 KiB), and holds things that are no Python literals, so it
is scanned and not evaluated.
"""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from ddtui.core.bounded import bounded_float
from ddtui.core.redact import redact_mapping

Scalar = str | int | float | bool | None

_KEY = re.compile(r"\s*(?:'(\w{1,120})':\s|(\w{1,120})=)")
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_SKIPPED = re.compile(r"""[^'"\[\](){},]+""")
_NUMBER = re.compile(r"[-+]?[0-9]+")
_LONGEST_NUMBER = 20
"""Characters of a whole number; a longer one stays text."""


def read_arguments(text: str) -> dict[str, Scalar]:
    """Return the scalar arguments by name, secrets masked; nested values are left out."""
    values: dict[str, Scalar] = {}
    position = min((at + 1 for at in (text.find("{"), text.find("(")) if at >= 0), default=0)
    while (key := _KEY.match(text, position)) is not None:
        end, is_nested = _value_end(text, key.end())
        if end >= len(text) and text[-1:] not in ")}":
            break  # the line was cut within this value
        if not is_nested:
            values[key[1] or key[2]] = scalar(text[key.end() : end])
        position = end + 1
    return safe(values)


def safe(values: dict[str, Scalar]) -> dict[str, Scalar]:
    """The same with its secrets masked."""
    masked = redact_mapping(values)
    return {name: value for name, value in masked.items() if is_scalar(value)}


def is_scalar(value: object) -> TypeGuard[Scalar]:
    """Whether a decoded value is a plain one."""
    return value is None or isinstance(value, (str, int, float, bool))


def _value_end(text: str, position: int) -> tuple[int, bool]:
    """Where a value ends (its comma, or the bracket that closes the whole), and if it is nested."""
    depth, nested, length = 0, False, len(text)
    while position < length:
        char = text[position]
        if char in "'\"":
            match = _STRING.match(text, position)
            if match is None:
                return length, nested
            position = match.end()
        elif char in "[({":
            depth, nested, position = depth + 1, True, position + 1
        elif char in "])}":
            if depth == 0:
                return position, nested
            depth, position = depth - 1, position + 1
        elif char == ",":
            if depth == 0:
                return position, nested
            position += 1
        else:
            skipped = _SKIPPED.match(text, position)
            position = skipped.end() if skipped is not None else position + 1
    return length, nested


def scalar(text: str) -> Scalar:
    """The value of a Python literal as printed; anything else stays text."""
    text = text.strip()
    if text in ("None", ""):
        return None
    if text in ("True", "False"):
        return text == "True"
    if text[0] in "'\"":
        return _unquoted(text)
    if len(text) < _LONGEST_NUMBER and _NUMBER.fullmatch(text):
        return int(text)
    number = bounded_float(text)
    return text if number is None else number


def _unquoted(text: str) -> str:
    if "\\" not in text or _STRING.fullmatch(text) is None:
        return text[1:-1]
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text[1:-1]
    return value if isinstance(value, str) else text[1:-1]


def read_pairs(text: str) -> dict[str, Scalar]:
    """The pairs of a line such as `block_size=8, window=None`."""
    pairs = (part.partition("=") for part in text.split(", "))
    return {name.strip(): scalar(value) for name, sign, value in pairs if sign}
