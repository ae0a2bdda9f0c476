"""Another process keeps the database locked: it is waited for, and named."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ddtui.store import Store, StoreError, database
from ddtui.store.lock_wait import Held, LockWait
from ddtui.store.write_lock import holder
from tests.support.database_locker import database_locked

TRY = 0.1
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own time-out is short."""
    monkeypatch.setattr(database, "BUSY_SECONDS", TRY)


@contextmanager
def opened(folder: Path, wait: LockWait | None = None) -> Iterator[Store]:
    store = Store.open(folder / "s.db", wait=wait)
    try:
        yield store
    finally:
        store.close()


def write(store: Store) -> bool:
    return store.experiments.change_settings("gpu", simulated=False, paused=True).paused


def test_it_is_waited_for_and_told(tmp_path: Path) -> None:
    heard: list[Held | None] = []
    wait = LockWait(60.0)
    with opened(tmp_path, wait) as store, database_locked(store.where) as locker:

        def listener(held: Held | None) -> None:
            heard.append(held)
            if held is not None:
                locker.let_go()

        with wait.heard_by(listener):
            assert write(store)
        first, last = heard
        assert first is not None
        assert first.seconds == 60.0
        assert last is None
        if sys.platform == "linux":
            assert first.by.startswith(f"process {locker.pid} (python")


@linux
def test_the_error_names_who_holds_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store, database_locked(store.where) as locker:
        with pytest.raises(StoreError, match=rf"process {locker.pid} \(python.* locked for 0 s"):
            write(store)
        assert store.experiments.settings("gpu", simulated=False).paused is False  # it can be read


def test_it_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with (
        opened(tmp_path, LockWait(3 * TRY)) as store,
        database_locked(store.where),
        pytest.raises(StoreError, match="has kept it locked"),
    ):
        write(store)


@pytest.mark.parametrize("end", [LockWait.end, lambda wait: None], ids=["ended", "waiting"])
def test_waiting_can_be_ended(tmp_path: Path, end: Callable[[LockWait], None]) -> None:
    """Where it is not ended, it goes on until the lock is free."""
    wait, told = LockWait(3600.0), threading.Event()
    with opened(tmp_path, wait) as store, database_locked(store.where) as locker:
        found: list[object] = []

        def work() -> None:
            try:
                found.append(write(store))
            except StoreError as error:
                found.append(error)

        with wait.heard_by(lambda _: told.set()):
            thread = threading.Thread(target=work)
            thread.start()
            assert told.wait(30)
            end(wait)
            if end is not LockWait.end:
                locker.let_go()
            thread.join(30)
    assert [isinstance(each, StoreError) for each in found] == [end is LockWait.end]


@linux
def test_a_lock_of_this_process_is_told_from_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        assert holder(store.where) == ""
        engine = store._engine
        with database.writing(engine):
            assert holder(store.where) == "this process"
        with database_locked(store.where) as locker:
            assert f"process {locker.pid} " in holder(store.where)
    assert holder(str(tmp_path / "none")) == ""
