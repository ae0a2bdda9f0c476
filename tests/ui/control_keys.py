"""Drives the app as an operator who takes care: keys with times of their own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from ddtui.ui.app import DdtuiApp
from ddtui.ui.screens.confirm import ConfirmScreen
from tests.ui.control_world import FakeControl, control_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ddtui.ui.queue_source import QueueSource


class Operator:
    """One app, its control, and a clock for keys that moves when told to."""

    def __init__(
        self,
        scene: str,
        control: FakeControl,
        *,
        read_only: bool = False,
        queue: QueueSource | None = None,
    ) -> None:
        self.now = 1_000.0
        self.control = control
        self.app: DdtuiApp = control_app(
            scene, control, read_only=read_only, key_clock=lambda: self.now, queue=queue
        )
        self.pilot: Pilot[object]

    async def press(self, *keys: str, each: float = 1.0) -> None:
        """Keys, `each` seconds after one another."""
        for key in keys:
            self.now += each
            one = len(key) == 1
            event = events.Key(_character_to_key(key) if one else key, key if one else None)
            event.time = self.now
            self.app.post_message(event)
            await self.pilot.pause()

    async def settle(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        self.now += seconds
        if isinstance(self.app.screen, ConfirmScreen):
            self.app.screen._settle()
        await self.pilot.pause()

    async def confirm(self, word: str = "") -> None:
        """Answer a question with yes, as its words ask for it."""
        await self.until_asked()
        await self.settle(2.0)
        await self.press(*word, each=0.15)
        await self.press("right")
        await self.press("enter")
        await self.settle()

    async def until_asked(self) -> ConfirmScreen:
        """Wait for a question."""
        for _ in range(200):
            screen = self.app.screen
            if isinstance(screen, ConfirmScreen) and screen.is_mounted and self.text().strip():
                return screen
            await asyncio.sleep(0.01)
        raise AssertionError(f"nothing is asked on {self.app.screen}")

    def text(self) -> str:
        """What is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@asynccontextmanager
async def operating(
    scene: str = "live",
    control: FakeControl | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    read_only: bool = False,
    queue: QueueSource | None = None,
) -> AsyncIterator[Operator]:
    """The app, running."""
    operator = Operator(scene, control or FakeControl(), read_only=read_only, queue=queue)
    async with operator.app.run_test(size=size, notifications=True) as pilot:
        operator.pilot = pilot
        await pilot.pause()
        yield operator


async def at_rest(pilot: Pilot[object]) -> None:
    """Wait until all is worked out that keys, and the highlight where it rests, have led to."""
    await pilot.pause()
    pause = getattr(pilot.app.screen, "_pause", None)
    if pause is not None and pause._task is not None:
        await asyncio.wait({pause._task})
        await pilot.pause()  # what it leads to has begun
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def until(operator: Operator, what: Callable[[], bool]) -> None:
    """Wait for what comes by itself: a plan, a paint."""
    for _ in range(300):
        await operator.pilot.pause()
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(operator.text())


def shows(operator: Operator, words: str) -> Callable[[], bool]:
    """Whether words are on the screen, to be asked with `until`."""
    return lambda: words in operator.text()


def keeper(copied: list[str]) -> Callable[[str], Path]:
    """Stands for the file of what was copied last."""

    def keep(text: str) -> Path:
        copied.append(text)
        return Path("/state/copied.txt")

    return keep
