"""Lines of the queue: what is noted beside an experiment, and what is told of one run elsewhere."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, Match
from ddtui.core.sweep import CONTROL
from ddtui.ui.glyphs import UNICODE
from ddtui.ui.queue_questions import start_words
from ddtui.ui.queue_rows import columns_for, head_rows, heading, line, noted, time_words, who_row
from ddtui.ui.queue_short_rows import line_row
from ddtui.ui.queue_source import RunPlan, RunView
from tests.ui.queue_world import EXPERIMENTS, FULL, MATCH, experiment, legs_of
from tests.ui.scenes import NOW, SCENES

RUNNING = EXPERIMENTS[0]
COST = Match(CONTROL, "8 = 8", "budget", 8, "block size 8, budget 8")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (experiment(1, "budget 8", baseline=True), ["baseline"]),
        (experiment(1, "budget 18", match=MATCH, note="a word"), ["matched", "note"]),
        (experiment(1, "budget 8", match=COST, note="control: unmatched"), ["control"]),
        (experiment(1, "budget 8", hypothesis="it pays"), ["hypothesis"]),
    ],
)
def test_what_is_noted_is_told_in_words(given: Experiment, words: list[str]) -> None:
    assert noted(given) == words


def test_a_narrow_table_has_no_column_of_notes() -> None:
    matched = EXPERIMENTS[4]
    assert "matched" in line(matched, 5, FULL, 110, UNICODE).text
    assert "matched" not in line(matched, 5, FULL, 80, UNICODE).text


@pytest.mark.parametrize("width", [80, 110])
def test_a_disturbed_measurement_is_marked_once_at_most(width: int) -> None:
    text = line(EXPERIMENTS[6], None, FULL, width, UNICODE).text
    assert text.count("disturbed") == (1 if width >= 100 else 0)


@pytest.mark.parametrize("width", [60, 77, 80, 97, 120, 197])
def test_no_count_and_no_column_is_cut_within_a_word(width: int) -> None:
    counts = head_rows(FULL, NOW, width, UNICODE)[0].text
    assert "…" not in counts
    assert "1 running  3 pending  1 held  " in counts
    if width > 60:
        assert "1 failed" in counts
        assert ("3 ended" in counts) == ("2 done  1 cancelled" not in counts)
    waiting = replace(EXPERIMENTS[1], plan=BenchPlan(prompts="coding", repeats=3))
    for each in (RUNNING, EXPERIMENTS[1], waiting):
        assert "…" not in line(each, 1, FULL, width, UNICODE).text
    assert "…" not in heading(columns_for(FULL, width), width).text


def test_what_another_process_runs_is_told_as_far_as_the_store_knows() -> None:
    elsewhere = RunView(where="this machine", who="mara@desk", pid=4711)
    cells = {RUNNING.id: FULL.results["6" * 32]}
    text = line(RUNNING, 1, replace(FULL, run=elsewhere), 120, UNICODE).text
    assert "since 14:02:40" in text
    text = line(RUNNING, 1, replace(FULL, run=elsewhere, results=cells), 120, UNICODE).text
    assert "118 tok/s" in text


def test_one_line_tells_what_runs_how_many_wait_and_when_all_is_done() -> None:
    text = line_row(FULL, 80, UNICODE).text
    assert "measuring budget 12 topk 4" in text
    assert "+3" in text
    assert "all done in" in text
    paused = replace(FULL, settings=replace(FULL.settings, paused=True))
    assert "PAUSED" in line_row(paused, 80, UNICODE).text
    held = replace(FULL, experiments=(EXPERIMENTS[3],))
    assert "1 held" in line_row(held, 80, UNICODE).text


def test_another_process_runs_the_queue_of_the_demo_on_another_simulated_host() -> None:
    run = RunView(where="this machine", who="mara@desk", pid=4711)
    view = replace(FULL, run=run)
    assert who_row(view, UNICODE).text.endswith("by process 4711 on this machine")
    simulated = replace(view, settings=replace(view.settings, simulated=True))
    assert who_row(simulated, UNICODE).text.endswith("4711 on a simulated host of its own")


def test_what_would_be_another_configuration_by_now_is_marked_and_told_before_a_run() -> None:
    view = replace(FULL, moved=frozenset({EXPERIMENTS[1].id}), run=RunView())
    assert "other base" in line(EXPERIMENTS[1], 2, view, 120, UNICODE).text
    assert "other base" not in line(EXPERIMENTS[2], 3, view, 120, UNICODE).text
    body = start_words(RunPlan(view=view), SCENES["live"](NOW), NOW).body
    assert not isinstance(body, str)
    assert "1 of them would be another configuration" in " ".join(row.text for row in body(90))


def test_a_paused_queue_is_not_said_to_be_done_at_an_hour() -> None:
    waits = tuple(each for each in EXPERIMENTS if each.state is not ExperimentState.RUNNING)
    paused = replace(FULL.settings, paused=True)
    view = replace(FULL, experiments=waits, settings=paused, run=RunView(), eta=legs_of(waits))
    text = head_rows(view, NOW, 120, UNICODE)[0].text
    assert "all done" not in text
    assert "to do: " in text
    going_on = replace(view, settings=replace(paused, paused=False))
    assert "all done in " in head_rows(going_on, NOW, 120, UNICODE)[0].text


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (RunView(), "1 interrupted"),
        (RunView(where="this machine", who="mara@desk", pid=4711), "1 running"),
        (RunView(unknown="the file cannot be read"), "1 running"),
    ],
)
def test_what_a_runner_that_is_gone_has_left_is_not_running(run: RunView, word: str) -> None:
    counts, who = head_rows(replace(FULL, run=run), NOW, 120, UNICODE)
    assert word in counts.text
    assert ("its runner is gone" in who.text) == (word == "1 interrupted")


@pytest.mark.parametrize(("ends", "words"), [(0.0, "soon"), (0.9, "soon"), (9.0, "in 9 s")])
def test_what_takes_longer_than_thought_does_not_end_in_no_time(ends: float, words: str) -> None:
    assert FULL.eta is not None
    assert FULL.running is not None
    legs = [
        replace(each, ends=ends) if each.id == FULL.running.id else each for each in FULL.eta.legs
    ]
    view = replace(FULL, eta=replace(FULL.eta, legs=tuple(legs)))
    assert time_words(FULL.running, view)[0] == words
