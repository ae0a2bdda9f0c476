"""Units whose files are closed, gone or empty, or never were: refused, or changed all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ddtui.control.controller import NotPossible
from ddtui.control.lock import lock_holder
from ddtui.core.change_record import StepRecord
from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState
from ddtui.hosts.base import LinkRefused
from tests.host.changing import SUDOERS, Changer, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, exec_line
from tests.host.watching import Watcher

UNIT = "llm-odd.service"
BLOCK = "speculative-dflash-block-size"
FRAGMENT = f"/etc/systemd/system/{UNIT}"
FOLDER = f"{FRAGMENT}.d"
DROP_IN = f"{FOLDER}/50-ddtui.conf"
KEYS = "/home/ops/.ssh/authorized_keys"
MACHINE = "/etc/machine-id"
BASHRC = "/home/ops/.bashrc"
WANTED = Request(flags={BLOCK: 16})


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


@pytest.fixture
async def ops(host: GpuHost, watcher: Watcher, tmp_path: Path) -> AsyncIterator[Changer]:
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    async with changer(watcher, UNIT, tmp_path) as each:
        await each.watching.until_state(ReadinessState.READY)
        yield each


def flag(host: GpuHost, name: str = BLOCK) -> str:
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{name}") + 1]


async def edited(host: GpuHost, ops: Changer, path: str, lines: str, mode: int = 0o644) -> None:
    """A drop-in by another hand, in force."""
    host.write(path, f"[Service]\n{lines}\n", mode=mode)
    host.systemctl("daemon-reload")
    host.systemctl("restart", UNIT)
    await ops.ready_anew(host)


@pytest.mark.parametrize("name", ["20-closed.conf", "90-closed.conf"])
async def test_a_command_in_a_closed_drop_in_is_never_lost(
    host: GpuHost, ops: Changer, name: str
) -> None:
    """`systemctl cat` ends at it: the command beneath is not the one that is in force."""
    other = engine_command(*DFLASH, "--context-length", "4096")
    await edited(
        host, ops, f"{FOLDER}/{name}", f"ExecStart=\nExecStart={exec_line(other)}", mode=0o600
    )
    host.write(f"{FOLDER}/95-open.conf", "[Service]\nNice=1\n")
    host.systemctl("daemon-reload")
    before = host.show(UNIT, "InvocationID")
    for planned in (ops.control.plan(WANTED), ops.control.restart()):
        with pytest.raises(NotPossible, match=f"{name} may not be read by ops") as refused:
            await planned
        assert f"setfacl -m u:ops:r {FOLDER}/{name}" in refused.value.remedy
    assert host.show(UNIT, "InvocationID") == before
    host.exec("chmod", "644", f"{FOLDER}/{name}")
    if name.startswith("20"):
        assert (await ops.apply(request=WANTED)).ending == "in force"
        assert (flag(host), flag(host, "context-length")) == ("16", "4096")


async def test_variables_in_a_closed_drop_in_are_left_to_it(host: GpuHost, ops: Changer) -> None:
    path = f"{FOLDER}/20-keys.conf"
    await edited(host, ops, path, "Environment=CLOSED_SIZE=1", mode=0o600)
    (note,) = [each for each in (await ops.plan(WANTED)).findings if each.rule == "drop-in-closed"]
    assert path in note.text
    changed = await ops.control.plan(Request(environment={"CLOSED_SIZE": "2"}))
    (error,) = [each for each in changed.findings if each.rule == "unit-command"]
    assert f"CLOSED_SIZE is set in {path}" in error.text
    assert (await ops.apply(request=WANTED)).ending == "in force"
    assert flag(host) == "16"
    assert "CLOSED_SIZE" not in host.exec("cat", DROP_IN).stdout
    environment = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/environ").stdout
    assert "CLOSED_SIZE=1" in environment.split("\0")
    assert (await ops.control.rollback(ops.heard)).ending == "rolled back"
    assert flag(host) == "8"


async def test_what_cannot_be_started_again_is_not_stopped(host: GpuHost, ops: Changer) -> None:
    text = host.exec("cat", FRAGMENT).stdout
    host.exec("rm", FRAGMENT)
    before = host.show(UNIT, "InvocationID")
    for refused in (ops.control.plan(WANTED), ops.control.restart()):
        with pytest.raises(NotPossible, match=f"{FRAGMENT} is gone"):
            await refused
    host.write(FRAGMENT, text)
    variables = host.show(UNIT, "Environment")
    host.remove_unit(UNIT)
    words = engine_command(*DFLASH)
    host.exec("systemd-run", f"--unit={UNIT}", "-pUser=ops", f"-E{variables}", *words)
    await ops.ready_anew(host)
    now = host.show(UNIT, "InvocationID")
    assert now != before
    for refused in (ops.control.plan(WANTED), ops.control.restart()):
        with pytest.raises(NotPossible, match="is a transient unit"):
            await refused
    assert host.show(UNIT, "InvocationID") == now
    assert host.exec("test", "-e", DROP_IN, check=False).returncode == 1


@pytest.mark.parametrize("make", ["ln -s /dev/null", ": >"])
async def test_an_empty_drop_in_is_as_good_as_none(host: GpuHost, ops: Changer, make: str) -> None:
    host.sh(f'mkdir -p "${{1%/*}}"; {make} "$1"; systemctl daemon-reload', DROP_IN)
    assert (await ops.apply(request=WANTED)).ending == "in force"
    assert flag(host) == "16"
    assert host.exec("stat", "-c", "%F", "/dev/null").stdout.strip() == "character special file"
    assert (await ops.control.rollback(ops.heard)).ending == "rolled back"


async def test_a_host_without_flock_is_told_as_that(host: GpuHost, ops: Changer) -> None:
    """The lock's file is there, from an earlier change: its text names nobody who has it."""
    assert (await ops.apply(request=WANTED)).ending == "in force"
    host.sh("mv /usr/bin/flock /usr/bin/flock.away")
    try:
        assert await lock_holder(ops.watching.host, UNIT) == ""
        with pytest.raises(Exception, match="cannot be locked on the host: flock"):
            await ops.apply(request=Request(flags={BLOCK: 12}))
    finally:
        host.sh("mv /usr/bin/flock.away /usr/bin/flock")
    assert flag(host) == "16"


