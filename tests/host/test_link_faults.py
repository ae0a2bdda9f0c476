"""The monitor while the link breaks: it says so, comes back, and the journal has no gap.

A unit writes numbered lines the whole time; in the end ddtui must know exactly the lines that the
host's own journalctl prints. Long faults run with DDTUI_LONG_HOST_TESTS=1 only.
"""

from __future__ import annotations

import asyncio
import os
import time
from asyncio import to_thread
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from ddtui.core.samples import LinkState
from ddtui.hosts.ssh import supervisor
from ddtui.hosts.ssh.target import KEEPALIVE_COUNT, KEEPALIVE_INTERVAL
from tests.host.gpuhost import AT_ONCE, GpuHost, wait_until
from tests.host.measured import measured
from tests.host.watching import Watcher, Watching

UNIT = "llm-numbers.service"
# The run's own beginning is in each line, so that lines of two boots differ.
WRITER = 'run=$EPOCHREALTIME; while read -t 0.02; [ $? -gt 128 ]; do echo "$run $((n++))"; done'
WANTED = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"
SILENCE = KEEPALIVE_INTERVAL * (KEEPALIVE_COUNT + 1)
"""Seconds of silence after which the link is told as down; one that is shorter by far is borne."""
LONG = "DDTUI_LONG_HOST_TESTS"


class Fault(NamedTuple):
    """How the link breaks, for how long, and how it is mended."""

    name: str
    strike: Callable[[GpuHost], object]
    mend: Callable[[GpuHost], object]
    seconds: float
    seen: bool = True
    """Whether the link must be said to be down; a short silence is borne."""


def cut(seconds: float, *, seen: bool = True) -> Fault:
    name = f"cut of {seconds:g} s"
    return Fault(name, lambda host: host.link("cut"), GpuHost.heal, seconds, seen)


FAULTS = [
    cut(3, seen=False),
    cut(15),
    Fault("reset for 3 s", lambda host: host.link("reset"), GpuHost.heal, 3),
    Fault("freeze of 13 s", GpuHost.freeze, GpuHost.thaw, 13),
    Fault(
        "restart of sshd with its sessions",
        lambda host: host.sh("systemctl restart ssh; pkill -f 'sshd: ops'"),
        lambda host: None,
        0,
    ),
    Fault("crash and boot", GpuHost.crash, GpuHost.boot, 2),
    Fault("reboot", GpuHost.reboot, lambda host: None, 0),
]
LONG_FAULTS = [
    cut(30),
    cut(300),
    Fault("reset for 30 s", lambda host: host.link("reset"), GpuHost.heal, 30),
    Fault("freeze of 60 s", GpuHost.freeze, GpuHost.thaw, 60),
]
long = [
    pytest.mark.skipif(not os.environ.get(LONG), reason=f"long: set {LONG}=1"),
    pytest.mark.timeout(500),
]


@pytest.fixture
def numbers(gpuhost: GpuHost) -> Iterator[GpuHost]:
    command = ["/bin/bash", "-c", f"exec 0<>/run/llm-never; {WRITER}"]
    service = "ExecStartPre=/bin/sh -c '[ -p /run/llm-never ] || mkfifo /run/llm-never'"
    with gpuhost.unit(UNIT, command, service=service):
        gpuhost.exec("ln", "-sf", f"/etc/systemd/system/{UNIT}", WANTED)
        yield gpuhost
        gpuhost.exec("rm", WANTED)


def live_again(watching: Watching, since: float) -> float:
    """When the link was live after `since`, 0 when it is not yet."""
    return next(
        (each.at for each in watching.links if each.at > since and each.state is LinkState.LIVE), 0
    )


async def back_and_complete(watching: Watching, host: GpuHost) -> None:
    """Stop the writer; then ddtui must have every line that the host has, once and in order."""
    await to_thread(host.systemctl, "stop", UNIT)
    written = await to_thread(host.journal, UNIT)
    await watching.until(lambda _: written[-1] in watching.own_texts()[-5:], what=written[-1])
    known = watching.own_texts()
    assert len(known) > 50
    assert known == written[written.index(known[0]) :]


