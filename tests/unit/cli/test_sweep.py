"""`ddtui sweep` on the simulated host: what it shows, what it queues, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.configuration_key import flags_of
from ddtui.core.experiment import Experiment, Match
from ddtui.core.load_history import LoadRecord, relevant_flags
from ddtui.core.measurement import Cell, Measurement, MeasurementState, Provenance, Spread
from ddtui.demo.config import VERSION
from ddtui.store import Store
from tests.unit.cli.conftest import Run

CAMPAIGN = "budget=4,8,12,16 topk=4,6 window=2048,none"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)


def queue_of_demo() -> list[Experiment]:
    store = Store.open()
    try:
        return store.experiments.queue("demo", simulated=True)
    finally:
        store.close()


def test_a_dry_run_shows_the_whole_campaign_and_queues_nothing(run: Run) -> None:
    text = f"{CAMPAIGN} block_size=8,16 match if topk <= budget"
    result = run("sweep", "demo", text, "--dry-run", "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert (shown["combinations"], len(shown["runs"]), shown["reloads"]) == (32, 30, 30)
    assert shown["excluded"] == {"topk <= budget": 2}
    assert [each["request"]["knobs"]["budget"] for each in shown["runs"]].count(35) == 4
    matching = {row["reference"]["budget"]: row["policies"][0] for row in shown["matching"]}
    assert {budget: each["value"] for budget, each in matching.items()} == {
        4: 9,
        8: 18,
        12: 26,
        16: 35,
    }
    assert matching[16]["formula"] == "ceil(16 x 15 / 7) = 35"
    assert len({each["configuration"] for each in shown["runs"]}) == 30
    assert queue_of_demo() == []


@pytest.mark.parametrize(
    ("leave", "grid", "words"),
    [
        ("baseline", "budget=8,16", "and one more load at the end: the unit is left as it was"),
        ("baseline", "budget=8", ""),
        ("best", "budget=8,16", "and at most one more load at the end"),
        ("last", "budget=8,16", ""),
    ],
)
def test_the_load_at_the_end_is_told(run: Run, leave: str, grid: str, words: str) -> None:
    assert run("queue", "demo", "leave", leave).exit_code == 0
    shown = run("sweep", "demo", grid, "--dry-run").stdout
    assert words in shown
    assert ("at the end" in shown) == bool(words)


def test_json_of_what_was_queued_is_alone_on_standard_output(run: Run) -> None:
    result = run("sweep", "demo", "budget=8,16", "--offline", "--yes", "--json")
    assert result.exit_code == 0
    assert [each["id"] for each in json.loads(result.stdout)] == [
        each.id for each in queue_of_demo()
    ]
    assert "2 to run" in result.stderr


def test_it_queues_what_it_shows(run: Run) -> None:
    result = run("sweep", "demo", "block_size=16", "budget=16,22", "--match", "P1", "--yes")
    assert result.exit_code == 0
    assert "queued 2 experiments" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "demo (simulated): grid: 2 to run, 0 blocked, of 2 combinations"
    assert any(line.split()[:5] == ["*", "nodes", "35", "48", "ceil(22"] for line in lines), (
        result.stdout
    )
    first, second = queue_of_demo()
    assert first.request.knobs == {"block_size": 16, "budget": 35}
    assert first.match == Match(
        "nodes", "ceil(16 x 15 / 7) = 35", "budget", 35, "block size 8, budget 16", 8, 16
    )
    # They are compared with what they are matched to, which is not of this sweep.
    assert (first.baseline, second.baseline) == (False, False)
    assert second.title == "block_size 16 budget 48"
    assert first.knobs["topk"] == 8  # in force, and not set by the sweep
    assert first.configuration
    assert first.sweep.startswith("grid-")


def test_what_a_check_forbids_is_left_out_with_its_reason(run: Run) -> None:
    result = run("sweep", "demo", "budget=4,8 verify_budget=none,3", "--yes", "--name", "mine")
    assert result.exit_code == ExitCode.BLOCKED
    assert "0 to run, 4 blocked" in result.stdout
    assert "this server has no verify_budget" in result.stdout
    assert "nothing to queue" in result.stderr
    half = run("sweep", "demo", "block_size=16 window=8,2048", "--yes", "--name", "mine", "--held")
    assert half.exit_code == 0
    assert "draft window 8 is smaller than block size 16" in half.stdout
    (queued,) = queue_of_demo()
    assert (queued.sweep, queued.state, queued.request.knobs["window"]) == ("mine", "held", 2048)


def test_times_are_told_from_what_was_done_here(run: Run) -> None:
    plain = json.loads(run("sweep", "demo", "budget=8,16", "--dry-run", "--json").stdout)
    # Nothing was measured yet: it is guessed from what the engine serves meanwhile.
    assert plain["guess"] is True
    assert plain["seconds"] > 0
    assert any(each.startswith("guessed: ") for each in plain["sources"])
    assert [each["loads"] for each in plain["runs"]] == [False, True]
    cell = Cell(concurrency=1, requests=1, user_rate=Spread(100.0, 90.0, 110.0))
    store = Store.open()
    try:
        store.measurements.put(
            Measurement(
                id="m1",
                host="demo",
                simulated=True,
                unit="llm-sglang.service",
                configuration=plain["runs"][1]["configuration"],
                plan=BenchPlan(),
                state=MeasurementState.COMPLETE,
                began=100.0,
                ended=190.0,
                cells=(cell,),
                provenance=Provenance(engine_version=VERSION),
            )
        )
        command = json.loads(run("status", "demo", "--json").stdout)["unit"]["command_line"]
        flags = flags_of(command)
        for number in range(
            5
        ):  # as many as count: the simulated host's own load, of seconds, is none
            record = LoadRecord(
                model=flags["model-path"],
                drafter=flags["speculative-draft-model-path"],
                tp=int(flags["tp-size"]),
                flags=relevant_flags(flags),
                seconds=400.0,
                invocation=f"i{number}",
                began=4e9 + number,
            )
            store.loads.add("demo", "llm-sglang.service", record, simulated=True)
    finally:
        store.close()
    text = run("sweep", "demo", "budget=8,16", "--dry-run").stdout
    assert "loads of the engine: 1; all done in 10 m\n" in text  # 400 s and twice 90 s
    assert "1 bench by plan" in text
    assert "median of 5 loads of this model" in text
    assert "1 was measured by this plan already: --reuse takes that over" in text
    used = run("sweep", "demo", "budget=8,16", "--reuse", "--yes")
    assert "loads of the engine: 0; all done in 1 m 30 s" in used.stdout
    by_title = {each.title: (each.reused, each.measurement) for each in queue_of_demo()}
    assert by_title == {"budget 8": (False, ""), "budget 16": (True, "m1")}


def test_sweeps_by_name_and_file_without_the_host(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ddtui.toml").write_text(
        "[presets.small]\ntopk = 2\n[sweeps.blocks]\npreset = 'small'\nbudget = [4, 8]\n"
        "repeats = 7\nbaseline = { budget = 8 }\n",
        encoding="utf-8",
    )
    shown = json.loads(run("sweep", "demo", "blocks", "--offline", "--dry-run", "--json").stdout)
    assert [each["title"] for each in shown["runs"]] == ["budget 8 topk 2", "budget 4 topk 2"]
    assert [each["request"]["knobs"]["topk"] for each in shown["runs"]] == [2, 2]
    assert (shown["plan"]["repeats"], shown["checked"], shown["reloads"]) == (7, False, None)
    file = tmp_path / "other.toml"
    file.write_text("grid = 'budget=4,8,12'\n", encoding="utf-8")
    assert "other: 3 to run" in run("sweep", "demo", str(file), "--offline", "--dry-run").stdout
    file.write_text("grid = 'budget=4,8,x'\n", encoding="utf-8")
    broken = run("sweep", "demo", str(file), "--offline", "--dry-run")
    assert broken.exit_code == ExitCode.USAGE
    assert f"error: {file}:1: [sweeps.other] grid: got 'x'; expected an integer" in broken.stderr


def test_a_likely_misspelling_of_the_host_is_told_once(run: Run, config_file: Path) -> None:
    queued = run("sweep", "ct20", "budget=4,8", "--offline", "--yes")
    assert queued.exit_code == ExitCode.OK
    assert queued.stderr.count("is not in the configuration") == 1
    assert "`ddtui run ct20` runs them" in queued.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["budgt=4"], "there is no knob 'budgt'; did you mean budget?"),
        (["nosuch"], "there is no sweep 'nosuch'; a file ends in .toml, a grid is budget=4,8"),
        (["nosuch.toml"], "nosuch.toml: no such file"),
        (["budget=4", "--match", "node"], "there is no policy 'node'; did you mean 'nodes'?"),
        (["budget=4", "--control"], "needs a sweep that matches: add --match"),
        (["budget=4", "--name", "a b"], "expected letters, digits"),
        (["budget=4", "--plan", "nosuch"], "there is no bench plan 'nosuch'"),
        (["block_size=16 budget=4", "--match", "nodes"], "match needs the block size that the"),
    ],
)
def test_what_is_wrong_is_told_before_the_host_is_reached(
    run: Run, words: list[str], told: str
) -> None:
    result = run("sweep", "demo", *words, "--offline", "--yes")
    assert result.exit_code == ExitCode.USAGE
    assert told in result.stderr
    assert result.stdout == ""


def test_nothing_is_queued_that_nobody_confirmed(run: Run) -> None:
    result = run("sweep", "demo", "budget=4", "--offline")
    assert result.exit_code == ExitCode.BLOCKED
    assert "nothing was queued: there is no terminal to confirm on; add --yes" in result.stderr
    assert queue_of_demo() == []
