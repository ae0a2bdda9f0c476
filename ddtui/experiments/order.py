"""The order in which experiments are run: as few loads of the engine as possible. Pure.

Experiments of one configuration share a load. The first group is the one that is in force already,
then comes the baseline, then the others as they first appear. What has its place keeps it: what
runs, what is held, and what an operator has moved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from ddtui.core.experiment import Experiment, ExperimentState


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment, as far as its order matters."""

    id: str
    key: str = ""
    """Of its configuration; empty for one that is not known, which is like no other."""
    running: bool = False
    held: bool = False
    """Passed over: it costs no load, and its place is kept."""
    fixed: bool = False
    """Its place is kept."""
    baseline: bool = False
    loads: bool = True
    """Whether the engine has to be loaded for it at all: not where a measurement is reused."""

    @property
    def kept(self) -> bool:
        """Whether it stays where it is."""
        return self.running or self.held or self.fixed


def item_of(experiment: Experiment, key: str) -> Item:
    """What is in the queue already: it keeps its place. `key` is that of its configuration."""
    return Item(
        id=experiment.id,
        key=key,
        running=experiment.state is ExperimentState.RUNNING,
        held=experiment.state is ExperimentState.HELD,
        fixed=True,
        loads=not experiment.reused,
    )


class _Ahead(NamedTuple):
    """What lies ahead of a place."""

    free: int
    """Places that can be filled, this one included, until the next kept item."""
    key: str
    """Of that item; empty for none."""


def reloads(items: Iterable[Item], in_force: str = "") -> int:
    """How often the engine is loaded for items in this order; `in_force` is loaded already."""
    return sum(loads_for(items, in_force))


def loads_for(items: Iterable[Item], in_force: str = "") -> list[bool]:
    """For each item: whether the engine is loaded for it."""
    found, now = [], in_force
    for item in items:
        if item.held or not item.loads:
            found.append(False)
            continue
        # What runs may have been loaded already; whether it is, its runner knows.
        found.append(not item.key or item.key != now)
        now = item.key
    return found


def ordered(items: Sequence[Item], in_force: str = "") -> list[Item]:
    """The same items in an order that loads the engine least.

    Never more often than the order given. Items that are `kept` have the same index as before, but
    for what runs, which comes first.
    """
    naive = [*(each for each in items if each.running), *(x for x in items if not x.running)]
    planned = _filled(naive, in_force)
    return planned if reloads(planned, in_force) <= reloads(naive, in_force) else naive


def _filled(items: Sequence[Item], in_force: str) -> list[Item]:
    """Kept items in their places, the others in groups between them."""
    groups = _groups(each for each in items if not each.kept)
    ahead = _ahead(items)
    result: list[Item] = []
    now = in_force
    for at, item in enumerate(items):
        chosen = item if item.kept else _next(groups, now, ahead[at])
        if not item.kept:
            _taken(groups, chosen)
        result.append(chosen)
        if not chosen.held and chosen.loads:
            now = chosen.key
    return result


def _ahead(items: Sequence[Item]) -> list[_Ahead]:
    """For each place: how many free ones there are until the next kept item, and its key."""
    found: list[_Ahead] = []
    free, key = 0, ""
    for item in reversed(items):
        if item.kept and not item.held:
            free, key = 0, item.key
        elif not item.held:
            free += 1
        found.append(_Ahead(free, key))
    return found[::-1]


def _groups(items: Iterable[Item]) -> dict[str, deque[Item]]:
    """Items by configuration: each group in order, that of the baseline first."""
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(_group_of(item), []).append(item)
    for group in found.values():
        group.sort(key=lambda each: not each.baseline)
    by_baseline = sorted(found.items(), key=lambda pair: not pair[1][0].baseline)
    return {name: deque(group) for name, group in by_baseline}


def _group_of(item: Item) -> str:
    return f"key {item.key}" if item.key and item.loads else f"item {item.id}"


def _taken(groups: dict[str, deque[Item]], item: Item) -> None:
    """Take away the first one of a group."""
    name = _group_of(item)
    groups[name].popleft()
    if not groups[name]:
        del groups[name]


def _next(groups: dict[str, deque[Item]], now: str, ahead: _Ahead) -> Item:
    """What comes at a free place: what is loaded, else a group that fits before the next kept."""
    if (same := groups.get(f"key {now}")) is not None:
        return same[0]
    first = next(iter(groups.values()))
    if first[0].baseline:
        return first[0]  # the others are compared with it
    # Its own group goes right before a kept item, so that it needs no load.
    wanted = groups.get(f"key {ahead.key}") if ahead.key else None
    if wanted is not None and (len(groups) == 1 or ahead.free <= len(wanted)):
        return wanted[0]
    room = ahead.free - (len(wanted) if wanted is not None else 0)
    others = (group for group in groups.values() if group is not wanted)
    other = next(others)
    fitting = (group for group in chain((other,), others) if len(group) <= room)
    return next(fitting, other)[0]
