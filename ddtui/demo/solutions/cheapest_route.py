"""Cheapest route when coupons halve the price of roads."""

from __future__ import annotations

import heapq


def cheapest_route(roads: list[list[int]], start: int, goal: int, coupons: int) -> int | None:
    """Search over towns and coupons left."""
    ways: dict[int, list[tuple[int, int]]] = {}
    for one, other, cost in roads:
        ways.setdefault(one, []).append((other, cost))
        ways.setdefault(other, []).append((one, cost))
    heap, done = [(0, start, coupons)], set()
    while heap:
        spent, town, left = heapq.heappop(heap)
        if town == goal:
            return spent
        if (town, left) in done:
            continue
        done.add((town, left))
        for there, cost in ways.get(town, []):
            heapq.heappush(heap, (spent + cost, there, left))
            if left:
                heapq.heappush(heap, (spent + cost // 2, there, left - 1))
    return None
