"""What the results screen is made of, without a screen: order, table, details, charts."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ddtui.core.measurement import Measurement, Provenance
from ddtui.core.snapshot import History
from ddtui.experiments.chart_data import Chart, heat_map, knob_chart, pareto
from ddtui.experiments.results import ResultsView, results_view
from ddtui.ui.glyphs import ASCII, UNICODE
from ddtui.ui.ink import HEATS, Ink, Row
from ddtui.ui.widgets.heat_map import heat_rows, strength
from ddtui.ui.widgets.results_chart import ChartData, Kind, body_rows, chosen_knobs
from ddtui.ui.widgets.results_detail import detail_rows
from ddtui.ui.widgets.results_live import LiveBench, best_at, live_rows
from ddtui.ui.widgets.results_order import Order, arranged, sortable
from ddtui.ui.widgets.results_table import ResultsTable
from ddtui.ui.widgets.scatter import chart_rows, round_axis
from tests.ui.results_world import HOST, RATES, campaign, cell, hostile, measured


def view_of(
    kept: tuple[list, list] | None = None, *, concurrency: int | None = None
) -> ResultsView:
    return results_view(HOST, *(campaign() if kept is None else kept), concurrency=concurrency)


VIEW = view_of()
HOSTILE_VIEW = view_of(hostile())
VIEWS = {"campaign": VIEW, "hostile": HOSTILE_VIEW}


def text_of(rows: list[Row]) -> str:
    return "\n".join(row.text for row in rows)


# ---- order ---------------------------------------------------------------------------------


@pytest.mark.parametrize("column", sortable(VIEW))
@pytest.mark.parametrize("reverse", [False, True])
def test_every_column_sorts_and_loses_no_row(column: str, reverse: bool) -> None:
    for view in (VIEW, HOSTILE_VIEW):
        found = arranged(view, Order(column, reverse))
        assert sorted(map(id, found.rows)) == sorted(map(id, view.rows))


def test_the_best_comes_first_and_what_has_no_figure_last_either_way() -> None:
    def titles(column: str, *, reverse: bool = False) -> list[str]:
        return [row.title for row in arranged(VIEW, Order(column, reverse)).rows]

    assert titles("tok/s/user")[0] == "budget 8 topk 6"
    assert titles("step ms")[0] == "budget 4 topk 4"
    assert titles("tok/s/user")[-1] == titles("tok/s/user", reverse=True)[-1] == "budget 64 topk 4"
    assert titles("verdict")[0] == "budget 8 topk 4"
    assert titles("verdict")[-1] == "budget 64 topk 4"
    assert titles("configuration")[0] == "budget 12 topk 4"


def test_a_filter_takes_knobs_that_no_longer_vary_out_of_the_charts() -> None:
    assert [name for name in VIEW.varying if name != "window"] == ["budget", "topk"]
    assert arranged(VIEW, Order(), text="TOPK  6").varying == ("budget",)
    assert arranged(VIEW, Order()) is VIEW


def test_knobs_that_were_chosen_are_kept_as_long_as_they_vary() -> None:
    assert chosen_knobs(ChartData(view=VIEW)) == ("budget", "topk")
    assert chosen_knobs(ChartData(view=VIEW, knob="topk")) == ("topk", "budget")
    assert chosen_knobs(ChartData(view=VIEW, knob="tp", second="budget")) == ("budget", "topk")
    assert chosen_knobs(ChartData()) == ("", "")


# ---- details -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
@settings(deadline=None, max_examples=30)
@given(width=st.integers(20, 200))
def test_details_keep_within_their_width(name: str, width: int) -> None:
    view = VIEWS[name]
    for row in view.rows:
        assert all(each.width <= width for each in detail_rows(view, row, width, UNICODE))


def test_details_say_why_it_failed_and_what_to_do() -> None:
    row = VIEW.rows[-1]
    text = text_of(detail_rows(VIEW, row, 100, UNICODE))
    assert "failed: out of GPU memory while capturing graphs" in text
    assert "lower mem_fraction or graph_max_batch" in text
    assert "tried 3 times" in text


def test_details_name_lost_tasks_and_why_they_fail() -> None:
    row = next(each for each in VIEW.rows if each.title == "budget 16 topk 4")
    text = text_of(detail_rows(VIEW, row, 100, UNICODE))
    assert "9/10 pass" in text
    assert "lost         parser (wrong)" in text
    assert "wrong: 2 of 6 tests fail: expected 14, got 13" in text


def test_details_tell_what_was_in_doubt_beside_what_was_proved() -> None:
    told = Provenance(evidence=("health: /health answers",), doubts=("its files were changed",))
    view = view_of(([measured(8, 4, provenance=told)], []))
    text = text_of(detail_rows(view, view.rows[0], 100, UNICODE))
    assert "proved by    health: /health answers\nin doubt     its files were changed" in text


# ---- charts --------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize("kind", Kind)
@settings(deadline=None, max_examples=30)
@given(width=st.integers(1, 220), height=st.integers(1, 70))
def test_charts_keep_within_their_field(kind: Kind, plain: bool, width: int, height: int) -> None:
    glyphs = ASCII if plain else UNICODE
    for view in (VIEW, HOSTILE_VIEW):
        rows = body_rows(ChartData(view=view, kind=kind), width, height, glyphs)
        assert len(rows) <= height
        assert all(row.width <= max(4, width) for row in rows)
        if glyphs.ascii and view is VIEW:
            assert not {char for char in text_of(rows) if "⠀" <= char <= "⣿"}


def test_a_chart_fills_no_more_lines_than_it_has() -> None:
    for metric in ("user_rate", "acceptance_length"):
        chart = knob_chart(VIEW, "budget", metric)
        assert chart is not None
        for height in range(8, 50):
            for width in (40, 80, 120):
                assert len(chart_rows(chart, width, height, UNICODE)) <= height


def test_every_point_has_its_marker_and_every_series_its_name() -> None:
    chart = knob_chart(VIEW, "budget", "acceptance_length")
    assert chart is not None
    text = text_of(chart_rows(chart, 120, 40, UNICODE))
    # One in the legend beside those of the points.
    assert text.count("●") == text.count("■") == len(RATES) // 2 + 1
    assert "topk 4" in text
    assert "topk 6" in text
    assert "acceptance length [tokens/pass]" in text


def test_front_and_intervals_are_named() -> None:
    chart = pareto(VIEW)
    assert chart is not None
    text = text_of(chart_rows(chart, 120, 40, UNICODE))
    assert "not beaten on both axes" in text
    assert "all users together [tok/s]" in text


@settings(deadline=None)
@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.integers(2, 10))
def test_axes_hold_what_they_are_for_and_end_at_ticks(low: float, span: float, most: int) -> None:
    axis = round_axis(low, low + span, most)
    slack = 1e-6 * max(1.0, abs(low), span)
    assert axis.low <= low + slack
    assert axis.high >= low + span - slack
    assert axis.low < axis.high
    assert all(math.isfinite(tick) for tick, _ in axis.ticks)
    assert axis.ticks[0][0] == pytest.approx(axis.low, abs=slack)


def test_the_heat_map_marks_the_best_and_what_is_missing() -> None:
    kept = [each for each in campaign()[0] if each.id != "m-12-6"]
    found = heat_map(view_of((kept, [])), "budget", "topk")
    assert found is not None
    rows = heat_rows(found, 100, 30, UNICODE)
    assert "▸ 172 ◂" in text_of(rows)
    assert "– was not measured" in text_of(rows)
    inks = {ink for row in rows for _, ink in row.spans}
    assert {HEATS[0], HEATS[-1]} <= inks


@pytest.mark.parametrize("kind", [Kind.RATE, Kind.HEAT, Kind.PARETO])
def test_beneath_every_chart_stands_what_is_not_drawn(kind: Kind) -> None:
    """The campaign has a configuration that failed: no chart has a place for it."""
    text = text_of(body_rows(ChartData(VIEW, kind), 100, 30, UNICODE))
    assert "not drawn: budget 64 topk 4" in text
    whole = view_of((campaign()[0], []))
    assert "not drawn" not in text_of(body_rows(ChartData(whole, kind), 100, 30, UNICODE))


def test_what_was_not_measured_is_passed_over_sparsely() -> None:
    def one(budget: int, topk: int) -> Measurement:
        return measured(
            budget,
            topk,
            id=f"m{budget}-{topk}",
            configuration=f"c{budget}-{topk}",
            experiment="",
            knobs={"budget": str(budget), "topk": str(topk)},
        )

    def cells(chart: Chart) -> int:
        text = text_of(chart_rows(chart, 100, 24, UNICODE))
        assert ("sparse: one not measured" in text) is any(each.holes for each in chart.series)
        return sum("\u2800" < each <= "\u28ff" for each in text)

    rows = [one(*pair) for pair in ((4, 4), (12, 4), (4, 6), (8, 6))]
    chart = knob_chart(view_of((rows, [])), "budget", "user_rate")
    assert chart is not None
    assert [each.holes for each in chart.series] == [(1,), ()]
    whole = replace(chart, series=tuple(replace(each, holes=()) for each in chart.series))
    assert cells(chart) < cells(whole)


def test_the_heat_map_says_what_is_equal_in_it() -> None:
    kept = [replace(each, knobs={**each.knobs, "block_size": "8"}) for each in campaign()[0]]
    other = replace(kept[0], id="b", configuration="b", knobs={**kept[0].knobs, "block_size": "16"})
    found = heat_map(view_of(([*kept, other], [])), "budget", "topk")
    assert found is not None
    assert "all with block_size 8" in " ".join(text_of(heat_rows(found, 100, 30, UNICODE)).split())


def test_a_narrow_heat_map_says_what_it_leaves_out() -> None:
    many = [
        measured(
            *pair,
            id=f"m{budget}-{topk}",
            configuration=f"c{budget}-{topk}",
            experiment="",
            knobs={"budget": str(budget), "topk": str(topk)},
        )
        for pair in [(8, 4)]
        for budget in range(1, 40)
        for topk in (2, 4)
    ]
    found = heat_map(view_of((many, [])), "budget", "topk")
    assert found is not None
    text = text_of(heat_rows(found, 60, 12, UNICODE))
    assert "no room for 31 columns of larger values" in text
    assert strength(5.0, [5.0, 5.0]) in range(len(HEATS))


def test_a_knob_that_varies_and_the_whole_title_go_before_a_wide_picture() -> None:
    rows = [
        measured(
            budget,
            4,
            id=f"m{block}-{budget}",
            configuration=f"c{block}-{budget}",
            experiment="",
            title=f"block_size 16 budget {budget} topk 4" if block == 16 else f"budget {budget}",
            knobs={"budget": str(budget), "topk": "4", "block_size": str(block)},
        )
        for block, budget in ((8, 4), (8, 8), (16, 12))
    ]
    view = view_of((rows, []))
    table = ResultsTable()
    narrower = 0
    for width in range(166, 300, 2):
        kept, left_out, wide = table._columns(view, width, forest=True)
        assert "block_size" in {each.title for each in kept}
        whole = not left_out and "block_size 16 budget 12" in kept[0].texts
        narrower += whole and wide == 21
    assert narrower
    assert (left_out, wide) == ([], 33)


# ---- the bench that runs now -----------------------------------------------------------------


def live(*values: float) -> LiveBench:
    curve = History(tuple(float(at) for at in range(len(values))), values)
    return LiveBench(title="budget 16", concurrency=4, doing="repeat 1/3", curve=curve)


def test_the_live_curve_is_drawn_over_the_best_so_far() -> None:
    best = best_at(VIEW, 4)
    assert best is not None
    assert best[1].title == "budget 8 topk 6"
    missing, rows = live_rows(live(*[100.0, 300.0, math.nan, 420.0] * 10), VIEW, 100, 24, UNICODE)
    assert not missing
    text = text_of(rows)
    assert "best so far 493 budget 8 topk 6" in text
    assert "now 420" in text
    assert any(ink is Ink.GOOD for row in rows[2:] for _, ink in row.spans)
    assert any(ink is Ink.THROUGHPUT for row in rows[2:] for _, ink in row.spans)


def test_without_a_curve_it_says_why() -> None:
    assert "No bench runs in this ddtui" in live_rows(None, VIEW, 100, 24, UNICODE)[0]
    assert "no token has come yet" in live_rows(live(), VIEW, 100, 24, UNICODE)[0]
    # At a concurrency that nothing was measured at there is no best.
    alone = msgspec.structs.replace(live(10.0, 20.0), concurrency=99)
    assert "best so far" not in text_of(live_rows(alone, VIEW, 100, 24, UNICODE)[1])


def test_one_measurement_draws_no_chart_and_says_what_is_missing() -> None:
    one = view_of(([measured(8, 4, cells=(cell(170.0, 4.3),))], []))
    for kind, words in [
        (Kind.RATE, "two values of a knob"),
        (Kind.HEAT, "two knobs"),
        (Kind.PARETO, "two concurrencies"),
    ]:
        rows = body_rows(ChartData(view=one, kind=kind), 80, 20, UNICODE)
        assert words in text_of(rows)


def test_what_has_no_place_in_a_chart_is_told_beneath_it() -> None:
    results, queue = campaign()
    knobs = {"block_size": "16", "budget": "64", "topk": "8", "window": "4096"}
    alone = msgspec.structs.replace(
        results[0], id="alone", configuration="alone", title="alone", knobs=knobs, experiment=""
    )
    view = view_of(([*results, alone], queue))
    rows = body_rows(ChartData(view=view, kind=Kind.RATE, knob="budget"), 120, 24, UNICODE)
    told = " ".join(text_of(rows).split())
    assert "not drawn: alone" in told
    assert "differs from it in budget alone" in told
