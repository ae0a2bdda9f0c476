"""The lock of those who write to the database: waited for, and who holds it. Knows SQLite only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ddtui.core.text import clean
from ddtui.store.lock_wait import Held, Locked, LockWait

_LOCKS = Path("/proc/locks")
_LONGEST_NAME = 40
_PLACES = (("-shm", 120, 120), ("", 0x4000_0000, 0x4000_01FF))
"""Where SQLite locks: the file beside the database, and its first and last byte for those who write
(sqlite.org/walformat.html#locks, sqlite.org/src/file/src/os.h)."""


def begin_to_write(connection: Connection, wait: LockWait) -> None:
    """Begin a transaction with the lock. Raises Locked."""
    began, since, told = time.monotonic(), time.time(), None
    while True:
        try:
            # At once: SQLite does not wait for the lock in the middle of a transaction.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except DBAPIError as error:
            if not str(getattr(error.orig, "sqlite_errorname", "")).startswith("SQLITE_BUSY"):
                raise
            waited, by = time.monotonic() - began, holder(str(connection.engine.url.database))
            if not wait.goes_on(waited):
                raise Locked(by, waited) from error
            if told is None or (by and by != told.by):
                told = Held(since, by, wait.seconds)
                wait.tell(told)
        else:
            if told is not None:
                wait.tell(None)
            return


def holder(database: str) -> str:
    """Who holds a database's lock, in words; empty where nobody does or the system does not tell.

    Read from /proc/locks (proc_locks(5)): opening the files would drop this process's own locks.
    """
    pid = next(_holders(database), 0)
    if not pid:
        return ""
    if pid == os.getpid():
        return "this process"
    try:
        text = Path("/proc", str(pid), "comm").read_text(errors="replace")
    except OSError:
        return f"process {pid}"
    return f"process {pid} ({clean(text.strip(), _LONGEST_NAME)})"


def _holders(database: str) -> Iterator[int]:
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return  # not Linux
    for end, first, last in _PLACES:
        try:
            status = Path(database + end).stat()
        except OSError:
            continue
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        for line in lines:
            words = line.split()
            if len(words) != 8 or words[3] != "WRITE" or words[5] != f"{device}:{status.st_ino}":
                continue
            below = words[7] != "EOF" and int(words[7]) < first
            if not below and int(words[6]) <= last and int(words[4]) > 0:
                yield int(words[4])
