"""Finds what failed in SGLang's log: tracebacks, refused arguments, wrappers.

A wrapper only reports that something else failed (`Received sigquit from a child process`); the
root is the exception before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddtui.core.events import Failed
from ddtui.core.redact import redact_text
from ddtui.core.text import clean
from ddtui.engines.sglang.log_lines import EXCEPTION, without_torch_rank

TRACEBACK = "Traceback (most recent call last):"
_LONGEST_TRACEBACK = 2000
_LONGEST_MESSAGE = 1000
_MOST_PROCESSES = 256

WRAPPERS = (
    "Received sigquit from a child process",
    "SIGQUIT received",
    "Subprocess ",
    "Rank ",
    "Watchdog timeout",
)
"""Beginnings of stamped messages that report a failure whose cause is told elsewhere."""

_ORDERLY = ("KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit")
"""Exceptions by which a process that was told to stop ends."""

_REFUSED = re.compile(
    r"(?:usage: )?[\w./-]{1,200}(?: [\w-]{1,40}){0,2}: error: (?P<message>.+)", re.DOTALL
)
"""argparse: `sglang serve: error: unrecognized arguments: --x`; `launch_server.py: error: ...`."""


@dataclass
class _Traceback:
    lines: int = 0
    concerns_engine: bool = True
    """False where it tells of one request, or of an object's finalizer."""
    is_consequence: bool = False
    """True where another exception is said to have caused this one."""
    rank: str = ""


class Failures:
    """Follows the tracebacks of every process of one invocation."""

    def __init__(self) -> None:
        self._open: dict[int | None, _Traceback] = {}
        self._next: dict[int | None, _Traceback] = {}
        """What a line before the header says of the traceback to come."""
        self._usage: set[int | None] = set()

    def began(self, pid: int | None, rank: str = "") -> None:
        """A traceback's header was seen."""
        if len(self._open) >= _MOST_PROCESSES:
            self._open.clear()
        traceback = self._next.pop(pid, None) or _Traceback()
        traceback.rank = rank
        self._open[pid] = traceback

    def expect_harmless(self, pid: int | None) -> None:
        """The next traceback of a process is none of the engine's own failures."""
        if len(self._next) >= _MOST_PROCESSES:
            self._next.clear()
        self._next[pid] = _Traceback(concerns_engine=False)

    def bare(self, text: str, stamp: float, pid: int | None) -> Failed | None:
        """Take a line without a stamp."""
        text = without_torch_rank(text)
        if text.startswith(TRACEBACK):
            self.began(pid)
            return None
        if pid in self._open:
            return self._within(text, stamp, pid)
        if text.startswith("The above exception was the direct cause"):
            self._next[pid] = _Traceback(is_consequence=True)
        elif text.startswith("Exception ignored in"):
            self.expect_harmless(pid)
        elif text.startswith("usage: "):
            self._usage.add(pid)
        elif ": error: " in text[:260]:
            return self._refused(text, stamp, pid)
        elif text.startswith(("terminate called", "Fatal Python error:")):
            return failed(text, stamp, wrapper=text.startswith("terminate"))
        elif text.startswith("  what():"):
            return failed(text[9:].strip(), stamp)
        return None

    def _within(self, text: str, stamp: float, pid: int | None) -> Failed | None:
        traceback = self._open[pid]
        traceback.lines += 1
        if traceback.lines > _LONGEST_TRACEBACK:
            del self._open[pid]
            return None
        if not text or text[0].isspace():
            return None
        name = text.partition(":")[0]
        if EXCEPTION.match(text) is None or len(name) > 200 or EXCEPTION.fullmatch(name) is None:
            return None  # another process's line, written into the middle
        del self._open[pid]
        if not traceback.concerns_engine or name.rpartition(".")[2] in _ORDERLY:
            return None
        return failed(text, stamp, traceback.rank, wrapper=traceback.is_consequence)

    def _refused(self, text: str, stamp: float, pid: int | None) -> Failed | None:
        match = _REFUSED.match(text)
        if match is None:
            return None
        if pid not in self._usage and not text.startswith(("sglang", "launch_server", "__main__")):
            return None
        return failed(match["message"], stamp)


def failed(message: str, stamp: float, rank: str = "", *, wrapper: bool = False) -> Failed:
    """A failure with its message made safe to show."""
    text = redact_text(clean(message.strip(), _LONGEST_MESSAGE))
    return Failed(stamp=stamp, rank=rank, message=text, wrapper=wrapper)
