"""A whole reconfiguration as it goes on a bad day, told moment by moment, in virtual time.

The old process answers 200 until it dies; the GPUs have their memory back 20 s late; a process of
the old invocation lives on and holds a GPU; the new one takes ten minutes to load, and its port
refuses connections for most of them, then answers 503.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ddtui.control.held import Remaining
from ddtui.control.outcome import Asked
from ddtui.control.reconfiguration import Limits
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState, Snapshot
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time

LOAD = 600.0
BLOCK = "speculative-dflash-block-size"
BEGINS = 5.0


def script() -> Script:
    return Script(stop=8.0, memory_late=20.0, load=LOAD, orphan=True)


async def story(world: ChangeWorld, asked: Asked) -> ChangeRecord:
    """Apply a change; at every moment what is called ready is ready."""

    def seen(known: Snapshot) -> None:
        if known.readiness.state is ReadinessState.READY:
            assert world.machine.http == 200
            assert known.unit is not None
            assert world.machine.engine is not None
            assert known.unit.invocation == world.machine.engine.invocation
        if any(step == "in force" for _, step, _ in world.log):
            assert world.machine.http == 200

    feed = asyncio.create_task(world.watched.run(seen))
    await asyncio.sleep(BEGINS)
    control = world.control()
    plan = await control.plan(Request(flags={BLOCK: 16}))
    record = await control.apply(plan, world.heard, policy="always", asked=asked)
    await asyncio.sleep(1)
    if feed.done():
        feed.result()
    feed.cancel()
    return record


def told(world: ChangeWorld, step: str) -> list[str]:
    """What was said within a step."""
    return [text for _, each, text in world.log if each == step]


def test_the_whole_story() -> None:
    async def work() -> None:
        world = ChangeWorld(script())
        questions: list[tuple[float, Remaining]] = []

        async def orphans(left: Remaining) -> bool:
            questions.append((asyncio.get_running_loop().time(), left))
            await asyncio.sleep(3)  # the operator reads
            return True

        record = await story(world, Asked(orphans=orphans))
        assert record.ending == "in force"
        begin = world.log[0][0]
        log = {step: at - begin for at, step in world.steps()}
        released = log["starting"]
        expected = {
            "planned": 0,
            "locked": 0,
            "written": 0.3,
            "reloaded": 0.6,
            "stopping": 0.9,
            "releasing": 9,
            "starting": 29.5,
            "loading": released,
            "verifying": released + LOAD,
            "in force": released + LOAD,
        }
        assert [step for _, step in world.steps()] == list(expected)
        assert log == pytest.approx(expected, abs=1.0)
        # The memory is back 20 s after the stop; the orphan was ended before that, and nobody else.
        assert {pid for pid, _ in world.machine.killed} == {1001}
        ((asked_at, left),) = questions
        assert 12 <= asked_at - begin <= 14  # it had three seconds to end by itself
        assert [(each.pid, each.name) for each in left.orphans] == [(1001, "sglang::schedul")]
        while_released = told(world, "releasing")
        assert any("left over from the last invocation: 1001 (sglang::schedul)" in each
                   for each in while_released)  # fmt: skip
        assert any("GPUs 0, 1: 87.4 GiB not given back" in each for each in while_released)
        assert not any("1001" in each for each in while_released[-3:])
        assert told(world, "loading") == [
            "",
            "waiting for the unit's state",
            "starting",
            "loading target",
            "loading drafter",
            "allocating KV cache",
            "capturing graphs",
            "warming up",
        ]
        states = [(state, at - begin) for at, state in world.watched.log]
        assert [state for state, _ in states] == [
            *("warming up", "ready"),  # its log came first, then all of the old one
            *("stopping", "stopped", "starting", "loading target", "loading drafter"),
            *("allocating KV cache", "capturing graphs", "warming up", "ready"),
        ]
        assert dict(states[2:4]) == pytest.approx({"stopping": 0.9, "stopped": 9}, abs=1.0)
        assert states[-1][1] == pytest.approx(released + LOAD, abs=1.0)
        assert (world.machine.starts, world.machine.stops) == (2, 1)
        assert record.invocation == world.machine.engine.invocation  # type: ignore[union-attr]
        assert [each["outcome"] for each in record.proofs] == ["in force"]
        phases = dict(record.phases())
        assert phases["loading"] == pytest.approx(LOAD, abs=2)

    in_virtual_time(work())


@pytest.mark.parametrize("answer", [None, False])
def test_an_orphan_is_ended_only_when_that_is_confirmed(answer: bool | None) -> None:
    """Nobody to ask, or No: it lives, nothing is started beside it, and the end says who it is."""

    async def work() -> None:
        world = ChangeWorld(script(), limits=Limits(release=60.0))

        async def orphans(_left: Remaining) -> bool:
            return bool(answer)

        asked: dict[str, Any] = {} if answer is None else {"orphans": orphans}
        record = await story(world, Asked(**asked))
        assert not world.machine.killed
        assert world.machine.starts == 1
        assert record.ending == "degraded"  # going back needs the same GPU
        assert record.cause is not None
        assert record.cause["title"] == (
            "not released within 60 s: left over from the last invocation: 1001 (sglang::schedul);"
            " GPU 0: 87.4 GiB not given back, held by 1001 (sglang::schedul)"
        )
        assert "sudo kill 1001" in record.cause["remedy"]
        assert ReadinessState.READY not in [state for _, state in world.watched.log[2:]]

    in_virtual_time(work())
