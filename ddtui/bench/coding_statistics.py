"""What the coding tests of one configuration say beside another's."""

from __future__ import annotations

import math

import msgspec

from ddtui.bench.quantiles import Z
from ddtui.core.measurement import CodingResult, Verdict


def wilson_interval(passed: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share, from 0 to 1.

    Wilson, E. B. (1927): Probable inference, the law of succession, and statistical inference.

    Raises:
        ValueError: `passed` is not between 0 and `total`.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} is no share")
    if total == 0:
        return 0.0, 1.0
    share, square = passed / total, Z * Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    spread = Z * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    spread /= 1 + square / total
    low = 0.0 if passed == 0 else max(0.0, middle - spread)
    high = 1.0 if passed == total else min(1.0, middle + spread)
    return low, high


class Flips(msgspec.Struct, frozen=True):
    """Tasks that end differently than in the baseline; far more sensitive than the counts."""

    lost: tuple[str, ...]
    """Passed in the baseline, and not now."""
    gained: tuple[str, ...]
    compared: int
    """Tasks that were judged in both."""
    same_tasks: bool
    """Whether both were asked the very same tasks; flips mean little otherwise."""


def flips(baseline: CodingResult, now: CodingResult) -> Flips:
    """Which tasks flipped; one that was not run on either side is left out."""
    both = [
        name
        for name, verdict in now.verdicts.items()
        if verdict is not Verdict.NOT_RUN
        and baseline.verdicts.get(name, Verdict.NOT_RUN) is not Verdict.NOT_RUN
    ]
    passed_before = {name for name in both if baseline.verdicts[name] is Verdict.PASS}
    passed_now = {name for name in both if now.verdicts[name] is Verdict.PASS}
    return Flips(
        tuple(sorted(passed_before - passed_now)),
        tuple(sorted(passed_now - passed_before)),
        len(both),
        baseline.tasks == now.tasks,
    )
