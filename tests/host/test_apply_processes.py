"""`ddtui apply` as processes: two at once, killed, interrupted, unread, and not waited for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import AT_ONCE, DFLASH, GpuHost, engine_command, wait_until
from tests.host.measured import measured
from tests.host.test_verbs import Ddtui

UNIT = "llm-process.service"
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
    """The block size of the running main process."""
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{BLOCK}") + 1]


def starts(host: GpuHost) -> int:
    """How often the unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={UNIT}", started]
    return len(host.exec(*command).stdout.splitlines())


def applying(ddtui: Ddtui, size: int, step: str) -> subprocess.Popen[str]:
    """`ddtui apply`, as a process of its own, once it is at a step; the engine must be held."""
    # Whoever runs these tests in the background may have SIGINT ignored, and so would it.
    heeding = ["env", "--default-signal=INT"]
    command = [*heeding, sys.executable, "-m", "ddtui", "apply", "gpu", "--yes"]
    process = subprocess.Popen(
        [*command, "--set", f"flag:{BLOCK}={size}"],
        env=ddtui.env,
        cwd=ddtui.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if f" s  {step}" in line:
            return process
    raise AssertionError("".join(said))


def history(ddtui: Ddtui) -> str:
    done = ddtui.run("history", "gpu")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_at_once_and_the_winner_killed(ddtui: Ddtui) -> None:
    before = starts(ddtui.host)
    with ddtui.host.held():
        winner = applying(ddtui, 16, "loading")
        try:
            second = ddtui.run("apply", "gpu", "--yes", "--set", f"flag:{BLOCK}=32")
            assert second.returncode == 8, second.stderr
            assert "the unit is being changed by " in second.stderr
            assert f" since {time.strftime('%Y-', time.gmtime())}" in second.stderr
        finally:
            winner.kill()
            winner.communicate()
    killed = time.monotonic()
    lock = f"/run/lock/ddtui-{UNIT}.lock"
    free = ["flock", "-n", lock, "true"]
    # Long before its heartbeat would be missed.
    wait_until(lambda: ddtui.host.exec(*free, check=False).returncode == 0, AT_ONCE)
    measured("kill -9 of ddtui: its lock is free after", time.monotonic() - killed)
    refused = ddtui.run("apply", "gpu", "--yes", "--set", f"flag:{BLOCK}=32")
    assert refused.returncode == 7, refused.stderr
    assert "ddtui apply gpu --resume" in refused.stderr
    assert "not ended" in history(ddtui)
    resumed = ddtui.run("apply", "gpu", "--resume", "--yes")
    assert resumed.returncode == 0, resumed.stderr
    assert flag(ddtui.host) == "16"
    assert starts(ddtui.host) == before + 1
    assert "in force" in history(ddtui)


def test_ctrl_c_says_how_to_go_on(ddtui: Ddtui) -> None:
    before = starts(ddtui.host)
    with ddtui.host.held():
        process = applying(ddtui, 16, "loading")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=150)
        assert process.returncode == 130
        assert f"interrupted while {UNIT} was at the step 'loading'" in said
        assert "ddtui apply gpu --resume" in said
        resumed = ddtui.run("apply", "gpu", "--resume", "--yes", "--no-wait")
        assert resumed.returncode == 10, resumed.stderr
        assert "nothing is proved yet" in resumed.stderr
    resumed = ddtui.run("apply", "gpu", "--resume", "--yes")
    assert resumed.returncode == 0, resumed.stderr
    assert starts(ddtui.host) == before + 1


def test_a_reader_that_goes_away_does_not_leave_the_engine_stopped(ddtui: Ddtui) -> None:
    """As in `ddtui apply ... 2>&1 | head`; then the change is taken back with nobody listening."""
    before = starts(ddtui.host)
    with ddtui.host.held():
        process = applying(ddtui, 16, "releasing")
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    assert process.wait(150) == 0
    assert flag(ddtui.host) == "16"
    command = [sys.executable, "-m", "ddtui", "rollback", "gpu", "--yes"]
    back = subprocess.Popen(
        command, env=ddtui.env, cwd=ddtui.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert back.stdout is not None
    back.stdout.close()
    assert back.wait(150) == 0
    assert flag(ddtui.host) != "16"
    assert starts(ddtui.host) == before + 2
    assert "not ended" not in history(ddtui)


def test_without_waiting_it_ends_when_the_engine_starts(ddtui: Ddtui) -> None:
    change = ("apply", "gpu", "--yes", "--no-wait", "--json", "--set", f"flag:{BLOCK}=16")
    with ddtui.host.held():
        begun = ddtui.run(*change)
        assert begun.returncode == 10, begun.stderr
        assert '"ending": ""' in begun.stdout
        assert ddtui.run("status", "gpu").returncode == 5
    resumed = ddtui.run("apply", "gpu", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert flag(ddtui.host) == "16"
