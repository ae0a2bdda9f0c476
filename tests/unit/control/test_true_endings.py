"""What a change says at its end is what is on the host: what runs, and what is on its disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Request
from tests.support.change_world import FRAGMENT as UNIT_TEXT
from tests.support.change_world import ChangeWorld
from tests.support.scripted_host import FOREIGN, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = "speculative-dflash-block-size"


async def applied(
    world: ChangeWorld, meanwhile: Callable[[str], None] = lambda _: None
) -> ChangeRecord:
    """Block 16 asked for where 8 runs; `meanwhile` is told of each step."""
    feed = asyncio.create_task(world.watched.run())
    await asyncio.sleep(3)
    control = world.control()
    plan = await control.plan(Request(flags={BLOCK: 16}))
    record = await control.apply(plan, lambda _, step: meanwhile(step.step), policy="always")
    await asyncio.sleep(1)
    feed.cancel()
    return record


def test_rolled_back_is_said_only_of_what_runs_again() -> None:
    """Somebody adds a drop-in that decides over ddtui's: the earlier command is not back."""

    async def work() -> None:
        world = ChangeWorld(Script())

        def meanwhile(step: str) -> None:
            if step == "written":
                command = UNIT_TEXT.partition("ExecStart=")[2].replace("size 8", "size 12")
                world.machine.files[FOREIGN] = f"[Service]\nExecStart=\nExecStart={command}"

        record = await applied(world, meanwhile)
        assert world.machine.engine is not None
        assert world.machine.engine.argv[-1] == "12"
        assert record.ending == "degraded"
        said = record.steps[-1].detail
        assert f"the unit's command is not the expected one: {BLOCK} is 12, expected 8" in said
        assert FOREIGN in said

    in_virtual_time(work())
