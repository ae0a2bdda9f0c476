"""How ragged a text must be at least when it is broken into lines."""

from __future__ import annotations


def raggedness(words: list[str], width: int) -> int | None:
    """Break lines where the sum of squares is least."""
    best: list[int | None] = [None] * (len(words) + 1)
    best[len(words)] = 0
    for first in range(len(words) - 1, -1, -1):
        length = -1
        for after in range(first + 1, len(words) + 1):
            length += 1 + len(words[after - 1])
            if length > width:
                break
            rest = best[after]
            if rest is None:
                continue
            cost = rest + (0 if after == len(words) else (width - length) ** 2)
            known = best[first]
            if known is None or cost < known:
                best[first] = cost
    return best[0]
