"""How long a store waits for another process that keeps its database locked, and who hears of it.

Importing this is cheap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

Heard = Callable[["Held | None"], None]


class Held(msgspec.Struct, frozen=True):
    """Another process keeps the database locked."""

    since: float
    """Unix seconds at which it was found locked first."""
    by: str
    """`process 123 (sqlite3)`; empty where the system does not tell."""
    seconds: float
    """For which it is waited for at most."""


class LockWait:
    """For how long to wait beyond SQLite's own time-out."""

    def __init__(self, seconds: float = 0.0) -> None:
        """`seconds`: at most, from the first try on."""
        self.seconds = seconds
        self.tell: Heard = _nobody_hears
        self._ended = threading.Event()

    @contextmanager
    def heard_by(self, listener: Heard) -> Iterator[None]:
        """Tell somebody of it, within the context.

        The listener is called in the thread that waits: with what is known, again where the holder
        is another one, and with None once the database is free.
        """
        self.tell = listener
        try:
            yield
        finally:
            self.tell = _nobody_hears

    def end(self) -> None:
        """Wait no more, from now on."""
        self._ended.set()

    def goes_on(self, waited: float) -> bool:
        """Whether to try once more after so many seconds."""
        return waited < self.seconds and not self._ended.is_set()


def _nobody_hears(_held: Held | None) -> None:
    return


class Locked(Exception):
    """The database was locked for longer than it was waited for."""

    def __init__(self, by: str, seconds: float) -> None:
        lasted = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
        super().__init__(f"{by or 'another process'} has kept it locked for {lasted}")
