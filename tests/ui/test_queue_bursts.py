"""Keys that merely arrive, on the Queue screen: no run begins or ends, and nothing is taken up.

As tests/ui/test_bursts.py, with `DDTUI_BURSTS` shared among these screens.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from textual.widgets import OptionList

from ddtui.core.experiment import QueueSettings
from ddtui.ui.deliberate import SETTLE
from ddtui.ui.queue_source import RunView
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.waiting import WaitingScreen
from tests.ui import bursts
from tests.ui.bursts import KEYS, burst, parsed, pause
from tests.ui.control_world import FakeControl, control_app
from tests.ui.queue_world import FULL, StillQueue
from tests.ui.test_bursts import BURSTS, SEED, Hammered, exits, nowhere, to_monitor

__all__ = ["exits", "nowhere"]

QUIET = replace(FULL, run=RunView())
"""A queue that nobody runs."""
ACTIVE = replace(FULL, settings=QueueSettings(host="ct200", paused=True))
"""One that is run here, and paused."""
TAKEN_UP = frozenset({"release", "retry", "resume", "grid", "like"})
"""What a runner takes up by itself. `add` and `edit` need a line that means something."""
TEXTS = (
    "5s\t\r\r",
    "5s\x1b[Csglang-kimi\r",
    "s\x1b[C\x1b[C\r",
    "S\t\r\t\r",
    "p\t\rt\t\rc\t\r",
    "gbudget\r\r\r",
    "m\r\r",
)


class HammeredQueue(Hammered):
    """With a queue, and what would have changed the unit."""

    def __init__(self, scene: str, view_is_active: bool) -> None:
        self.control = FakeControl()
        self.queue = StillQueue(ACTIVE if view_is_active else QUIET)
        self.now = 1_000.0
        self.app = control_app(scene, self.control, key_clock=lambda: self.now, queue=self.queue)
        self.left = 0

    @property
    def begun(self) -> list[object]:
        """What has changed the unit, or is taken up by a runner."""
        active = self.queue.made.run.running
        by_itself = [
            each
            for each in self.queue.changed
            if active and (each[0] in TAKEN_UP or each == ("cancel", "1"))
        ]
        return [*self.control.begun, *self.queue.begun, *by_itself]

    async def open(self, *names: str) -> None:
        """Open a screen by its actions, and let a question listen."""
        await to_monitor(self)
        for name in names:
            target = self.app if name.startswith("app.") else self.app.screen
            if name == "screen.end":  # of the running one: a burst may have moved the highlight
                self.app.screen.query_one(OptionList).highlighted = 0
                await self.idle()
            await target.run_action(name)
            await self.idle()
            while isinstance(self.app.screen, WaitingScreen):
                await self.idle()
        if isinstance(self.app.screen, ConfirmScreen):
            await self.wait(2.0)


# Scene, whether the queue is run here, actions, whether something is asked then.
SCREENS: dict[str, tuple[str, bool, tuple[str, ...], bool]] = {
    "table": ("idle", False, ("app.queue",), False),
    "table of a run": ("idle", True, ("app.queue",), False),
    "add": ("idle", False, ("app.queue", "screen.add"), False),
    "edit": ("idle", True, ("app.queue", "screen.edit"), False),
    "grid": ("idle", True, ("app.queue", "screen.grid"), False),
    "like": ("idle", False, ("app.queue", "screen.like"), False),
    "leave in": ("idle", True, ("app.queue", "screen.leave"), False),
    "run, idle": ("idle", False, ("app.queue", "screen.start"), True),
    "run, at work": ("live", False, ("app.queue", "screen.start"), True),
    "stop": ("idle", True, ("app.queue", "screen.stop"), True),
    "cancel": ("idle", True, ("app.queue", "screen.end"), True),
    "go on": ("idle", True, ("app.queue", "screen.pause"), True),
    "leave ddtui": ("idle", True, ("app.quit",), True),
}


@pytest.fixture(autouse=True)
def of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that mean something here go among those that are pasted."""
    monkeypatch.setattr(bursts, "TEXTS", (*bursts.TEXTS, *TEXTS))


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", SCREENS)
async def test_bursts_begin_nothing(name: str, exits: list[str]) -> None:
    scene, active, path, asks = SCREENS[name]
    hammered = HammeredQueue(scene, active)
    rng = random.Random(f"{SEED} queue {name}")
    async with hammered.app.run_test(size=(80, 24)):
        await hammered.idle()
        here: object = None
        for number in range(-(-BURSTS // len(SCREENS))):
            if (hammered.app.screen is not here and rng.random() < 0.5) or number == 0:
                await hammered.open(*path)
                here = hammered.app.screen
                assert isinstance(here, ConfirmScreen) or not asks
            some = burst(rng)
            for message in some.events:
                message.time += hammered.now
            await hammered.send(some.events)  # type: ignore[arg-type]
            hammered.now += some.seconds
            await hammered.wait(pause(rng))
            assert hammered.begun == [], f"burst {number}"
            if name == "leave ddtui":
                assert (exits, hammered.queue.closed) == ([], False), f"burst {number}"


@pytest.mark.parametrize("name", SCREENS)
async def test_no_single_key_begins_anything(name: str, exits: list[str]) -> None:
    scene, active, path, asks = SCREENS[name]
    hammered = HammeredQueue(scene, active)
    async with hammered.app.run_test(size=(80, 24)):
        await hammered.idle()
        here: object = None
        keys: tuple[str, ...] = (*KEYS, *map(chr, range(33, 127)))
        if BURSTS < 1_000:
            few = ("\r", " ", "\t", "\x1b[C", "\x1b[Z", "y")
            keys = few if asks else (*KEYS, *"sSpcthagmLxKJFq")
        for key in keys:
            if hammered.app.screen is not here or isinstance(here, ConfirmScreen):
                await hammered.open(*path)
                here = hammered.app.screen
            some = parsed([(0.0, key)])
            for message in some.events:
                message.time += hammered.now
            await hammered.send(some.events)  # type: ignore[arg-type]
            await hammered.wait(SETTLE + 5.0)
            assert hammered.begun == [], repr(key)
            if name == "leave ddtui":
                assert (exits, hammered.queue.closed) == ([], False), repr(key)
