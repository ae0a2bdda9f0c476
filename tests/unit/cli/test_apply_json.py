"""`--json` of the verbs that change a host: one document, also where nothing is begun."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from ddtui.app.live import Watched
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.look import collected
from ddtui.control.controller import Controller
from ddtui.control.host_actions import Rights, UnitActions
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Finding, Level
from ddtui.core.snapshot import Readiness, ReadinessState, Snapshot
from tests.unit.cli.conftest import Run


def told(run: Run, *arguments: str, code: ExitCode) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout)


def test_what_a_check_forbids(run: Run) -> None:
    asked = ("apply", "demo", "--set", "flag:mem-fraction-static=many", "--yes")
    plan = told(run, *asked, code=ExitCode.BLOCKED)
    assert (plan["ending"], plan["why"], plan["blocked"]) == (
        "not begun", "a check forbids it", True,
    )  # fmt: skip
    (error,) = [each for each in plan["findings"] if each["level"] == "error"]
    assert "mem-fraction-static" in error["text"]
    dry = told(run, *asked, "--dry-run", code=ExitCode.BLOCKED)
    assert dry["findings"] == plan["findings"]


def test_what_nobody_confirms(run: Run) -> None:
    plan = told(run, "apply", "demo", "--set", "budget=24", code=ExitCode.BLOCKED)
    assert (plan["ending"], plan["why"]) == ("not begun", "nobody has confirmed it")
    assert [each["knob"] for each in plan["changes"]] == ["budget"]
    assert told(run, "restart", "demo", code=ExitCode.BLOCKED)["ending"] == "not begun"


def test_what_is_so_already(run: Run) -> None:
    report = json.loads(run("knobs", "demo", "--json").stdout)
    budget = next(each for each in report["knobs"] if each["knob"] == "budget")["requested"]
    asked = ("apply", "demo", "--set", f"budget={budget}", "--yes")
    plan = told(run, *asked, code=ExitCode.OK)
    assert plan["ending"] == "not begun"
    assert plan["why"].startswith("nothing to change: ")


def test_what_is_not_possible(run: Run) -> None:
    refused = told(run, "rollback", "demo", "--yes", code=ExitCode.BLOCKED)
    assert refused["ending"] == "not begun"
    assert refused["why"]
    assert told(run, "apply", "demo", "--resume", code=ExitCode.BLOCKED)["ending"] == "not begun"


def test_a_restart_that_is_forbidden_is_not_asked_about(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def against(_control: Controller) -> tuple[Finding, ...]:
        asked.append("against")
        return (Finding(Level.ERROR, "right-missing", "sudo does not allow it", "", "add a line"),)

    async def rights(_actions: UnitActions) -> Rights:
        asked.append("rights")
        return Rights()

    monkeypatch.setattr(Controller, "against_restart", against)
    monkeypatch.setattr(UnitActions, "rights", rights)
    refused = told(run, "restart", "demo", code=ExitCode.BLOCKED)
    assert (refused["why"], refused["remedy"]) == ("sudo does not allow it", "add a line")
    assert asked == ["against"]


def test_sigterm_says_how_to_go_on_as_ctrl_c_does() -> None:
    command = [sys.executable, "-m", "ddtui", "apply", "demo", "--yes", "--json"]
    process = subprocess.Popen(
        [*command, "--set", "budget=24"],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if " s  loading" in line:
            break
    process.send_signal(signal.SIGHUP)
    for line in process.stderr:
        said.append(line)
        if line.startswith("hung up: "):
            break
    process.send_signal(signal.SIGTERM)
    out, rest = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, "".join([*said, rest])
    assert "at the step 'loading'" in rest
    assert "ddtui apply demo --resume" in rest
    record = json.loads(out)
    assert (record["ending"], record["why"]) == ("", "interrupted")


def test_what_is_so_already_and_not_ready_is_no_success(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def loading(source: Watched) -> Snapshot:
        known = await collected(source)
        return replace(known, readiness=Readiness(ReadinessState.LOADING_TARGET))

    report = json.loads(run("knobs", "demo", "--json").stdout)
    budget = next(each for each in report["knobs"] if each["knob"] == "budget")["requested"]
    monkeypatch.setattr("ddtui.cli.look.collected", loading)
    asked = ("apply", "demo", "--set", f"budget={budget}", "--yes")
    plan = told(run, *asked, code=ExitCode.NOT_READY)
    assert plan["ending"] == "not begun"
    assert plan["why"].endswith("; the engine is not ready: loading target")


@pytest.mark.parametrize(
    "beside", [("mine",), ("--set", "budget=1"), ("--dry-run",), ("--rollback", "never")]
)
def test_nothing_is_left_out_beside_a_resume(
    run: Run, monkeypatch: pytest.MonkeyPatch, beside: tuple[str, ...]
) -> None:
    """A dry run carried the change on, and a preset was passed over."""

    async def resume(*_: object, **__: object) -> ChangeRecord:
        raise AssertionError("it was carried on")

    monkeypatch.setattr(Controller, "resume", resume)
    result = run("apply", "demo", "--resume", *beside)
    assert result.exit_code == ExitCode.USAGE
    assert "--resume carries on what was asked for already: without " in result.stderr


def test_a_change_that_goes_on_elsewhere_is_told_before_anything_is_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def holder(_control: Controller) -> str:
        return "jonas@laptop since then"

    monkeypatch.setattr(Controller, "holder", holder)
    result = run("apply", "demo", "--set", "budget=24")
    assert result.exit_code == ExitCode.LOCKED
    assert "being changed by jonas@laptop" in result.stderr
    assert "confirm" not in result.stderr
