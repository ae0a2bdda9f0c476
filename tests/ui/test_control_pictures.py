"""Presets, questions and reconfigurations as pictures, with frozen clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from ddtui.control.rights import sudoers_lines
from ddtui.ui.app import DdtuiApp
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.waiting import WaitingScreen
from ddtui.ui.source import ControlProblem
from tests.ui.control_keys import at_rest
from tests.ui.control_world import (
    HELD,
    HOSTILE_PRESETS,
    ROLLBACK,
    UNIT,
    FakeControl,
    control_app,
    failed,
    history,
    in_force,
    running,
)
from tests.ui.test_pictures import LARGE, MIDDLE, SMALL, SnapCompare

SIZES = (SMALL, MIDDLE, LARGE)
LEAST = (60, 16)


def by_size(size: object) -> str:
    return f"{size[0]}x{size[1]}" if isinstance(size, tuple) else str(size)


def prepared(*keys: str) -> Callable[[Pilot[object]], Awaitable[None]]:
    """Press keys, wait until plans are made and questions listen, then stop all timers."""

    async def run(pilot: Pilot[object]) -> None:
        app = pilot.app
        assert isinstance(app, DdtuiApp)
        for key in keys:
            await pilot.press(key)
            await at_rest(pilot)
        await pilot.pause()
        view = app.desk.view if app.desk is not None else None
        while view is not None and view.question and not isinstance(app.screen, ConfirmScreen):
            app._check()
            await pilot.pause(0.05)
        while isinstance(app.screen, WaitingScreen) or not app.screen.is_mounted or app.typing:
            await pilot.pause(0.02)
        screen = app.screen
        if isinstance(screen, ConfirmScreen):
            await pilot.pause(0.05)  # laid out
            screen._clock = lambda: 1_000.0  # it has been open for long
            screen._look()
        await pilot.pause(0.05)

    return run


def app_with(scene: str = "live", **changes: object) -> DdtuiApp:
    control = FakeControl()
    for name, value in changes.items():
        setattr(control, name, value)
    return control_app(scene, control, key_clock=lambda: 0.0)


@pytest.mark.parametrize("size", [LEAST, *SIZES], ids=by_size)
def test_presets(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_with(), terminal_size=size, run_before=prepared("4", "j"))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
def test_hostile_presets(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    app = app_with("hostile", listed=HOSTILE_PRESETS)
    assert snap_compare(app, terminal_size=size, run_before=prepared("4", "j", "j", "j", "j"))


@pytest.mark.parametrize("size", [LEAST, *SIZES], ids=by_size)
def test_confirm(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_with(), terminal_size=size, run_before=prepared("4", "j", "a"))


def test_confirm_without_a_word(snap_compare: SnapCompare) -> None:
    app = app_with("idle")
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared("4", "a"))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
def test_blocked(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_with(), terminal_size=size, run_before=prepared("4", "j", "j", "a"))


def test_locked(snap_compare: SnapCompare) -> None:
    app = app_with(holder="jonas@laptop since 2026-09-21 14:01:22: apply block16")
    assert snap_compare(app, terminal_size=SMALL, run_before=prepared("4", "a"))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
@pytest.mark.parametrize("keys", [(), ("4",)], ids=["monitor", "presets"])
def test_releasing(size: tuple[int, int], keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    app = app_with("live", reconfiguration=running("releasing", HELD))
    assert snap_compare(app, terminal_size=size, run_before=prepared(*keys))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
def test_loading(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    app = app_with("loading", reconfiguration=running("loading", "loading target"))
    assert snap_compare(app, terminal_size=size, run_before=prepared())


@pytest.mark.parametrize("size", SIZES, ids=by_size)
@pytest.mark.parametrize("keys", [(), ("4",)], ids=["monitor", "presets"])
def test_failed(size: tuple[int, int], keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    app = app_with("failed", reconfiguration=failed())
    assert snap_compare(app, terminal_size=size, run_before=prepared(*keys))


def test_in_force(snap_compare: SnapCompare) -> None:
    app = app_with("live", reconfiguration=in_force())
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared())


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=by_size)
def test_rollback_question(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    view = replace(running("loading"), question=ROLLBACK)
    app = app_with("failed", reconfiguration=view)
    assert snap_compare(app, terminal_size=size, run_before=prepared())


@pytest.mark.parametrize("size", SIZES, ids=by_size)
@pytest.mark.parametrize("keys", [("H",), ("H", "j", "j", "enter")], ids=["list", "details"])
def test_history(size: tuple[int, int], keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    app = app_with(history=history())
    assert snap_compare(app, terminal_size=size, run_before=prepared(*keys))


@pytest.mark.parametrize("size", [SMALL, MIDDLE], ids=by_size)
@pytest.mark.parametrize("keys", [("4",), ("4", "a")], ids=["presets", "dialog"])
def test_missing_rights(
    size: tuple[int, int], keys: tuple[str, ...], snap_compare: SnapCompare
) -> None:
    lines = sudoers_lines("mara", UNIT)
    remedy = "\n".join(["on the host, with `sudo visudo -f /etc/sudoers.d/ddtui`, add:", *lines])
    problem = ControlProblem(f"sudo does not allow what changing {UNIT} takes", remedy)
    app = app_with("idle", problem=problem)
    assert snap_compare(app, terminal_size=size, run_before=prepared(*keys))


@pytest.mark.parametrize("theme", ["ddtui-light", "ddtui-contrast"])
def test_confirm_in_other_themes(theme: str, snap_compare: SnapCompare) -> None:
    app = control_app("idle", FakeControl(), key_clock=lambda: 0.0, theme=theme)
    assert snap_compare(app, terminal_size=SMALL, run_before=prepared("4", "a"))


def test_confirm_in_ascii(snap_compare: SnapCompare) -> None:
    app = control_app("idle", FakeControl(), key_clock=lambda: 0.0, ascii=True)
    assert snap_compare(app, terminal_size=SMALL, run_before=prepared("4", "a"))


def test_waiting_for_a_plan(snap_compare: SnapCompare) -> None:
    control = FakeControl()

    async def never(_request: object) -> None:
        await asyncio.Event().wait()

    async def run(pilot: Pilot[object]) -> None:
        await pilot.press("4")
        await at_rest(pilot)
        control.plan = never  # type: ignore[method-assign, assignment]
        await pilot.press("a")
        screen = pilot.app.screen
        assert isinstance(screen, WaitingScreen)
        screen._ticks = 0
        await pilot.pause()

    app = control_app("idle", control, key_clock=lambda: 0.0)
    assert snap_compare(app, terminal_size=SMALL, run_before=run)
