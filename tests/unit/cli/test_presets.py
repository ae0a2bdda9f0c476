"""`ddtui presets` and `ddtui knobs`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ddtui.app.preset_source import presets_for
from ddtui.cli.context import VerbFailed
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.knobs import _lines, knobs_report
from ddtui.cli.output import Paint
from ddtui.config.load import load
from ddtui.core.host_state import HostState
from ddtui.core.samples import UnitSample, UnitStatus
from ddtui.demo.config import ArgumentsRefused, parse
from ddtui.demo.help_text import help_text
from ddtui.demo.machine import Machine
from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.checks import CheckContext, check
from ddtui.engines.sglang.planning import plan
from ddtui.engines.sglang.server_flags import parse_help
from tests.unit.cli.conftest import Run

PROJECT = """
[presets.mine]
extends = "budget-16"
flags = { "api-key" = "hush", "disable-cuda-graph" = true }
unset = ["page-size"]
environment = { HF_TOKEN = "hush" }
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "ddtui.toml").write_text(PROJECT)
    return folder


def test_the_list_names_where_each_comes_from_and_which_host_it_is_for(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    lines = run("presets").stdout.splitlines()
    assert lines[0].split() == ["PRESET", "WHAT", "IT", "IS", "FOR", "SOURCE"]
    (block,) = [line for line in lines if line.startswith("block16 ")]
    assert re.split(r"\s{2,}", block)[-2:] == ["demo", "built in, for demo"]
    own = ["mine", "budget", "16", "every", "host", f"{project}/ddtui.toml:2"]
    assert lines[1].split() == own  # one's own first
    reports = {
        each["name"]: each["only_for"] for each in json.loads(run("presets", "--json").stdout)
    }
    assert (reports["mine"], reports["block16"]) == ("", "demo")
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, run("presets").stdout.splitlines())) <= 70


def test_one_preset_is_shown_with_all_that_it_extends_and_no_secret(
    run: Run, project: Path
) -> None:
    shown = run("presets", "mine").stdout
    assert "extends budget-16" in shown
    assert "none (taken away)" in shown
    assert "hush" not in shown
    report = json.loads(run("presets", "mine", "--json").stdout)
    assert report["knobs"] == {"budget": 16}
    assert report["flags"]["page-size"] is None
    assert report["extends"] == ["budget-16"]
    assert "hush" not in json.dumps(report)


def test_mistakes_are_told(run: Run, project: Path) -> None:
    assert run("presets", "mien").exit_code == ExitCode.USAGE
    (project / "ddtui.toml").write_text("[presets.a]\nbudgt = 1\n")
    result = run("presets")
    assert result.exit_code == ExitCode.USAGE
    assert "ddtui.toml:2: [presets.a] budgt: unknown key; did you mean" in result.stderr


def test_built_in_presets_are_for_the_simulated_host(project: Path) -> None:
    loaded = load()
    assert "block16" in presets_for(loaded, "demo").by_name
    # Of the built-in ones only what the project's own extends is left elsewhere.
    assert list(presets_for(loaded, "ct200").by_name) == ["budget-16", "mine"]


async def test_every_built_in_preset_can_be_applied_to_the_simulated_host(project: Path) -> None:
    machine, server = Machine(), parse_help(help_text(), "x")
    from ddtui.core.launch import Launch

    before = Launch(machine.unit.command, machine.unit.environment)
    found = presets_for(load(), "demo")
    for name in found.by_name:
        if name == "mine":
            continue
        after, changes, findings = plan(before, found.request(name), server)
        context = CheckContext(before=before, after=after, server=server)
        assert not [each for each in (*findings, *check(context)) if each.level == "error"], name
        assert bool(changes) == (name != "budget-8")
        try:
            parse(after.argv, after.environment)
        except ArgumentsRefused as refused:
            pytest.fail(f"{name}: {refused.text}")


async def test_knobs_of_the_simulated_host(run: Run, project: Path) -> None:
    import asyncio

    result = await asyncio.to_thread(run, "knobs", "demo", "--json")
    assert result.exit_code == ExitCode.OK, result.stderr
    report = json.loads(result.stdout)
    assert report["simulated"] is True
    assert report["in_force_source"] == "/server_info"
    knobs = {each["knob"]: each for each in report["knobs"]}
    assert knobs["budget"]["flags"] == ["--speculative-ddtree-budget"]
    assert (knobs["budget"]["requested"], knobs["budget"]["in_force"]) == ("8", "8")
    assert knobs["topk"]["flags"] == ["environment SGLANG_DDTREE_MAX_TOPK"]
    assert (knobs["topk"]["requested"], knobs["topk"]["in_force"]) == ("8", "8")
    assert knobs["verify_budget"]["flags"] == []
    assert "32053" in knobs["verify_budget"]["missing"]


def test_a_wrapped_command_has_no_knobs() -> None:
    state = HostState("h", SGLANG)
    unit = UnitStatus("llm.service", command_line=("bash", "-c", "sglang serve"))
    state.apply(UnitSample(1.0, "systemd", unit))
    with pytest.raises(VerbFailed, match="wrapper"):
        knobs_report(state.snapshot(1.0), unit, None, {})


def test_what_a_server_without_help_has_is_unknown() -> None:
    unit = UnitStatus(
        "llm.service",
        active_state="active",
        command_line=("python", "-m", "sglang.launch_server", "--tp-size", "8"),
    )
    state = HostState("ct200", SGLANG)
    state.apply(UnitSample(1.0, "systemd", unit))
    report = knobs_report(state.snapshot(1.0), unit, None, {})
    knobs = {each.knob: each for each in report.knobs}
    assert (knobs["tp"].requested, knobs["tp"].missing) == ("8", "")
    assert (knobs["tree_nodes"].flags, knobs["tree_nodes"].missing) == ([], "unknown")
    text = "\n".join(_lines(report, Paint()))
    assert re.search(r"(?m)^tree_nodes +unknown +- +-$", text)
    assert "nothing for" not in text
