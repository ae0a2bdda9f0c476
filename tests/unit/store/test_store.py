"""The store, on real files, with real processes."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from ddtui.core.events import Phase
from ddtui.core.load_history import LoadRecord, PhaseSeconds
from ddtui.store import Store, StoreError, data_folder, database
from ddtui.store.database import open_database
from ddtui.store.tables import metadata


def record(invocation: str = "a" * 32, **changes: object) -> LoadRecord:
    values: dict = {
        "model": "target",
        "drafter": "drafter",
        "tp": 8,
        "flags": {"dtype": "auto"},
        "invocation": invocation,
        "began": 1000.0,
        "seconds": 60.5,
        "phases": (PhaseSeconds(Phase.STARTING, 20.0), PhaseSeconds(Phase.TARGET, 40.5)),
        "longest_gaps": {"starting": 4.0},
        "memory_target": (7, 8),
        "curve": (0.0, 0.5, 1.0),
    }
    return LoadRecord(**{**values, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with_file = Store.open(tmp_path / "new folder" / "s.db")
    yield with_file
    with_file.close()


def test_a_load_comes_back_as_it_was(store: Store) -> None:
    store.loads.add("ct200", "sglang.service", record())
    assert list(store.loads.history("ct200").records) == [record()]
    assert len(store.loads.history("another")) == 0


def test_it_is_there_after_reopening(store: Store) -> None:
    store.loads.add("ct200", "u", record())
    store.close()
    again = Store.open(Path(store.where))
    assert len(again.loads.history("ct200")) == 1
    again.close()


def modes(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}


def test_only_its_owner_may_read_it(store: Store) -> None:
    store.loads.add("ct200", "u", record())
    folder = Path(store.where).parent
    assert modes(folder) == {"s.db": 0o600, "s.db-wal": 0o600, "s.db-shm": 0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_one_that_others_could_read_is_closed_to_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DDTUI_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "ddtui"
    first = Store.open()
    first.loads.add("ct200", "u", record())
    folder.chmod(0o755)
    for each in folder.iterdir():
        each.chmod(0o644)
    second = Store.open()
    assert len(second.loads.history("ct200")) == 1
    assert set(modes(folder).values()) == {0o600}
    assert len(modes(folder)) == 3
    assert folder.stat().st_mode & 0o777 == 0o700
    second.close()
    first.close()


def test_a_named_folder_keeps_its_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    Store.open().close()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert set(modes(tmp_path).values()) == {0o600}


def test_the_same_invocation_is_kept_once_and_the_fuller_one_stays(store: Store) -> None:
    store.loads.add("ct200", "u", record())
    store.loads.add("ct200", "u", record(curve=(), memory_target=()))  # seen only from its log
    assert [each.curve for each in store.loads.history("ct200").records] == [(0.0, 0.5, 1.0)]
    store.loads.add("ct200", "u", record(seconds=61.0))
    assert [each.seconds for each in store.loads.history("ct200").records] == [61.0]


def test_simulated_loads_stay_apart(store: Store) -> None:
    store.loads.add("demo", "u", record())
    store.loads.add("demo", "u", record("b" * 32), simulated=False)
    simulated = store.loads.history("demo").records
    real = store.loads.history("demo", simulated=False).records
    assert [each.invocation[0] for each in simulated] == ["a"]
    assert [each.invocation[0] for each in real] == ["b"]


def test_an_unreadable_row_costs_only_itself(store: Store) -> None:
    store.loads.add("ct200", "u", record())
    store.loads.add("ct200", "u", record("b" * 32, began=2000.0))
    with sqlite3.connect(store.where) as connection:
        connection.execute("UPDATE loads SET record='{\"model\": 5}' WHERE began > 1500")
    connection.close()
    assert [each.invocation[0] for each in store.loads.history("ct200").records] == ["a"]


def test_migrations_lead_to_the_tables_of_the_code(tmp_path: Path) -> None:
    engine = open_database(tmp_path / "s.db")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    engine.dispose()


def test_the_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path / "d ü%?"))
    store = Store.open()
    store.loads.add("ct200", "u", record())
    store.close()
    assert [path.name for path in (tmp_path / "d ü%?").glob("*.sqlite3")] == ["ddtui.sqlite3"]
    assert data_folder({}).name == "ddtui"


# ---- failures -----------------------------------------------------------------------------------


def refused(path: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        Store.open(path)
    assert caught.value.what
    assert caught.value.why
    assert caught.value.remedy
    return caught.value


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    file.write_bytes(b"not a database at all, and long enough to be looked at" * 100)
    assert "no SQLite database" in refused(file).why
    assert file.read_bytes().startswith(b"not a database")


def test_a_damaged_database(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    store = Store.open(file)
    for number in range(40):
        store.loads.add("ct200", "u", record(f"{number:032}"))
    store.close()
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)
    with pytest.raises(StoreError, match=r"damaged|Move the file away"):
        Store.open(file).loads.history("ct200")


def test_a_newer_schema(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    Store.open(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num='9999'")
    connection.close()
    error = refused(file)
    assert "newer" in error.why
    assert "Upgrade" in error.remedy


def test_another_programs_database(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE bookmarks (id INTEGER)")
    connection.close()
    assert "bookmarks" in refused(file).why


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "s.db").mkdir()
    assert "cannot be opened" in refused(tmp_path / "s.db").why
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file" / "s.db")


def test_a_full_disk(tmp_path: Path) -> None:
    """A page limit gives the very error of a full disk."""
    store = Store.open(tmp_path / "s.db")
    with store._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=1")
    with pytest.raises(StoreError, match="disk is full"):
        store.loads.add("ct200", "u", record(curve=(0.5,) * 20_000))
    store.close()


@pytest.mark.parametrize("full", [True, False])
def test_no_room_for_what_is_kept_beside_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """SQLite only says then that reading or writing failed."""

    def fails(_cursor: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
        raise error

    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(database, "_write_ahead", fails)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0 if full else 1 << 30))
    why = refused(tmp_path / "s.db").why
    assert ("the disk is full" in why) == full
    assert ("reading or writing failed" in why) == (not full)


def test_a_folder_where_not_even_root_may_write() -> None:
    assert "DDTUI_DATA_DIR" in refused(Path("/sys/ddtui/s.db")).remedy


def test_a_database_that_may_not_be_written(store: Store) -> None:
    with store._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
    with pytest.raises(StoreError, match="may not be written"):
        store.loads.add("ct200", "u", record())


# ---- several processes --------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from ddtui.core.load_history import LoadRecord
from ddtui.store import Store, database, loads  # imported before all begin at once
print(flush=True)
sys.stdin.readline()
store = Store.open(Path(sys.argv[1]))
for number in range(25):
    name = f"{sys.argv[2]}-{number}"
    store.loads.add("ct200", "u", LoadRecord(model="m", seconds=1.0, invocation=name))
store.close()
"""


def test_processes_that_open_it_first_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(file), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "\n"  # it has imported all and waits
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    store = Store.open(file)
    assert len(store.loads.history("ct200")) == 100
    store.close()


def test_importing_it_is_cheap() -> None:
    program = "import sys, ddtui.store; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_database_that_is_up_to_date_is_opened_without_alembic(tmp_path: Path) -> None:
    Store.open(tmp_path / "s.db").close()
    script = (
        "import sys; from pathlib import Path; from ddtui.store import Store\n"
        "Store.open(Path(sys.argv[1])).close(); print('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "s.db")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
