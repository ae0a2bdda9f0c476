"""docs/json.md names the keys that verbs print, each of them and no other."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from ddtui.config.bench_plan_tables import OPTIONS
from ddtui.core.experiment import Match
from ddtui.core.measurement import CodingResult, Measurement
from ddtui.experiments.report import RunEvent
from ddtui.store import Store
from tests.unit.cli.conftest import Run
from tests.unit.experiments.results_world import (
    cell,
    experiment,
    measured,
    seed_experiments,
    seed_measurements,
)

FILE = Path(__file__).resolve().parents[3] / "docs" / "json_keys.py"


@pytest.fixture(scope="module")
def keys() -> ModuleType:
    spec = importlib.util.spec_from_file_location("json_keys", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(run: Run, *words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_the_page_is_current(keys: ModuleType) -> None:
    text = keys.GUIDE.read_text(encoding="utf-8")
    assert text == keys.document(), "run .venv/bin/python docs/make_reference.py"


def test_a_key_too_many_and_one_too_few_are_seen(keys: ModuleType) -> None:
    assert keys.unlike("error", {"error": {"status": 1, "why": "x", "remedy": ""}}) == []
    wrong = {"error": {"status": 1, "why": "x", "cure": ""}}
    assert sorted(keys.unlike("error", wrong)) == [
        "error.cure is not told",
        "error.remedy is told and not there",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("status", ["status", "demo"]),
        ("knobs", ["knobs", "demo"]),
        ("doctor", ["doctor", "demo"]),
        ("hosts", ["hosts"]),
        ("presets", ["presets"]),
        ("presets", ["presets", "budget-8"]),
        ("config", ["config", "print"]),
        ("plan", ["apply", "demo", "--set", "budget=9", "--dry-run"]),
        ("plan", ["apply", "demo", "--set", "page_size=0", "--set", "window=4", "--dry-run"]),
        ("error", ["presets", "none-such"]),
        ("run_status", ["run", "demo", "--status"]),
        ("run_stop", ["run", "demo", "--stop"]),
        ("queue", ["queue", "demo"]),
        ("sweep", ["sweep", "demo", "block_size=16 budget=4,8", "--match", "nodes", "--dry-run"]),
        ("sweep", ["sweep", "demo", "budget=4,8", "--offline", "--dry-run"]),
    ],
)
def test_what_a_verb_prints(keys: ModuleType, run: Run, name: str, words: list[str]) -> None:
    found = printed(run, *words)
    assert found
    assert keys.unlike(name, found) == []


def test_a_runner_without_a_terminal(keys: ModuleType, folders: Path) -> None:
    command = [sys.executable, "-m", "ddtui", "run", "demo", "--detach", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert keys.unlike("run_detach", json.loads(done.stdout)) == []


def test_plans(keys: ModuleType, run: Run) -> None:
    for words in (["plans"], ["plans", "quick"]):
        assert keys.unlike("plans", printed(run, *words), more=list(OPTIONS)) == []


def test_a_change_and_the_history_of_it(keys: ModuleType, run: Run) -> None:
    done = printed(run, "apply", "demo", "--set", "budget=9", "--yes")
    assert done["proofs"]
    assert done["evidence"]
    assert keys.unlike("history", done) == []
    assert keys.unlike("history", printed(run, "history", "demo")) == []


def test_experiments(keys: ModuleType, run: Run) -> None:
    add = ("queue", "demo", "add", "--set", "budget=9")
    assert keys.unlike("experiment", printed(run, *add), less=["log"]) == []
    listed = printed(run, "queue", "demo")
    assert keys.unlike("queue", listed) == []
    assert keys.unlike("experiment", listed["experiments"], less=["log"]) == []
    assert keys.unlike("experiment", printed(run, "queue", "demo", "show", "1")) == []


def test_an_experiment_that_was_matched_and_measured(keys: ModuleType, run: Run) -> None:
    match = Match("nodes", "ceil(4 x 15 / 7) = 9", "budget", 9, "block size 8", 8, 4)
    store = Store.open()
    try:
        store.experiments.put([experiment(8, match=match, measurement="m-8")])
        store.measurements.put(measured(8, (cell(170.0),)))
    finally:
        store.close()
    (found,) = printed(run, "queue", "ct200")["experiments"]
    assert found["match"]["value"] == 9
    assert found["result"]["user_rate"] == 170.0
    assert keys.unlike("experiment", found, less=["log"]) == []


def test_events_of_a_run(keys: ModuleType) -> None:
    assert set(keys.sections()["run"]["keys"]) == set(RunEvent.__struct_fields__)


def test_measurements_and_results(keys: ModuleType, run: Run) -> None:
    coding = CodingResult(verdicts={}, tasks="1")
    whole: Measurement = msgspec.structs.replace(seed_measurements()[0], coding=coding)
    plain = msgspec.to_builtins(whole)
    assert keys.unlike("measurement", plain) == []
    assert plain["cells"]
    assert keys.unlike("cell", plain["cells"]) == []
    store = Store.open()
    try:
        store.experiments.put(seed_experiments())
        for each in seed_measurements():
            store.measurements.put(each)
    finally:
        store.close()
    found = printed(run, "results", "ct200")
    assert keys.unlike("results", found) == []
    for row in found["rows"]:
        assert keys.unlike("cell", row["cells"]) == []
        assert keys.unlike("measurement", row["measurements"]) == []
