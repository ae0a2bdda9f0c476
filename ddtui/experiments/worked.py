"""A sweep that was worked out: all that is shown of it before it is queued. Pure data."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import InForce
from ddtui.core.sweep import Sweep
from ddtui.experiments.eta import Leg, QueueEta
from ddtui.experiments.grid import Expansion
from ddtui.experiments.plan_sweep import Arranged, Planned


class Worked(msgspec.Struct, frozen=True, kw_only=True):
    """All that is shown of a sweep."""

    host: str
    simulated: bool
    sweep: Sweep
    plan: BenchPlan
    expansion: Expansion
    arranged: Arranged
    before: int
    """Experiments that are in the queue already and come first."""
    eta: QueueEta
    """Of these, then of the sweep's."""
    checked: bool
    """Whether the host was asked."""
    in_force: InForce | None = None
    """What it is made on; None where the host was not asked."""
    at_the_end: str = ""
    """What the engine is loaded for once all is done, in words; empty for nothing."""
    reusable: int = 0
    """How many were measured by this plan already."""

    @property
    def legs(self) -> tuple[Leg, ...]:
        """Those of the sweep's own experiments."""
        return self.eta.legs[self.before :]


def by_reason(blocked: Sequence[Planned]) -> list[tuple[str, list[str]]]:
    """Each first reason, and the titles of what it blocks, in their order."""
    found: dict[str, list[str]] = {}
    for each in blocked:
        found.setdefault(each.blocked[0], []).append(each.combination.title)
    return list(found.items())


def blocked_titles(titles: Sequence[str], count: int) -> str:
    """What one reason blocks, in short, of `count` in all: up to three by title, else how many."""
    if len(titles) <= 3:
        return ", ".join(titles)
    if len(titles) == count:
        return f"all {count} configurations"
    return f"{len(titles)} configurations ({titles[0]}, {titles[1]}, ...)"
