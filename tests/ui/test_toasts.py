"""What is told in passing: it does not follow the operator to what has nothing to do with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets._toast import Toast

from ddtui.ui.app import DdtuiApp
from ddtui.ui.copying import at_home
from tests.ui.control_world import FakeControl, control_app


def toasts(app: DdtuiApp) -> list[str]:
    return [str(toast.render()) for toast in app.screen.query(Toast)]


@pytest.mark.parametrize("key", ["2", "question_mark", "R"])
async def test_it_is_gone_on_the_next_screen_and_on_dialogs(key: str) -> None:
    app = control_app("idle", FakeControl())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.notify("Copied it")
        app.notify("The run has ended", timeout=15)
        app.notify("It came to nothing", severity="error")
        await pilot.pause()
        assert len(toasts(app)) == 3
        before = app.screen
        await pilot.press(key)
        await pilot.pause()
        assert app.screen is not before
        assert toasts(app) == ["The run has ended", "It came to nothing"]


async def test_a_short_one_covers_one_line() -> None:
    app = control_app("idle", FakeControl())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.notify("Copied the line. Also in ~/.local/state/ddtui/copied.txt")
        await pilot.pause()
        (toast,) = app.screen.query(Toast)
        assert toast.size.height == 1
        assert toast.region.bottom == 23  # above the footer


def test_a_path_at_home_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/mara")
    assert at_home(Path("/home/mara/.local/state/x.txt")) == "~/.local/state/x.txt"
    assert at_home(Path("/home/marama/x.txt")) == "/home/marama/x.txt"
