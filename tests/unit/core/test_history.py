import math

import pytest

from ddtui.core.history import Track


def test_the_largest_value_of_a_second_is_kept() -> None:
    track = Track()
    track.add(10.1, 1.0)
    track.add(10.5, 7.0)
    track.add(10.9, 3.0)
    track.add(11.0, 2.0)
    assert track.history().times == (10.0, 11.0)
    assert track.history().values == (7.0, 2.0)


def test_a_value_from_the_past_is_dropped() -> None:
    track = Track()
    track.add(20.0, 1.0)
    track.add(18.0, 9.0)
    assert track.history().values == (1.0,)


def test_the_ring_forgets_the_oldest() -> None:
    track = Track(seconds=3)
    for second in range(5):
        track.add(float(second), float(second))
    assert track.history().times == (2.0, 3.0, 4.0)


def test_an_unchanged_history_is_not_made_again() -> None:
    track = Track()
    track.add(1.0, 1.0)
    first = track.history()
    track.add(1.5, 0.5)
    assert track.history() is first


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_kept(odd: float) -> None:
    track = Track()
    track.add(1.0, 2.0)
    track.add(odd, 3.0)
    track.add(2.0, odd)
    track.add(3.0, 4.0)
    assert (track.history().times, track.history().values) == ((1.0, 3.0), (2.0, 4.0))
