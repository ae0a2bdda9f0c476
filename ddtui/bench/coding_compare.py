"""Whether what the code under test returned is what a task expects; the types count.

What was returned comes from the sandbox as JSON with tags (see sandbox_child) and is plain data
here: nothing of it is ever called, so that no object can lie about being equal.
"""

from __future__ import annotations

import math
from typing import Any


def same(expected: Any, got: Any, *, tuples: bool = False, tolerance: float = 0.0) -> bool:
    """Compare a value of a task with one from the sandbox.

    Args:
        expected: Plain JSON; an object `{"raises": NAME}` stands for an exception of that name, or
            of a class below it.
        got: JSON with tags.
        tuples: A tuple does for a list.
        tolerance: Largest difference of a float, relative, or absolute below 1; with one, an
            integer does for a float.
    """
    if isinstance(expected, float):
        return _near(expected, got, tolerance)
    if expected is None or isinstance(expected, (bool, int, str)):
        return type(got) is type(expected) and bool(got == expected)
    if isinstance(expected, list):
        if tuples and isinstance(got, dict) and list(got) == ["tuple"]:
            got = got["tuple"]
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(
                same(one, other, tuples=tuples, tolerance=tolerance)
                for one, other in zip(expected, got, strict=True)
            )
        )
    if list(expected) == ["raises"]:
        names = got.get("raised") if isinstance(got, dict) else None
        return isinstance(names, list) and expected["raises"] in names
    items = _items(got)
    return (
        items is not None
        and items.keys() == expected.keys()
        and all(
            same(value, items[key], tuples=tuples, tolerance=tolerance)
            for key, value in expected.items()
        )
    )


def _near(expected: float, got: Any, tolerance: float) -> bool:
    kinds = (int, float) if tolerance else (float,)
    if type(got) not in kinds:
        return False
    if math.isnan(expected):
        return bool(math.isnan(got))
    if math.isinf(expected) or not tolerance:
        return bool(got == expected)
    return bool(abs(got - expected) <= tolerance * max(1.0, abs(expected)))


def _items(got: Any) -> dict[str, Any] | None:
    """A dictionary with names as keys; None for anything else."""
    pairs = got.get("dict") if isinstance(got, dict) else None
    if not isinstance(pairs, list):
        return None
    items: dict[str, Any] = {}
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            return None
        items[pair[0]] = pair[1]
    return items


def in_words(got: Any) -> str:
    """A value from the sandbox as Python would write it, for people; never evaluated."""
    if isinstance(got, list):
        return f"[{', '.join(map(in_words, got))}]"
    if not isinstance(got, dict):
        return repr(got)
    tag, inner = next(iter(got.items()), ("", None))
    if tag == "raised" and isinstance(inner, list) and inner:
        return f"{inner[0]} raised"
    if tag == "tuple" and isinstance(inner, list):
        return f"({', '.join(map(in_words, inner))}{',' * (len(inner) == 1)})"
    if tag == "set" and isinstance(inner, list):
        return f"{{{', '.join(map(in_words, inner))}}}" if inner else "set()"
    items = _items(got)
    if items is not None:
        return f"{{{', '.join(f'{key!r}: {in_words(value)}' for key, value in items.items())}}}"
    return f"a {inner}" if tag == "other" else "a dict"


def expected_in_words(expected: Any) -> str:
    """A value of a task, for people."""
    if isinstance(expected, list):
        return f"[{', '.join(map(expected_in_words, expected))}]"
    if isinstance(expected, dict) and list(expected) == ["raises"]:
        return f"{expected['raises']} raised"
    return repr(expected)
