"""Changes in the store: the audit, what is left to carry on, and several processes at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from ddtui.core.change_record import Carried, ChangeRecord, StepRecord
from ddtui.core.launch import Change, ChangeKind, Launch
from ddtui.store import Store, StoreError
from ddtui.store.database import open_database
from ddtui.store.tables import reconfigurations as table

UNIT = "llm.service"


def change(name: str, began: float = 1000.0, **fields: object) -> ChangeRecord:
    values: dict = {
        "id": name,
        "kind": "apply",
        "host": "ct200",
        "unit": UNIT,
        "who": "ada@desk",
        "began": began,
        "drop_in": f"text of {name}",
        "drop_in_hash": name,
    }
    return ChangeRecord(**{**values, **fields})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "s.db")
    yield opened
    opened.close()


def test_a_step_that_cannot_be_kept_leaves_the_record_as_it_was(store: Store) -> None:
    kept = store.reconfigurations
    kept.step(change("a", state=Carried(failed="a")), StepRecord("planned", 1001.0))
    nameless: Any = None
    with pytest.raises(StoreError):
        kept.step(change("a", state=Carried(failed="b")), StepRecord(nameless, 1002.0))
    (found,) = kept.history("ct200")
    assert found.state == Carried(failed="a")
    assert [each.step for each in found.steps] == ["planned"]


def test_a_change_is_kept_with_its_steps_and_what_it_needs_to_go_on(store: Store) -> None:
    kept = store.reconfigurations
    record = change(
        "a", state=Carried(run={"target": "a", "starts": 1}), changes=[{"name": "budget"}]
    )
    for at, step in ((1001.0, "planned"), (1002.5, "locked")):
        kept.step(record, StepRecord(step, at, "detail"))
    kept.put(change("a", state=Carried(run={"target": "a", "starts": 2})))
    store.close()
    again = Store.open(Path(store.where))
    found = again.reconfigurations.unfinished("ct200", UNIT)
    assert found is not None
    assert found.state == Carried(run={"target": "a", "starts": 2})
    assert [(each.step, each.at) for each in found.steps] == [
        ("planned", 1001.0),
        ("locked", 1002.5),
    ]
    assert found.phases()[0] == ("planned", 1.5)
    again.close()


def test_only_the_last_change_of_the_unit_can_be_unfinished(store: Store) -> None:
    kept = store.reconfigurations
    kept.put(change("a", 1000.0))
    kept.put(change("b", 2000.0, ending="in force", ended=2100.0))
    kept.put(change("c", 3000.0, unit="other.service"))
    kept.put(change("d", 4000.0, simulated=True))
    assert kept.unfinished("ct200", UNIT) is None
    other = kept.unfinished("ct200", "other.service")
    assert other is not None
    assert other.id == "c"
    assert kept.unfinished("elsewhere", UNIT) is None


def test_the_history_is_newest_first_and_of_one_host(store: Store) -> None:
    kept = store.reconfigurations
    for number, name in enumerate("abcd"):
        kept.put(change(name, 1000.0 * number))
    kept.put(change("e", 500.0, host="elsewhere"))
    kept.put(change("f", 500.0, simulated=True))
    assert [each.id for each in kept.history("ct200")] == ["d", "c", "b", "a"]
    assert [each.id for each in kept.history("ct200", most=2)] == ["d", "c"]
    assert [each.id for each in kept.history("ct200", simulated=True)] == ["f"]


def test_what_was_proved_last(store: Store) -> None:
    kept = store.reconfigurations
    assert kept.last_in_force("ct200", UNIT) is None
    kept.put(change("a", ending="in force", ended=1100.0))
    kept.put(change("b", ending="failed", ended=1200.0))
    assert kept.last_in_force("ct200", UNIT) == "text of a"
    kept.put(
        change("c", ending="rolled back", ended=1300.0, state=Carried(proved="what came back"))
    )
    kept.put(change("d", ending="degraded", ended=1400.0))
    assert kept.last_in_force("ct200", UNIT) == "what came back"
    assert kept.last_in_force("ct200", UNIT, simulated=True) is None


def test_a_clock_that_is_set_back_hides_no_change(store: Store) -> None:
    """The last one is that whose steps were kept last: it goes on, and is what was proved last."""
    kept = store.reconfigurations
    for name, at in (("a", 9000.0), ("b", 5000.0)):
        kept.step(change(name, at), StepRecord("planned", at))
        ended = change(name, at, ending="in force", ended=at + 1, drop_in=name)
        kept.step(ended, StepRecord("in force", at + 1))
    assert kept.last_in_force("ct200", "llm.service") == "b"
    kept.step(change("c", 1000.0), StepRecord("planned", 1000.0))
    assert [each.id for each in kept.history("ct200")] == ["c", "b", "a"]
    found = kept.unfinished("ct200", "llm.service")
    assert found is not None
    assert found.id == "c"


def test_what_an_older_ddtui_kept_is_read(store: Store) -> None:
    launch = Launch(("python", "--budget", "8"), {"A": "1"})
    moved = Change(ChangeKind.FLAG, "budget", "4", "8")
    state = Carried(before="0" * 32, expected=launch, deviated=(moved,), opaque=("$X",))
    store.reconfigurations.put(change("a", state=state))
    engine = open_database(Path(store.where))
    plain = {"before": "0" * 32, "opaque": ["$X"], "of_then": 1}
    plain |= {"expected": {"argv": ["python", "--budget", "8"], "environment": {"A": "1"}}}
    plain |= {"deviated": [{"kind": "flag", "name": "budget", "before": "4", "after": "8"}]}
    with engine.begin() as connection:
        row = connection.execute(select(table.c.record)).scalar_one()
        connection.execute(update(table).values(record={**row, "state": plain}))
    engine.dispose()
    (found,) = store.reconfigurations.history("ct200")
    assert found.state == state


def test_an_unreadable_change_costs_only_itself(store: Store) -> None:
    store.reconfigurations.put(change("a"))
    store.reconfigurations.put(change("b", 2000.0))
    engine = open_database(Path(store.where))
    with engine.begin() as connection:
        connection.execute(update(table).where(table.c.id == "b").values(record={"kind": 5}))
    engine.dispose()
    assert [each.id for each in store.reconfigurations.history("ct200")] == ["a"]


WRITER = """
import sys
from pathlib import Path
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.store import Store
store, who = Store.open(Path(sys.argv[1])), sys.argv[2]
for n in range(20):
    record = ChangeRecord(id=f"{who}{n}", kind="apply", host="ct200", unit="u", who=who, began=n)
    for step in ("planned", "locked", "written"):
        store.reconfigurations.step(record, StepRecord(step, float(n)))
"""


def test_two_processes_at_once_lose_no_step(store: Store) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, store.where, who]) for who in ("ada", "bob")
    ]
    assert [each.wait(timeout=60) for each in writers] == [0, 0]
    found = store.reconfigurations.history("ct200")
    assert {each.id for each in found} == {f"{who}{n}" for who in ("ada", "bob") for n in range(20)}
    assert {tuple(step.step for step in each.steps) for each in found} == {
        ("planned", "locked", "written")
    }
