"""Whether a configuration is faster than the baseline, by how much, and why. Pure.

Two configurations differ when the 95 % interval of their ratio, widened by a margin, leaves 1 out.
The margin stands for what repeats within one load cannot show: a fresh load of the very same
configuration never gives quite the same figures. It is the drift between the measurements of the
baseline where that was measured more than once (else the largest drift of another configuration
that was), and 1 % at least.

Why: tok/s per user is acceptance length over step time. So a change pays if and only if it raises
the acceptance length by a larger factor than the step time.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from ddtui.bench.coding_statistics import flips, wilson_interval
from ddtui.core.measurement import Cell, CodingResult, Spread
from ddtui.experiments.grouping import Group, that_count
from ddtui.experiments.intervals import Ratio, drift, ratio, usable

SMALLEST_DIFFERENCE = 0.01
"""A difference below this share is a tie, however steady the repeats were."""

_BRIEF = 40
"""Characters of a reason for which a column has room."""


class Standing(enum.StrEnum):
    """How a configuration stands against the baseline."""

    BASELINE = "baseline"
    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    UNCLEAR = "unclear"
    """One repeat on both sides: there is no interval."""
    NOT_COMPARED = "not compared"
    """One of the two was not measured so."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration against the baseline, at one concurrency."""

    standing: Standing
    by: str = ""
    """Which rate decided: `user` (tok/s per user), or `total` where no other was measured."""
    user_rate: Ratio | None = None
    total_rate: Ratio | None = None
    acceptance: Ratio | None = msgspec.field(default=None, name="acceptance_length")
    """Of the acceptance length, called so in JSON."""
    step_time: Ratio | None = None
    pays: bool | None = None
    """Whether acceptance grew by the larger factor; None where a factor is not known."""
    reason: str = ""
    """Why, in short: `a pass costs more than it brings`."""

    @property
    def why(self) -> str:
        """Why, with the factors."""
        if self.acceptance is None or self.step_time is None:
            return self.reason
        factors = f"acceptance ×{self.acceptance.value:.2f}, step time ×{self.step_time.value:.2f}"
        return f"{factors}: {self.reason}" if self.reason else factors

    @property
    def brief(self) -> str:
        """Why, for a column: `accept +8 %, step +3 %`; or why there is no verdict."""
        if self.standing is Standing.NOT_COMPARED:
            return self.reason if len(self.reason) <= _BRIEF else "not measured alike"
        if self.acceptance is None or self.step_time is None:
            return self.reason if len(self.reason) <= _BRIEF else ""
        brought, cost = (
            round((each.value - 1) * 100) for each in (self.acceptance, self.step_time)
        )
        return f"accept {brought:+d} %, step {cost:+d} %"


class CodingView(msgspec.Struct, frozen=True, kw_only=True):
    """Coding tests of one configuration, and what changed against the baseline's."""

    passed: int
    total: int
    low: float
    """Bounds of the Wilson 95 % interval of the share that passes."""
    high: float
    isolation: str
    gained: tuple[str, ...] = ()
    """Tasks that pass here and not with the baseline."""
    lost: tuple[str, ...] = ()
    """Tasks that pass with the baseline and not here, each with its verdict here."""
    compared: bool = False
    """Whether the baseline was asked the same tasks."""


def step_time(cell: Cell) -> Spread | None:
    """Seconds of one pass; acceptance length x TPOT where the bench did not say."""
    if (known := usable(cell.step_time)) is not None:
        return known
    length, tpot = usable(cell.acceptance_length), usable(cell.tpot)
    if length is None or tpot is None:
        return None
    paired = len(length.values) == len(tpot.values)
    values = tuple(a * t for a, t in zip(length.values, tpot.values, strict=True)) if paired else ()
    bounds = (length.median * tpot.median, length.low * tpot.low, length.high * tpot.high)
    return Spread(*bounds, values)


def margin_of(groups: Iterable[Group], baseline: Group | None, concurrency: int) -> float:
    """How far a ratio must be from 1 beyond its interval: a share."""
    drifts = {group.key: found for group in groups if (found := drift_of(group, concurrency))}
    if baseline is not None and baseline.key in drifts:
        return max(SMALLEST_DIFFERENCE, drifts[baseline.key])
    return max([SMALLEST_DIFFERENCE, *drifts.values()])


