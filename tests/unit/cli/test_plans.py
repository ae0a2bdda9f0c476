"""`ddtui plans`, and the names that --plan and --match take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.queue_options import POLICY_NAMES
from ddtui.core.sweep import POLICIES
from tests.unit.cli.conftest import Run

OWN = """
[bench.evening]
prompts = "chat"
concurrency = [1, 8]
repeats = 5
[bench.serving]
command = ["bench", "--api-key", "hidden-by-ddtui"]
"""


@pytest.fixture
def own(folders: Path) -> None:
    folders.mkdir()
    (folders / "config.toml").write_text(OWN)


def test_the_list(run: Run, own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    head, *lines = run("plans").stdout.splitlines()
    assert head.split()[:2] == ["PLAN", "PROMPTS"]
    assert [line.split()[0] for line in lines] == [
        *("default", "glance", "quick", "standard", "throughput", "evening", "serving"),
    ]
    assert lines[0].split() == ["default", "coding", "1", "512", "3", "yes", "built", "in"]
    assert "config.toml" in lines[5]
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run("plans").stdout.splitlines())) <= 60


def test_one_with_its_options(run: Run, own: None) -> None:
    shown = run("plans", "serving").stdout
    assert re.search("^command +bench --api-key ", shown, re.MULTILINE)
    assert re.search("^flush_cache +true *$", shown, re.MULTILINE)
    assert "hidden-by-ddtui" not in shown + run("plans", "serving", "--json").stdout
    default = json.loads(run("plans", "default", "--json").stdout)
    assert (default["name"], default["repeats"], default["source"]) == ("default", 3, "built in")
    names = [each["name"] for each in json.loads(run("plans", "--json").stdout)]
    assert names[0] == "default"
    wrong = run("plans", "evenin")
    assert wrong.exit_code == ExitCode.USAGE
    assert "did you mean 'evening'" in wrong.stderr


def test_the_default_plan_can_be_named(run: Run) -> None:
    assert run("queue", "demo", "add", "--set", "budget=4", "--plan", "default").exit_code == 0
    shown = run("sweep", "demo", "budget=4", "--offline", "--dry-run", "--plan", "default").stdout
    assert "bench plan: default, 3 repeats" in shown


def test_help_names_plans_and_policies(run: Run) -> None:
    assert POLICY_NAMES.replace(" or ", ", ").split(", ") == list(POLICIES)
    for words in (("sweep",), ("queue", "demo", "add"), ("queue", "demo", "edit")):
        shown = " ".join(run(*words, "--help").stdout.split())
        assert POLICY_NAMES in shown
        assert "`ddtui plans` lists them" in shown
