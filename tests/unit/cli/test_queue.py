"""`ddtui queue HOST ...`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.measurement import Cell, Measurement, MeasurementState, Spread
from ddtui.experiments.presence import presence_file, present
from ddtui.store import Store
from tests.unit.cli.conftest import Run

SECRETS = ("--set", "flag:api-key=hush", "--set", "env:HF_TOKEN=hush")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    opened = Store.open()
    yield opened
    opened.close()


@pytest.fixture
def queue(run: Run) -> Any:
    """Run a verb of the demo's queue with --json, and give what it prints."""

    def call(*words: str, host: str = "demo") -> Any:
        result = run("queue", host, *words, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return call


def end(store: Store, state: ExperimentState, **fields: object) -> Experiment:
    mine = store.experiments.claim("demo", simulated=True, who="runner", at=1.0)
    assert mine is not None
    changed = msgspec.structs.replace(mine, state=state, **fields)
    return store.experiments.end(changed, who="runner", at=2.0)


def test_prompts_of_a_file_are_read_before_they_are_queued(
    run: Run, queue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ddtui.toml").write_text('[bench.own]\nprompts = "own.jsonl"\n')
    prompts = tmp_path / "own.jsonl"
    prompts.write_text('{"prompt": "one"}\n{"promt": "two"}\n')
    refused = run("queue", "demo", "add", "--set", "budget=8", "--plan", "own")
    assert refused.exit_code == ExitCode.USAGE
    assert "own.jsonl:2: is no prompt" in refused.stderr
    assert 'write {"prompt": "..."}' in refused.stderr
    assert queue("list")["experiments"] == []
    prompts.write_text('{"prompt": "one"}\n')
    (added,) = queue("add", "--set", "budget=8", "--plan", "own")
    assert added["plan"]["prompts"] == str(prompts)  # whatever folder it is run from
    prompts.unlink()
    for words in (("add", "--like", "1"), ("edit", "1", "--plan", "own")):
        refused = run("queue", "demo", *words)
        assert refused.exit_code == ExitCode.USAGE
        assert "own.jsonl' cannot be read: No such file" in refused.stderr


def test_prompts_that_cannot_be_read_have_one_status(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text('[bench.own]\nprompts = "own.jsonl"\n')
    for words in (("queue", "demo", "add", "--set", "budget=8"), ("sweep", "demo", "budget=8")):
        refused = run(*words, "--plan", "own.toml")
        assert (refused.exit_code, refused.stdout) == (ExitCode.USAGE, "")
    refused = run("bench", "demo", "--plan", "own.toml")
    assert refused.exit_code == ExitCode.USAGE
    assert "own.jsonl' cannot be read" in refused.stderr


def test_each_verb_says_first_what_it_has_done(run: Run) -> None:
    words = [
        (("add", "--set", "budget=8"), "added"),
        (("edit", "1", "--set", "budget=9"), "edited"),
        (("move", "1", "--last"), "moved"),
        (("hold", "1"), "held"),
        (("hold", "1"), "unchanged"),
        (("release", "1"), "released"),
        (("note", "1", "text"), "annotated"),
        (("cancel", "1"), "cancelled"),
        (("clear",), "cleared"),
    ]
    for verb, what in words:
        done = run("queue", "demo", *verb)
        assert done.exit_code == 0, done.stderr
        assert re.fullmatch(rf"{what}: [0-9a-f]{{8}} budget \d: \w+(, place 1)?\n", done.stdout)
    nothing = run("queue", "demo", "clear")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "nothing of demo has ended that could be cleared\n"


def test_a_queue_from_its_begin_to_its_end(run: Run, queue: Any, store: Store) -> None:
    (first,) = queue("add", "budget-16", "--hypothesis", "wider is faster", "--baseline")
    assert (first["place"], first["state"], first["baseline"]) == (1, "pending", True)
    assert first["title"] == "budget-16 budget 16"
    (second,) = queue("add", "--set", "budget=8", "--held", "--before", first["short"])
    assert (second["place"], second["state"]) == (1, "held")
    (moved,) = queue("move", "1", "--last")
    assert (moved["id"], moved["place"]) == (second["id"], 2)
    (edited,) = queue("edit", "2", "--set", "topk=4", "--unset", "budget", "--title", "four wide")
    assert (edited["request"]["knobs"], edited["title"]) == ({"topk": 4}, "four wide")
    assert [each["state"] for each in queue("hold", "1", "2")] == ["held", "held"]
    assert [each["state"] for each in queue("release", "1", "2")] == ["pending", "pending"]
    end(store, ExperimentState.FAILED, cause={"title": "out of memory", "remedy": "less"})
    (noted,) = queue("note", first["id"], "seen", "--hypothesis", "h")
    assert (noted["note"], noted["hypothesis"]) == ("seen", "h")
    report = queue("list")
    assert [(each["place"], each["state"]) for each in report["experiments"]] == [
        (1, "pending"),
        (None, "failed"),
    ]
    assert "out of memory" in run("queue", "demo").stdout
    (again,) = queue("retry", first["short"], "--first")
    assert (again["place"], again["attempts"], again["cause"]) == (1, 1, None)
    assert [each["state"] for each in queue("cancel", "1", "2")] == ["cancelled", "cancelled"]
    assert len(queue("clear")) == 2
    assert queue("clear") == []
    assert queue("list")["experiments"] == []
    assert len(queue("list", "--all")["experiments"]) == 2
    shown = queue("show", first["short"])
    assert [each["what"] for each in shown["log"]][:2] == ["added", "held"]
    assert shown["cleared"]


def test_plans_are_named_or_the_default_one(run: Run, queue: Any, tmp_path: Path) -> None:
    (tmp_path / "ddtui.toml").write_text("[bench.short]\nrepeats = 1\nconcurrency = [1, 8]\n")
    (new,) = queue("add", "--set", "budget=4", "--plan", "short")
    assert (new["plan"]["name"], new["plan"]["concurrency"]) == ("short", [1, 8])
    assert queue("add", "--set", "budget=8")[0]["plan"]["name"] == ""
    assert "short (concurrency 1 8, repeats 1)" in run("queue", "demo", "show", "1").stdout
    assert queue("edit", "2", "--plan", "short")[0]["plan"] == new["plan"]
    assert queue("add", "--like", "1", "--set", "topk=2")[0]["plan"] == new["plan"]


def test_the_settings_of_a_queue(run: Run, queue: Any) -> None:
    assert queue("pause") == {"host": "demo", "simulated": True, "paused": True, "leave": "last"}
    assert queue("leave", "best")["leave"] == "best"
    assert run("queue", "demo").stdout.startswith("demo: nothing queued; paused; at the end")
    assert not queue("resume")["paused"]
    result = run("queue", "demo", "leave", "bets")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert "expected one of: baseline, best, last" in result.stderr


def test_one_like_another_one_with_its_budget_matched(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "block_size=8", "--set", "budget=16", "--set", "topk=4")
    (like,) = queue("add", "--like", "1", "--set", "block_size=16", "--match", "nodes")
    assert like["request"]["knobs"] == {"block_size": 16, "budget": 35, "topk": 4}
    assert like["match"]["formula"].endswith("= 35")
    assert like["match"]["reference"] == "block size 8, budget 16"
    assert "matched" in run("queue", "demo", "show", "2").stdout
    (edited,) = queue("edit", "2", "--set", "block_size=8", "--match", "cost")
    assert edited["match"]["policy"] == "cost"
    (edited,) = queue("edit", "2", "--set", "budget=9")
    assert edited["match"] is None


def test_values_in_force_are_matched_where_the_request_has_none(queue: Any, store: Store) -> None:
    queue("add", "--set", "topk=4")
    measured = Measurement(
        id="m",
        host="demo",
        simulated=True,
        unit="u",
        configuration="k",
        plan=BenchPlan(),
        state=MeasurementState.COMPLETE,
        began=1.0,
        knobs={"block_size": "8", "budget": "16"},
    )
    store.measurements.put(measured)
    ended = end(store, ExperimentState.DONE, measurement="m")
    (like,) = queue("add", "--like", ended.id, "--set", "block_size=16", "--match", "ratio")
    assert like["request"]["knobs"]["budget"] == like["match"]["value"]
    assert like["match"]["reference"] == "block size 8, budget 16"


def test_what_a_sweep_has_learnt_of_the_host_is_matched_without_it(run: Run, queue: Any) -> None:
    grid = ("budget=4,16", "topk=4", "--plan", "quick", "--yes")
    assert run("sweep", "demo", *grid).exit_code == 0
    (like,) = queue("add", "--like", "2", "--set", "block_size=16", "--match", "nodes")
    assert like["match"]["reference"] == "block size 8, budget 16"
    assert like["request"]["knobs"] == {"budget": 35, "topk": 4, "block_size": 16}
    # One that was added by hand sets less still: what it leaves to the server is known too.
    queue("add", "--set", "budget=8")
    result = run("queue", "demo", "add", "--like", "4", "--set", "block_size=16", "--match", "P1")
    assert "block_size 16 budget 18: pending, place 5" in result.stdout
    assert "block size 16 is larger than the drafter's trained 8" in result.stderr


def test_what_nothing_tells_cannot_be_matched(run: Run, queue: Any) -> None:
    queue("add", "--set", "budget=8")
    result = run("queue", "demo", "add", "--like", "1", "--set", "block_size=16", "--match", "P1")
    assert result.exit_code == ExitCode.USAGE
    assert "needs to know the block_size" in result.stderr
    assert "`ddtui sweep`" in result.stderr


def test_the_list_stays_within_the_terminal(
    run: Run, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    title = "a configuration with a title that no terminal of eighty columns has any room for"
    queue("add", "--set", "budget=8", "--title", title, "--hypothesis", "so much the better " * 3)
    shown = run("queue", "demo").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "a configuration with a" in shown
    assert title in run("queue", "demo", "show", "1").stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add"], 2, "name a preset"),
        (["add", "nope"], 2, "there is no preset 'nope'"),
        (["add", "--set", "budgett=4"], 2, "did you mean budget?"),
        (["add", "--set", "budget=4", "--first", "--before", "1"], 2, "give one place"),
        (["add", "--set", "budget=4", "--plan", "nope"], 2, "no bench plan 'nope'"),
        (["add", "--set", "budget=4", "--match", "nodes"], 2, "name it with --like"),
        (["add", "--like", "1", "--match", "node"], 2, "did you mean 'nodes'?"),
        (["add", "--like", "1", "--match", "nodes"], 2, "give --set block_size"),
        (
            ["add", "--like", "1", "--match", "nodes", "--set", "block_size=4"],
            2,
            "needs to know the block_size",
        ),
        (
            ["add", "--like", "1", "--match", "nodes", "--set", "budget=4"],
            2,
            "leave out --set budget",
        ),
        (["edit", "1"], 2, "say what to change"),
        (["edit", "1", "--unset", "topk"], 7, "does not ask for topk"),
        (["edit", "1", "--title", "x" * 201], 7, "title is too long"),
        (["move", "1"], 2, "say where"),
        (["move", "1", "--after", "5"], 2, "no place 5"),
        (["hold", "1", "2"], 2, "has no place 2: 1 wait or run"),
        (["retry", "1"], 7, "it is pending"),
        (["clear", "1"], 7, "it is pending"),
        (["note", "1"], 2, "give the note's text"),
        (["show", "nothing"], 2, "no experiment of demo"),
    ],
)
def test_what_is_refused_changes_nothing(
    run: Run, queue: Any, words: list[str], code: int, said: str
) -> None:
    queue("add", "--set", "budget=4")
    before = queue("list")
    result = run("queue", "demo", *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert queue("list") == before


def test_no_secret_is_shown(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "budget=4", *SECRETS)
    kept = store.experiments.queue("demo", simulated=True)[0]
    assert kept.request.flags == {"api-key": "hush"}
    for words in (["list"], ["show", "1"], ["hold", "1"], ["edit", "1", "--set", "env:B=1"]):
        for json_ in ([], ["--json"]):
            result = run("queue", "demo", *words, *json_)
            assert "hush" not in result.output
            assert "<redacted>" in result.output
    (like,) = queue("add", "--like", "1")
    assert like["request"]["flags"] == {"api-key": "<redacted>"}
    assert store.experiments.queue("demo", simulated=True)[1].request.flags["api-key"] == "hush"


def test_hosts_are_kept_apart(run: Run, queue: Any, config_file: Path) -> None:
    (new,) = queue("add", "--set", "budget=4")
    assert queue("list", host="ct200")["experiments"] == []
    result = run("queue", "ct200", "cancel", new["id"])
    assert result.exit_code == ExitCode.USAGE
    assert "no experiment of ct200" in result.stderr
    assert queue("list", host="ct200")["simulated"] is False
    assert run("queue", "-x", "list").exit_code == 2


def test_its_help_names_all_verbs_in_80_columns(run: Run) -> None:
    lines = run("queue", "--help").stdout.partition("Commands:")[2].splitlines()
    assert len(lines) >= 14
    assert not [line for line in lines if "..." in line or len(line) > 80]


def test_what_runs_is_told_to_end(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "budget=4")
    mine = store.experiments.claim("demo", simulated=True, who="runner 1f", at=1.0)
    assert mine is not None
    store.experiments.step(mine.id, "loading", who="runner 1f", at=2.0)
    refused = run("queue", "demo", "edit", "1", "--set", "budget=8")
    assert refused.exit_code == ExitCode.BLOCKED
    assert "it is running" in refused.stderr
    (wish,) = queue("cancel", "1")
    assert (wish["state"], wish["cancel"], wish["step"]) == ("running", True, "loading")
    with present(presence_file("demo", simulated=True), "runner", 1.0):
        assert "running: loading, to be cancelled" in run("queue", "demo").stdout
        assert "1 running; at the end" in run("queue", "demo", "list").stdout


def test_what_was_done_before_a_refusal_is_told(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "budget=4")
    queue("add", "--set", "budget=8")
    gone = queue("cancel", "1")[0]["short"]
    result = run("queue", "demo", "hold", "1", gone)
    assert result.exit_code == ExitCode.BLOCKED
    assert "budget 8: held, place 1" in result.stdout
    assert f"cannot hold {gone}" in result.stderr


def test_remote_text_is_shown_plain(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "budget=4")
    cause = {"title": "\x1b[31mred", "evidence": ["a\x07b"], "remedy": "\x1b]0;t\x07less"}
    ended = end(store, ExperimentState.FAILED, cause=cause)
    for words in (["list"], ["show", ended.id]):
        output = run("queue", "demo", *words).stdout
        assert "red" in output
        assert "\x1b" not in output
        assert "\x07" not in output


# ---- what stands beside the rows -----------------------------------------------------------------


def measured_one(store: Store, run: Run) -> None:
    """One experiment that is done, with what was measured."""
    run("queue", "demo", "add", "--set", "budget=8")
    cell = Cell(
        concurrency=1,
        requests=4,
        user_rate=Spread(148.2, 147.0, 149.0),
        acceptance_length=Spread(3.4, 3.3, 3.5),
    )
    measurement = Measurement(
        id="a" * 32,
        host="demo",
        simulated=True,
        unit="u",
        configuration="k",
        plan=BenchPlan(),
        state=MeasurementState.COMPLETE,
        began=1.0,
        cells=(cell,),
    )
    store.measurements.put(measurement)
    end(store, ExperimentState.DONE, measurement=measurement.id)


def test_the_list_shows_what_was_measured(run: Run, queue: Any, store: Store) -> None:
    measured_one(store, run)
    head, line = run("queue", "demo").stdout.splitlines()[1:]
    assert head.split() == ["ID", "STATE", "CONFIGURATION", "TOK/S", "ACCEPT", "PLAN"]
    assert line.split()[1:] == ["done", "budget", "8", "148", "3.40", "default"]
    (report,) = queue("list")["experiments"]
    assert (report["result"]["user_rate"], report["result"]["acceptance_length"]) == (148.2, 3.4)
    assert (report["result"]["concurrency"], report["interrupted"]) == (1, False)


def test_a_narrow_list_keeps_what_tells_its_rows_apart(
    run: Run, queue: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_one(store, run)
    title = ("--set", "topk=4", "--set", "window=2048", "--plan", "throughput")
    for budget in (4, 8, 12):
        queue("add", "--set", f"budget={budget}", *title, "--hypothesis", "word " * 12)
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("queue", "demo").stdout.splitlines()
    assert max(map(len, lines)) <= 60
    for budget in (4, 8, 12):
        assert any(f"budget {budget} topk 4 window" in line for line in lines)
    assert any("  148" in line for line in lines)
    assert "left out at this width: " in "\n".join(lines)
    monkeypatch.setenv("COLUMNS", "300")
    assert "left out" not in run("queue", "demo").stdout


def test_tries_are_listed_once_there_were_several(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "budget=8")
    end(store, ExperimentState.FAILED)
    assert "TRIES" not in run("queue", "demo").stdout
    queue("retry", queue("list")["experiments"][0]["id"])
    end(store, ExperimentState.FAILED)
    assert "TRIES" in run("queue", "demo").stdout


def test_a_match_is_told_where_it_is_made_and_listed(
    run: Run, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    queue("add", "--set", "block_size=8", "--set", "budget=16", "--set", "topk=4")
    added = run("queue", "demo", "add", "--like", "1", "--set", "block_size=16", "--match", "nodes")
    formula = "nodes: ceil(16 x 15 / 7) = 35, to match block size 8, budget 16"
    assert added.stdout.splitlines()[1] == f"       {formula}"
    assert run("queue", "demo").stdout.splitlines()[-1].endswith(formula[:59] + "…")
    assert formula in run("queue", "demo", "show", "2").stdout


def test_what_a_gone_runner_has_left_is_called_interrupted(
    run: Run, queue: Any, store: Store
) -> None:
    queue("add", "--set", "budget=8")
    mine = store.experiments.claim("demo", simulated=True, who="ada@desk 1f", at=1.0)
    assert mine is not None
    store.experiments.step(mine.id, "loading", who="ada@desk 1f", at=2.0)
    gone = "nobody runs it now from this machine; `ddtui run demo` carries it on"
    shown = run("queue", "demo").stdout
    assert shown.startswith("demo: 1 interrupted; ")
    assert "interrupted: loading" in shown
    assert f"interrupted: {gone}" in " ".join(shown.split())
    assert f"interrupted: loading ({gone}), place 1" in run("queue", "demo", "show", "1").stdout
    (report,) = queue("list")["experiments"]
    assert (report["state"], report["step"], report["interrupted"]) == ("running", "loading", True)
    file = presence_file("demo", simulated=True)
    with present(file, "ada@desk", 1.0):
        assert "running: loading" in run("queue", "demo").stdout
        assert not queue("show", "1")["interrupted"]
    with present(file, "ada@desk (bench)", 1.0):  # keeps runners away, and runs nothing of it
        assert queue("show", "1")["interrupted"]


def test_a_host_without_a_verb_is_listed(run: Run, queue: Any, store: Store) -> None:
    queue("add", "--set", "budget=8")
    assert json.loads(run("queue", "demo", "--json").stdout) == queue("list")
    queue("cancel", "1")
    queue("clear")
    assert "budget 8" not in run("queue", "demo").stdout
    assert "budget 8" in run("queue", "demo", "--all").stdout
    assert "budget 8" in run("queue", "demo", "--json", "--all").stdout
    assert run("queue", "--json", "demo").exit_code == ExitCode.USAGE
