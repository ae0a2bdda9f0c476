"""What goes wrong around a change, for real: other hands, crashes, orphans, cuts, killed ddtuis."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ddtui.control.held import Remaining
from ddtui.control.outcome import Asked
from ddtui.core.change_record import StepRecord
from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState
from tests.host.changing import SUDOERS, Changer, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, wait_until
from tests.host.measured import measured
from tests.host.test_verbs import Ddtui
from tests.host.watching import Watcher

UNIT = "llm-trouble.service"
BLOCK = "speculative-dflash-block-size"
LOAD = 3.0


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.nvidia_smi()
    gpuhost.exec("rm", "-f", SUDOERS)


def install(
    host: GpuHost, *flags: str, load: float = LOAD, service: str = "", start: bool = True
) -> None:
    """The engine's unit, run by the user that ddtui logs in as."""
    words = engine_command(*DFLASH, *flags, load_seconds=load)
    host.install_unit(UNIT, words, user="ops", service=service, start=start)


@pytest.fixture
async def ops(host: GpuHost, watcher: Watcher, tmp_path: Path) -> AsyncIterator[Changer]:
    install(host)
    async with changer(watcher, UNIT, tmp_path) as each:
        await each.watching.until_state(ReadinessState.READY)
        yield each


def flag(host: GpuHost) -> str:
    """The block size of the running main process."""
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{BLOCK}") + 1]


def starts(host: GpuHost) -> int:
    """How often the unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={UNIT}", started]
    return len(host.exec(*command).stdout.splitlines())


def block(size: int) -> Request:
    return Request(flags={BLOCK: size})


async def test_a_restart_by_another_hand_is_proved_anew(host: GpuHost, ops: Changer) -> None:
    loading = asyncio.Event()
    ops.on = lambda step: loading.set() if step.step == "loading" else None
    work = asyncio.create_task(ops.apply(request=block(16)))
    await loading.wait()
    first = host.show(UNIT, "InvocationID")
    await asyncio.to_thread(host.systemctl, "restart", UNIT)
    record = await work
    second = host.show(UNIT, "InvocationID")
    assert first != second
    assert record.ending == "in force"
    assert record.invocation == second
    assert ops.steps.count("loading") == 2
    assert ops.steps.count("in force") == 1
    (told,) = [step.detail for step in record.steps if "somebody else" in step.detail]
    assert told == "the unit was restarted by somebody else"


async def test_a_crash_that_systemd_mends_is_no_success(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    install(host, service="Restart=on-failure\nRestartSec=1")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        # It had been restarted before: that is no crash of the new one.
        host.exec("kill", "-9", str(host.main_pid(UNIT)))
        await ops.watching.until(lambda known: known.unit and known.unit.restarts == 1)
        await ops.watching.until_state(ReadinessState.READY)
        assert (await ops.apply(request=block(16))).ending == "in force"

        def crash(step: StepRecord) -> None:
            if step.step == "loading":
                host.exec("kill", "-9", str(host.main_pid(UNIT)))

        ops.on, before = crash, len(ops.steps)
        record = await ops.apply(request=block(4), policy="never")
        assert record.ending == "failed"
        assert record.cause is not None
        said = f"{record.cause}"
        assert "died" in said
        assert "systemd" in said
        assert "verifying" not in ops.steps[before:]
        # Ready in the end, by systemd's doing: still nothing that was proved here.
        await ops.watching.until_state(ReadinessState.READY)
        (kept,) = ops.store.reconfigurations.history(host.name, most=1)
        assert kept.ending == "failed"


def orphan_of(host: GpuHost) -> int:
    """The pid of the unit's further process, which outlives its engine."""
    pids = host.exec("pgrep", "-f", "sleep 7654").stdout.split()
    assert len(pids) == 1
    return int(pids[0])


ORPHAN = "ExecStartPost=/bin/sh -c 'setsid sleep 7654 >/dev/null 2>&1 & :'"
ESCAPE = 'mkdir -p /sys/fs/cgroup/away; echo "$1" > /sys/fs/cgroup/away/cgroup.procs'


@pytest.mark.parametrize("escaped", [True, False])
async def test_an_orphan_with_a_gpu(
    host: GpuHost, watcher: Watcher, tmp_path: Path, escaped: bool
) -> None:
    """It is shown by pid and name, and lives unless that is confirmed; late memory is waited for.

    It has left the control group, or was left in it (KillMode=process).
    """
    install(host, service=ORPHAN + ("" if escaped else "\nKillMode=process"))
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        pid = orphan_of(host)
        if escaped:
            host.sh(ESCAPE, str(pid))
        host.nvidia_smi(state="loaded", pids=str(pid), used="41843,41843")
        try:
            record = await ops.apply(request=block(16), policy="never")
            assert record.ending == "failed"
            assert record.cause is not None
            title = record.cause["title"]
            assert title.startswith("not released within 15 s: ")
            assert f"{pid} (sleep)" in title
            assert f"GPUs 0, 1: 40.4 GiB not given back, held by {pid} (sleep)" in title
            assert f"sudo kill {pid}" in record.cause["remedy"]
            assert host.exec("test", "-d", f"/proc/{pid}").returncode == 0
            assert host.show(UNIT, "ActiveState") == "inactive"
            await with_confirmation(host, ops, pid)
        finally:
            host.exec("kill", "-9", str(pid), check=False)


