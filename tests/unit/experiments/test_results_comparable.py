"""What is compared although it was measured under other circumstances, and what is not."""

from __future__ import annotations

from typing import Any

import msgspec

from ddtui.core.measurement import Measurement
from ddtui.experiments.chart_data import knob_chart, pareto
from ddtui.experiments.comparison import Standing
from ddtui.experiments.results import ResultsView, results_view
from ddtui.experiments.rows import Row
from tests.unit.experiments.results_world import cell, figure, measured

EIGHT_AT_ONCE = 8


def told(found: Measurement, **changes: Any) -> Measurement:
    """A measurement whose provenance is another one."""
    return msgspec.structs.replace(
        found, provenance=msgspec.structs.replace(found.provenance, **changes)
    )


def last_of(view: ResultsView) -> Row:
    return next(row for row in view.rows if row.title.startswith("budget 12"))


def test_what_was_measured_on_other_gpus_is_not_compared() -> None:
    other = told(measured(12, (cell(300.0),)), gpus=("NVIDIA H200",) * 8)
    view = results_view("ct200", [measured(8, (cell(170.0),)), other], [])
    found = last_of(view).comparison
    assert (found.standing, found.user_rate) == (Standing.NOT_COMPARED, None)
    assert found.reason == "other GPUs: 8 x NVIDIA H200"
    assert any("several sets of GPUs" in note.text for note in view.notes)


def test_the_baseline_of_the_same_gpus_is_compared_with() -> None:
    gpus = ("NVIDIA H200",) * 8
    rows = [
        measured(8, (cell(170.0),)),
        told(measured(8, (cell(290.0),), id="m-8-new", began=4_000.0), gpus=gpus),
        told(measured(12, (cell(300.0),)), gpus=gpus),
        measured(8, (cell(171.0),), id="m-8-old", began=5_000.0),
    ]
    found = last_of(results_view("ct200", rows, [])).comparison
    assert found.standing is Standing.FASTER
    assert found.user_rate is not None
    assert round(found.user_rate.value, 3) == round(300 / 290, 3)


def test_where_the_gpus_are_not_known_that_is_told() -> None:
    unknown = told(measured(12, (cell(149.0),)), gpus=())
    found = last_of(results_view("ct200", [measured(8, (cell(170.0),)), unknown], []))
    assert found.comparison.standing is Standing.SLOWER
    assert "not known whether it was measured on the GPUs of the baseline" in found.flags


def test_another_driver_and_another_unit_are_told() -> None:
    other = told(measured(12, (cell(149.0),), unit="other.service"), driver="590.1")
    found = last_of(results_view("ct200", [measured(8, (cell(170.0),)), other], []))
    assert found.comparison.standing is Standing.SLOWER
    assert "other driver than the baseline: 590.1" in found.flags
    assert "of another unit than the baseline: other.service" in found.flags


def test_faster_for_one_user_and_slower_in_total_is_told() -> None:
    """As where a configuration serves fewer at once, and the others wait."""
    plain = cell(60.0, concurrency=EIGHT_AT_ONCE)
    few = msgspec.structs.replace(
        cell(90.0, concurrency=EIGHT_AT_ONCE), total_rate=figure(plain_total(plain) * 0.5)
    )
    view = results_view("ct200", [measured(8, (plain,)), measured(12, (few,))], [])
    found = last_of(view)
    assert found.comparison.standing is Standing.FASTER
    assert "faster for one user, and slower in total (×0.50)" in found.flags


def plain_total(plain: Any) -> float:
    assert plain.total_rate is not None
    return float(plain.total_rate.median)


def test_a_user_s_rate_that_was_left_out_makes_nothing_the_fastest() -> None:
    """Its total rate is compared with that of the baseline, and with nobody's rate of one user."""
    plain = cell(60.0, concurrency=EIGHT_AT_ONCE)
    unclean = msgspec.structs.replace(
        cell(60.0, concurrency=EIGHT_AT_ONCE), user_rate=None, failed=4
    )
    rows = [measured(8, (plain,)), measured(12, (unclean,))]
    found = last_of(results_view("ct200", rows, []))
    assert (found.rate, found.comparison.by) == (None, "total")
    assert found.comparison.standing is Standing.TIE


def test_no_line_goes_through_what_was_measured_with_other_prompts_or_on_other_gpus() -> None:
    gpus = ("NVIDIA H200",) * 8
    rows = [
        measured(8, (cell(170.0),)),
        measured(12, (cell(149.0),)),
        told(measured(16, (cell(900.0),)), prompts_hash="shorter"),
        told(measured(24, (cell(950.0),)), prompts_hash="shorter"),
        told(measured(32, (cell(990.0),)), gpus=gpus),
    ]
    view = results_view("ct200", rows, [])
    chart = knob_chart(view, "budget", "user_rate")
    assert chart is not None
    lines = {each.label: [point.x for point in each.points] for each in chart.series}
    assert list(lines.values()) == [[8, 12], [16, 24]]
    assert all(
        f"prompts {name}" in label for name, label in zip(("p1", "shorter"), lines, strict=True)
    )
    assert "budget 32" in chart.missing
    returns = [note.text for note in view.notes if note.kind == "returns"]
    assert returns
    assert not any("990" in text for text in returns)
    assert not any("8 is enough" in text and "950" in text for text in returns)


def test_only_one_kind_of_work_is_on_the_pareto_chart() -> None:
    levels = (cell(170.0), cell(60.0, concurrency=EIGHT_AT_ONCE))
    short = (cell(400.0), cell(300.0, concurrency=EIGHT_AT_ONCE))
    rows = [
        measured(8, levels),
        measured(12, levels),
        told(measured(16, short), prompts_hash="shorter"),
    ]
    chart = pareto(results_view("ct200", rows, []))
    assert chart is not None
    assert [each.label for each in chart.series] == ["budget 8 topk 4", "budget 12 topk 4"]
    assert "budget 16" in chart.missing
    assert max(point.y for point in chart.front) == 170.0
