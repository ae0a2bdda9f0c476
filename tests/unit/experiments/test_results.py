"""Rows, verdicts and notes: the known figures, and everything that can be odd about them."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.configuration_key import configuration_key
from ddtui.core.experiment import ExperimentState, Match, QueueSettings
from ddtui.core.launch import Request
from ddtui.core.measurement import Measurement, MeasurementState, Spread
from ddtui.experiments.columns import columns_of
from ddtui.experiments.comparison import Standing
from ddtui.experiments.results import ResultsError, ResultsView, Row, results_view
from tests.unit.experiments.results_world import (
    PLAN,
    cell,
    coding,
    experiment,
    measured,
    seed_experiments,
    seed_measurements,
)


def seed_view(**options: Any) -> ResultsView:
    return results_view("ct200", seed_measurements(), seed_experiments(), **options)


def row_of(view: ResultsView, title: str) -> Row:
    return next(row for row in view.rows if row.title.startswith(title))


def notes(view: ResultsView, kind: str) -> list[str]:
    return [note.text for note in view.notes if note.kind == kind]


def test_the_known_figures() -> None:
    view = seed_view()
    assert view.baseline == "budget 12 topk 4"
    assert [(row.title, str(row.comparison.standing)) for row in view.rows] == [
        ("budget 12 topk 4", "baseline"),
        ("budget 8 topk 4", "faster"),
        ("budget 16 topk 4", "tie"),
    ]
    eight, sixteen = row_of(view, "budget 8"), row_of(view, "budget 16")
    found = eight.comparison
    assert found.user_rate is not None
    assert found.acceptance is not None
    assert found.step_time is not None
    assert found.user_rate.value == pytest.approx(170 / 149)
    # Less a pass (4.30 of 4.81), but passes of 25.3 instead of 32.3 ms: that is why.
    assert found.acceptance.value == pytest.approx(4.30 / 4.81)
    assert found.step_time.value == pytest.approx((4.30 / 170) / (4.81 / 149))
    assert found.pays is True
    assert found.reason == "a pass brings less, and is much shorter"
    assert eight.node_use == pytest.approx(3.3 / 8)
    assert sixteen.comparison.pays is False
    assert sixteen.comparison.user_rate is not None
    assert sixteen.comparison.user_rate.value == pytest.approx(147.5 / 149)
    assert sixteen.coding is not None
    assert (sixteen.coding.passed, sixteen.coding.total) == (4, 5)
    assert sixteen.coding.lost == ("parser (wrong)",)
    # 4 of 5 says next to nothing: 38 to 96 %.
    assert sixteen.coding.low == pytest.approx(0.3755, abs=1e-3)
    assert sixteen.coding.high == pytest.approx(0.9638, abs=1e-3)


def test_against_the_fastest_the_others_are_slower() -> None:
    view = seed_view(baseline="Budget 8  topk 4")
    assert [str(row.comparison.standing) for row in view.rows] == ["baseline", "slower", "slower"]
    assert row_of(view, "budget 12").comparison.reason == "a pass costs more than it brings"


def test_where_returns_diminish() -> None:
    assert notes(seed_view(), "returns") == [
        "budget: best at 8, the smallest value measured; larger ones do not pay "
        "(170.0 tok/s at the best; up to 16: acceptance length +17 %, step time +35 %)"
    ]
    rising = [
        measured(4, (cell(120.0, 3.0),)),
        measured(8, (cell(169.0, 4.3),)),
        measured(12, (cell(170.0, 4.8),)),
        measured(16, (cell(150.0, 5.0),)),
    ]
    (note,) = notes(results_view("ct200", rising, []), "returns")
    assert note.startswith("budget: 8 is enough; the best, 12, cannot be told from it")
    (note,) = notes(results_view("ct200", rising[:2], []), "returns")
    assert note.startswith("budget: still rising at 8, the largest value measured")


def test_nothing_is_claimed_of_a_value_that_was_not_measured_there() -> None:
    def row(budget: int, topk: int, rate: float) -> Measurement:
        return measured(
            budget,
            (cell(rate),),
            id=f"{budget}-{topk}",
            configuration=f"{budget}-{topk}",
            experiment="",
            title=f"budget {budget} topk {topk}",
            knobs={"budget": str(budget), "topk": str(topk)},
        )

    rows = [row(4, 4, 160), row(12, 4, 120), row(4, 6, 120), row(8, 6, 160), row(12, 6, 120)]
    (hole, whole) = [
        each
        for each in notes(results_view("ct200", rows, []), "returns")
        if each.startswith("budget")
    ]
    assert hole.startswith("budget (topk 4): best at 4 among 4, 12; 8 was not measured there (160")
    assert whole.startswith("budget (topk 6): best at 8; returns diminish beyond")
    less = [row(4, 4, 120), row(8, 4, 160), *rows[2:]]
    (part, _) = notes(results_view("ct200", less, []), "returns")[:2]
    assert part.startswith("budget (topk 4): still rising at 8, the largest value measured there (")
    rows[1] = row(12, 4, 200)
    (hole, _) = notes(results_view("ct200", rows, []), "returns")[:2]
    assert hole.startswith("budget (topk 4): best at 12 among 4, 12; 8 was not measured there")


@pytest.mark.parametrize("named", ["m-8", "e-8", "config-8", "budget 8 topk 4", "BUDGET 8 TOPK 4"])
def test_a_baseline_by_id_or_title(named: str) -> None:
    assert seed_view(baseline=named).baseline == "budget 8 topk 4"


def test_a_baseline_by_the_beginning_of_its_id() -> None:
    long = [msgspec.structs.replace(seed_measurements()[0], id="0193abcd-77")]
    assert results_view("ct200", long, [], baseline="0193ab").baseline == "budget 8 topk 4"


def test_an_unknown_baseline_names_what_there_is() -> None:
    with pytest.raises(ResultsError) as caught:
        seed_view(baseline="budget 9")
    assert "budget 9" in caught.value.what
    assert "budget 8 topk 4, budget 12 topk 4, budget 16 topk 4" in caught.value.remedy


def test_the_baseline_is_what_was_in_force_else_what_was_first() -> None:
    queue = [experiment(8), experiment(12), experiment(16)]
    launch = {"argv": ["serve", "--budget", "16"], "environment": {}}
    rows = seed_measurements()
    key = configuration_key(("serve", "--budget=16"))
    rows[2] = msgspec.structs.replace(rows[2], configuration=key)
    settings = QueueSettings(host="ct200", baseline={"launch": launch, "at": 1.0, "unit": "u"})
    view = results_view("ct200", rows, queue, settings=settings)
    assert view.baseline == "budget 16 topk 4"
    odd = QueueSettings(host="ct200", baseline={"launch": "nothing of the kind"})
    assert results_view("ct200", rows, queue, settings=odd).baseline == "budget 8 topk 4"
    assert results_view("ct200", rows, queue).baseline == "budget 8 topk 4"


def test_nothing_measured() -> None:
    view = results_view("ct200", [], [])
    assert (view.rows, view.notes, view.baseline, view.concurrency) == ((), (), "", 1)
    waiting = results_view("ct200", [], [experiment(8, state=ExperimentState.PENDING)])
    assert (waiting.rows, waiting.waiting) == ((), 1)


def test_one_repeat_on_both_sides_is_no_verdict() -> None:
    single = [measured(8, (cell(170, jitter=(1.0,)),)), measured(12, (cell(149, jitter=(1.0,)),))]
    view = results_view("ct200", single, [])
    assert view.rows[1].comparison.standing is Standing.UNCLEAR
    assert view.rows[1].comparison.reason == "one repeat on each side gives no interval"


def test_few_and_scattered_repeats_are_no_difference() -> None:
    # 5 % apart, but each repeat is 4 % off.
    loose = [
        measured(8, (cell(170, jitter=(0.96, 1.04)),)),
        measured(12, (cell(161, jitter=(0.96, 1.04)),)),
    ]
    assert results_view("ct200", loose, []).rows[1].comparison.standing is Standing.TIE


def test_the_drift_of_the_measured_again_baseline_is_taken_in() -> None:
    steady = (0.9995, 1.0, 1.0005)
    first = measured(8, (cell(170.0, jitter=steady),))
    other = measured(12, (cell(165.0, jitter=steady),))
    assert results_view("ct200", [first, other], []).rows[1].comparison.standing is Standing.SLOWER
    again = measured(8, (cell(164.0, jitter=steady),), id="m-8-again", began=5_000.0)
    view = results_view("ct200", [first, other, again], [])
    assert view.margin == pytest.approx(170 / 164 - 1)
    assert view.rows[1].comparison.standing is Standing.TIE
    assert notes(view, "drift") == [
        "the baseline was measured 2 times: 170.0, then 164.0 tok/s, a drift of 3.7 %; a difference"
        " within 3.7 % is a tie"
    ]
    # Their repeats are pooled in one row.
    assert len(view.rows) == 2
    assert view.rows[0].rate is not None
    assert len(view.rows[0].rate.values) == 6
    assert view.rows[0].counted == ("m-8", "m-8-again")


def test_other_work_is_not_compared() -> None:
    longer = msgspec.structs.replace(PLAN, output_tokens=4096)
    rows = [*seed_measurements(), measured(24, (cell(200.0),), plan=longer)]
    found = row_of(results_view("ct200", rows, []), "budget 24").comparison
    assert found.standing is Standing.NOT_COMPARED
    assert "was not measured at this concurrency with this work" in found.reason


def test_more_repeats_are_the_same_work() -> None:
    longer = msgspec.structs.replace(PLAN, repeats=9, name="careful")
    rows = [*seed_measurements(), measured(24, (cell(200.0),), plan=longer)]
    found = row_of(results_view("ct200", rows, []), "budget 24").comparison
    assert found.standing is Standing.FASTER


def test_other_prompts_are_other_work() -> None:
    plain = seed_measurements()
    told = msgspec.structs.replace(plain[1].provenance, prompts_hash="p2")
    changed = msgspec.structs.replace(plain[1], provenance=told)
    found = row_of(results_view("ct200", [plain[0], changed], []), "budget 12").comparison
    assert found.standing is Standing.NOT_COMPARED


def test_at_another_concurrency() -> None:
    both = [
        measured(8, (cell(170.0), cell(60.0, concurrency=8))),
        measured(12, (cell(149.0), cell(66.0, concurrency=8))),
        measured(16, (cell(147.0),)),
    ]
    view = results_view("ct200", both, [], concurrency=8)
    assert [str(row.comparison.standing) for row in view.rows] == [
        *("baseline", "faster", "not compared")
    ]
    with pytest.raises(ResultsError, match="concurrency 3") as caught:
        results_view("ct200", both, [], concurrency=3)
    assert caught.value.remedy == "measured: 1, 8"


def test_a_failure_is_a_row_with_its_cause_and_no_figure() -> None:
    failed = experiment(
        64,
        state=ExperimentState.FAILED,
        measurement="",
        attempts=2,
        cause={"title": "CUDA out of memory", "remedy": "lower mem_fraction"},
    )
    view = results_view("ct200", seed_measurements(), [*seed_experiments(), failed])
    last = view.rows[-1]
    assert (last.title, last.state) == ("budget 64 topk 4", "failed")
    assert (last.cause, last.remedy) == ("CUDA out of memory", "lower mem_fraction")
    assert (last.cell, last.rate, last.node_use, last.coding) == (None, None, None, None)
    assert last.flags == ("tried 2 times",)
    # A knob's values are those that were measured: what failed adds none.
    assert view.varying == ("budget",)


def test_a_failure_before_a_success_is_told_in_its_row() -> None:
    earlier = experiment(
        8,
        id="e-8-first",
        state=ExperimentState.FAILED,
        measurement="",
        cause={"title": "link lost"},
    )
    view = results_view("ct200", seed_measurements(), [earlier, *seed_experiments()])
    assert len(view.rows) == 3
    assert row_of(view, "budget 8").flags == ("another try failed: link lost",)


def test_a_bench_by_hand_that_failed() -> None:
    by_hand = measured(
        99, (), experiment="", state=MeasurementState.FAILED, cause="the engine went away"
    )
    view = results_view("ct200", [*seed_measurements(), by_hand], seed_experiments())
    assert (view.rows[-1].state, view.rows[-1].cause) == ("failed", "the engine went away")


def test_disturbed_counts_only_where_nothing_else_does() -> None:
    disturbed = measured(
        8, (cell(90.0),), id="m-8-bad", began=2_000.0, disturbed=("14 requests of others",)
    )
    alone = results_view("ct200", [disturbed], [])
    assert alone.rows[0].flags == ("disturbed: 14 requests of others",)
    assert alone.rows[0].rate is not None
    assert alone.rows[0].rate.median == pytest.approx(90.0)
    both = results_view("ct200", [*seed_measurements(), disturbed], [])
    eight = row_of(both, "budget 8")
    assert eight.flags == ("1 disturbed measurement left out",)
    assert eight.rate is not None
    assert eight.rate.median == pytest.approx(170.0)
    assert both.margin == 0.01


def test_partial_and_running_are_labelled() -> None:
    two = msgspec.structs.replace(PLAN, concurrency=(1, 8))
    partial = measured(
        8, (cell(170.0),), plan=two, state=MeasurementState.PARTIAL, cause="link lost"
    )
    running = measured(12, (cell(149.0),), state=MeasurementState.RUNNING)
    view = results_view("ct200", [partial, running], [])
    assert [(row.state, row.flags, row.cause) for row in view.rows] == [
        ("partial", ("partial",), "link lost"),
        ("running", ("running",), ""),
    ]


def test_simulated_is_labelled() -> None:
    plain = [msgspec.structs.replace(each, simulated=True) for each in seed_measurements()]
    view = results_view("demo", plain, [])
    assert view.simulated
    assert all(row.simulated for row in view.rows)


def test_a_sweep_with_the_baseline_from_outside() -> None:
    queue = [
        experiment(8, sweep="other"),
        experiment(12, sweep="mine"),
        experiment(16, sweep="mine"),
    ]
    view = results_view("ct200", seed_measurements(), queue, sweep="mine", baseline="m-8")
    assert [row.title.split(" topk")[0] for row in view.rows] == [
        *("budget 8", "budget 12", "budget 16")
    ]
    own = results_view("ct200", seed_measurements(), queue, sweep="mine")
    assert [row.title.split(" topk")[0] for row in own.rows] == ["budget 12", "budget 16"]
    with pytest.raises(ResultsError, match=r"no sweep 'hers'; known: other, mine"):
        results_view("ct200", seed_measurements(), queue, sweep="hers")


def test_a_reused_measurement_brings_its_experiments_words() -> None:
    match = Match("nodes", "ceil(16 x 15 / 7) = 35", "budget", 35, "block size 8, budget 16")
    later = experiment(8, id="e-99", reused=True, hypothesis="cheap", note="so it is", match=match)
    eight = row_of(results_view("ct200", seed_measurements(), [later]), "budget 8")
    assert (eight.hypotheses, eight.notes) == (("cheap",), ("so it is",))
    assert eight.matches == (
        "budget 35 by nodes, to match block size 8, budget 16: ceil(16 x 15 / 7) = 35",
    )


def test_coding_of_other_tasks_has_no_flips() -> None:
    rows = seed_measurements()
    rows[2] = msgspec.structs.replace(rows[2], coding=coding("parser", tasks="t2"))
    found = row_of(results_view("ct200", rows, seed_experiments()), "budget 16").coding
    assert found is not None
    assert (found.compared, found.lost, found.passed) == (False, (), 4)


def test_a_saturated_block() -> None:
    positions = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.36)
    view = results_view("ct200", [measured(8, (cell(170.0, positions=positions),))], [])
    assert notes(view, "block") == [
        "budget 8 topk 4: block saturated: 36 % of its passes accept the whole block of 8; "
        "a longer one may pay"
    ]
    longer = measured(
        16, (cell(120.0),), knobs={"block_size": "16", "budget": "16", "topk": "4"}, title="longer"
    )
    several = [measured(8, (cell(170.0, positions=positions),)), longer]
    (told,) = notes(results_view("ct200", several, []), "block")
    assert told.endswith("accept the whole block of 8; what 16 brings was measured")


def test_no_figure_is_no_number_and_nothing_crashes() -> None:
    nan = Spread(math.nan, math.nan, math.nan, (math.nan,))
    broken = cell(170.0, server_rate=math.inf, node_use=math.nan, acceptance_macro=math.nan)
    broken = msgspec.structs.replace(
        broken, user_rate=nan, total_rate=nan, acceptance_length=nan, positions=(math.nan,)
    )
    view = results_view("ct200", [measured(8, (broken,)), measured(12, (cell(149.0),))], [])
    assert view.rows[0].rate is None
    assert view.rows[1].comparison.standing is Standing.NOT_COMPARED
    assert re.search(r"\b(nan|inf)\b", repr(view)) is None


def test_secrets_and_control_characters_stay_out() -> None:
    secret = "hf_abcdefghijklmnopqrstuvwx"
    told = msgspec.structs.replace(
        seed_measurements()[0].provenance,
        argv=("serve", "--api-key", "sesame-1234"),
        environment={"HF_TOKEN": secret},
        server_args={"api_key": "sesame-1234"},
    )
    hostile = measured(
        8,
        (cell(170.0, notes=(f"\x1b[31m{secret}",)),),
        provenance=told,
        title=f"\x1b]0;x\x07budget 8 \u202e{secret}",
    )
    queue = [
        experiment(
            8,
            note=secret,
            title="",
            request=Request(
                knobs={"budget": 8},
                flags={"api-key": "sesame-1234"},
                environment={"HF_TOKEN": secret},
            ),
        )
    ]
    view = results_view("ct200", [hostile], queue)
    whole = repr(view)
    assert secret not in whole
    assert "sesame" not in whole
    assert "\x1b" not in whole
    assert "\\x1b" not in whole
    assert view.rows[0].left_out == ("flag:api-key", "env:HF_TOKEN")
    assert view.rows[0].reproduce == (
        "ddtui apply ct200 --set budget=8 && ddtui bench ct200 --plan mine"
    )


def test_another_block_size_stands_beside_what_it_was_matched_to() -> None:
    knobs = {"block_size": "16", "budget": "18", "topk": "4", "draft_tokens": "16"}
    old = measured(8, (cell(170.0),))
    new = measured(18, (cell(150.0, 4.5),), title="block_size 16 budget 18 topk 4", knobs=knobs)
    match = Match("nodes", "ceil(8 x 15 / 7) = 18", "budget", 18, "block size 8, budget 8", 8, 8)
    owner = msgspec.structs.replace(experiment(18), title=new.title, match=match)
    view = results_view("ct200", [old, new], [experiment(8), owner])
    assert view.varying == ("block_size", "budget")
    (told,) = notes(view, "match")
    assert told.startswith(
        "block_size 16 budget 18 topk 4 (nodes): 150.0 tok/s against 170.0 of budget 8 topk 4:"
        " -11.8 %, slower; acceptance ×1.05, step time ×1.19: a pass costs more than it brings"
    )


def test_what_a_sweep_was_matched_to_may_be_of_another_one() -> None:
    knobs = {"block_size": "16", "budget": "18", "topk": "4", "draft_tokens": "16"}
    wide = {"block_size": "8", "budget": "8", "topk": "6"}
    olds = [
        measured(4, (cell(130.0),)),
        measured(8, (cell(170.0),)),
        measured(8, (cell(99.0),), id="wide", configuration="wide", title="wide", knobs=wide),
    ]
    new = measured(18, (cell(150.0, 4.5),), title="block_size 16 budget 18 topk 4", knobs=knobs)
    match = Match("nodes", "ceil(8 x 15 / 7) = 18", "budget", 18, "block size 8, budget 8", 8, 8)
    owner = msgspec.structs.replace(experiment(18), title=new.title, match=match, sweep="blocks")
    first = msgspec.structs.replace(experiment(4), baseline=True)
    view = results_view("ct200", [*olds, new], [first, experiment(8), owner], sweep="blocks")
    assert [row.title for row in view.rows] == ["budget 4 topk 4", new.title]
    (told,) = notes(view, "match")
    assert "150.0 tok/s against 170.0 of budget 8 topk 4: -11.8 %, slower" in told


def test_a_title_that_is_silent_about_a_knob_which_others_tell_is_completed() -> None:
    def row(budget: int, block: str, title: str) -> Measurement:
        knobs = {"block_size": block, "budget": str(budget)}
        made = measured(budget, (cell(150.0),), title=title, knobs=knobs, experiment="")
        return msgspec.structs.replace(made, id=title + block, configuration=title + block)

    view = results_view(
        "ct200",
        [
            row(8, "8", "budget 8"),
            row(18, "16", "block_size 16 budget 18"),
            row(12, "8", "budget 12"),
            row(12, "16", "budget 12"),  # of a queue that began with another block in force
        ],
        [],
    )
    assert {each.title: each.knobs["block_size"] for each in view.rows} == {
        "budget 8": "8",
        "block_size 16 budget 18": "16",
        "budget 12": "8",
        "budget 12 block_size 16": "16",
    }


def test_a_sweep_without_a_baseline_is_compared_with_that_of_another_one() -> None:
    first = msgspec.structs.replace(experiment(8), sweep="budgets", baseline=True)
    second = msgspec.structs.replace(experiment(16), sweep="blocks")
    results = [measured(8, (cell(170.0),)), measured(16, (cell(147.5),))]
    view = results_view("ct200", results, [first, second], sweep="blocks")
    assert view.baseline == "budget 8 topk 4"
    assert [row.title for row in view.rows] == ["budget 8 topk 4", "budget 16 topk 4"]


def test_a_table_has_an_external_command_without_its_middle() -> None:
    command = ("python3", "-m", "sglang.bench_serving", *("--seed", "1") * 40, "--rate", "4")
    plans = [BenchPlan(command=command), BenchPlan(command=(*command[:-1], "8"))]
    rows = [
        measured(budget, (cell(150.0),), plan=plan)
        for budget, plan in zip((8, 12), plans, strict=True)
    ]
    work = next(
        each for each in columns_of(results_view("ct200", rows, [])) if each.title == "work"
    )
    assert all(len(text) <= 60 for text in work.texts)
    assert all(text.startswith("external bench: python3") for text in work.texts)
    assert {text[-8:] for text in work.texts} == {"--rate 4", "--rate 8"}
