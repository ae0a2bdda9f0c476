"""A figure over repeats: its median and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, sqrt
from statistics import fmean, median, stdev

from ddtui.bench.quantiles import t_factor
from ddtui.core.measurement import Spread

LEVEL = 0.95
_FEWEST_FOR_RANKS = 6


def spread(values: Iterable[float | None]) -> Spread | None:
    """Median and 95 % confidence interval; None where no repeat has the figure.

    From 6 values on the interval is that of the median by order statistics: it holds for every
    distribution (H. A. David, H. N. Nagaraja, "Order Statistics", 7.1). The widest pair of ranks of
    fewer values covers less than 95 % (of three values: 75 %), so for 2 to 5 it is Student's for
    the mean: a repeat's figure is itself an average over many requests, which is near enough to
    normal. Of one value nothing can be said: low and high are the value; nor of two that are equal,
    from which nobody should conclude that the next one will be (a ratio of them has no interval).
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = _interval(sorted(known))
    return Spread(median(known), low, high, tuple(known))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    count = len(values)
    if count == 1:
        return values[0], values[0]
    if count < _FEWEST_FOR_RANKS:
        mean = fmean(values)
        half = t_factor(count - 1) * stdev(values) / sqrt(count)
        # What is measured here is never negative.
        return max(0.0, min(mean - half, values[0])), max(mean + half, values[-1])
    rank = _rank(count)
    return values[rank], values[count - 1 - rank]


def _rank(count: int) -> int:
    """The largest r for which the r-th smallest and largest values enclose the median in 95 %.

    They miss it when r or fewer values (of `count`, from 0) fall on one side of it.
    """
    missed, rank = 2 / 2**count, 0
    while missed + 2 * comb(count, rank + 1) / 2**count <= 1 - LEVEL:
        rank += 1
        missed += 2 * comb(count, rank) / 2**count
    return rank


def weighted_quantile(pairs: Iterable[tuple[float, int]], share: float) -> float | None:
    """The value below which `share` of the weight lies; pairs are (value, weight)."""
    ordered = sorted(pair for pair in pairs if pair[1] > 0)
    if not ordered:
        return None
    wanted, seen = share * sum(weight for _, weight in ordered), 0
    for value, weight in ordered:
        seen += weight
        if seen >= wanted:
            return value
    return ordered[-1][0]
