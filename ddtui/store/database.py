"""Opens the database, brings its schema up to date, and words its failures.

Only `_for_sqlite`, `_write_ahead` and the words of failures know which database it is: the rest is
to run on PostgreSQL as well.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ddtui.store.errors import StoreError
from ddtui.store.lock_wait import Locked, LockWait
from ddtui.store.write_lock import begin_to_write

BUSY_SECONDS = 15.0
"""How long to wait for another process that is writing."""

_LITTLE_ROOM = 64 << 10
"""Bytes: SQLite needs half of them beside a database that is only read."""

MIGRATIONS = Path(__file__).parent / "migrations"

_ELSEWHERE = "Free or repair it, or name another folder in DDTUI_DATA_DIR"
_BY_CODE = {
    "NOTADB": ("it is no SQLite database", "Move the file away; ddtui makes a new one"),
    "CORRUPT": ("the file is damaged", "Move the file away; ddtui makes a new one"),
    "FULL": ("the disk is full", _ELSEWHERE),
    "READONLY": ("it may not be written", _ELSEWHERE),
    "CANTOPEN": ("it cannot be opened or created", _ELSEWHERE),
    "PERM": ("it may not be accessed", _ELSEWHERE),
    "IOERR": ("reading or writing failed", _ELSEWHERE),
    "BUSY": (
        f"another process has kept it locked for {BUSY_SECONDS:.0f} s",
        "End the process that holds it, or try again once it has ended",
    ),
}
_BY_ERRNO = {
    errno.ENOSPC: "FULL",
    errno.EDQUOT: "FULL",
    errno.EROFS: "READONLY",
    errno.EACCES: "PERM",
    errno.EPERM: "PERM",
}


def open_database(file: Path, *, own_folder: bool = False, wait: LockWait | None = None) -> Engine:
    """Open a database file with the present schema, for its owner's eyes only.

    Args:
        file: The database. It holds texts of units, with their secrets.
        own_folder: Whether its folder is ddtui's alone, and is closed to others as well.
        wait: For how long to wait, beyond BUSY_SECONDS, for another process that is writing.

    Raises:
        StoreError: It cannot be used.
    """
    with failures(f"cannot open the database {file}", file.parent):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(file)
        if own_folder:
            _close_to_others(file.parent)
        engine = create_engine(
            URL.create("sqlite", database=str(file)), connect_args={"timeout": BUSY_SECONDS}
        )
        _for_sqlite(engine, wait or LockWait())
        try:
            if not _ready(engine):
                # Alembic takes as much memory as all the rest of the store, and is rarely needed.
                from ddtui.store.migrate import migrate  # noqa: PLC0415

                migrate(engine, str(file))
        except BaseException:
            engine.dispose()
            raise
    return engine


def _make_private(file: Path) -> None:
    """Make the file, or take it and what SQLite keeps beside it from others' eyes."""
    try:
        # SQLite gives what it makes beside a database the database's own mode. One that is there
        # is not opened: closing it would drop the locks that this process has on it.
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for each in (file, *(Path(f"{file}{end}") for end in ("-wal", "-shm"))):
            _close_to_others(each)


def _close_to_others(path: Path) -> None:
    """Take all rights from others, where it is ours and they have any."""
    try:
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
    except FileNotFoundError:
        return  # none is beside it, or another process has just ended and taken it away


def _for_sqlite(engine: Engine, wait: LockWait) -> None:
    """Write-ahead log, and transactions that begin where SQLAlchemy begins them."""

    def connected(connection: DBAPIConnection, _record: object) -> None:
        # The driver's own transactions leave out DDL.
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            _write_ahead(cursor)
            # Each commit is on the disk before it is believed: what was queued or measured outlives
            # a power cut. Writes are few, and the flush costs them about a millisecond.
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.execute("PRAGMA foreign_keys=ON")
        finally:
            cursor.close()

    def begun(connection: Connection) -> None:
        if connection.get_execution_options().get("write", False):
            begin_to_write(connection, wait)
        else:
            connection.exec_driver_sql("BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)


def _write_ahead(cursor: DBAPICursor) -> None:
    """Switch to the write-ahead log; while another process does the same, SQLite does not wait."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes."""
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        yield connection


def _ready(engine: Engine) -> bool:
    """Whether the schema is the newest one this ddtui has."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return False
        revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return bool(revision == newest_revision())


def newest_revision() -> str:
    """Name of the newest migration, from the names of their files (`v0002_what.py`)."""
    files = (MIGRATIONS / "versions").glob("v[0-9]*_*.py")
    return max(file.name[1:].split("_", maxsplit=1)[0] for file in files)


@contextmanager
def failures(what: str, folder: Path | None = None) -> Iterator[None]:
    """Turn whatever the database raises into a StoreError.

    `folder` is asked whether its disk is full where SQLite says no more than that it failed: so it
    does when there is no room for what it keeps beside the database.
    """
    try:
        yield
    except OSError as error:
        code = _BY_ERRNO.get(error.errno or 0, "CANTOPEN")
        why, remedy = _BY_CODE[code]
        raise StoreError(what, f"{why} ({error.strerror or error})", remedy) from error
    except Locked as error:
        raise StoreError(what, str(error), _BY_CODE["BUSY"][1]) from error
    except DBAPIError as error:
        name = str(getattr(error.orig, "sqlite_errorname", "")).removeprefix("SQLITE_")
        code = name.split("_", maxsplit=1)[0]
        if code == "IOERR" and folder is not None and _is_full(folder):
            code = "FULL"
        why, remedy = _BY_CODE.get(code, ("", _ELSEWHERE))
        raise StoreError(
            what, f"{why} ({error.orig})" if why else str(error.orig), remedy
        ) from error
    except SQLAlchemyError as error:
        raise StoreError(what, str(error), _ELSEWHERE) from error


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _LITTLE_ROOM
    except OSError:
        return False