async def test_an_account_that_talks_is_an_operator_as_well(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """Its start-up file prints into every answer, on both outputs."""
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    kept = host.exec("cat", BASHRC, check=False).stdout
    host.write(BASHRC, "echo Welcome to $HOSTNAME; date; echo noise >&2\n")
    try:
        async with changer(watcher, UNIT, tmp_path) as ops:
            await ops.watching.until_state(ReadinessState.READY)
            assert (await ops.apply(request=WANTED)).ending == "in force"
            assert flag(host) == "16"
            assert (await ops.control.rollback(ops.heard)).ending == "rolled back"
    finally:
        host.write(BASHRC, kept)


async def test_a_login_that_is_refused_in_the_middle_ends_the_waiting(
    host: GpuHost, ops: Changer
) -> None:
    """Nobody is let in any more: that is said, and the change is carried on later, once."""
    started = starts(host)

    def shut_out(step: StepRecord) -> None:
        if step.step == "stopping":
            host.exec("mv", KEYS, f"{KEYS}.away")
            for process in host.exec("pgrep", "-f", "sshd: ops@", check=False).stdout.split():
                host.exec("kill", "-9", process, check=False)

    ops.on = shut_out
    try:
        with pytest.raises(LinkRefused):
            await ops.apply(request=WANTED)
    finally:
        host.exec("mv", f"{KEYS}.away", KEYS)
    ops.on = lambda _: None
    ops.watching.retry_now()
    await ops.watching.until_live()
    record = await ops.control.resume(ops.heard)
    assert (record.ending, flag(host), starts(host)) == ("in force", "16", started + 1)


async def test_another_installation_is_not_taken_for_the_same_host(
    host: GpuHost, ops: Changer
) -> None:
    """What was in force before a host was installed anew goes back there only by force."""
    assert (await ops.apply(request=WANTED)).ending == "in force"
    known = host.exec("cat", MACHINE).stdout
    loading = asyncio.Event()
    ops.on = lambda step: loading.set() if step.step == "loading" else None
    try:
        host.write(MACHINE, f"{known.strip()[::-1]}\n", mode=0o444)
        plan = await ops.control.rollback_plan()
        (error,) = [each for each in plan.findings if each.rule == "machine-replaced"]
        assert plan.blocked
        assert "installed anew" in error.text
        with pytest.raises(NotPossible, match="installed anew"):
            await ops.control.rollback(ops.heard)
        assert not (await ops.control.rollback_plan(force=True)).blocked
        work = asyncio.create_task(ops.apply(request=Request(flags={BLOCK: 12})))
        await loading.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    finally:
        host.write(MACHINE, known, mode=0o444)
    record = await ops.control.resume(ops.heard)
    assert record.ending == "unknown"
    assert "nothing was done on it" in record.steps[-1].detail
    back = await ops.control.apply(await ops.plan(WANTED), ops.heard)
    assert (back.ending, flag(host)) == ("in force", "16")


def starts(host: GpuHost) -> int:
    """How often the unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={UNIT}", started]
    return len(host.exec(*command).stdout.splitlines())
