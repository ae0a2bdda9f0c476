from __future__ import annotations

import math

import pytest

from ddtui.core.snapshot import History
from ddtui.ui.glyphs import ASCII, UNICODE
from ddtui.ui.ink import Ink
from ddtui.ui.widgets.bars import bar, big_digits
from ddtui.ui.widgets.chart import (
    Plot,
    Scale,
    charts,
    growing,
    nice_ceiling,
    plot,
    resample,
    span_for,
    step_for,
    window_of,
)

NOW = 1_000.0
PERCENT = Scale(0, 100)


def every_second(values: list[float], end: float = NOW) -> History:
    times = tuple(end - len(values) + 1 + index for index in range(len(values)))
    return History(times, tuple(values))


def test_the_last_column_holds_now() -> None:
    history = every_second([float(each) for each in range(10)])
    assert resample(history, NOW, 5, 1) == [5, 6, 7, 8, 9]


def test_a_column_shows_its_largest_sample() -> None:
    history = History((990.0, 991.0, 992.0, 995.0, 1000.0), (1.0, 9.0, 2.0, 4.0, 3.0))
    assert resample(history, NOW, 3, 5) == [9, 4, 3]


def test_columns_stand_still_while_time_goes_on() -> None:
    history = every_second([float(each % 17) for each in range(200)])
    early, late = resample(history, 1_000.0, 20, 5), resample(history, 1_004.9, 20, 5)
    assert early == late


def test_a_gap_is_empty_and_a_short_pause_is_not() -> None:
    history = History((980.0, 981.0, 982.0, 996.0, 997.0, 1000.0), (1.0,) * 6)
    values = resample(history, NOW, 21, 1)
    assert [math.isnan(value) for value in values[:3]] == [False] * 3
    assert all(math.isnan(value) for value in values[6:16])
    assert not any(math.isnan(value) for value in values[16:])


def test_nothing_said_ends_a_value_at_once() -> None:
    history = History((990.0, 991.0), (5.0, math.nan))
    values = resample(history, NOW, 11, 1)
    assert values[0] == 5
    assert all(math.isnan(value) for value in values[1:])


@pytest.mark.parametrize("times", [(), (2_000.0,), (1.0,)])
def test_histories_without_anything_in_the_picture(times: tuple[float, ...]) -> None:
    values = resample(History(times, (1.0,) * len(times)), NOW, 6, 1)
    assert len(values) == 6
    assert all(math.isnan(value) for value in values)


def test_zero_is_seen_and_unknown_is_not() -> None:
    row = plot([0.0, 0.0, math.nan, math.nan], 1, PERCENT, Ink.TEXT, UNICODE)[0]
    assert row.text == "⣀ "


def test_levels_fill_from_the_bottom() -> None:
    rows = plot([100.0, 50.0], 2, PERCENT, Ink.TEXT, UNICODE)
    assert [row.text for row in rows] == ["⡇", "⣿"]
    beyond = plot([1e9, -5.0], 2, PERCENT, Ink.TEXT, UNICODE)
    assert [row.text for row in beyond] == ["⡇", "⣇"]


def test_an_edge_is_one_line() -> None:
    rows = plot([0.0, 100.0, 100.0, 0.0], 1, PERCENT, Ink.TEXT, UNICODE, fill=False)
    assert rows[0].text == "⡸⢱"


def test_ascii_has_no_braille() -> None:
    rows = plot([0.0, 30.0, 60.0, 100.0], 2, PERCENT, Ink.TEXT, ASCII)
    assert all(row.text.isascii() for row in rows)


@pytest.mark.parametrize(
    ("value", "ceiling"),
    [(0, 50), (49, 50), (50, 50), (51, 100), (1_163, 2_000), (2_000, 2_000), (2_001, 5_000)],
)
def test_scales_jump_between_nice_numbers(value: float, ceiling: float) -> None:
    assert nice_ceiling(value, 50) == ceiling


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_scale_survives_what_is_no_number(value: float) -> None:
    assert nice_ceiling(value, 50) == 50


