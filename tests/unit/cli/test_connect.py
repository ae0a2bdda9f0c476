"""`ddtui connect` on a real terminal, with the simulated host."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ddtui.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import Run

ALTERNATE_SCREEN_OFF = b"\x1b[?1049l"
MOUSE_ON = b"\x1b[?1000h"


class Terminal:
    """A process on a terminal of its own; `seen` is all that it wrote."""

    def __init__(self, *arguments: str) -> None:
        self.seen = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, "-m", "ddtui", *arguments])
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._more = asyncio.Event()
        self._ended = self._reaped = False
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux's way to say that the process has let go of the terminal
            data = b""
        if not data:
            self._ended = True
            asyncio.get_running_loop().remove_reader(self._master)
        self.seen += data
        self._more.set()

    async def until(self, text: bytes) -> None:
        """Wait until something has been written."""
        async with asyncio.timeout(30):
            while text not in self.seen:
                assert not self._ended, self.seen[-2000:]
                self._more.clear()
                await self._more.wait()

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def modes(self) -> list[object]:
        """How the terminal is set (Linux tells it at this end, too)."""
        return termios.tcgetattr(self._master)

    async def end(self) -> int:
        """Wait for the end. Returns the exit status."""
        async with asyncio.timeout(30):
            while not self._ended:
                self._more.clear()
                await self._more.wait()
            _, status = await asyncio.to_thread(os.waitpid, self.pid, 0)
        self._reaped = True
        self.modes_at_end = self.modes()
        os.close(self._master)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """End the process if a test has failed before its end."""
        if not self._reaped:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


Start = Callable[..., Terminal]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts `ddtui` on a terminal; ended with the test at the latest."""
    started: list[Terminal] = []

    def call(*arguments: str) -> Terminal:
        started.append(Terminal(*arguments))
        return started[-1]

    yield call
    for terminal in started:
        terminal.kill()


async def test_the_monitor_opens_answers_and_leaves_the_terminal_as_it_was(
    start: Start, folders: Path
) -> None:
    terminal = start("connect", "demo", "--no-mouse")
    await terminal.until(b"SIMULATED")
    terminal.type(b"q")
    assert await terminal.end() == ExitCode.OK
    assert ALTERNATE_SCREEN_OFF in terminal.seen
    assert MOUSE_ON not in terminal.seen
    log = folders.parent / "state" / "ddtui" / "log" / "ddtui.log"
    assert log.stat().st_mode & 0o077 == 0


async def test_a_signal_ends_it_in_good_order(start: Start) -> None:
    terminal = start("connect", "demo", "--scenario", "idle", "--read-only")
    await terminal.until(b"SIMULATED")
    os.kill(terminal.pid, signal.SIGTERM)
    assert await terminal.end() == 128 + signal.SIGTERM
    assert ALTERNATE_SCREEN_OFF in terminal.seen
    assert MOUSE_ON in terminal.seen


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--scenario", "servin"], b"did you mean 'serving'?"),
        (["local", "--scenario", "idle"], b"--scenario is for the host 'demo' only"),
        (["local", "--unit", "x.socket"], b"is no name of a service"),
    ],
)
async def test_what_cannot_be_is_told_before_the_screen_opens(
    start: Start, arguments: list[str], told: bytes
) -> None:
    terminal = start("connect", *arguments)
    assert await terminal.end() == ExitCode.USAGE
    assert told in terminal.seen
    assert b"\x1b[?1049h" not in terminal.seen


@pytest.mark.parametrize(
    "typed",
    [
        b"\xe9",
        b"\x1b[99999999999u",
        b"\x1b[<999999999999;1;1M",
        b"\x1b[<0;99999999999;99999999999M",
        b"\x1b[48;99999999999;99999999999;0;0t",
        b"\x1b[97;1;55296u",
    ],
)
async def test_no_byte_on_the_keyboard_takes_the_app_away(start: Start, typed: bytes) -> None:
    terminal = start("connect", "demo", "--scenario", "idle")
    await terminal.until(b"SIMULATED")
    terminal.type(typed + b"2")  # the key after it is answered
    await terminal.until(b"FOLLOW")
    terminal.type(b"q")
    assert await terminal.end() == ExitCode.OK
    assert b"Traceback" not in terminal.seen


@pytest.mark.parametrize("signals", [["CONT"], ["STOP", "CONT"], ["TSTP", "CONT"]])
async def test_job_control_leaves_one_reader_and_a_terminal_as_it_was(
    start: Start, signals: list[str]
) -> None:
    terminal = start("connect", "demo", "--scenario", "idle")
    before = terminal.modes()
    await terminal.until(b"SIMULATED")
    for _ in range(2):
        for name in signals:
            terminal.seen = b""
            os.kill(terminal.pid, getattr(signal, f"SIG{name}"))
            if name != "CONT":
                await asyncio.to_thread(os.waitid, os.P_PID, terminal.pid, os.WSTOPPED)
        await terminal.until(b"SIMULATED")  # all is painted again
    terminal.type(b"2")
    await terminal.until(b"FOLLOW")
    terminal.type(b"q")
    assert await terminal.end() == ExitCode.OK
    assert terminal.modes_at_end == before


def test_a_wrong_theme_or_scenario_is_told_first_even_without_a_terminal(run: Run) -> None:
    theme = run("connect", "demo", "--theme", "ddtui-drak")
    assert theme.exit_code == ExitCode.USAGE
    assert "--theme: there is no theme 'ddtui-drak'; did you mean 'ddtui-dark'?" in theme.stderr
    scenario = run("connect", "demo", "--scenario", "lodaing")
    assert scenario.exit_code == ExitCode.USAGE
    assert "no such scenario: lodaing; did you mean 'loading'?" in scenario.stderr
    assert "for the host 'demo' only" in run("connect", "a", "--scenario", "loading").stderr
