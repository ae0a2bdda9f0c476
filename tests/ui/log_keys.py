"""Drives a log screen and reads what it shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from ddtui.core.samples import JournalLine
from ddtui.ui.widgets.log_status import LogStatus
from tests.ui.log_world import LogApp


@asynccontextmanager
async def opened(
    *lines: JournalLine, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[LogApp, Pilot[object]]]:
    app = LogApp(*lines)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settle(pilot)
        yield app, pilot


async def settle(pilot: Pilot[object]) -> None:
    """Until all lines are read, filtered and searched."""
    app = pilot.app
    assert isinstance(app, LogApp)
    for _ in range(2_000):
        await pilot.pause()
        if not app.log_screen.lines.busy and app.screen_stack[-1].is_mounted:
            await pilot.pause()
            return
    raise AssertionError("the log did not come to rest")


async def press(pilot: Pilot[object], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def rows(app: LogApp) -> list[str]:
    """What the view shows, row by row."""
    view = app.log_screen.view
    return [view.render_line(y).text[:-1].rstrip() for y in range(view.size.height)]


def status(app: LogApp) -> str:
    bar = app.log_screen.query_one(LogStatus)
    return " ".join(bar.render_line(y).text.strip() for y in range(bar.size.height))


def toasts(app: LogApp) -> str:
    return "\n".join(each.message for each in app._notifications)