def test_time_axis_and_labels() -> None:
    history = every_second([40.0] * 600)
    plots = (Plot("load", history, PERCENT, Ink.TEXT),)
    rows = charts(plots, NOW, (60, 7), UNICODE)
    assert len(rows) == 7
    assert all(row.width <= 60 for row in rows)
    assert rows[1].text.startswith("100┤")
    assert rows[3].text.startswith(" 50┤")
    assert rows[5].text.startswith("  0┤")
    assert rows[-1].text.endswith("now")
    assert "-2 m" in rows[-1].text


@pytest.mark.parametrize("size", [(0, 0), (10, 10), (40, 2), (16, 4)])
def test_no_chart_where_none_could_be_read(size: tuple[int, int]) -> None:
    plots = (Plot("load", every_second([1.0]), PERCENT, Ink.TEXT),)
    assert len(charts(plots, NOW, size, UNICODE)) in {0, size[1]}


def test_step_holds_the_window() -> None:
    assert [step_for(columns, 300) for columns in (300, 150, 149, 30, 4)] == [1, 2, 5, 10, 60]


def test_a_young_history_is_not_lost_in_an_empty_chart() -> None:
    assert window_of(NOW, History()) == 60
    assert window_of(NOW, every_second([1.0] * 120), History()) == 119
    assert window_of(NOW, every_second([1.0] * 900)) == 300


def test_bars_tell_nothing_little_almost_all_and_all_apart() -> None:
    pictures = [bar(share, 10, Ink.TEXT, UNICODE).text for share in (0, 0.001, 0.006, 0.99, 1.0)]
    assert pictures == ["─" * 10, "─" * 10, "╸" + "─" * 9, "━" * 9 + "╸", "━" * 10]
    assert bar(7.0, 4, Ink.TEXT, UNICODE).text == "━━━━"
    assert bar(-1.0, 4, Ink.TEXT, UNICODE).text == "────"
    for unknown in (None, math.nan):
        assert bar(unknown, 4, Ink.TEXT, UNICODE).text == "    "


def test_large_digits_keep_their_rows_aligned() -> None:
    rows = big_digits("1240.5k", Ink.TEXT, UNICODE)
    assert len({row.width for row in rows}) == 1
    assert "k" in rows[2].text


@pytest.mark.parametrize("stamp", [math.nan, math.inf, -math.inf, 0.0, -1e18, 1e18])
def test_a_stamp_that_cannot_be_harms_no_other(stamp: float) -> None:
    times = (stamp, 999.0, 1000.0) if stamp < NOW else (999.0, 1000.0, stamp)
    history = History(times, tuple(1.0 if at == stamp else 5.0 for at in times))
    assert resample(history, NOW, 2, 1)[-1:] == [5.0]
    assert charts((Plot("x", history, PERCENT, Ink.TEXT),), NOW, (40, 8), UNICODE)


# ---- a chart that fills as it goes on ------------------------------------------------------------


def growing_at(seconds: int, expected: float) -> tuple[str, float]:
    """The end of the axis, and the share of the width that is filled."""
    history = History(tuple(at / 2 for at in range(2 * seconds)), (100.0,) * (2 * seconds))
    plot = Plot("tok/s", history, Scale(0.0, 100.0), Ink.THROUGHPUT)
    rows = growing(plot, (100, 10), UNICODE, expected=expected)
    drawn = [sum("\u2800" < each <= "\u28ff" for each in row.text) for row in rows]
    return rows[-1].text.split()[-2], max(drawn) / 96


def test_the_axis_of_a_growing_chart_fits_what_is_expected() -> None:
    end, filled = growing_at(6, 12.0)
    assert (end, round(filled, 1)) == ("15", 0.4)
    assert growing_at(12, 12.0)[1] > 0.7
    end, filled = growing_at(40, 12.0)  # it takes longer than was thought
    assert (end, filled > 0.85) == ("45", True)
    assert growing_at(6, 0.0)[0] == "10"  # nothing is known
    assert growing_at(100, 3_000.0)[0] == "60"


@pytest.mark.parametrize("seconds", [0.0, 0.3, 9.0, 10.0, 1e6])
def test_every_span_has_room(seconds: float) -> None:
    assert span_for(seconds) >= seconds
    assert span_for(span_for(seconds)) == span_for(seconds)
