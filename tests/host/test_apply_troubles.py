"""What goes wrong around a change, for real: other hands, crashes, orphans, cuts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from ddtui.control import carrying_out
from ddtui.control.held import Remaining
from ddtui.control.outcome import Asked
from ddtui.core.change_record import StepRecord
from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState
from tests.host.changing import QUICK, SUDOERS, Changer, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command
from tests.host.watching import Watcher

UNIT = "llm-trouble.service"
BLOCK = "speculative-dflash-block-size"


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.nvidia_smi()
    gpuhost.exec("rm", "-f", SUDOERS)


def install(host: GpuHost, service: str = "") -> None:
    """The engine's unit, run by the user that ddtui logs in as."""
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops", service=service)


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
    with host.held():
        work = asyncio.create_task(ops.apply(request=block(16)))
        await loading.wait()
        first = host.show(UNIT, "InvocationID")
        await asyncio.to_thread(host.systemctl, "restart", UNIT)
        second = host.show(UNIT, "InvocationID")
        assert first != second
    record = await work
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
    host: GpuHost,
    watcher: Watcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    escaped: bool,
) -> None:
    """It is shown by pid and name, and lives unless that is confirmed; late memory is waited for.

    It has left the control group, or was left in it (KillMode=process).
    """
    install(host, service=ORPHAN + ("" if escaped else "\nKillMode=process"))
    monkeypatch.setattr(carrying_out, "ASK_AFTER", 1.0)
    monkeypatch.setattr(carrying_out, "GRACE", 1.0)
    limits = msgspec.structs.replace(QUICK, release=2.0)
    async with changer(watcher, UNIT, tmp_path, limits=limits) as ops:
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
            assert title.startswith("not released within 2 s: ")
            assert f"{pid} (sleep)" in title
            assert f"GPUs 0, 1: 40.4 GiB not given back, held by {pid} (sleep)" in title
            assert f"sudo kill {pid}" in record.cause["remedy"]
            assert host.exec("test", "-d", f"/proc/{pid}").returncode == 0
            assert host.show(UNIT, "ActiveState") == "inactive"
            async with changer(watcher, UNIT, tmp_path) as patient:
                await with_confirmation(host, patient, pid)
        finally:
            host.exec("kill", "-9", str(pid), check=False)


async def with_confirmation(host: GpuHost, ops: Changer, pid: int) -> None:
    """Once more, and confirmed: it is ended, and the memory comes back once it is waited for."""
    asked: list[Remaining] = []

    async def orphans(left: Remaining) -> bool:
        asked.append(left)
        host.nvidia_smi(state="loaded", pids="", used="41843,41843")
        return True

    def late() -> list[str]:
        return [each for each in ops.said if "not given back" in each and str(pid) not in each]

    async def give_back() -> None:
        await ops.watching.until(lambda _: late(), what="that memory is waited for")
        await asyncio.to_thread(host.nvidia_smi)

    giving = asyncio.create_task(give_back())
    plan = await ops.plan(block(32))
    record = await ops.control.apply(plan, ops.heard, policy="never", asked=Asked(orphans=orphans))
    assert record.ending == "in force", record.cause
    (left,) = asked
    assert str(pid) in left.text
    assert host.exec("test", "-d", f"/proc/{pid}", check=False).returncode == 1
    await giving


@pytest.mark.parametrize("seed", range(4))
async def test_a_cut_at_any_moment_loses_nothing(host: GpuHost, ops: Changer, seed: int) -> None:
    """Once it has begun, that is: before, there is nothing yet to be carried on."""
    moment = random.Random(seed).uniform(0.0, 3.0)
    begun = asyncio.Event()
    ops.on = lambda _: begun.set()

    async def cut() -> None:
        await begun.wait()
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
    words = engine_command(*DFLASH)
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
