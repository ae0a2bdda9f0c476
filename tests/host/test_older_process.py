"""A unit that was edited and reloaded, on a real systemd: its process is what it was started as."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState
from ddtui.experiments.running import Standing, standing
from tests.host.changing import SUDOERS, Changer, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, exec_line
from tests.host.watching import Watcher

UNIT = "llm-older.service"
BLOCK = "speculative-dflash-block-size"
OWN = f"/etc/systemd/system/{UNIT}.d/20-own.conf"
AS_WRITTEN = ("", Standing.PROVED)
"""Why a restart is due, and what runs, where it runs as it is written."""


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


def edit(host: GpuHost, lines: str) -> None:
    """Somebody edits a drop-in, and has systemd read it; nothing is restarted."""
    host.write(OWN, f"[Service]\n{lines}\n")
    host.systemctl("daemon-reload")


async def stands(ops: Changer) -> Standing:
    launch = (await ops.control.command()).launch
    return standing(ops.watching.now(), launch, ops.watching.engine)


@pytest.mark.parametrize("user", ["ops", ""])
async def test_a_process_with_older_variables_is_restarted_and_never_taken_for_new(
    host: GpuHost, watcher: Watcher, tmp_path: Path, user: str
) -> None:
    """Of what root runs nothing may be read; what the unit was at its start is known."""
    host.write(OWN, "[Service]\nEnvironment=LIMIT=1 GONE=yes\n")
    host.install_unit(UNIT, engine_command(*DFLASH), user=user)
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        assert ((await ops.plan(Request())).restart_due, await stands(ops)) == AS_WRITTEN
        await asyncio.sleep(1.1)  # systemd's times have no more than seconds

        edit(host, "Environment=LIMIT=2")
        before = host.show(UNIT, "InvocationID")
        await ops.watching.until(lambda known: known.unit and known.unit.older)
        plan = await ops.plan(Request(environment={"LIMIT": "2"}))
        assert plan.restart_only
        assert "LIMIT is 1 in the process, 2 in the unit" in plan.restart_due
        assert "GONE was set by the unit at the start, and is no more" in plan.restart_due
        assert await stands(ops) is Standing.OTHER

        record = await ops.control.apply(plan, ops.heard)
        assert (record.kind, record.ending) == ("restart", "in force"), record.cause
        assert host.show(UNIT, "InvocationID") != before
        environ = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/environ").stdout.split("\0")
        assert "LIMIT=2" in environ
        plan = await ops.plan(Request(environment={"LIMIT": "2"}))
        assert plan.changes == ()
        assert (plan.restart_due, await stands(ops)) == AS_WRITTEN


async def test_a_process_with_an_older_command_is_restarted_by_an_apply(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        assert await stands(ops) is Standing.PROVED
        words = engine_command(*DFLASH)
        words[words.index(f"--{BLOCK}") + 1] = "16"
        edit(host, f"ExecStart=\nExecStart={exec_line(words)}")
        plan = await ops.plan(Request(flags={BLOCK: 16}))
        assert plan.restart_only
        assert f"--{BLOCK} is 8 in the process, 16 in the unit" in plan.restart_due
        assert await stands(ops) is Standing.OTHER
        record = await ops.control.apply(plan, ops.heard)
        assert (record.kind, record.ending) == ("restart", "in force"), record.cause
        assert ((await ops.plan(Request())).restart_due, await stands(ops)) == AS_WRITTEN


@pytest.mark.parametrize("user", ["ops", ""])
async def test_no_restart_is_due_for_what_is_no_difference(
    host: GpuHost, watcher: Watcher, tmp_path: Path, user: str
) -> None:
    """A file that is written anew, limits in force, variables of the manager, and a wrapper's."""
    host.write(OWN, "[Service]\nEnvironment=A=1\nEnvironmentFile=-/run/older.env\n"
               'ExecStartPost=+/bin/sh -c "sleep 2; echo B=1 > /run/older.env"\n')  # fmt: skip
    command = ["/usr/bin/env", "A=9", *engine_command(*DFLASH)]
    host.systemctl("set-environment", "CUDA_FOO=1")
    try:
        host.install_unit(UNIT, command, user=user)
        async with changer(watcher, UNIT, tmp_path) as ops:
            await ops.watching.until_state(ReadinessState.READY)
            await ops.watching.until(lambda known: known.unit and known.unit.doubts)
            host.systemctl("set-property", UNIT, "MemoryHigh=50G")
            host.exec("chmod", "644", f"/etc/systemd/system/{UNIT}")
            host.systemctl("daemon-reload")
            await asyncio.sleep(2.5)  # it is looked at
            plan = await ops.plan(Request())
            assert (plan.restart_due, await stands(ops)) == AS_WRITTEN
            (note,) = [each for each in plan.findings if each.rule == "perhaps-older"]
            assert "/run/older.env was changed after the start that reads it" in note.text
    finally:
        host.systemctl("unset-environment", "CUDA_FOO")
        host.exec("rm", "-f", "/run/older.env")
