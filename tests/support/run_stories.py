"""Words in which a story of a runner is told: what happens, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ddtui.core.bench_plan import BenchPlan
from ddtui.experiments.report import RunEvent
from tests.support.run_world import RunWorld

PLAN = BenchPlan(concurrency=(1, 4), coding=False)
Story = Callable[[RunWorld], Awaitable[None]]
Told = Callable[..., RunWorld]
"""Plays a story, over a script where one is given, and returns the world as it is then."""


def states(world: RunWorld) -> list[str]:
    return [each.state.value for each in world.experiments()]


def at(what: str, step: str = "", number: int = 1) -> Callable[[RunEvent], bool]:
    """Whether an event is the `number`th of its kind."""
    seen = 0

    def found(event: RunEvent) -> bool:
        nonlocal seen
        seen += event.what == what and (not step or event.step == step)
        return seen == number and event.what == what and (not step or event.step == step)

    return found


def when(world: RunWorld, found: Callable[[RunEvent], bool], do: Callable[[], Any]) -> None:
    """Do something once, right after an event."""

    def heed(event: RunEvent) -> None:
        if found(event):
            result = do()
            if isinstance(result, Coroutine):
                world.later = asyncio.create_task(result)  # type: ignore[attr-defined]

    world.heed = heed


def settings(world: RunWorld, **to: Any) -> None:
    world.kept.experiments.change_settings(world.host.name, simulated=False, **to)
