"""How long a load will still take: by earlier loads of the same model and by its own pace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ddtui.core.events import Phase
from ddtui.core.load_history import LoadRecord, differing_flags, time_share
from ddtui.core.load_phases import PhaseTimeline, Stretch
from ddtui.core.load_weights import ALMOST, WeightsProgress
from ddtui.core.text import counted

_PEERS = 5
_TRUST_LIKE, _TRUST_UNLIKE = 0.08, 0.008
"""Share of the expected time after which this load's own pace weighs as much as earlier ones'."""
_PAUSE = 8.0
"""Seconds without a byte that are a pause and no part of the pace."""
_ACCIDENTS = 2
"""As many pauses are accidents; with more of them, pauses are the way this load goes."""


class Experience:
    """The earlier loads that tell most of the one in progress."""

    def __init__(self, records: Sequence[LoadRecord] = ()) -> None:
        best = records[0] if records else None
        self.records = [
            record
            for record in records
            if best is not None
            and (record.tp, record.drafter) == (best.tp, best.drafter)
            and differing_flags(record.flags, best.flags) <= 2
        ][:_PEERS]

    def stretches(self, phase: Phase) -> list[float]:
        """Seconds of each stretch of a phase, the median over the loads."""
        lists = [record.stretches(phase) for record in self.records]
        longest = max((len(each) for each in lists), default=0)
        return [
            median(each[index] for each in lists if len(each) > index) for index in range(longest)
        ]

    def seconds(self, phase: Phase) -> float | None:
        """Seconds of a phase in all; None where no load had it."""
        stretches = self.stretches(phase)
        return sum(stretches) if stretches else None

    def longest_gap(self, phase: Phase) -> float | None:
        """The longest time without visible progress that a phase has had."""
        gaps = [record.longest_gaps.get(phase.value) for record in self.records]
        return max((gap for gap in gaps if gap is not None), default=None)

    def target_seconds(self, pace: float | None) -> float | None:
        """Seconds that the target's weights took, by the loads whose pace was nearest to this."""
        known = [seconds for each in self.records if (seconds := each.phase_seconds(Phase.TARGET))]
        if pace is None or not known:
            return median(known) if known else None
        nearest = min(abs(math.log(seconds / pace)) for seconds in known)
        return median(
            seconds for seconds in known if abs(math.log(seconds / pace)) <= nearest + 0.4
        )

    def curve(self, pace: float | None) -> Sequence[float]:
        """The mean shape of the target's progress, of the loads whose pace was like this one's.

        A load from the page cache has another shape than one from storage.
        """
        near = [
            record.curve
            for record in self.records
            if record.curve
            and (
                pace is None
                or abs(math.log((record.phase_seconds(Phase.TARGET) or 1) / pace)) < 0.7
            )
        ]
        if not near:
            return ()
        return [sum(values) / len(near) for values in zip(*near, strict=True)]

    def memory_record(self, *, target: bool) -> LoadRecord | None:
        """The latest load whose GPU memory was observed."""
        for record in self.records:
            if record.memory_target if target else record.memory_drafter:
                return record
        return None

    def words(self) -> str:
        """`3 loads of this model`."""
        return f"{counted(len(self.records), 'load')} of this model"


def weights_pace(
    points: Sequence[tuple[float, float]],
    began: float,
    curve: Sequence[float],
    expected: float | None,
) -> float | None:
    """Seconds that the whole of the weights takes at the pace of this load, pauses left out.

    `points` are (time, share of bytes); `curve` is the shape that earlier loads had, `expected`
    their seconds. None while too little is seen and nothing is expected.
    """
    if not points or points[-1][1] < 0.005:
        return expected
    times = [began, *(time for time, _ in points)]
    shares = [0.0, *(time_share(curve, share) for _, share in points)]
    gaps = [late - early for early, late in pairwise(times)]
    usual = median(gaps)
    pauses = [gap - usual for gap in gaps[1:] if gap > max(_PAUSE, 5 * usual)]
    excused = sum(pauses) if len(pauses) <= _ACCIDENTS else 0.0
    active = times[-1] - began - excused
    if shares[-1] <= 0.0 or active <= 0.0:
        return expected
    pace = active / shares[-1]
    recent = _recent_pace(times, shares, usual, excused > 0.0)
    if recent is not None:
        pace = math.sqrt(pace * recent)
    if expected is None:
        return pace
    # A load from the page cache is no slow or fast load from storage: then history tells nothing.
    alike = abs(math.log(pace / max(expected, 0.1))) < 0.5
    weight = max(0.2, expected * (_TRUST_LIKE if alike else _TRUST_UNLIKE))
    trust = active / (active + weight) * min(1.0, shares[-1] / 0.02)
    return math.exp(trust * math.log(pace) + (1 - trust) * math.log(max(expected, 0.1)))


def _recent_pace(
    times: Sequence[float], shares: Sequence[float], usual: float, excuse: bool
) -> float | None:
    """Seconds for the whole at the pace of the last third of what is loaded."""
    since = next(
        (at for at, share in enumerate(shares) if share >= shares[-1] * 2 / 3), len(shares) - 1
    )
    if len(shares) - since < 5:
        return None
    gaps = [late - early for early, late in zip(times[since:], times[since + 1 :], strict=False)]
    if excuse:
        gaps = [gap if gap <= max(_PAUSE, 5 * usual) else usual for gap in gaps]
    done, spent = shares[-1] - shares[since], sum(gaps)
    # What came at one moment, as after a cut of the link, tells no pace.
    return spent / done if done > 0 and spent > 0 else None


def paced_from(stretch: Stretch, points: Sequence[tuple[float, float]]) -> float:
    """Since when the slowest rank loads: the begin of the last rank where that one began late."""
    late = stretch.all_began
    return stretch.began if any(at <= late and share > 0.005 for at, share in points) else late


def weights_remaining(
    weights: WeightsProgress,
    stretch: Stretch,
    now: float,
    curve: Sequence[float],
    expected: float | None,
) -> float | None:
    """Seconds until the weights are loaded; None when nothing can be said."""
    points = weights.points
    if weights.lead and weights.lead[-1][1] > 0.02 and (not points or points[-1][1] < 0.005):
        # The slowest rank has all before it, and will take what the fastest one takes.
        return weights_pace(weights.lead, stretch.began, curve, expected)
    began = paced_from(stretch, points)
    pace = weights_pace(points, began, curve, expected)
    if pace is None:
        return None
    if not points:
        return overdue(pace, now - began)
    last, share = points[-1]
    if share >= ALMOST - 0.005:
        return overdue(pace, now - began)
    remaining = pace * (1 - time_share(curve, share))
    # What has happened since the last point is not seen; a step's worth of it is believed.
    step = (last - began) / max(1, len(points))
    return max(0.0, remaining - min(max(0.0, now - last), step))


def overdue(expected: float, elapsed: float) -> float:
    """Seconds left of something that takes `expected`: once it is late, a tenth of what it took."""
    return max(expected - elapsed, 0.1 * elapsed if elapsed > expected else 0.0)


def pending(
    timeline: PhaseTimeline, experience: Experience, without: frozenset[Phase], drafter_scale: float
) -> float:
    """Seconds of all stretches that have not begun, by earlier loads."""
    total = 0.0
    for phase in Phase:
        if phase is Phase.READY or phase in without:
            continue
        begun = sum(stretch.phase == phase for stretch in timeline.stretches)
        seconds = sum(experience.stretches(phase)[begun:])
        total += seconds * (drafter_scale if phase is Phase.DRAFTER else 1.0)
    return total
