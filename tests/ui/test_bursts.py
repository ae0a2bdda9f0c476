"""Keys that merely arrive, on every screen: nothing is ever stopped, started or changed by them.

`DDTUI_BURSTS=10000 pytest tests/ui/test_bursts.py` sends that many, shared among the screens, and
says so at the end; tests/ui/test_deliberate.py sends as many in a second to what judges
the keys of a question.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import events
from textual.app import App
from textual.screen import Screen

from ddtui.core.launch import Plan, Request
from ddtui.ui.app import DdtuiApp
from ddtui.ui.deliberate import SETTLE
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.screens.results import ResultsScreen
from ddtui.ui.screens.waiting import WaitingScreen
from tests.ui.bursts import KEYS, SENT, burst, parsed, pause
from tests.ui.control_world import ORPHANS, ROLLBACK, FakeControl, control_app, history, running
from tests.ui.results_world import GivenResults

BURSTS = int(os.environ.get("DDTUI_BURSTS", "300"))
"""Bursts in all."""
SEED = int(os.environ.get("DDTUI_BURST_SEED", "20"))


class Hammered:
    """An app whose input has times of its own."""

    def __init__(self, scene: str, control: FakeControl | None = None) -> None:
        self.control = control or FakeControl()
        self.now = 1_000.0
        self.results = GivenResults()
        self.app: DdtuiApp = control_app(
            scene, self.control, key_clock=lambda: self.now, results=self.results
        )
        self.left = 0

    async def send(self, messages: list[events.Event]) -> None:
        """Input, each event at its time."""
        for message in messages:
            self.app.post_message(message)
        await self.idle()

    async def idle(self) -> None:
        """Until nothing waits to be handled."""
        quiet = 0
        for _ in range(100_000):
            await asyncio.sleep(0)
            pumps = [self.app, self.app.screen, self.app.focused]
            waiting = any(pump is not None and pump.message_queue_size for pump in pumps)
            quiet = 0 if waiting or self.app.typing else quiet + 1
            if quiet > 12:
                return
        raise AssertionError("the app does not come to rest")

    def paint(self) -> None:
        """What the burst led to must be able to be shown."""
        self.app.screen._compositor.render_strips()

    async def wait(self, seconds: float) -> None:
        """Let time pass without a key, and what waits for it happen."""
        self.now += seconds
        if isinstance(self.app.screen, ConfirmScreen):
            self.app.screen._settle()
            await self.idle()


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that are saved by chance go to a folder of the test."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture
def seldom_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture between two keys of a burst: that takes most of the time, and changes nothing."""
    monkeypatch.setattr(Screen, "_compositor_refresh", lambda _screen: None)


Open = Callable[[Hammered], Awaitable[None]]


async def to_monitor(hammered: Hammered) -> None:
    app = hammered.app
    while not isinstance(app.screen, MonitorScreen):
        await app.pop_screen()
    await hammered.idle()


def opened_by(*names: str) -> Open:
    """A screen that actions of the app and of screens open."""

    async def open_it(hammered: Hammered) -> None:
        await to_monitor(hammered)
        for name in names:
            target = hammered.app if name.startswith("app.") else hammered.app.screen
            await target.run_action(name)
            await hammered.idle()
            screen = hammered.app.screen
            if isinstance(screen, PresetsScreen) and name == "app.presets":
                # An earlier burst may have left no preset to choose from.
                screen.action_cancel()  # the line that is typed into
                screen.action_cancel()  # the filter
                await hammered.idle()
        if isinstance(hammered.app.screen, WaitingScreen):
            assert isinstance(hammered.control, NeverPlanned)
        elif names[-1] in {"app.rollback", "app.restart", "screen.apply", "app.quit", "app.decide"}:
            assert isinstance(hammered.app.screen, ConfirmScreen)
            await hammered.wait(2.0)

    return open_it


async def replacing(hammered: Hammered) -> None:
    """The question before a file is replaced."""
    await opened_by("app.results")(hammered)
    screen = hammered.app.screen
    assert isinstance(screen, ResultsScreen)
    screen._ask("export", "Write to:", "there.csv")
    screen._export(Path("there.csv"))
    await hammered.idle()
    assert isinstance(hammered.app.screen, ConfirmScreen)
    await hammered.wait(2.0)


