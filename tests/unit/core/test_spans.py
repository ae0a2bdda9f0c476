from __future__ import annotations

import pytest

from ddtui.core.spans import about, duration


@pytest.mark.parametrize(
    ("seconds", "exact", "roughly"),
    [
        (-3, "0 s", "0 s"),
        (9.4, "9 s", "9 s"),
        (59.6, "1 m 00 s", "1 m 00 s"),
        (100, "1 m 40 s", "1 m 40 s"),
        (372, "6 m 12 s", "6 m"),
        (3_599, "59 m 59 s", "1 h 00 m"),
        (7_530, "2 h 05 m", "2 h 06 m"),
        (273_600, "3 d 04 h", "3 d 04 h"),
    ],
)
def test_spans_are_told_in_their_two_largest_units(
    seconds: float, exact: str, roughly: str
) -> None:
    assert (duration(seconds), about(seconds)) == (exact, roughly)
