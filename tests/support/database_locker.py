"""Another process that keeps a database locked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


class Locker:
    """Holds the lock of those who write until it is told to let go."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def let_go(self) -> None:
        """Free it; returns once that is done."""
        self._process.communicate("", timeout=30)


@contextmanager
def database_locked(database: Path | str) -> Iterator[Locker]:
    """The database is locked within the context, or until the locker lets go."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    try:
        yield Locker(process)
    finally:
        process.kill()
        process.wait()
        for each in (process.stdin, process.stdout):
            if each is not None:
                each.close()
