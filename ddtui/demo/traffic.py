"""Made-up users of the simulated engine, who rest while it is measured."""

from __future__ import annotations

import asyncio
import random

from ddtui.demo.serving import Scheduler

BACK = 8.0
"""Seconds after a start in which they find the engine again; a bench may have begun by then."""


async def background_traffic(
    scheduler: Scheduler, rng: random.Random, *, back_in: float = 0.0
) -> None:
    """A light stream of requests with idle gaps, for ever; none while a client is served.

    `back_in`: seconds until the first one.
    """
    await asyncio.sleep(back_in)
    while True:
        for _ in range(rng.randint(2, 5)):
            await scheduler.wait_quiet()
            batch = [
                scheduler.submit(
                    rng.randint(180, 2600), rng.randint(300, 1100), streaming=True, watched=False
                )
                for _ in range(rng.choice((1, 1, 1, 2, 3)))
            ]
            for request in batch:
                while not request.finished:
                    request.progress.clear()
                    await request.progress.wait()
            await asyncio.sleep(rng.uniform(0.1, 0.9))
        await asyncio.sleep(rng.uniform(3.0, 9.0))