SCREENS: dict[str, tuple[str, Open]] = {
    "monitor": ("live", to_monitor),
    "log": ("live", opened_by("app.log")),
    "log search": ("live", opened_by("app.log", "screen.search")),
    "log rank": ("live", opened_by("app.log", "screen.rank")),
    "hosts": ("live", opened_by("app.hosts")),
    "presets": ("idle", opened_by("app.presets")),
    "presets set": ("idle", opened_by("app.presets", "screen.edit")),
    "presets filter": ("idle", opened_by("app.presets", "screen.filter")),
    "presets save": ("idle", opened_by("app.presets", "screen.save")),
    "history": ("live", opened_by("app.history")),
    "history details": ("live", opened_by("app.history", "screen.open")),
    "waiting for a plan": ("idle", opened_by("app.presets", "screen.apply")),
    "results": ("live", opened_by("app.results")),
    "results filter": ("live", opened_by("app.results", "screen.filter")),
    "results export": ("live", opened_by("app.results", "screen.export")),
    "results, replace": ("live", replacing),
    "help": ("live", opened_by("app.presets", "app.help")),
    "palette": ("idle", opened_by("app.command_palette")),
    "apply, idle": ("idle", opened_by("app.presets", "screen.apply")),
    "apply, at work": ("live", opened_by("app.presets", "screen.apply")),
    "rollback, idle": ("idle", opened_by("app.rollback")),
    "restart, idle": ("idle", opened_by("app.restart")),
    "restart, at work": ("live", opened_by("app.restart")),
    "question: rollback": ("failed", opened_by("app.decide")),
    "question: orphans": ("failed", opened_by("app.decide")),
    "resume": ("failed", opened_by("app.decide")),
    "leave": ("loading", opened_by("app.quit")),
}


QUESTIONS = [name for name in SCREENS if "," in name or ":" in name or name in {"resume", "leave"}]


class NeverPlanned(FakeControl):
    """A host that takes for ever to say what an apply would change."""

    async def plan(self, request: Request) -> Plan:
        await asyncio.Event().wait()
        return await super().plan(request)


def control_for(name: str) -> FakeControl:
    control = NeverPlanned() if name == "waiting for a plan" else FakeControl()
    control.history = history()
    changing = {
        "question: rollback": replace(running("loading"), question=ROLLBACK),
        "question: orphans": replace(running("releasing"), question=ORPHANS),
        "resume": replace(running("loading"), interrupted=True, here=False),
        "leave": running("loading"),
    }
    control.reconfiguration = changing.get(name)
    return control


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """When the app was left; it goes on all the same."""
    seen: list[str] = []

    def leave(app: App[object], *_args: object, **_kwargs: object) -> None:
        seen.append(type(app.screen).__name__)

    monkeypatch.setattr(App, "exit", leave)
    return seen


@pytest.mark.timeout(0)
@pytest.mark.usefixtures("seldom_painted")
@pytest.mark.parametrize("name", SCREENS)
async def test_bursts_begin_nothing(name: str, exits: list[str]) -> None:
    scene, open_it = SCREENS[name]
    hammered = Hammered(scene, control_for(name))
    rng = random.Random(f"{SEED} {name}")
    async with hammered.app.run_test(size=(80, 24)):
        await hammered.idle()
        here: object = None
        for number in range(-(-BURSTS // len(SCREENS))):
            # Each burst begins where the last one led, or on this very screen again.
            if (hammered.app.screen is not here and rng.random() < 0.5) or number == 0:
                await open_it(hammered)
                here = hammered.app.screen
            some = burst(rng)
            for message in some.events:
                message.time += hammered.now
            await hammered.send(some.events)  # type: ignore[arg-type]
            hammered.now += some.seconds
            await hammered.wait(pause(rng))
            hammered.paint()
            SENT["bursts"] += 1
            SENT["keys"] += sum(isinstance(each, events.Key) for each in some.events)
            assert hammered.control.begun == [], f"burst {number}"
            assert hammered.results.exported == [], f"burst {number}"
            if name == "leave":
                assert exits == [], f"burst {number}"


@pytest.mark.parametrize("name", SCREENS)
async def test_no_single_key_begins_anything(name: str, exits: list[str]) -> None:
    scene, open_it = SCREENS[name]
    hammered = Hammered(scene, control_for(name))
    async with hammered.app.run_test(size=(80, 24)):
        await hammered.idle()
        here: object = None
        asking = name in QUESTIONS
        keys: tuple[str, ...] = (*KEYS, *map(chr, range(33, 127)))
        if BURSTS < 1_000:
            keys = ("\r", " ", "\t", "\x1b[C", "\x1b[Z", "y") if asking else (*KEYS, *"aBRDxq1/:")
        for key in keys:
            if hammered.app.screen is not here or isinstance(here, ConfirmScreen):
                await open_it(hammered)
                here = hammered.app.screen
            some = parsed([(0.0, key)])
            for message in some.events:
                message.time += hammered.now
            await hammered.send(some.events)  # type: ignore[arg-type]
            await hammered.wait(SETTLE + 5.0)
            assert hammered.control.begun == [], repr(key)
            assert hammered.results.exported == [], repr(key)
            if name == "leave":
                assert exits == [], repr(key)
