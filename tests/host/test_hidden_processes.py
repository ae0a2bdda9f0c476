"""Engines whose processes are elsewhere, or not to be seen: a session's group, hidepid=2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState, Snapshot, Verdict
from tests.host.changing import SUDOERS, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, wait_until
from tests.host.watching import Watcher

UNIT = "llm-hidden.service"
BLOCK = "speculative-dflash-block-size"


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


@pytest.fixture
def hidden(host: GpuHost) -> Iterator[GpuHost]:
    """The host with others' processes hidden from users."""
    host.sh("mount -o remount,hidepid=2 /proc")
    yield host
    host.sh("mount -o remount,hidepid=0 /proc")


def flag(host: GpuHost) -> str:
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{BLOCK}") + 1]


def port_owner(snapshot: Snapshot) -> Verdict | None:
    return {each.name: each.verdict for each in snapshot.readiness.evidence}.get("port owner")


async def test_a_unit_with_a_login_session_is_proved_and_changed(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """PAMName=login has its main process moved out of the unit's group, and its log with it.

    It is proved by its socket, its health and the server's report.
    """
    words = engine_command(*DFLASH)
    host.install_unit(UNIT, words, user="ops", service="PAMName=login")
    async with changer(watcher, UNIT, tmp_path) as ops:
        ready = await ops.watching.until_state(ReadinessState.READY)
        group = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cgroup").stdout
        assert "session-" in group
        assert port_owner(ready) is Verdict.PROVED
        record = await ops.apply(request=Request(flags={BLOCK: 16}))
        assert (record.ending, record.doubt, flag(host)) == ("in force", "", "16")
        assert (await ops.control.rollback(ops.heard)).ending == "rolled back"
        assert flag(host) == "8"


@pytest.mark.parametrize("user", ["ops", "dev", ""])
async def test_a_host_that_hides_processes(
    hidden: GpuHost, watcher: Watcher, tmp_path: Path, user: str
) -> None:
    """What may not be seen is no stranger; what is not seen is not claimed."""
    hidden.install_unit(UNIT, engine_command(*DFLASH), user=user)
    async with changer(watcher, UNIT, tmp_path) as ops:
        ready = await ops.watching.until_state(ReadinessState.READY)
        # Of another user's processes systemd still tells whose they are.
        assert port_owner(ready) is (Verdict.PROVED if user == "ops" else Verdict.CONSISTENT)
        record = await ops.apply(request=Request(flags={BLOCK: 16}))
        assert (record.ending, flag(hidden)) == ("in force", "16")
        assert not [each for each in record.evidence if each["verdict"] == "against"]


async def test_a_stranger_with_the_port_of_a_hidden_unit(hidden: GpuHost, watcher: Watcher) -> None:
    """It answers as an engine does; its user is not the unit's."""
    other = engine_command(*DFLASH)
    with hidden.unit("llm-stranger.service", other):
        watching = await watcher.watch(UNIT, "ops")
        wait_until(lambda: hidden.sh("ss -Hltn sport = :30000"))
        hidden.install_unit(UNIT, engine_command(*DFLASH, load_seconds=600.0), user="dev")
        seen = await watching.until(lambda known: port_owner(known) is Verdict.AGAINST)
        assert seen.readiness.state is not ReadinessState.READY


async def test_a_port_that_is_held_unseen_is_told_before_anything_stops(
    hidden: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    hidden.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    other = "import socket,time; s=socket.create_server(('127.0.0.1',30077)); time.sleep(999)"
    with hidden.unit("llm-stranger.service", ["/usr/bin/python3", "-c", other]):
        async with changer(watcher, UNIT, tmp_path) as ops:
            await ops.watching.until_state(ReadinessState.READY)
            plan = await ops.control.plan(Request(flags={"port": 30077}))
            (error,) = [each for each in plan.findings if each.rule == "port-held"]
            assert plan.blocked
            assert "30077" in error.text
