"""The supervisor's own rules, with connections that are made up."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import LinkDown
from ddtui.hosts.ssh import supervisor
from ddtui.hosts.ssh.connection import Connection
from ddtui.hosts.ssh.supervisor import SleepDetector, Supervisor


class FakeClock:
    """Two clocks that are set by hand."""

    def __init__(self) -> None:
        self.wall = 1000.0
        self.monotonic = 5.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


def test_sleep_is_told_from_time_that_passes() -> None:
    clock = FakeClock()
    detector = SleepDetector(lambda: clock.wall, lambda: clock.monotonic)
    clock.pass_by(2.5)
    assert detector.slept(2.0) == 0
    clock.wall += 600  # suspended: the monotonic clock stood still
    clock.pass_by(2.0)
    assert detector.slept(2.0) == 600
    clock.pass_by(62.0)  # stopped: both clocks went on
    assert detector.slept(2.0) == 60
    clock.wall -= 3600  # set back
    clock.pass_by(2.0)
    assert detector.slept(2.0) == 0


async def pauses(count: int, taken: float = 0.0) -> list[float]:
    """The pauses between tries that fail, each after `taken` seconds."""
    clock = FakeClock()

    async def connect() -> Connection:
        clock.monotonic += taken
        raise LinkDown("no luck")

    link = Supervisor(connect, clock=lambda: clock.wall, monotonic=lambda: clock.monotonic)
    found: list[float] = []
    enough = asyncio.Event()

    def listen(sample: LinkSample) -> None:
        if sample.state is LinkState.RETRYING and sample.retry_at:
            found.append(sample.retry_at - sample.at)
            assert sample.attempt == len(found)
            if len(found) == count:
                enough.set()
            asyncio.get_running_loop().call_soon(link.retry_now)

    link.on_link(listen)
    link.start()
    await enough.wait()
    await link.close()
    return found


async def test_the_pauses_double_up_to_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_JITTER", 0.0)
    assert await pauses(8) == [1, 2, 4, 8, 16, 30, 30, 30]


async def test_the_time_of_the_try_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_JITTER", 0.0)
    assert await pauses(7, taken=10.0) == [1, 1, 1, 1, 6, 20, 20]


async def test_the_pauses_vary() -> None:
    firsts = {(await pauses(1))[0] for _ in range(5)}
    assert len(firsts) > 1
    assert all(0.8 <= pause <= 1.2 for pause in firsts)


class Flapping:
    """A connection that is gone as soon as it is made."""

    summary = "ops@box:22"
    is_lost = True

    async def wait_lost(self) -> str:
        return "closed by box"

    async def drop(self, reason: str) -> None:
        assert reason == "closed by box"


async def test_a_connection_that_does_not_last_is_no_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "_JITTER", 0.0)
    found: list[float] = []
    enough = asyncio.Event()

    async def connect() -> Connection:
        return cast(Connection, Flapping())

    link = Supervisor(connect)

    def listen(sample: LinkSample) -> None:
        if sample.state is LinkState.RETRYING and sample.retry_at:
            found.append(round(sample.retry_at - sample.at, 6))
            if len(found) == 4:
                enough.set()
            asyncio.get_running_loop().call_soon(link.retry_now)

    link.on_link(listen)
    link.start()
    await enough.wait()
    await link.close()
    assert found == [1, 2, 2, 2]
