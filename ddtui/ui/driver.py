"""The terminal, as Textual drives it on Unix, mended: no byte and no signal takes the app away.

Textual 8.2.8 decodes the keyboard strictly, which ends the app at one byte that is no UTF-8 (what
its parser makes of the rest: `ddtui.ui.terminal_input`); and it starts anew at SIGCONT whether or
not it had stopped, which leaves two threads reading the keyboard and a shell without echo.
"""

from __future__ import annotations

import os
import selectors
import signal
import termios
import tty
from codecs import getincrementaldecoder
from collections.abc import Iterable

from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from ddtui.ui.terminal_input import TolerantParser

_CHUNK = 1 << 12
_LOOK = 0.1
"""Seconds between two looks whether the app ends, or an escape key stands alone."""


class TerminalDriver(LinuxDriver):
    """Reads what cannot be decoded as U+FFFD, and goes on after SIGSTOP and SIGCONT."""

    _suspended = False

    def run_input_thread(self) -> None:
        """Wait for input and pass it on, until the app ends or the terminal is gone."""
        parser = TolerantParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_LOOK):
                    data = _read(self.fileno)
                    if not data:
                        self._app.call_later(self._app.exit, None, 128 + signal.SIGHUP)
                        return
                    text = decode(data)
                    if text:  # no whole character yet; feeding nothing means the end
                        self._pass_on(parser.feed(text))
                self._pass_on(parser.tick())

    def _pass_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)

    # ---- job control ------------------------------------------------------------------------

    def _sigtstp_application(self, *_: object) -> None:
        if self._auto_restart and not self._suspended:
            self.suspend_application_mode()
            self._suspended = self._must_signal_resume = True
        os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        if not self._auto_restart:
            return
        if self._suspended:
            if not _in_foreground(self.fileno):
                os.kill(os.getpid(), signal.SIGSTOP)  # `bg`: nothing can be shown there
                return
            self._suspended = False
            self.resume_application_mode()
        elif _in_foreground(self.fileno):
            self._loop.call_soon_threadsafe(self._take_terminal_back)

    def _take_terminal_back(self) -> None:
        """After SIGSTOP nobody could restore the terminal: a shell has used it meanwhile."""
        if self._writer_thread is None or self._key_thread is None or self.exit_event.is_set():
            return
        try:
            modes = termios.tcgetattr(self.fileno)
            modes[tty.LFLAG] = self._patch_lflag(modes[tty.LFLAG])
            modes[tty.IFLAG] = self._patch_iflag(modes[tty.IFLAG])
            modes[tty.CC][termios.VMIN] = 1
            termios.tcsetattr(self.fileno, termios.TCSANOW, modes)
        except termios.error:  # no terminal any more: the input thread finds that, and ends the app
            return
        self.write("\x1b[?1049h\x1b[?25l\x1b[?1004h")  # other screen, no cursor, tell of focus
        self._enable_mouse_support()
        self._enable_bracketed_paste()
        self._disable_line_wrap()
        self.flush()
        self._app.refresh(layout=True)


def _read(descriptor: int) -> bytes:
    """What there is to read; nothing when the terminal is gone."""
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # Linux tells so that the other end is closed
        return b""


def _in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True
