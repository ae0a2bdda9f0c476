"""`ddtui apply` ended at each of its steps, by whatever signal, and carried on by another one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtui.demo.engine_process import FAILURE_VARIABLE
from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, wait_until
from tests.host.test_verbs import Ddtui

UNIT = "llm-ended.service"
BLOCK = "speculative-dflash-block-size"


@pytest.fixture
def ddtui(gpuhost: GpuHost, tmp_path: Path) -> Iterator[Ddtui]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    words = engine_command(*DFLASH, load_seconds=4.0)
    gpuhost.install_unit(UNIT, words, user="ops", service="ExecStop=/bin/sleep 2")
    wait_until(lambda: any("ready to roll" in line for line in gpuhost.journal(UNIT)), 30)
    made = Ddtui(tmp_path, gpuhost)
    made.write_config(unit=UNIT)
    yield made
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


def flag(host: GpuHost) -> str:
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{BLOCK}") + 1]


def starts(host: GpuHost) -> int:
    """How often the unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={UNIT}", started]
    return len(host.exec(*command).stdout.splitlines())


def ended(ddtui: Ddtui, step: str, by: signal.Signals, *options: str) -> tuple[int, str, str]:
    """A change that gets a signal at a step: its status and all that it said."""
    command = [sys.executable, "-m", "ddtui", "apply", "gpu", "--json", *options]
    with subprocess.Popen(
        command,
        env=ddtui.env,
        cwd=ddtui.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if f" s  {step}" in line:
                break
        process.send_signal(by)
        out, said = process.communicate(timeout=60)
    return process.returncode, out, said


ENDS = [
    *(
        (step, signal.SIGKILL)
        for step in ("written", "reloaded", "stopping", "releasing", "starting")
    ),
    *((step, signal.SIGTERM) for step in ("reloaded", "stopping")),
]


@pytest.mark.parametrize(("step", "by"), ENDS)
def test_ended_at_a_step_it_is_carried_on_once(ddtui: Ddtui, step: str, by: signal.Signals) -> None:
    before = starts(ddtui.host)
    status, out, said = ended(ddtui, step, by, "--yes", "--set", f"flag:{BLOCK}=16")
    if by is signal.SIGKILL:
        assert status == -signal.SIGKILL
    else:
        assert status == 130, said
        assert json.loads(out)["ending"] == ""
        assert "ddtui apply gpu --resume" in said
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), 60, "its lock on the host")
    resumed = ddtui.run("apply", "gpu", "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["ending"] == "in force"
    assert (flag(ddtui.host), starts(ddtui.host)) == ("16", before + 1)


def test_what_yes_decided_holds_for_whoever_carries_it_on(ddtui: Ddtui) -> None:
    """Nobody is there to be asked, and the change fails: it is rolled back, as --yes has it."""
    fails = ("--set", f"env:{FAILURE_VARIABLE}=oom", "--set", f"flag:{BLOCK}=16")
    status, _, _ = ended(ddtui, "stopping", signal.SIGKILL, "--yes", *fails)
    assert status == -signal.SIGKILL
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), 60, "its lock on the host")
    resumed = ddtui.run("apply", "gpu", "--resume", "--json")
    assert resumed.returncode == 9, resumed.stderr
    record = json.loads(resumed.stdout)
    assert (record["ending"], record["policy"]) == ("rolled back", "always")
    assert "memory" in record["cause"]["title"].lower()
    assert flag(ddtui.host) == "8"


def test_a_rollback_that_is_ended_goes_on_as_yes_has_it(ddtui: Ddtui) -> None:
    """Killed in the middle of going back: the next one brings the old configuration back."""
    fails = ("--set", f"env:{FAILURE_VARIABLE}=oom", "--set", f"flag:{BLOCK}=16")
    status, _, _ = ended(ddtui, "rolling back", signal.SIGKILL, "--yes", *fails)
    assert status == -signal.SIGKILL
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), 60, "its lock on the host")
    resumed = ddtui.run("apply", "gpu", "--resume", "--json")
    assert resumed.returncode == 9, resumed.stderr
    record = json.loads(resumed.stdout)
    assert (record["ending"], record["policy"]) == ("rolled back", "always")
    assert [each["step"] for each in record["steps"]].count("rolling back") == 1
    assert flag(ddtui.host) == "8"


def test_a_hang_up_ends_nothing(ddtui: Ddtui) -> None:
    status, out, said = ended(
        ddtui, "stopping", signal.SIGHUP, "--yes", "--set", f"flag:{BLOCK}=16"
    )
    assert (status, json.loads(out)["ending"]) == (0, "in force")
    assert "hung up: the change goes on to its end" in said
    assert flag(ddtui.host) == "16"


def test_a_change_is_not_begun_twice(ddtui: Ddtui) -> None:
    """What was left is carried on before anything else: the refusal is JSON as well.

    Its drop-in is written and its engine is down, so that nothing at all would be left to change.
    """
    asked = ("--yes", "--set", f"flag:{BLOCK}=16")
    ended(ddtui, "stopping", signal.SIGTERM, *asked)
    ddtui.host.exec("systemctl", "stop", UNIT)  # it may have been ended before it said so itself
    for verb in (("apply", "gpu", *asked), ("restart", "gpu", "--yes")):
        refused = ddtui.run(*verb, "--json")
        assert refused.returncode in {7, 8}, refused.stderr
        assert json.loads(refused.stdout)["ending"] == "not begun"
    assert ddtui.run("apply", "gpu", "--resume").returncode == 0
