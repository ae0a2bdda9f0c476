"""ddtui, which gives itself a signal as soon as it has said something, before its next step.

    at_a_line.py SIGNAL PATTERN [ddtui's arguments ...]

A signal from outside comes some time after the line was read: by then it may be steps further on.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from pathlib import Path
from typing import IO

from ddtui.cli import main


class Watched(io.TextIOWrapper):
    """A standard stream that is looked through for lines that match a pattern."""

    def __init__(self, stream: IO[str], number: int, pattern: str) -> None:
        super().__init__(io.FileIO(os.dup(stream.fileno()), "w"), "utf-8", write_through=True)
        self._number = number
        self._pattern = re.compile(pattern)

    def write(self, text: str) -> int:
        """Write, and give the signal: once only."""
        written = super().write(text)
        if self._number and any(map(self._pattern.search, text.splitlines())):
            number, self._number = self._number, 0
            os.kill(os.getpid(), number)
        return written


def command(number: signal.Signals, pattern: str, *arguments: str) -> list[str]:
    """The command line of ddtui that ends, or is stopped, so."""
    file = str(Path(__file__))
    return [sys.executable, "-P", file, str(int(number)), pattern, *arguments]


if __name__ == "__main__":
    _, _number, _pattern, *sys.argv[1:] = sys.argv
    signal.signal(signal.SIGINT, signal.default_int_handler)  # though it be ignored out there
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.stdout, sys.stderr = (
        Watched(each, int(_number), _pattern) for each in (sys.stdout, sys.stderr)
    )
    main()
