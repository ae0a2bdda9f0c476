"""Results at several concurrencies: what counts, and what is a tie, is told for each by itself."""

from __future__ import annotations

import csv
import io

import msgspec
import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Measurement
from ddtui.experiments.columns import marks_of
from ddtui.experiments.export import Document, csv_text, json_text
from ddtui.experiments.markdown_report import markdown_text
from ddtui.experiments.results import ResultsView, results_view
from tests.unit.experiments.results_world import cell, experiment, measured

QUEUE = [experiment(8, baseline=True), experiment(16)]
DRIFTED = [
    measured(8, (cell(170.0), cell(100.0, concurrency=8))),
    measured(8, (cell(170.2), cell(70.0, concurrency=8)), id="m-8b", experiment="", began=2000.0),
    measured(16, (cell(130.0), cell(60.0, concurrency=8))),
]
"""The baseline is steady for one user, and not at all for eight."""


def again_disturbed() -> list[Measurement]:
    """A baseline of one concurrency, then a disturbed one of two."""
    both = BenchPlan(name="mine", concurrency=(1, 8))
    again = measured(
        8,
        (cell(100.0), cell(60.0, concurrency=8)),
        id="m-8b",
        plan=both,
        disturbed=("3 requests of others were seen",),
        began=2000.0,
    )
    return [measured(8, (cell(170.0),)), again, measured(16, (cell(130.0),))]


def verdicts(view: ResultsView) -> list[tuple[str, str, str]]:
    lines = csv.DictReader(io.StringIO(csv_text(view), newline=""))
    return [
        (line["concurrency"], line["verdict"], line["margin"])
        for line in lines
        if line["verdict"] != "baseline"
    ]


def test_a_disturbed_measurement_that_does_not_count_makes_no_drift() -> None:
    view = results_view("ct200", again_disturbed(), QUEUE)
    assert view.margin == 0.01
    assert [str(row.comparison.standing) for row in view.rows] == ["baseline", "slower"]
    assert not [note for note in view.notes if note.kind == "drift"]
    # It counts for eight users, where there is no other: the row says so, unmarked for one.
    assert view.rows[0].flags == ("at concurrency 8 disturbed: 3 requests of others were seen",)
    assert "disturbed" not in marks_of(view.rows[0])
    at_eight = results_view("ct200", again_disturbed(), QUEUE, concurrency=8).rows[0]
    assert "disturbed" in marks_of(at_eight)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_verdicts_are_the_same_whichever_concurrency_is_shown(concurrency: int) -> None:
    view = results_view("ct200", DRIFTED, QUEUE, concurrency=concurrency)
    assert view.margins == {1: 0.01, 8: pytest.approx(100 / 70 - 1)}
    assert view.margin == view.margins[concurrency]
    assert verdicts(view) == [("1", "slower", "0.01"), ("8", "tie", "0.428571")]
    document = msgspec.json.decode(json_text(view), type=Document)
    found = document.rows[1].comparisons
    assert {level: str(each.standing) for level, each in found.items()} == {1: "slower", 8: "tie"}
    assert document.rows[1].comparison == found[concurrency]
    assert document.margins == view.margins


def test_the_report_tells_the_verdicts_at_the_others_too() -> None:
    text = markdown_text(results_view("ct200", DRIFTED, QUEUE), {}, 0.0)
    assert "- **slower**: -23.6 %" in text
    assert "- at concurrency 8: **tie**: -29.3 %" in text
    assert "at concurrency 1:" not in text


def test_other_engine_versions_are_compared_with_their_own_baseline_at_all() -> None:
    def newer(found: Measurement, factor: float) -> Measurement:
        told = msgspec.structs.replace(found.provenance, engine_version="0.6")
        cells = (cell(170.0 * factor), cell(100.0 * factor, concurrency=8))
        new = {"id": f"{found.id}-new", "provenance": told, "cells": cells, "experiment": ""}
        return msgspec.structs.replace(found, **new)

    rows = [DRIFTED[0], newer(DRIFTED[0], 2.0), newer(DRIFTED[2], 1.5)]
    for concurrency in (1, 8):
        view = results_view("ct200", rows, QUEUE, concurrency=concurrency)
        assert {verdict for _, verdict, _ in verdicts(view)} == {"slower"}