def drift_of(group: Group, concurrency: int) -> float | None:
    """Drift between the measurements of one configuration; None where there is but one."""
    return drift([rate_of(cell)[1] for _, cell in that_count(group.members, concurrency)])


def rate_of(cell: Cell) -> tuple[str, Spread | None]:
    """The rate that decides among many: per user, else in total; with its name.

    Where requests failed beside others there may be no rate of a user, and that in total is then
    compared with the baseline's own alone: beside the rates of users it would look like the best.
    """
    user = usable(cell.user_rate)
    left_out = cell.concurrency > 1 and (cell.failed or cell.stalled)
    if user is not None or left_out:
        return "user", user
    return "total", usable(cell.total_rate)


def standing_of(found: Ratio | None, margin: float) -> Standing:
    """What a ratio of rates says."""
    if found is None:
        return Standing.NOT_COMPARED
    if found.low is None or found.high is None:
        return Standing.UNCLEAR
    if found.low > 1 + margin:
        return Standing.FASTER
    return Standing.SLOWER if found.high * (1 + margin) < 1 else Standing.TIE


def compared(cell: Cell | None, reference: Cell | None, margin: float) -> Comparison:
    """A cell against the baseline's cell of the same concurrency."""
    if cell is None or reference is None:
        why = "it was not measured at this concurrency"
        if cell is not None:
            why = "the baseline was not measured at this concurrency with this work"
        return Comparison(standing=Standing.NOT_COMPARED, reason=why)
    user = ratio(cell.user_rate, reference.user_rate)
    total = ratio(cell.total_rate, reference.total_rate)
    by, decides = ("user", user) if user is not None else ("total", total)
    standing = standing_of(decides, margin)
    length = ratio(cell.acceptance_length, reference.acceptance_length)
    step = ratio(step_time(cell), step_time(reference))
    known = length is not None and step is not None
    return Comparison(
        standing=standing,
        by=by if decides is not None else "",
        user_rate=user,
        total_rate=total,
        acceptance=length,
        step_time=step,
        pays=length.value > step.value if known and length and step else None,
        reason=_reason(standing, length, step),
    )


def _reason(standing: Standing, length: Ratio | None, step: Ratio | None) -> str:
    if standing is Standing.NOT_COMPARED:
        return "no rate was measured on both sides"
    if standing is Standing.UNCLEAR:
        return "one repeat on each side gives no interval"
    if length is None or step is None:
        return ""
    more, longer = length.value >= 1, step.value >= 1
    if standing is Standing.TIE:
        return _why_tie(length.value - 1, step.value - 1)
    if standing is Standing.FASTER:
        if more and longer:
            return "a pass brings more than it costs"
        return "a pass brings more" if more else "a pass brings less, and is much shorter"
    if more:
        return "a pass costs more than it brings" if longer else "the rates say otherwise"
    return "a pass brings less" + ("" if longer else ", and is not short enough for it")


def _why_tie(brought: float, cost: float) -> str:
    """Of acceptance and step time as shares more or less."""
    if max(abs(brought), abs(cost)) < SMALLEST_DIFFERENCE:
        return "hardly any effect"
    if brought * cost > 0 and min(abs(brought), abs(cost)) >= SMALLEST_DIFFERENCE:
        return "acceptance and step time make up for each other"
    return "too little to be told from the spread"


def divided(found: Comparison, margin: float) -> str:
    """What is said where one user is served faster and all together slower, or the other way.

    A configuration that serves fewer at once does that: the others wait.
    """
    one, all_ = standing_of(found.user_rate, margin), standing_of(found.total_rate, margin)
    if {one, all_} != {Standing.FASTER, Standing.SLOWER} or found.total_rate is None:
        return ""
    return f"{one} for one user, and {all_} in total (×{found.total_rate.value:.2f})"


def coding_view(coding: CodingResult | None, reference: CodingResult | None) -> CodingView | None:
    """The coding tests of a row; None where none was judged."""
    if coding is None or not coding.total:
        return None
    low, high = wilson_interval(coding.passed, coding.total)
    found = None if reference is None else flips(reference, coding)
    same = found is not None and found.same_tasks and found.compared > 0
    gained = found.gained if found is not None and same else ()
    lost = found.lost if found is not None and same else ()
    return CodingView(
        passed=coding.passed,
        total=coding.total,
        low=low,
        high=high,
        isolation=coding.isolation,
        gained=gained,
        lost=tuple(f"{task} ({coding.verdicts[task]})" for task in lost),
        compared=same,
    )
