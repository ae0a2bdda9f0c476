"""Units that start and stop slowly: what systemd waits for hides neither progress nor cause."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ddtui.control import carrying_out
from ddtui.core.change_record import StepRecord
from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState
from ddtui.demo.engine_process import FAILURE_VARIABLE
from tests.host.changing import QUICK, SUDOERS, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command
from tests.host.watching import Watcher

UNIT = "llm-slow.service"
BLOCK = "speculative-dflash-block-size"
NEED = f"/etc/systemd/system/{UNIT}.d/10-need.conf"
POST = (
    "TimeoutStartSec=90\nExecStartPost=/bin/bash -c "
    "'until exec 3<>/dev/tcp/127.0.0.1/30000; do sleep 0.2; done 2>/dev/null'"
)
"""The usual way to have a unit active only once the server answers."""
STOPPING = "/run/llm-slow-stopping"
"""While this file is there, a stop goes on."""


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


def flag(host: GpuHost) -> str:
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{BLOCK}") + 1]


async def test_a_post_command_that_waits_for_the_port_hides_nothing(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """A load is followed while it waits, and the cause of a failure is the engine's own."""
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops", service=POST)
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        with host.held(after="Load weight begin"):
            work = asyncio.create_task(ops.apply(request=Request(flags={BLOCK: 16})))
            await ops.watching.until(
                lambda _: any("loading target" in said for said in ops.said), what="its progress"
            )
        record = await work
        assert (record.ending, flag(host)) == ("in force", "16")
        record = await ops.apply(request=Request(environment={FAILURE_VARIABLE: "oom"}))
        assert (record.ending, flag(host)) == ("rolled back", "16")
        assert record.cause is not None
        assert "memory" in record.cause["title"].lower()
        assert any("OutOfMemoryError" in line for line in record.cause["evidence"])


async def test_a_start_that_is_refused_is_told_in_systemds_words(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)

        def need_what_is_not_there(step: StepRecord) -> None:
            if step.step == "written":
                host.write(NEED, "[Unit]\nRequires=none-such.service\n")

        ops.on = need_what_is_not_there
        record = await ops.apply(request=Request(flags={BLOCK: 16}), policy="never")
        assert record.ending == "failed"
        assert record.cause is not None
        assert "none-such" in record.cause["title"]


async def test_a_unit_may_take_its_own_time_to_stop(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """Longer than the patience for others: systemd ends it at the latest."""
    limits = msgspec.structs.replace(QUICK, stop=1.0)
    service = "ExecStop=/bin/sleep 4\nTimeoutStopSec=60"
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops", service=service)
    async with changer(watcher, UNIT, tmp_path, limits=limits) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        record = await ops.apply(request=Request(flags={BLOCK: 16}))
        assert (record.ending, flag(host)) == ("in force", "16")


async def test_a_long_stop_is_told_with_its_limit(
    host: GpuHost, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an engine that does not heed TERM: how long it takes, and when systemd kills it."""
    monkeypatch.setattr(carrying_out, "SAY_STOPPING", 1.0)
    service = (
        f"ExecStop=/bin/sh -c 'while [ -e {STOPPING} ]; do sleep 0.1; done'\nTimeoutStopSec=90"
    )
    host.exec("touch", STOPPING)
    host.install_unit(UNIT, engine_command(*DFLASH), user="ops", service=service)
    async with changer(watcher, UNIT, tmp_path) as ops:

        def told() -> list[str]:
            return [each for each in ops.said if each.startswith("still stopping")]

        await ops.watching.until_state(ReadinessState.READY)
        work = asyncio.create_task(ops.apply(request=Request(flags={BLOCK: 16})))
        await ops.watching.until(lambda _: len(told()) >= 2, what="that it is still stopping")
        await asyncio.to_thread(host.exec, "rm", STOPPING)
        assert (await work).ending == "in force"
        for said in told():
            assert re.fullmatch(
                r"still stopping after [1-9]\d* s; "
                r"systemd kills what is left of it after 90 s \(TimeoutStopSec\)",
                said,
            )
