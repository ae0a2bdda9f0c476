"""What is wrong with a text that is no TOML, in words of ddtui's own and with an example."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import tomli

LARGEST = 2**63
"""Of a whole number: TOML has 64 bits for it."""
_EXAMPLE = 'write key = "text", key = 1 or key = true'
_WORDS = (
    ("Invalid value", f"what stands after the = is no value; {_EXAMPLE}"),
    ("Invalid statement", f"the line is neither a [table] nor key = value; {_EXAMPLE}"),
    ("Expected '='", f"a key stands without a value; {_EXAMPLE}"),
    ("Expected newline", "more stands after the value; write one key = value a line"),
    ("Invalid initial character", f"a key is missing before the =; {_EXAMPLE}"),
    ("Unclosed array", "a list is not closed; write key = [1, 2]"),
    ("Unclosed inline table", "a table is not closed; write key = { name = 1 }"),
    ("Unterminated string", 'a text has no closing quote; write key = "text"'),
    ('Expected "\'"', "a text has no closing quote; write key = 'text'"),
    ("Illegal character", 'a text has no closing quote in its line; write key = "text"'),
    ("Found invalid character", "a control character stands there; remove it"),
    ("Unescaped", "a backslash stands alone; write two, or the text in single quotes: 'a\\b'"),
    ("Expected ']", "a table's name is not closed; write [table]"),
    ("Cannot declare", "the table stands there twice; keep one of the two"),
    ("Duplicate inline table key", "a key stands twice in the braces; keep one of the two"),
    ("Cannot mutate immutable", "a table is written in braces and added to below; keep one form"),
    ("Cannot redefine namespace", "the table stands there twice; keep one of the two"),
    ("Invalid hex value", 'a \\u or \\x of a text lacks digits; write "\\u00e9"'),
    ("Invalid date or datetime", "it is no date; write 2026-03-01, or quotes around a text"),
)
"""How the parser begins its message, and what is said instead."""


def toml_fault(error: tomli.TOMLDecodeError) -> str:
    """What is wrong, and where in its line."""
    words = next((said for begin, said in _WORDS if error.msg.startswith(begin)), error.msg)
    return f"is not valid TOML: {words} (column {error.colno})"


def limit_fault(error: ValueError | RecursionError) -> str:
    """What is too much for the parser."""
    if isinstance(error, RecursionError):
        return "is not valid TOML: lists or tables are nested too deeply; keep them flat"
    return "is not valid TOML: a number has too many digits"


def too_large(
    table: Mapping[str, Any] | list[Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Where whole numbers stand that TOML has no room for."""
    inner = table.items() if isinstance(table, Mapping) else ((None, each) for each in table)
    for name, value in inner:
        here = path if name is None else (*path, name)
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            yield here
        elif isinstance(value, Mapping | list):
            yield from too_large(value, here)


def line_of_digits(text: str) -> int | None:
    """The line that has the longest number, from 1; None where there is none."""
    found = max(re.finditer(r"[0-9_]{1000,}", text), key=lambda each: len(each[0]), default=None)
    return None if found is None else text.count("\n", 0, found.start()) + 1