async def go_through(watching: Watching, host: GpuHost, fault: Fault) -> None:
    struck = time.time()
    await to_thread(fault.strike, host)
    if fault.seen:
        await watching.until(
            lambda _: any(each.at >= struck for each in watching.links), what="link down"
        )
        down = next(each for each in watching.links if each.at >= struck)
        assert down.state is not LinkState.LIVE
        assert down.detail
        measured(f"link: {fault.name} said after", down.at - struck)
    if fault.seen and fault.seconds > SILENCE:
        await watching.until(lambda known: known.at - (known.last_heard or 0) > 2, what="its age")
    await asyncio.sleep(max(0.0, struck + fault.seconds - time.time()))
    await to_thread(fault.mend, host)
    mended = time.time()
    if not fault.seen:
        await asyncio.sleep(3.0)
        assert not [each for each in watching.links if each.at >= struck]
        return
    await watching.until(lambda _: live_again(watching, struck), what="live again")
    live_at = live_again(watching, struck)
    tries = [each.retry_at or 0 for each in watching.links if struck <= each.at < live_at]
    due = max(mended, *tries)
    measured(f"link: {fault.name}: live after its end", max(0.0, live_at - mended))
    measured(f"link: {fault.name}: live after its end or the next try due", live_at - due)


async def prepared(watcher: Watcher, host: GpuHost) -> Watching:
    watching = await watcher.watch(UNIT)
    await watching.until(lambda _: len(watching.own_texts()) > 50, what="numbered lines")
    return watching


@pytest.mark.parametrize(
    "fault",
    [
        *FAULTS,
        *(pytest.param(fault, marks=long) for fault in LONG_FAULTS),
    ],
    ids=lambda fault: fault.name.replace(" ", "-"),
)
async def test_a_fault_costs_no_line(numbers: GpuHost, watcher: Watcher, fault: Fault) -> None:
    watching = await prepared(watcher, numbers)
    try:
        await go_through(watching, numbers, fault)
    finally:
        await to_thread(whole_again, numbers)
    await back_and_complete(watching, numbers)


def whole_again(host: GpuHost) -> None:
    """Leave no fault to the next test, whatever became of this one."""
    host.thaw()
    host.heal()
    host.boot()
    # Until its boot is finished, some of its jobs may still be cancelled by ours.
    host.systemctl("is-system-running", "--wait", check=False)


async def test_one_key_tries_at_once(
    numbers: GpuHost, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = await prepared(watcher, numbers)
    monkeypatch.setattr(supervisor, "_SHORTEST_PAUSE", 1000.0)  # it is not tried by itself
    await to_thread(numbers.link, "reset")
    try:
        seen = await watching.until(lambda known: known.link.state is LinkState.RETRYING)
        assert (seen.link.retry_at or 0) - seen.at > 500
    finally:
        await to_thread(numbers.heal)
    asked = time.time()
    watching.retry_now()
    await watching.until_live()
    measured("link: live after the key that tries now", live_again(watching, asked) - asked)
    await back_and_complete(watching, numbers)


async def test_a_journal_rotated_and_vacuumed_meanwhile_resumes(
    numbers: GpuHost, watcher: Watcher
) -> None:
    watching = await prepared(watcher, numbers)
    before = len(watching.own_texts())
    await to_thread(numbers.link, "reset")
    await watching.until(lambda known: known.link.state is not LinkState.LIVE)
    await to_thread(numbers.sh, "journalctl --rotate; sleep 0.5; journalctl --vacuum-time=1s")
    await to_thread(wait_until, lambda: len(numbers.journal(UNIT)) > 20)
    await to_thread(numbers.heal)
    watching.retry_now()
    await watching.until_live()
    await to_thread(numbers.systemctl, "stop", UNIT)
    kept = await to_thread(numbers.journal, UNIT)
    await watching.until(lambda _: kept[-1] in watching.own_texts()[-5:], what=kept[-1])
    known = watching.own_texts()
    assert len(known) == len(set(known))
    assert known[before:][-len(kept) :] == kept[-len(known[before:]) :]


# ---- nothing is left running --------------------------------------------------------------------


def left(host: GpuHost) -> list[str]:
    """What runs on the host for ddtui."""
    listed = host.exec("ps", "-u", "ops", "-o", "args", "--no-headers", check=False).stdout
    own = ("(sd-pam)", "systemd --user", "dbus-daemon")
    return [line for line in listed.splitlines() if not any(word in line for word in own)]


async def test_an_orderly_end_leaves_nothing(numbers: GpuHost, watcher: Watcher) -> None:
    watching = await prepared(watcher, numbers)
    await watching.until(lambda known: known.gpus and known.system)
    running = "\n".join(await to_thread(left, numbers))
    for each in ("ddtui:gpu", "ddtui:system", "ddtui:unit", "ddtui:journal", "journalctl --follow"):
        assert each in running
    await watching.close()
    closed = time.time()
    await to_thread(wait_until, lambda: not left(numbers), AT_ONCE)
    measured("residue: nothing runs after an orderly end", time.time() - closed)
