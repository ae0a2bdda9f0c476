"""Numbers in positive and negative bases."""

from __future__ import annotations


def to_base(value: int, base: int) -> str:
    """Write a number in a base."""
    if not 2 <= abs(base) <= 10:
        raise ValueError("base")
    if value == 0:
        return "0"
    sign = "-" if value < 0 < base else ""
    rest, digits = (abs(value) if base > 0 else value), ""
    while rest:
        digit = rest % abs(base)
        digits = str(digit) + digits
        rest = (rest - digit) // base
    return sign + digits
