"""Seconds until a load is ready, and what the figure rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddtui.core.events import Phase
from ddtui.core.load_eta import (
    Experience,
    overdue,
    paced_from,
    pending,
    weights_pace,
    weights_remaining,
)
from ddtui.core.load_phases import PhaseTimeline, Stretch
from ddtui.core.load_weights import Bar, WeightsProgress
from ddtui.core.spans import duration

_NO_HISTORY = "no earlier load of this model"


@dataclass(frozen=True)
class Estimate:
    """Seconds until the end of a phase, and what they rest on."""

    seconds: float | None
    source: str
    """Without seconds: why there are none."""
    of: Phase = Phase.READY
    """READY, or the last of the weights where nothing is known of what follows them."""


@dataclass(frozen=True)
class TimeLeft:
    """Adds up what is left of the present phase and what the later ones took before."""

    timeline: PhaseTimeline
    weights: Mapping[Phase, WeightsProgress]
    bars: Mapping[Phase, Bar]
    experience: Experience
    without: frozenset[Phase]
    """Phases that this start does not have."""

    def estimate(self, phase: Phase, now: float, quiet: float | None = None) -> Estimate:
        """The estimate at `now` (host's clock), the load being in `phase`.

        `quiet`: seconds for which nothing has moved, where that is longer than usual. They bring
        the end no nearer, and what was seen before them is no present rate.
        """
        silence = "" if quiet is None else f"no progress for {duration(quiet)}"
        if not self.experience.records:
            return Estimate(None, silence) if silence else self._alone(now)
        estimate = self._by_history(phase, now - (quiet or 0.0))
        if not silence:
            return estimate
        return Estimate(estimate.seconds, f"{self.experience.words()}; {silence}")

    def _by_history(self, phase: Phase, now: float) -> Estimate:
        """What is left of this phase, and what earlier loads took for those that follow."""
        experience = self.experience
        stretch = self.timeline.current
        scale = self._pace_against_history()
        rest = pending(self.timeline, experience, self.without, scale)
        source = experience.words()
        if self._drafter_is_new():
            rest += self._drafter_by_size(0.0)
            source += ", drafter by its size"
        begun = sum(each.phase == phase for each in self.timeline.stretches)
        if not stretch.open and stretch.ended is not None:
            # The next phase has begun and will say so only later.
            coming = next(iter(experience.stretches(phase)[begun:]), 0.0)
            since = max(0.0, now - stretch.ended)
            return Estimate(max(0.0, rest - coming) + overdue(coming, since), source)
        elapsed = max(0.0, now - stretch.began)
        usual = next(iter(experience.stretches(phase)[max(0, begun - 1) :]), None)
        if phase is Phase.TARGET:
            left: float | None = self._target_left(stretch, now)
            if self.weights[phase].points:
                source += ", present rate"
        elif phase is Phase.DRAFTER:
            left = overdue(usual * scale, elapsed) if usual else self._drafter_by_size(elapsed)
        else:
            left = overdue(usual, elapsed) if usual is not None else self._by_bar(phase, now)
        return Estimate((left or 0.0) + rest, source)

    def _by_bar(self, phase: Phase, now: float) -> float | None:
        """Seconds left of a phase that no earlier load had, where a bar shows it."""
        bar, stretch = self.bars.get(phase), self.timeline.current
        if bar is None or not bar.live(now) or bar.fraction < 0.1:
            return None
        return max(0.0, now - stretch.began) * (1 - bar.fraction) / bar.fraction

    def _drafter_is_new(self) -> bool:
        """Whether a drafter is to come that no earlier load had."""
        return (
            Phase.DRAFTER not in self.without
            and self.weights[Phase.DRAFTER].checkpoint is not None
            and not self.experience.stretches(Phase.DRAFTER)
            and self.timeline.last_of(Phase.DRAFTER) is None
        )

    def _alone(self, now: float) -> Estimate:
        """Without history: only what is seen, and that by name."""
        stretch = self.timeline.current
        if stretch.phase is not Phase.TARGET or not stretch.open:
            return Estimate(None, _NO_HISTORY)
        weights = self.weights[Phase.TARGET]
        if not weights.points or weights.points[-1][1] < 0.02:
            return Estimate(None, _NO_HISTORY)
        left = weights_remaining(weights, stretch, now, (), None)
        if left is None:
            return Estimate(None, _NO_HISTORY)
        drafter = 0.0 if Phase.DRAFTER in self.without else self._drafter_by_size(0.0)
        last = Phase.DRAFTER if drafter else Phase.TARGET
        return Estimate(left + drafter, "present rate", last)

    def _target_left(self, stretch: Stretch, now: float) -> float:
        weights = self.weights[Phase.TARGET]
        seen = weights_pace(weights.points, paced_from(stretch, weights.points), (), None)
        seen = seen or weights_pace(weights.lead, stretch.began, (), None)
        expected = self.experience.target_seconds(seen)
        curve = self.experience.curve(seen)
        left = weights_remaining(weights, stretch, now, curve, expected)
        return left if left is not None else 0.0

    def _pace_against_history(self) -> float:
        """How the target's load went against earlier ones: 2 for half as fast."""
        stretch = self.timeline.first_of(Phase.TARGET)
        expected = self.experience.seconds(Phase.TARGET)
        if stretch is None or not expected:
            return 1.0
        if stretch.ended is not None:
            pace: float | None = stretch.ended - stretch.began
        else:
            points = self.weights[Phase.TARGET].points
            pace = weights_pace(points, stretch.began, (), expected)
        return min(10.0, max(0.1, (pace or expected) / expected))

    def _drafter_by_size(self, elapsed: float) -> float:
        """Seconds of a drafter that was never loaded: by the target's bytes per second."""
        target, drafter = self.weights[Phase.TARGET], self.weights[Phase.DRAFTER]
        stretch = self.timeline.first_of(Phase.TARGET)
        if not target.checkpoint or not drafter.checkpoint or stretch is None:
            return 0.0
        pace = (
            stretch.ended - stretch.began
            if stretch.ended is not None
            else weights_pace(target.points, stretch.began, (), None)
        )
        return overdue(drafter.checkpoint / target.checkpoint * pace, elapsed) if pace else 0.0
