"""`ddtui apply` ended at each of its steps, by whatever signal, and carried on by another one."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtui.demo.engine_process import FAILURE_VARIABLE
from tests.host import at_a_line
from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import AT_ONCE, DFLASH, GpuHost, engine_command, wait_until
from tests.host.test_verbs import Ddtui

UNIT = "llm-ended.service"
BLOCK = "speculative-dflash-block-size"


@pytest.fixture
def ddtui(gpuhost: GpuHost, tmp_path: Path) -> Iterator[Ddtui]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    gpuhost.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    gpuhost.until_ready(UNIT)
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
    done = subprocess.run(
        at_a_line.command(by, f"^ *[0-9]+ s  {step}", "apply", "gpu", "--json", *options),
        env=ddtui.env,
        cwd=ddtui.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert f" s  {step}" in done.stderr
    return done.returncode, done.stdout, done.stderr


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
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), AT_ONCE, "its lock on the host")
    resumed = ddtui.run("apply", "gpu", "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["ending"] == "in force"
    assert (flag(ddtui.host), starts(ddtui.host)) == ("16", before + 1)


def test_what_yes_decided_holds_for_whoever_carries_it_on(ddtui: Ddtui) -> None:
    """Nobody is there to be asked, and the change fails: it is rolled back, as --yes has it."""
    fails = ("--set", f"env:{FAILURE_VARIABLE}=oom", "--set", f"flag:{BLOCK}=16")
    status, _, _ = ended(ddtui, "stopping", signal.SIGKILL, "--yes", *fails)
    assert status == -signal.SIGKILL
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), AT_ONCE, "its lock on the host")
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
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), AT_ONCE, "its lock on the host")
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
    wait_until(lambda: not ddtui.host.programs("ddtui:lock"), AT_ONCE, "its lock on the host")
    for verb in (("apply", "gpu", *asked), ("restart", "gpu", "--yes")):
        refused = ddtui.run(*verb, "--json")
        assert refused.returncode == 7, refused.stderr
        assert json.loads(refused.stdout)["ending"] == "not begun"
    assert ddtui.run("apply", "gpu", "--resume").returncode == 0
