"""Ratios with their intervals: exact figures, and what holds for all repeats."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.bench.quantiles import t_factor
from ddtui.bench.spread import spread
from ddtui.core.measurement import Spread
from ddtui.experiments.intervals import drift, ratio, usable

rates = st.floats(0.01, 1e6)
repeats = st.lists(rates, min_size=1, max_size=8)


def of(*values: float) -> Spread:
    found = spread(values)
    assert found is not None
    return found


def test_a_ratio_and_its_interval_by_hand() -> None:
    # Logs of 100, 110, 121 are equally spaced by log 1.1; so are those of 200, 220, 242. The
    # variance of each is (log 1.1)^2, of each mean a third of it, and Welch's degrees are 4.
    found = ratio(of(200, 220, 242), of(100, 110, 121))
    assert found is not None
    half = 2.776 * math.log(1.1) * math.sqrt(2 / 3)
    assert found.value == pytest.approx(2.0)
    assert found.low == pytest.approx(2 * math.exp(-half))
    assert found.high == pytest.approx(2 * math.exp(half))


def test_one_repeat_borrows_the_other_sides_variance() -> None:
    found = ratio(of(100), of(100, 110, 121))
    assert found is not None
    half = 4.303 * math.log(1.1) * math.sqrt(1 + 1 / 3)
    assert found.low == pytest.approx(100 / 110 * math.exp(-half))
    assert found.high == pytest.approx(100 / 110 * math.exp(half))


def test_one_repeat_on_both_sides_has_no_interval() -> None:
    found = ratio(of(100), of(110))
    assert found is not None
    assert (found.value, found.low, found.high) == (100 / 110, None, None)


def test_two_equal_repeats_tell_of_no_variance() -> None:
    equal = ratio(of(5, 5), of(4, 4))
    assert equal is not None
    assert (equal.value, equal.low, equal.high) == (1.25, None, None)
    # Beside others they borrow, as one repeat does.
    assert ratio(of(100, 100), of(100, 110, 121)) == ratio(of(100), of(100, 110, 121))


def test_a_repeat_without_a_logarithm_gives_no_interval() -> None:
    """It is in the median, and an interval of the others alone would be of something else."""
    for found in (ratio(of(0, 5, 5), of(4, 4.1, 4.2)), ratio(of(4, 4.1, 4.2), of(0, 5, 5))):
        assert found is not None
        assert (found.low, found.high) == (None, None)


def test_an_interval_without_its_repeats_is_taken_as_it_is() -> None:
    found = ratio(Spread(100, 95, 105), Spread(100, 95, 105))
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    # Two of ±5 % together are about ±7 %.
    assert 1 / found.low == pytest.approx(found.high)
    assert found.high == pytest.approx(math.exp(math.log(105 / 95) / 2 * math.sqrt(2)))


@pytest.mark.parametrize(
    "figure",
    [None, Spread(math.nan, 1, 2), Spread(0, 0, 0), Spread(-1, -2, 0), Spread(1, 1, math.inf)],
)
def test_what_is_no_figure_is_compared_with_nothing(figure: Spread | None) -> None:
    assert usable(figure) is None
    assert ratio(figure, of(1, 2)) is None
    assert ratio(of(1, 2), figure) is None


@given(repeats, repeats)
def test_intervals_are_finite_hold_their_ratio_and_turn_around(
    ours: list[float], theirs: list[float]
) -> None:
    found, turned = ratio(of(*ours), of(*theirs)), ratio(of(*theirs), of(*ours))
    assert found is not None
    assert turned is not None
    assert math.isfinite(found.value)
    if all(len(side) < 3 and len(set(side)) == 1 for side in (ours, theirs)):
        assert found.low is None
        return
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high < math.inf
    assert turned.low is not None
    if found.high < 1e100:
        assert turned.low == pytest.approx(1 / found.high, rel=1e-6)


@given(st.lists(rates, min_size=2, max_size=8), rates)
def test_a_unit_changes_no_ratio(values: list[float], unit: float) -> None:
    plain = ratio(of(*values), of(*values))
    scaled = ratio(of(*(each * unit for each in values)), of(*(each * unit for each in values)))
    assert plain is not None
    assert scaled is not None
    assert plain.value == scaled.value == 1
    assert plain.low == pytest.approx(scaled.low, rel=1e-6)


def test_t_falls_to_the_normal_quantile() -> None:
    factors = [t_factor(degrees) for degrees in (1, 1.9, 2, 4, 30, 31, 60, 120, math.inf)]
    assert factors == sorted(factors, reverse=True)
    assert factors[:2] == [12.706, 12.706]
    assert t_factor(60) == pytest.approx(2.000, abs=0.003)
    assert t_factor(math.inf) == pytest.approx(1.96, abs=0.001)


def test_nineteen_of_twenty_intervals_hold_the_truth() -> None:
    # Three repeats that vary by 2 %, the usual bench: the interval must hold the true ratio (1.1)
    # about as often as it says. Seeded: the same trials each time.
    luck = random.Random(8)
    held = 0
    for _ in range(1000):
        ours = of(*(110 * math.exp(luck.gauss(0, 0.02)) for _ in range(3)))
        theirs = of(*(100 * math.exp(luck.gauss(0, 0.02)) for _ in range(3)))
        found = ratio(ours, theirs)
        assert found is not None
        held += (found.low or 0) <= 1.1 <= (found.high or 0)
    assert 930 <= held <= 990


def test_drift_is_between_measurements() -> None:
    assert drift([of(100, 101, 99), of(103), None]) == pytest.approx(0.03)
    assert drift([of(100), None]) is None
