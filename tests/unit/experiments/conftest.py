"""Runners over the scripted host, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ddtui.store import Store
from tests.support.run_stories import Story, Told
from tests.support.run_world import RunWorld, store_in_memory
from tests.support.scripted_machine import Script
from tests.support.virtual_time import in_virtual_time


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with store_in_memory() as opened:
        yield opened


@pytest.fixture
def told(store: Store, request: pytest.FixtureRequest) -> Told:
    """Plays a story in a world of its own."""

    def play(story: Story, script: Script | None = None, seed: int = 1) -> RunWorld:
        async def work() -> RunWorld:
            default = Script(stop=0.5, memory_late=0.2, load=4.0, travel=0.01)
            world = RunWorld(script or default, store, request.node.name, seed)
            feed = asyncio.create_task(world.watched.run())
            await asyncio.sleep(2)
            async with asyncio.timeout(3600):
                await story(world)
            feed.cancel()
            return world

        return in_virtual_time(work())

    return play
