"""A unit whose engine dies at every start, and which systemd starts again at once."""

from __future__ import annotations

import asyncio

import pytest

from ddtui.control.carrying_out import MOST_MISSED
from ddtui.core.launch import Request
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time

BLOCK = "speculative-dflash-block-size"


@pytest.mark.parametrize("travel", [0.05, 0.2, 0.4, 1.1])
def test_it_is_stopped_though_each_look_finds_another_start(travel: float) -> None:
    """An order to stop is for one start, and on a slow link another one is there when it comes.

    What is asked for does not mend it.
    """

    async def work() -> None:
        script = Script(load=2.0, travel=travel, restarts_after=0.1, fails=lambda _: True)
        world = ChangeWorld(script)
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(1)
        assert world.machine.engine is not None
        world.machine.die(world.machine.engine)
        await asyncio.sleep(20)
        assert world.machine.restarts > 5
        control = world.control()
        async with asyncio.timeout(300):
            plan = await control.plan(Request(flags={BLOCK: 16}))
            record = await control.apply(plan, policy="never")
        assert record.ending == "failed"
        assert "starting" in [each.step for each in record.steps]
        assert [each.step for each in record.steps].count("stopping") <= MOST_MISSED + 1
        feed.cancel()

    in_virtual_time(work())


def test_the_cause_is_that_of_the_start_that_was_followed() -> None:
    """Systemd has begun the next one, which dies of something else, before anybody looks."""

    async def work() -> None:
        script = Script(load=2.0, restarts_after=0.5, fails=lambda argv: argv[-1] == "16")
        world = ChangeWorld(script)
        script.says = {
            2: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB.",
            3: "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000):"
            " address already in use",
        }
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()
        plan = await control.plan(Request(flags={BLOCK: 16}))
        record = await control.apply(plan, policy="never")
        assert record.ending == "failed"
        assert world.machine.starts >= 3
        assert record.cause is not None
        assert "memory" in record.cause["title"]
        feed.cancel()

    in_virtual_time(work())
