"""Each state of a unit is seen when it happens: systemd is not asked of its own accord here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from ddtui.collect import unit as collector
from ddtui.collect.programs import UNIT as UNIT_PROGRAM
from ddtui.core.samples import UnitStatus
from ddtui.core.snapshot import ReadinessState
from ddtui.hosts.base import Program
from tests.host.gpuhost import GpuHost
from tests.host.measured import measured
from tests.host.watching import Watcher

UNIT = "llm-states.service"
SLEEP = "/bin/sleep 600"


def asked_every(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """After how many looks systemd is asked though nothing tells that it has done anything."""
    script = UNIT_PROGRAM.script.replace("[ $asked -ge 25 ]", f"[ $asked -ge {looks} ]")
    assert script != UNIT_PROGRAM.script
    monkeypatch.setattr(collector, "UNIT", Program(UNIT_PROGRAM.label, script))


@pytest.fixture(autouse=True)
def never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen is seen because something told of it, however long it takes."""
    asked_every(monkeypatch, 1_000_000)


@pytest.fixture
def unit(gpuhost: GpuHost) -> Iterator[GpuHost]:
    # Below /usr/lib, where a packager puts it: `systemctl mask` refuses what is in /etc itself.
    with gpuhost.unit(UNIT, SLEEP, folder="/usr/lib/systemd/system"):
        yield gpuhost


class Change(NamedTuple):
    """Something that happens to the unit, and how that must look."""

    name: str
    act: Callable[[GpuHost], object]
    seen: Callable[[UnitStatus], object]
    state: ReadinessState | None


CHANGES = [
    Change(
        "kill -9 of the main process",
        lambda host: host.systemctl("kill", "-s", "KILL", UNIT),
        lambda unit: unit.active_state == "failed" and unit.result == "signal",
        ReadinessState.FAILED,
    ),
    Change(
        "stop",
        lambda host: host.systemctl("stop", UNIT),
        lambda unit: unit.active_state == "inactive",
        ReadinessState.STOPPED,
    ),
    Change(
        "mask and stop",
        lambda host: host.systemctl("mask", "--now", UNIT),
        lambda unit: unit.load_state == "masked" and unit.active_state == "inactive",
        ReadinessState.MASKED,
    ),
    Change(
        "removal of its file",
        lambda host: host.remove_unit(UNIT),
        lambda unit: unit.load_state == "not-found",
        ReadinessState.ABSENT,
    ),
    Change(
        "a changed file without daemon-reload",
        lambda host: host.sh('echo "# edited" >> "$1"', f"/usr/lib/systemd/system/{UNIT}"),
        lambda unit: unit.needs_daemon_reload,
        None,
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name.replace(" ", "-"))
async def test_a_change_is_seen(unit: GpuHost, watcher: Watcher, change: Change) -> None:
    watching = await watcher.watch(UNIT)
    await watching.until(lambda known: known.unit and known.unit.active_state == "active")
    since = time.time()
    change.act(unit)
    seen = await watching.unit_seen(change.seen, since)
    measured(f"unit: {change.name} seen after", seen - since)
    if change.state is not None:
        await watching.until_state(change.state)


async def test_a_restart_is_seen_as_a_new_invocation(unit: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(UNIT)
    before = await watching.until(lambda known: known.unit and known.unit.invocation)
    since = time.time()
    unit.systemctl("restart", UNIT)
    invocation = unit.show(UNIT, "InvocationID")
    assert before.unit is not None
    assert before.unit.invocation != invocation
    seen = await watching.unit_seen(lambda unit: unit.invocation == invocation, since)
    measured("unit: restart seen after", seen - since)
    snapshot = watching.now()
    assert snapshot.unit is not None
    assert snapshot.unit.main_pid == unit.main_pid(UNIT)


async def test_a_unit_that_appears_later(gpuhost: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(UNIT)
    await watching.until_state(ReadinessState.ABSENT)
    since = time.time()
    with gpuhost.unit(UNIT, SLEEP):
        seen = await watching.unit_seen(lambda unit: unit.active_state == "active", since)
        measured("unit: installed and started, seen after", seen - since)


async def test_a_crash_loop_is_told_apart_from_a_start(gpuhost: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(UNIT)
    since = time.time()
    command = "/bin/sh -c 'sleep 0.3; exit 7'"
    looping = "Restart=always\nRestartSec=1"
    with gpuhost.unit(UNIT, command, service=looping, unit="StartLimitIntervalSec=0"):
        seen = await watching.unit_seen(lambda unit: unit.sub_state == "auto-restart", since)
        measured("unit: crash loop seen after (0.3 s of it the life of its process)", seen - since)
        snapshot = await watching.until_state(ReadinessState.CRASH_LOOP)
        assert "status 7" in snapshot.readiness.summary
        await watching.until(lambda known: known.unit and (known.unit.restarts or 0) >= 2)


async def test_a_start_limit_ends_in_failed(gpuhost: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(UNIT)
    limited = "StartLimitIntervalSec=60\nStartLimitBurst=2"
    service = "Restart=always\nRestartSec=100ms"
    with gpuhost.unit(UNIT, "/bin/false", service=service, unit=limited):
        since = time.time()
        snapshot = await watching.until_state(ReadinessState.FAILED)
        measured("unit: start limit seen after", time.time() - since)
        assert "status 1" in snapshot.readiness.summary
        assert any(alert.key == "readiness" for alert in snapshot.alerts)


async def test_a_unit_of_the_users_own_manager(gpuhost: GpuHost, watcher: Watcher) -> None:
    name = "llm-mine.service"
    file = f"/home/ops/.config/systemd/user/{name}"
    gpuhost.exec("loginctl", "enable-linger", "ops")
    try:
        gpuhost.write(file, "[Service]\nExecStart=/bin/sh -c 'echo my own; exec sleep 600'\n")
        gpuhost.exec("chown", "-R", "ops:ops", "/home/ops/.config")
        manage = ("systemctl", "--user", "-M", "ops@")
        gpuhost.exec(*manage, "daemon-reload")
        gpuhost.exec(*manage, "start", name)
        watching = await watcher.watch(name, scope="user")
        await watching.until(lambda known: known.unit and known.unit.active_state == "active")
        await watching.until(lambda _: watching.own_texts() == ["my own"], what="its line")
        since = time.time()
        gpuhost.exec(*manage, "stop", name)
        seen = await watching.unit_seen(lambda unit: unit.active_state == "inactive", since)
        measured("unit: stop of a user's unit seen after", seen - since)
    finally:
        gpuhost.sh('rm -rf "$1"; loginctl disable-linger ops', "/home/ops/.config/systemd")


async def test_a_process_that_becomes_another_program_is_seen(
    gpuhost: GpuHost, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the manager's own child does at every start: nothing else tells of it."""
    asked_every(monkeypatch, 8)
    script = "sleep 2; exec sleep 601"
    with gpuhost.unit(UNIT, ["/bin/sh", "-c", script]):
        watching = await watcher.watch(UNIT)
        since = time.time()
        await watching.unit_seen(lambda unit: script in unit.command_line, since)
        seen = await watching.unit_seen(
            lambda unit: list(unit.command_line) == ["sleep", "601"], since
        )
        measured("another program in the main process: seen", seen - since)
