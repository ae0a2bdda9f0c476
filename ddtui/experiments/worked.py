"""A sweep that was worked out: all that is shown of it before it is queued. Pure data."""

from __future__ import annotations

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import InForce
from ddtui.core.sweep import Sweep
from ddtui.experiments.eta import Leg, QueueEta
from ddtui.experiments.grid import Expansion
from ddtui.experiments.plan_sweep import Arranged


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
    reusable: int = 0
    """How many were measured by this plan already."""

    @property
    def legs(self) -> tuple[Leg, ...]:
        """Those of the sweep's own experiments."""
        return self.eta.legs[self.before :]
