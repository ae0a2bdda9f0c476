"""Changing a unit for real: systemd, sudo, sshd and journald, and a simulated engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ddtui.control.host_actions import RightMissing
from ddtui.control.lock import LockHeld
from ddtui.control.rights import sudoers_lines
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState
from ddtui.demo.engine_process import FAILURE_VARIABLE
from tests.host.changing import SUDOERS, Changer, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, exec_line
from tests.host.watching import Watcher

UNIT = "llm-apply.service"
BLOCK = "speculative-dflash-block-size"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/50-ddtui.conf"


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    with gpuhost.unit(UNIT, engine_command(*DFLASH)):
        yield gpuhost
    gpuhost.exec("rm", "-f", SUDOERS)


@pytest.fixture
async def ops(host: GpuHost, watcher: Watcher, tmp_path: Path) -> AsyncIterator[Changer]:
    async with changer(watcher, UNIT, tmp_path) as each:
        await each.watching.until_state(ReadinessState.READY)
        yield each


def flag(host: GpuHost, name: str = BLOCK) -> str:
    """A flag of the running main process."""
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{name}") + 1]


def outcome(record: ChangeRecord) -> dict[str, str]:
    return {each["name"]: each["outcome"] for each in record.proofs}


async def test_an_applied_change_is_in_force_and_proved(host: GpuHost, ops: Changer) -> None:
    before = host.show(UNIT, "InvocationID")
    record = await ops.apply(request=Request(flags={BLOCK: 16}))
    assert record.ending == "in force"
    assert outcome(record) == {BLOCK: "in force"}
    assert flag(host) == "16"
    assert host.show(UNIT, "InvocationID") == record.invocation != before
    assert ops.steps == [
        *("planned", "locked", "written", "reloaded", "stopping", "releasing", "starting"),
        *("loading", "verifying", "in force"),
    ]
    text = host.exec("cat", DROP_IN).stdout
    assert text == record.drop_in
    assert "# by: ada@desk" in text
    (kept,) = ops.store.reconfigurations.history(host.name)
    assert (kept.ending, kept.steps, kept.proofs) == (record.ending, record.steps, record.proofs)
    assert kept.who == "ada@desk"
    back = await ops.control.rollback(ops.heard)
    assert back.ending == "rolled back"
    assert flag(host) == "8"
    assert "ExecStart" not in host.exec("cat", DROP_IN).stdout


async def test_a_change_that_fails_is_rolled_back_and_that_is_proved(
    host: GpuHost, ops: Changer
) -> None:
    record = await ops.apply(request=Request(environment={FAILURE_VARIABLE: "oom"}))
    assert record.ending == "rolled back"
    assert record.cause is not None
    assert "memory" in record.cause["title"].lower()
    assert record.cause["evidence"]
    after = ops.steps[ops.steps.index("rolling back") + 1 :]
    assert after[-3:] == ["loading", "verifying", "rolled back"]
    ready = await ops.watching.until_state(ReadinessState.READY)
    assert ready.unit is not None
    assert ready.unit.invocation == host.show(UNIT, "InvocationID")
    assert flag(host) == "8"


async def test_without_rollback_it_stays_failed_and_can_be_rolled_back_later(
    host: GpuHost, ops: Changer
) -> None:
    failing = Request(environment={FAILURE_VARIABLE: "missing-model"})
    record = await ops.apply(request=failing, policy="never")
    assert record.ending == "failed"
    assert host.show(UNIT, "ActiveState") == "failed"
    back = await ops.control.rollback(ops.heard)
    assert back.ending == "rolled back"
    assert flag(host) == "8"


async def test_a_missing_right_is_told_before_anything_is_touched(
    host: GpuHost, ops: Changer
) -> None:
    grant(host, UNIT, without="systemctl stop")
    with pytest.raises(RightMissing) as missing:
        await ops.apply(request=Request(flags={BLOCK: 16}))
    (line,) = missing.value.lines
    assert line == next(each for each in sudoers_lines("ops", UNIT) if "stop" in each)
    assert host.exec("test", "-e", DROP_IN, check=False).returncode == 1
    assert not ops.steps
    host.sh('echo "$1" >> "$2"', line, SUDOERS)
    assert (await ops.apply(request=Request(flags={BLOCK: 16}))).ending == "in force"


async def test_two_operators_cannot_change_it_at_once(
    host: GpuHost, ops: Changer, watcher: Watcher, tmp_path: Path
) -> None:
    async with changer(watcher, UNIT, tmp_path, user="root", who="bob@lab") as bob:
        await bob.watching.until_state(ReadinessState.READY)
        stopping = asyncio.Event()
        ops.on = lambda step: stopping.set() if step.step == "stopping" else None
        request = Request(flags={BLOCK: 16})
        plan = await bob.plan(request)
        with host.held():
            work = asyncio.create_task(ops.apply(request=request))
            await stopping.wait()
            with pytest.raises(LockHeld) as held:
                await bob.control.apply(plan, bob.heard)
            assert held.value.holder.startswith("ada@desk since 20")
            assert (await bob.control.holder()).startswith("ada@desk since")
            assert not bob.steps
        assert (await work).ending == "in force"
        assert await bob.control.holder() == ""


async def test_wrapped_commands(host: GpuHost, ops: Changer) -> None:
    words = engine_command(*DFLASH)
    script = f"cd / && exec {' '.join(words)}".replace('"', r"\"")
    forms = [
        exec_line(["/usr/bin/env", "T_A=1", *words]),
        f'/bin/bash -c "{script}"',
        f"{exec_line(words[:3])} $T_FLAGS",
    ]
    flags = " ".join(words[3:])
    for number, form in enumerate(forms):
        host.remove_unit(UNIT)
        service = f'Environment="T_FLAGS={flags}"'
        host.install_unit(UNIT, form, service=service)
        await ops.ready_anew(host)
        record = await ops.apply(request=Request(flags={BLOCK: 16 + number}))
        assert record.ending == "in force", record
        assert flag(host) == str(16 + number)


async def test_a_unit_of_a_user(host: GpuHost, watcher: Watcher, tmp_path: Path) -> None:
    host.systemctl("stop", UNIT)
    unit = "llm-user.service"
    folder = "/home/ops/.config/systemd/user"
    line = exec_line(engine_command(*DFLASH))
    source = host.show(UNIT, "Environment")
    host.write(f"{folder}/{unit}", f"[Service]\nEnvironment={source}\nExecStart={line}\n")
    host.exec("chown", "-R", "ops:ops", "/home/ops/.config")
    host.exec("rm", "-f", SUDOERS)
    user = ["runuser", "-u", "ops", "--", "env", "XDG_RUNTIME_DIR=/run/user/1501", "systemctl"]
    async with changer(watcher, unit, tmp_path, scope="user") as ops:
        host.exec(*user, "--user", "daemon-reload")
        host.exec(*user, "--user", "start", unit)
        try:
            await ops.watching.until_state(ReadinessState.READY)
            plan = await ops.plan(Request(flags={BLOCK: 16}))
            (passing,) = [each for each in plan.findings if each.rule == "no-linger"]
            assert passing.remedy == "loginctl enable-linger ops"
            host.exec("loginctl", "enable-linger", "ops")
            plan = await ops.plan(Request(flags={BLOCK: 16}))
            assert "no-linger" not in {each.rule for each in plan.findings}
            record = await ops.apply(request=Request(flags={BLOCK: 16}))
            assert record.ending == "in force"
            assert host.exec("test", "-e", f"{folder}/{unit}.d/50-ddtui.conf").returncode == 0
        finally:
            host.exec(*user, "--user", "stop", unit, check=False)
            host.sh('rm -rf "$1"; loginctl disable-linger ops', "/home/ops/.config/systemd")
            host.exec(*user, "--user", "daemon-reload", check=False)


STEPS = ["planned", "locked", "written", "reloaded", "stopping", "releasing", "starting"]


@pytest.mark.parametrize("step", [*STEPS, "loading", "verifying"])
async def test_a_cut_at_any_step_loses_nothing(host: GpuHost, ops: Changer, step: str) -> None:
    cut = asyncio.Event()

    def reached(each: object) -> None:
        if getattr(each, "step", "") == step and not cut.is_set():
            cut.set()
            for process in host.exec("pgrep", "-f", "sshd: ops@", check=False).stdout.split():
                host.exec("kill", "-9", process, check=False)

    ops.on = reached
    before = starts(host)
    record = await ops.apply(request=Request(flags={BLOCK: 16}))
    assert cut.is_set()
    assert record.ending == "in force"
    assert flag(host) == "16"
    assert starts(host) == before + 1  # nothing was applied twice


def starts(host: GpuHost) -> int:
    """How often the unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={UNIT}", started]
    return len(host.exec(*command).stdout.splitlines())