async def with_confirmation(host: GpuHost, ops: Changer, pid: int) -> None:
    """Once more, and confirmed: it is ended, and the memory comes back four seconds later."""
    asked: list[Remaining] = []

    async def orphans(left: Remaining) -> bool:
        asked.append(left)
        host.nvidia_smi(state="loaded", pids="", used="41843,41843")
        asyncio.get_running_loop().call_later(9, host.nvidia_smi)
        return True

    ops.said.clear()
    plan = await ops.plan(block(32))
    record = await ops.control.apply(plan, ops.heard, policy="never", asked=Asked(orphans=orphans))
    assert record.ending == "in force", record.cause
    (left,) = asked
    assert str(pid) in left.text
    assert host.exec("test", "-d", f"/proc/{pid}", check=False).returncode == 1
    late = [words for words in ops.said if "not given back" in words and str(pid) not in words]
    assert late


@pytest.mark.parametrize("seed", range(4))
async def test_a_cut_at_any_moment_loses_nothing(host: GpuHost, ops: Changer, seed: int) -> None:
    moment = random.Random(seed).uniform(0.0, 9.0)

    async def cut() -> None:
        await asyncio.sleep(moment)
        script = "for pid in $(pgrep -f 'sshd: ops@'); do kill -9 $pid; done"
        await asyncio.to_thread(host.sh, script, check=False)

    before, plan = starts(host), await ops.plan(block(16))
    cutting = asyncio.create_task(cut())
    record = await ops.control.apply(plan, ops.heard, policy="always", asked=Asked())
    await cutting
    assert record.ending == "in force", record.cause
    assert flag(host) == "16"
    assert starts(host) == before + 1


async def test_blanks_in_paths(host: GpuHost, watcher: Watcher, tmp_path: Path) -> None:
    host.sh("mkdir -p '/models/kimi two'; cp -r /models/kimi/. '/models/kimi two/'")
    install(host)
    words = engine_command(*DFLASH, load_seconds=LOAD)
    words[words.index("/models/kimi")] = "/models/kimi two"
    line = " ".join(f'"{word}"' if " " in word else word for word in words)
    path = f"/etc/systemd/system/{UNIT}.d/40 more of it.conf"
    host.write(path, f'[Service]\nExecStart=\nExecStart={line}\nEnvironment="T_A=x y"\n')
    host.systemctl("daemon-reload")
    host.systemctl("restart", UNIT)
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        record = await ops.apply(request=block(16))
        assert record.ending == "in force", record.cause
        assert flag(host) == "16"
        command = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
        assert "/models/kimi two" in command
        # Edited beneath: said with the next plan.
        host.write(path, f"[Service]\nExecStart=\nExecStart={line} --log-level info\n")
        host.systemctl("daemon-reload")
        plan = await ops.plan(block(32))
        (warning,) = [each for each in plan.findings if each.rule == "unit-edited"]
        assert "not in force" in warning.reason


# ---- as processes --------------------------------------------------------------------------------


@pytest.fixture
def ddtui(host: GpuHost, tmp_path: Path) -> Ddtui:
    install(host, load=8.0)
    wait_until(lambda: any("ready to roll" in line for line in host.journal(UNIT)), 30)
    made = Ddtui(tmp_path, host)
    made.write_config(unit=UNIT)
    return made


def applying(
    ddtui: Ddtui, size: int, *options: str, step: str = "loading"
) -> subprocess.Popen[str]:
    """`ddtui apply`, as a process of its own, once it is at a step."""
    command = [sys.executable, "-m", "ddtui", "apply", "gpu", "--yes", *options]
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
    return ddtui.run("history", "gpu").stdout


def test_two_at_once_and_the_winner_killed(ddtui: Ddtui) -> None:
    before = starts(ddtui.host)
    winner = applying(ddtui, 16)
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
    wait_until(lambda: ddtui.host.exec(*free, check=False).returncode == 0, 45)
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
    process = applying(ddtui, 16)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"interrupted while {UNIT} was at the step 'loading'" in said
    assert "ddtui apply gpu --resume" in said
    resumed = ddtui.run("apply", "gpu", "--resume", "--yes", "--no-wait")
    assert resumed.returncode in {0, 10}, resumed.stderr
    if resumed.returncode == 10:
        assert "nothing is proved yet" in resumed.stderr
        assert ddtui.run("apply", "gpu", "--resume", "--yes").returncode == 0
    assert starts(ddtui.host) == before + 1


def test_a_reader_that_goes_away_does_not_leave_the_engine_stopped(ddtui: Ddtui) -> None:
    """As in `ddtui apply ... 2>&1 | head`; then the change is taken back with nobody listening."""
    before = starts(ddtui.host)
    process = applying(ddtui, 16, step="releasing")
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    assert process.wait(60) == 0
    assert flag(ddtui.host) == "16"
    command = [sys.executable, "-m", "ddtui", "rollback", "gpu", "--yes"]
    back = subprocess.Popen(
        command, env=ddtui.env, cwd=ddtui.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert back.stdout is not None
    back.stdout.close()
    assert back.wait(60) == 0
    assert flag(ddtui.host) != "16"
    assert starts(ddtui.host) == before + 2
    assert "not ended" not in history(ddtui)


def test_without_waiting_it_ends_when_the_engine_starts(ddtui: Ddtui) -> None:
    # The next start takes longer than `status` does, on a busy machine, too.
    install(ddtui.host, load=20.0, start=False)
    begun = ddtui.run("apply", "gpu", "--yes", "--no-wait", "--json", "--set", f"flag:{BLOCK}=16")
    assert begun.returncode == 10, begun.stderr
    assert '"ending": ""' in begun.stdout
    assert ddtui.run("status", "gpu").returncode == 5
    resumed = ddtui.run("apply", "gpu", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert flag(ddtui.host) == "16"
