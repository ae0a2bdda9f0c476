"""How often a digit is written when one counts."""

from __future__ import annotations


def count_digit(limit: int, digit: int) -> int:
    """Count by place, since there are too many numbers to look at."""
    total, place = 0, 1
    while place <= limit:
        higher, here, lower = limit // (place * 10), limit // place % 10, limit % place
        if digit == 0:
            higher -= 1
        total += higher * place
        if here > digit:
            total += place
        elif here == digit:
            total += lower + 1
        place *= 10
    return total
