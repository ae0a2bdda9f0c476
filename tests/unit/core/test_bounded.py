from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.bounded import bounded_float, bounded_int, within


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("0", 0), ("007", 7), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None)),
        *(("9" * 5000, None), ("", None), ("-1", None), ("1.0", None), ("٣", None), ("²", None)),
        ("18446744073709551615", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert bounded_int(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("0.5", 0.5), ("-3", -3.0), ("1e18", 1e18), ("1e19", None), ("-1e300", None)),
        *(("9" * 400, None), ("nan", None), ("inf", None), ("1_0", None), ("", None), ("x", None)),
        ("184.977782161963", 184.977782161963),
    ],
)
def test_fractions(text: str, number: float | None) -> None:
    assert bounded_float(text) == number


def test_possible_figures() -> None:
    assert [within(number, 0, 1) for number in (0.0, 1.0, 1.1, -0.1, math.nan, None)] == [
        *(0.0, 1.0, None, None, None, None),
    ]


@given(st.one_of(st.text(), st.text("0123456789.e-+", min_size=300)))
def test_nothing_fails(text: str) -> None:
    number, fraction = bounded_int(text), bounded_float(text)
    assert number is None or 0 <= number < 2**63
    assert fraction is None or math.isfinite(fraction * 1e15)
