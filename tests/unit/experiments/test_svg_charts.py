"""Charts: what they show, that they are well-formed whatever the texts say, and how they look."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.experiments.chart_data import (
    Chart,
    HeatMap,
    Point,
    Series,
    charts_of,
    heat_map,
    knob_chart,
    pareto,
    pareto_front,
)
from ddtui.experiments.results import ResultsView, results_view
from ddtui.experiments.svg_charts import drawn, log_ticks, nice_ticks, sheet
from tests.unit.experiments.results_world import cell, measured, seed_measurements

SVG = "{http://www.w3.org/2000/svg}"
SNAPSHOT = Path(__file__).parent / "__snapshots__" / "results.svg"


def world(*, simulated: bool = True) -> ResultsView:
    """Two budgets, two top-k, one of them with several concurrencies; one is missing."""
    rows = []
    for place, (budget, topk, rate) in enumerate([(8, 4, 170), (8, 6, 172), (16, 4, 147)]):
        several = (cell(rate, 4 + budget / 16), cell(rate / 2, 4 + budget / 16, concurrency=8))
        rows.append(
            measured(
                budget,
                several,
                id=f"m{place}",
                configuration=f"c{place}",
                experiment="",
                simulated=simulated,
                title=f"budget {budget} topk {topk}",
                knobs={"budget": str(budget), "topk": str(topk), "block_size": "8"},
            )
        )
    return results_view("demo", rows, [])


def with_a_hole() -> ResultsView:
    """Budget 8 was measured at top-k 6 only; one row has another block size."""
    figures = [(4, 4, 8, 160), (12, 4, 8, 150), (4, 6, 8, 155), (8, 6, 8, 170), (12, 6, 8, 150)]
    rows = [
        measured(
            budget,
            (cell(rate),),
            id=f"m{place}",
            configuration=f"c{place}",
            experiment="",
            title=f"block {block} budget {budget} topk {topk}",
            knobs={"budget": str(budget), "topk": str(topk), "block_size": str(block)},
        )
        for place, (budget, topk, block, rate) in enumerate([*figures, (8, 4, 16, 300)])
    ]
    return results_view("ct200", rows, [])


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_which_charts_there_are() -> None:
    assert [chart.name for chart in charts_of(world())] == [
        *("user-rate-budget", "acceptance-length-budget", "user-rate-topk"),
        *("acceptance-length-topk", "heat-budget-topk", "pareto"),
    ]
    assert charts_of(results_view("ct200", [], [])) == []
    assert charts_of(results_view("ct200", seed_measurements()[:1], [])) == []


def test_a_line_a_setting_of_the_other_knobs() -> None:
    chart = knob_chart(world(), "budget", "user_rate")
    assert chart is not None
    assert [(each.label, [point.x for point in each.points]) for each in chart.series] == [
        ("topk 4", [8.0, 16.0])
    ]
    (first, second) = chart.series[0].points
    assert (first.y, second.y) == (170.0, 147.0)
    assert first.low < 170 < first.high
    assert chart.reference == 170.0
    assert chart.y_label == "tok/s per user [tok/s]"


def test_words_beside_numbers_make_an_axis_of_categories() -> None:
    rows = [
        measured(
            8,
            (cell(rate),),
            id=window,
            configuration=window,
            title=window,
            experiment="",
            knobs={"budget": "8", "window": window},
        )
        for window, rate in (("none", 160.0), ("2048", 170.0), ("512", 150.0))
    ]
    chart = knob_chart(results_view("ct200", rows, []), "window", "user_rate")
    assert chart is not None
    assert chart.categories == ("512", "2048", "none")
    assert [(point.x, point.y) for point in chart.series[0].points] == [
        *((0.0, 150.0), (1.0, 170.0), (2.0, 160.0))
    ]


def test_the_heat_map_leaves_out_what_was_not_measured() -> None:
    chart = heat_map(world(), "budget", "topk")
    assert chart is not None
    assert (chart.columns, chart.rows) == (("8", "16"), ("4", "6"))
    assert {(each.column, each.row): each.value for each in chart.fields} == {
        (0, 0): 170.0,
        (0, 1): 172.0,
        (1, 0): 147.0,
    }
    root = parsed(drawn(chart).document())
    assert len([each for each in root.iter(f"{SVG}rect") if each.get("class") == "field"]) == 3
    assert "–" in texts(root)


def test_a_line_over_what_was_not_measured_is_another_one() -> None:
    chart = knob_chart(with_a_hole(), "budget", "user_rate")
    assert chart is not None
    assert {each.label: each.holes for each in chart.series} == {
        "block_size 8, topk 4": (1,),
        "block_size 8, topk 6": (),
    }
    root = parsed(drawn(chart).document())
    kinds = [each.get("class", "") for each in root.iter() if "line" in each.get("class", "")]
    assert sum(each.startswith("line hole") for each in kinds) == 1
    assert "dotted: a value between was not measured" in texts(root)


def test_a_heat_map_holds_the_other_knobs_equal() -> None:
    chart = heat_map(with_a_hole(), "budget", "topk")
    assert chart is not None
    assert chart.beside == "block_size 8"
    assert {(each.column, each.row): each.value for each in chart.fields} == {
        (0, 0): 160.0,
        (2, 0): 150.0,
        (0, 1): 155.0,
        (1, 1): 170.0,
        (2, 1): 150.0,
    }
    assert chart.missing == "not drawn: block 16 budget 8 topk 4 (something else differs)"
    found = texts(parsed(drawn(chart).document()))
    assert {"all with block_size 8", chart.missing} <= {*found}


def test_knobs_that_cross_only_over_other_knobs_have_no_heat_map() -> None:
    view = with_a_hole()
    assert heat_map(view, "block_size", "topk") is None


def test_the_front_is_what_nothing_beats() -> None:
    def at(x: float, y: float) -> Point:
        return Point(x, y, y, y, "")

    points = [at(1, 10), at(2, 8), at(2, 9), at(3, 5), at(1.5, 7), at(3, 4)]
    assert [(each.x, each.y) for each in pareto_front(points)] == [(1, 10), (2, 9), (3, 5)]
    found = pareto(world())
    assert found is not None
    assert {len(each.points) for each in found.series} == {2}


def test_one_concurrency_has_no_pareto() -> None:
    assert pareto(results_view("ct200", seed_measurements(), [])) is None


def test_axes_are_labelled_and_simulated_figures_marked() -> None:
    for chart in charts_of(world()):
        shown = texts(parsed(drawn(chart).document()))
        assert {chart.x_label, chart.y_label, f"{chart.title} (simulated)"} <= {*shown}
        assert "simulated" in shown
    for chart in charts_of(world(simulated=False)):
        assert not any("simulated" in text for text in texts(parsed(drawn(chart).document())))


def test_every_mark_lies_in_the_picture() -> None:
    wide = Point(8, 100, 0.001, 1e9, "two repeats that have nothing in common")
    chart = Chart(
        name="x", title="t", x_label="x", y_label="y", series=(Series("s", (wide, wide)),)
    )
    root = parsed(drawn(chart).document())
    for each in root.iter():
        for name, limit in (("x", 820), ("x1", 820), ("cx", 820), ("y1", 400), ("cy", 400)):
            assert 0 <= float(each.get(name, 0)) <= limit


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_only_text(title: str, label: str) -> None:
    point = Point(1, 2, 1, 3, label)
    lines = Chart(
        name="x",
        title=title,
        x_label=label,
        y_label=label,
        series=(Series(label, (point,)),),
        categories=(label, title),
    )
    root = parsed(sheet([lines], title).document())
    known = {"svg", "title", "style", "rect", "text", "line", "path", "circle", "polygon"}
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= known


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low: float, width: float) -> None:
    high = low + width
    ticks = nice_ticks(low, high)
    assert len(ticks) <= 9
    slack = width * 1e-6
    assert all(low - slack <= tick <= high + slack for tick in ticks)


def test_log_ticks() -> None:
    assert log_ticks(80, 1300) == [100, 200, 500, 1000]
    assert nice_ticks(118, 176) == [120, 130, 140, 150, 160, 170]
    assert all(math.isfinite(each) for each in nice_ticks(5, 5))


def test_the_picture() -> None:
    """Compare with the picture that was looked at; write it anew by deleting the file."""
    text = sheet(charts_of(world()), "Results of demo").document()
    if not SNAPSHOT.exists():
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(text, encoding="utf-8")
        pytest.fail(f"there was no picture to compare with: look at {SNAPSHOT.name}")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["", "a" * 500, "\ud800", "\x00\x1b[31m", "]]>"])
def test_hostile_knob_values(value: str) -> None:
    rows: list[Any] = [
        msgspec.structs.replace(each, knobs={"budget": each.knobs["budget"], "x": value})
        for each in seed_measurements()
    ]
    for chart in charts_of(results_view("ct200", rows, [])):
        assert isinstance(chart, Chart | HeatMap)
        parsed(drawn(chart).document())


def test_knobs_that_only_change_together_make_no_heat_map() -> None:
    rows = [
        measured(
            8,
            (cell(rate),),
            id=title,
            configuration=title,
            title=title,
            experiment="",
            knobs={"budget": budget, "block_size": block, "topk": topk},
        )
        for title, budget, block, topk, rate in (
            ("a", "8", "8", "4", 170.0),
            ("b", "18", "16", "4", 150.0),
            ("c", "8", "8", "6", 171.0),
            ("d", "18", "16", "6", 151.0),
        )
    ]
    view = results_view("ct200", rows, [])
    assert heat_map(view, "budget", "block_size") is None
    maps = [chart.name for chart in charts_of(view) if chart.name.startswith("heat")]
    assert maps == ["heat-block-size-topk"]
    (chart,) = (chart for chart in charts_of(view) if isinstance(chart, HeatMap))
    assert (chart.beside, chart.coupled) == ("", "budget")
    assert "budget changes with them" in texts(parsed(drawn(chart).document()))


def test_settings_that_differ_at_their_end_differ_in_the_legend() -> None:
    rows = [
        measured(
            budget,
            (cell(170.0),),
            id=f"{budget} {window}",
            configuration=f"{budget} {window}",
            experiment="",
            knobs={"budget": str(budget), "block_size": block, "topk": topk, "window": window},
        )
        for budget in (8, 12)
        for window, block, topk in (("2048", "16", "4"), ("none", "16", "4"), ("512", "8", "6"))
    ]
    chart = knob_chart(results_view("ct200", rows, []), "budget", "user_rate")
    assert chart is not None
    words = " ".join(texts(parsed(drawn(chart).document())))
    for series in chart.series:
        assert series.label in words


def test_the_reason_is_told_however_long_the_names_are() -> None:
    found = [
        *seed_measurements(),
        *(
            measured(64 + size, (cell(120.0),), title=f"{size} {'a very long name ' * 3}",
                     knobs={"budget": str(64 + size), "topk": "8", "block_size": str(size)})
            for size in range(16, 20)
        ),
    ]  # fmt: skip
    chart = knob_chart(results_view("ct200", found, []), "budget", "user_rate")
    assert chart is not None
    picture = drawn(chart)
    beneath = texts(parsed(picture.document()))[-3:]
    assert " ".join(beneath) == chart.missing
    assert chart.missing.endswith("and 1 more (nothing else differs from it in budget alone)")
    assert picture.height == 400 + 2 * 16


def test_what_has_no_place_in_a_chart_is_named_beneath_it() -> None:
    alone = measured(
        64, (cell(120.0),), knobs={"budget": "64", "topk": "8", "block_size": "16"}, title="alone"
    )
    without = measured(
        16, (cell(147.0, None),), id="w", configuration="w", title="without", experiment=""
    )
    silent = msgspec.structs.replace(without, cells=(cell(50.0, None, concurrency=8),))
    view = results_view("ct200", [*seed_measurements(), alone, silent], [])
    chart = knob_chart(view, "budget", "user_rate")
    assert chart is not None
    assert chart.missing == (
        "not drawn: alone budget 64 topk 8 (nothing else differs from it in budget alone);"
        " without budget 16 (it has no figure)"
    )
    assert chart.missing in texts(parsed(drawn(chart).document()))
    whole = knob_chart(results_view("ct200", seed_measurements(), []), "budget", "user_rate")
    assert whole is not None
    assert whole.missing == ""
