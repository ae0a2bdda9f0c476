"""The order in which to build things that need others."""

from __future__ import annotations

import heapq


def build_order(needs: dict[str, list[str]]) -> list[str]:
    """Build what is ready, the first name first."""
    missing = {name: set(others) for name, others in needs.items()}
    for others in needs.values():
        for other in others:
            missing.setdefault(other, set())
    users: dict[str, list[str]] = {}
    for name, needed in missing.items():
        for other in needed:
            users.setdefault(other, []).append(name)
    ready = [name for name, needed in missing.items() if not needed]
    heapq.heapify(ready)
    order = []
    while ready:
        name = heapq.heappop(ready)
        order.append(name)
        for user in users.get(name, []):
            missing[user].discard(name)
            if not missing[user]:
                heapq.heappush(ready, user)
    if len(order) < len(missing):
        raise ValueError("cycle")
    return order
