from __future__ import annotations

import random
from statistics import median

import pytest

from ddtui.bench.spread import spread, weighted_quantile


def test_interval_of_few_repeats_is_student_s() -> None:
    found = spread([10.0, 11.0, 12.0])
    assert found
    assert found.median == 11.0
    # the mean, and 4.303 standard errors on both sides
    assert (found.low, found.high) == pytest.approx((8.5157, 13.4843), abs=1e-3)


@pytest.mark.parametrize(("count", "low", "high"), [(6, 0, 5), (8, 0, 7), (9, 1, 7), (20, 5, 14)])
def test_interval_of_many_repeats_is_of_ranks(count: int, low: int, high: int) -> None:
    """Ranks as in every table of the sign test, counted from 0."""
    found = spread([float(value) for value in range(count)])
    assert found
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("count", [3, 5, 7, 12])
def test_interval_encloses_the_truth_as_often_as_it_says(count: int) -> None:
    rng = random.Random(count)
    hits = 0
    for _ in range(2000):
        found = spread([rng.gauss(100, 5) for _ in range(count)])
        assert found
        hits += found.low <= 100 <= found.high
    assert hits >= 0.94 * 2000


def test_one_value_none_and_missing_ones() -> None:
    one = spread([3.0])
    assert one
    assert (one.low, one.median, one.high, one.values) == (3.0, 3.0, 3.0, (3.0,))
    assert spread([]) is None
    assert spread([None]) is None
    some = spread([1.0, None, 3.0])
    assert some
    assert some.values == (1.0, 3.0)
    assert some.low == 0.0  # never negative


def test_weighted_quantile_is_that_of_the_values_repeated() -> None:
    rng = random.Random(3)
    pairs = [(rng.random(), rng.randint(1, 9)) for _ in range(101)]
    expanded = sorted(value for value, weight in pairs for _ in range(weight))
    found = weighted_quantile(pairs, 0.5)
    assert found == pytest.approx(median(expanded), abs=0.02)
    assert weighted_quantile(pairs, 1.0) == expanded[-1]
    assert weighted_quantile([], 0.5) is None
