"""Titles tell what rows differ in; why two are not compared is seen at any width."""

from __future__ import annotations

import msgspec
import pytest

from ddtui.cli.output import Paint
from ddtui.cli.results_table import table_lines
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Measurement
from ddtui.experiments.columns import columns_of
from ddtui.experiments.fitting import fitted
from ddtui.experiments.results import ResultsView, results_view
from tests.unit.experiments.results_world import (
    PLAN,
    cell,
    experiment,
    measured,
    seed_experiments,
    seed_measurements,
)

SHORT = msgspec.structs.replace(PLAN, output_tokens=64)


def by_hand(block: int, rate: float, *, plan: BenchPlan = PLAN, **knobs: str) -> Measurement:
    """As `ddtui bench` titles what it finds in force."""
    found = {"algorithm": "DFLASH", "block_size": str(block), "topk": "1", **knobs}
    words = " ".join(f"{name} {value}" for name, value in found.items() if name != "mem_fraction")
    key = f"{words} {knobs} {plan.output_tokens}"
    more = {"configuration": f"config {words} {knobs}", "title": words, "knobs": found}
    return measured(block, (cell(rate),), id=key, experiment="", plan=plan, **more)


def titles(view: ResultsView) -> list[str]:
    return [row.title for row in view.rows]


def test_a_bench_by_hand_is_titled_as_the_queue_would() -> None:
    queued = by_hand(16, 150.0)
    queued = msgspec.structs.replace(
        queued, id="m-16", experiment="e-16", title="block_size 16", configuration="config-16"
    )
    queue = [experiment(16, title="block_size 16")]
    view = results_view("ct200", [by_hand(8, 170.0), queued], queue)
    assert titles(view) == ["block_size 8", "block_size 16"]
    again = msgspec.structs.replace(by_hand(16, 151.0), configuration="config-16", began=5000.0)
    view = results_view("ct200", [by_hand(8, 170.0), queued, again], queue)
    assert titles(view) == ["block_size 8", "block_size 16"]


def test_what_nobody_titled_stays_whole_where_it_is_alone_or_not_made_of_knobs() -> None:
    assert titles(results_view("ct200", [by_hand(8, 170.0)], [])) == [
        "algorithm DFLASH block_size 8 topk 1"
    ]
    own = msgspec.structs.replace(by_hand(16, 150.0), title="my own try")
    assert titles(results_view("ct200", [by_hand(8, 170.0), own], [])) == [
        "block_size 8",
        "my own try block_size 16",
    ]


def test_rows_of_one_title_tell_what_they_differ_in() -> None:
    rows = [by_hand(8, 170.0, mem_fraction="0.8"), by_hand(8, 150.0, mem_fraction="0.9")]
    assert {title.partition(" (")[2] for title in titles(results_view("ct200", rows, []))} == {
        "mem_fraction 0.8)",
        "mem_fraction 0.9)",
    }
    rows = [by_hand(8, 170.0), by_hand(8, 150.0, plan=SHORT)]
    full, short = titles(results_view("ct200", rows, []))
    assert full.endswith(f" ({PLAN.output_tokens} tokens at most)")
    assert short.endswith(" (64 tokens at most)")
    told = msgspec.structs.replace(rows[0].provenance, prompts_hash="0123456789")
    other = msgspec.structs.replace(rows[0], id="other", provenance=told)
    assert {
        each.partition(" (")[2] for each in titles(results_view("ct200", [rows[0], other], []))
    } == {
        "prompts p1)",
        "prompts 01234567)",
    }


@pytest.mark.parametrize("width", [80, 120, 200])
def test_why_there_is_no_verdict_is_seen_at_any_width(width: int) -> None:
    plain = Paint()
    plain.enabled = False
    rows = [by_hand(8, 170.0), by_hand(16, 150.0, plan=SHORT)]
    text = "\n".join(table_lines(results_view("ct200", rows, []), width, plain))
    told = " ".join(text.split())
    assert (
        "no verdict: the baseline was not measured at this concurrency with this work:"
        " block_size 16"
    ) in told


@pytest.mark.parametrize("width", [160, 200])
def test_why_has_room_in_a_wide_terminal(width: int) -> None:
    view = results_view("ct200", seed_measurements(), seed_experiments())
    kept, _ = fitted(columns_of(view), width)
    assert next(each.texts for each in kept if each.title == "why") == (
        "",
        "accept -11 %, step -22 %",
        "accept +5 %, step +6 %",
    )
