"""A paused monitor: everything on it stands still, and the footer says how to go on."""

from __future__ import annotations

from ddtui.ui.app import DdtuiApp
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.log_tail import LogTail
from tests.ui.log_world import line
from tests.ui.scenes import NOW, SceneSource


def panel(app: DdtuiApp) -> str:
    return "\n".join(each.text for each in app.screen.query_one(LogTail)._strips)


async def test_the_log_panel_is_frozen_too() -> None:
    source = SceneSource("live")
    app = DdtuiApp(source, clock=lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("p")
        log = source.snapshot(NOW).log
        log.extend([line("written while paused")])
        app.paint()
        await pilot.pause()
        assert "written while paused" not in panel(app)
        assert "Resume" in app.screen.query_one(KeyBar).render_line(0).text
        await pilot.press("p")
        await pilot.pause()
        assert "written while paused" in panel(app)
        assert "Pause" in app.screen.query_one(KeyBar).render_line(0).text


async def test_polls_do_not_push_lines_out_of_the_panel() -> None:
    source = SceneSource("live")
    app = DdtuiApp(source, clock=lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        poll = line('INFO:     127.0.0.1:51234 - "GET /metrics HTTP/1.1" 200 OK')
        source.snapshot(NOW).log.extend([line("a word of the engine"), *[poll] * 200])
        app.paint()
        await pilot.pause()
        assert "a word of the engine" in panel(app)
        assert "GET /metrics" not in panel(app)
        assert "polls hidden" in panel(app)
