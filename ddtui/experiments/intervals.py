"""How much one figure is of another, with its confidence interval. Pure.

A single figure's interval is made by `ddtui.bench.spread`, that of a share by Wilson's formula in
`ddtui.bench.coding_statistics`. Here they are compared. Repeats of a bench are few (three by
default), positive, and vary by a share of their size. So a ratio's interval is Welch's (1947, "The
generalization of `Student's' problem when several different population variances are involved",
Biometrika 34) on the logarithms: differences of logarithms are logarithms of ratios. Its degrees of
freedom are rounded down, which makes it wider, never narrower. One repeat on one side borrows the
other side's variance, and so do two that are equal, for two tell of no variance by agreeing; on
both sides they give no interval. Nor does a repeat without a logarithm: one of 0.

A bootstrap is not used: three repeats have but ten different resamples, and its intervals are then
far too narrow.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from ddtui.bench.quantiles import Z, t_factor
from ddtui.core.measurement import Spread


class Ratio(msgspec.Struct, frozen=True):
    """How much a figure is of another: 0.88 is 12 % less."""

    value: float
    """Ratio of the medians."""
    low: float | None = None
    """Bounds of the 95 % interval; None where the repeats are too few for one."""
    high: float | None = None


def usable(figure: Spread | None) -> Spread | None:
    """The figure, or None where it is none: not measured, not finite, or not above zero."""
    if figure is None or not all(map(math.isfinite, (figure.median, figure.low, figure.high))):
        return None
    return figure if figure.median > 0 else None


def ratio(figure: Spread | None, reference: Spread | None) -> Ratio | None:
    """What `figure` is of `reference`, with its interval; None where one was not measured."""
    figure, reference = usable(figure), usable(reference)
    if figure is None or reference is None:
        return None
    value = figure.median / reference.median
    half = _half_width(figure, reference)
    if half is None:
        return Ratio(value)
    middle = _log_mean(figure) - _log_mean(reference)
    low, high = _exp(middle - half), _exp(middle + half)
    return Ratio(value, min(low, value), max(high, value))


def drift(figures: Sequence[Spread | None]) -> float | None:
    """How far apart measurements of one configuration lie: largest over smallest median, less 1.

    None for fewer than two.
    """
    medians = [each.median for each in map(usable, figures) if each is not None]
    return max(medians) / min(medians) - 1 if len(medians) > 1 else None


def _half_width(figure: Spread, reference: Spread) -> float | None:
    if any(not _has_log(each) for side in (figure, reference) for each in side.values):
        return None
    one, other = _variance_of_mean(figure), _variance_of_mean(reference)
    if one is None and other is None:
        return None
    # A variance of one repeat is not known: that of the other side's repeats stands for it.
    (v1, d1), (v2, d2) = one or _borrowed(reference), other or _borrowed(figure)
    total = v1 + v2
    if total <= 0:
        return 0.0
    if one is None or other is None:
        return t_factor(d1) * math.sqrt(total)
    # Welch's degrees of freedom. They are a ratio of squares: only the shares count.
    uncertain = (v1 / total) ** 2 / d1 + (v2 / total) ** 2 / d2
    degrees = 1 / uncertain if uncertain else math.inf
    return t_factor(degrees) * math.sqrt(total)


def _variance_of_mean(figure: Spread) -> tuple[float, float] | None:
    """Of the mean logarithm, with its degrees of freedom; None where it is not known."""
    logs = _logs(figure)
    if len(logs) == 2 and logs[0] == logs[1]:
        return None
    if len(logs) > 1:
        mean = statistics.fmean(logs)
        squares = math.fsum((each - mean) ** 2 for each in logs)
        return squares / (len(logs) - 1) / len(logs), len(logs) - 1.0
    if not figure.low < figure.high or figure.low <= 0:
        return None
    # Somebody else's interval, without the repeats that it is of.
    return ((math.log(figure.high / figure.low)) / (2 * Z)) ** 2, math.inf


def _borrowed(figure: Spread) -> tuple[float, float]:
    """The variance of one repeat by those of another configuration."""
    known = _variance_of_mean(figure)
    if known is None:
        raise AssertionError("asked only where one side has an interval")
    return known[0] * max(1, len(_logs(figure))), known[1]


def _logs(figure: Spread) -> list[float]:
    return [math.log(each) for each in figure.values if _has_log(each)]


def _log_mean(figure: Spread) -> float:
    logs = _logs(figure)
    return statistics.fmean(logs) if logs else math.log(figure.median)


def _exp(exponent: float) -> float:
    # Two repeats that have nothing in common give an interval that no number can hold.
    return math.exp(max(-700.0, min(700.0, exponent)))


def _has_log(value: float) -> bool:
    return math.isfinite(value) and value > 0
