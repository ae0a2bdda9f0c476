"""The app: start, keys, themes, switching screens, and how it leaves the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from ddtui.config.hosts import HostTarget, Reach
from ddtui.config.model import HostOptions
from ddtui.ui.app import DdtuiApp
from ddtui.ui.keymap import KeymapError
from ddtui.ui.screens.hosts import HostsScreen
from ddtui.ui.screens.log import LogScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.source import UiSettings
from tests.ui.scenes import NOW, SceneSource

ROOT = Path(__file__).resolve().parents[2]
HOSTS = [HostTarget(name, Reach.SSH, HostOptions(), configured=True) for name in ("ct200", "other")]


def app_of(scene: str = "live", **settings: object) -> DdtuiApp:
    source = SceneSource(scene)
    chosen = UiSettings(**settings)  # type: ignore[arg-type]
    return DdtuiApp(source, settings=chosen, clock=lambda: NOW, hosts=HOSTS)


async def test_it_starts_and_closes_what_it_shows() -> None:
    app = app_of()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.source.started  # type: ignore[attr-defined]
        assert isinstance(app.screen, MonitorScreen)
    assert app.source.closed  # type: ignore[attr-defined]


async def test_screens_are_one_key_apart_and_keep_their_place() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2")
        log = app.screen
        assert isinstance(log, LogScreen)
        await pilot.press("3")
        hosts = app.screen
        assert isinstance(hosts, HostsScreen)
        await pilot.press("2")
        again = app.screen
        assert again.id == "log"
        assert again is app.get_screen("log")
        await pilot.press("2", "1")
        assert isinstance(app.screen, MonitorScreen)
        assert len(app.screen_stack) == 2


async def test_help_opens_over_the_monitor_and_goes() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        assert type(app.screen).__name__ == "HelpScreen"
        app.paint()  # the monitor below is still fed
        await pilot.press("escape")
        assert isinstance(app.screen, MonitorScreen)


async def test_one_key_tries_to_reach_the_host_now() -> None:
    app = app_of("disconnected")
    async with app.run_test() as pilot:
        await pilot.press("ctrl+r")
        assert app.source.retries == 1  # type: ignore[attr-defined]


async def test_another_host_ends_the_app_with_its_name() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("3", "j", "o")
        await pilot.pause()
    assert getattr(app.return_value, "name", None) == "other"


async def test_keys_of_the_operator_and_their_hints() -> None:
    app = app_of("disconnected", keys={"app.reconnect": "f5"})
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+r")
        assert app.source.retries == 0  # type: ignore[attr-defined]
        await pilot.press("f5")
        assert app.source.retries == 1  # type: ignore[attr-defined]
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "f5 tries now" in " ".join(text.split()).lower()


def test_keys_that_cannot_be_are_refused_before_anything_starts() -> None:
    with pytest.raises(KeymapError, match="no such action"):
        app_of(keys={"app.qiut": "x"})


async def test_an_unknown_theme_is_told_and_the_default_used() -> None:
    app = app_of(theme="ddtui-dork")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await pilot.pause()
        assert app.theme == "ddtui-dark"
        assert any("ddtui-dork" in str(each.message) for each in app._notifications)


async def test_a_theme_changed_while_running_recolours_the_panels() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        panel = app.screen.query_one("#gpus")
        before = panel.render_line(1)
        app.theme = "ddtui-light"
        await pilot.pause()
        await pilot.pause()
        after = panel.render_line(1)
        assert before.text == after.text
        assert before != after


class Terminal:
    """The app in a pseudo-terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.execv(sys.executable, [sys.executable, "-m", "tests.ui.show", *arguments])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def read_until(self, wanted: bytes, seconds: float = 30.0) -> bytes:
        """Output up to and with `wanted`; all there is when the program ends."""
        seen, end = b"", time.monotonic() + seconds
        while wanted not in seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    seen += os.read(self.fd, 65_536)
                except OSError:  # the program has ended
                    break
        return seen

    def status(self) -> int:
        """Exit status, as a shell shows it."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    terminal = Terminal("live")
    assert b"READY" in terminal.read_until(b"READY")
    os.kill(terminal.pid, number)
    rest = terminal.read_until(b"never comes")
    assert terminal.status() == 128 + number
    assert b"\x1b[?1049l" in rest  # the other screen
    assert b"\x1b[?1003l" in rest  # no reports of the mouse
    assert b"\x1b[?25h" in rest  # the cursor
