"""The queue, its dialogs and its part of the monitor as pictures, with frozen clocks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input

from ddtui.ui.app import DdtuiApp
from ddtui.ui.queue_source import QueueView, RunView
from ddtui.ui.screens.confirm import ConfirmScreen
from tests.ui.control_keys import at_rest
from tests.ui.control_world import FakeControl, running
from tests.ui.queue_world import EMPTY, FULL, HERE, HOSTILE_VIEW, StillQueue, queue_app
from tests.ui.test_control_pictures import LEAST, SIZES, by_size
from tests.ui.test_pictures import MIDDLE, SMALL, SnapCompare

IDLE = replace(FULL, run=RunView())


def prepared(*keys: str, text: str = "") -> Callable[[Pilot[object]], Awaitable[None]]:
    """Press keys, type a text, and wait until plans are made and questions listen."""

    async def run(pilot: Pilot[object]) -> None:
        app = pilot.app
        for key in keys:
            await pilot.press(key)
            await at_rest(pilot)
        if text:
            field = app.screen.query_one(Input)
            field.cursor_blink = False
            field.value = text
            await pilot.pause()
        screen = app.screen
        if isinstance(screen, ConfirmScreen):
            screen._clock = lambda: 1_000.0  # it has been open for long
            screen._look()
        await pilot.pause()

    return run


def app_of(view: QueueView = FULL, scene: str = "live", **settings: object) -> DdtuiApp:
    return queue_app(StillQueue(view), scene, key_clock=lambda: 0.0, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [LEAST, *SIZES], ids=by_size)
def test_queue(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(), terminal_size=size, run_before=prepared("5"))


@pytest.mark.parametrize("theme", ["ddtui-light", "ddtui-contrast"])
def test_themes(theme: str, snap_compare: SnapCompare) -> None:
    app = app_of(theme=theme)
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared("5", "j"))


def test_ascii(snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(ascii=True), terminal_size=SMALL, run_before=prepared("5"))


def test_nobody_runs_it_and_one_has_failed(snap_compare: SnapCompare) -> None:
    keys = ("5", "end", "up")
    assert snap_compare(app_of(IDLE), terminal_size=(200, 60), run_before=prepared(*keys))


def test_while_the_engine_is_loaded(snap_compare: SnapCompare) -> None:
    view = replace(FULL, run=replace(HERE, step="loading", progress=None))
    control = FakeControl()
    control.reconfiguration = running("loading", "loading target")
    app = queue_app(StillQueue(view), "loading", control=control)
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared("5"))


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=by_size)
def test_empty(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(EMPTY), terminal_size=size, run_before=prepared("5"))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
def test_hostile(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    app = app_of(HOSTILE_VIEW, "hostile")
    assert snap_compare(app, terminal_size=size, run_before=prepared("5", "j", "j"))


@pytest.mark.parametrize("size", [LEAST, *SIZES], ids=by_size)
def test_starting_a_run(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(IDLE), terminal_size=size, run_before=prepared("5", "s"))


def test_leaving_while_it_runs(snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(), terminal_size=SMALL, run_before=prepared("q"))


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=by_size)
def test_a_grid(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    text = "budget=4,8,16 block_size=8,16 match if budget >= 3"
    app = app_of(IDLE)
    run_before = prepared("5", "g", text=text)
    assert snap_compare(app, terminal_size=size, run_before=run_before)


def test_a_mistake_in_a_grid(snap_compare: SnapCompare) -> None:
    run_before = prepared("5", "g", text="budget=4,8 tpok=4")
    assert snap_compare(app_of(IDLE), terminal_size=SMALL, run_before=run_before)


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=by_size)
def test_the_same_but(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    run_before = prepared("5", "m", text="block_size=16 control")
    assert snap_compare(app_of(IDLE), terminal_size=size, run_before=run_before)


@pytest.mark.parametrize("size", [*SIZES, (80, 45)], ids=by_size)
def test_monitor(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(), terminal_size=size, run_before=prepared())
