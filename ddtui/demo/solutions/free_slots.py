"""Free times between appointments."""

from __future__ import annotations


def free_slots(busy: list[list[int]], start: int, end: int, least: int) -> list[list[int]]:
    """Find the gaps of at least `least` minutes."""
    slots, free = [], start
    for begins, ends in sorted(busy):
        if ends <= begins:
            continue
        if min(begins, end) - free >= least:
            slots.append([free, min(begins, end)])
        free = max(free, ends)
    if end - free >= least:
        slots.append([free, end])
    return slots
