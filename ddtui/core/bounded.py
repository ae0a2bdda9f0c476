"""Numbers in text from a host, within bounds.

Whatever was sent, reading it neither fails nor takes long, and gives a figure that all that follows
can compute with.
"""

from __future__ import annotations

LARGEST = 2**63 - 1
"""The largest whole number believed; the kernel writes larger ones for "none"."""
_MOST_DIGITS = 19
_LONGEST = 40
"""Characters of a fraction; Python's own `repr` needs 24."""
_LARGEST_FRACTION = 1e18


def bounded_int(text: str) -> int | None:
    """The whole number that stands in decimal digits; None for anything else, or a larger one."""
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= LARGEST else None


def bounded_float(text: str) -> float | None:
    """The finite number in a text, at most 1e18 either way; None for anything else."""
    if len(text) > _LONGEST or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if -_LARGEST_FRACTION <= number <= _LARGEST_FRACTION else None


def within(number: float | None, least: float, most: float) -> float | None:
    """The number where it is a possible one; None where it is not, or none at all."""
    return number if number is not None and least <= number <= most else None
