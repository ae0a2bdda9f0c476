"""Queues under several processes at once, under kill -9, and brought over from an older ddtui."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
from alembic.command import upgrade
from alembic.config import Config
from sqlalchemy import create_engine, select

from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.load_history import LoadRecord
from ddtui.store import Store
from ddtui.store.database import MIGRATIONS
from ddtui.store.loads import Loads
from ddtui.store.reconfigurations import Reconfigurations
from ddtui.store.tables import measurements

HAMMER = """
import random, sys
from pathlib import Path
from ddtui.core.experiment import Place
from ddtui.core.launch import Request
from ddtui.experiments.queue import Queue, QueueProblem
from ddtui.store import Store
file, me = Path(sys.argv[1]), sys.argv[2]
random.seed(int(me))
store = Store.open(file)
queue = Queue(store, "ct200", False, me)
print(flush=True)
sys.stdin.readline()
mine = []
refused = 0
for number in range(25):
    draft = queue.draft(Request("", {"budget": number}), title=f"{me}-{number}")
    where = random.choice(["first", "last"])
    mine += queue.add([draft], Place(where))
    other = random.choice(mine).id
    try:
        waiting = [each.id for each in queue.listed() if each.state == "pending"]
        if waiting:
            queue.move(other, Place(random.choice(["before", "after"]), random.choice(waiting)))
        queue.edit(other, Request("", {"topk": number}))
    except QueueProblem:
        refused += 1  # somebody has taken it up meanwhile
    queue.annotate(other, note=f"{number} by {me}")
    if number % 2:
        taken = store.experiments.claim("ct200", simulated=False, who=me, at=1.0)
        print("claimed", taken.id)
print("refused", refused)
store.close()
"""


def processes(program: str, count: int, *arguments: str) -> list[str]:
    """What programs print that all begin at once."""
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for each in begun:
        assert each.stdout is not None
        assert each.stdout.readline() == "\n"  # it has imported all and waits
    for each in begun:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    printed = []
    for each in begun:
        output, errors = each.communicate(timeout=100)
        assert each.returncode == 0, errors
        printed.append(output)
    return printed


def test_four_processes_at_once_lose_nothing_and_take_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    Store.open(file).close()
    lines = "".join(processes(HAMMER, 4, str(file))).splitlines()
    claimed = [line.removeprefix("claimed ") for line in lines if line.startswith("claimed ")]
    store = Store.open(file)
    found = store.experiments.queue("ct200", simulated=False)
    assert Counter(each.title.split()[0] for each in found) == Counter(
        f"{who}-{number}" for who in range(4) for number in range(25)
    )
    assert len(claimed) == 4 * 12
    assert len(set(claimed)) == len(claimed)
    running = {each.id for each in found if each.state is ExperimentState.RUNNING}
    assert running == set(claimed)
    assert all(each.attempts == 1 for each in found if each.id in running)
    # What was edited has all its values, and what runs was not edited after it was taken up.
    for each in found:
        done = [event.what for event in store.experiments.log(each.id)]
        assert done[0] == "added"
        assert ("topk" in each.request.knobs) == ("edited" in done)
        after = done[done.index("taken up") :] if "taken up" in done else []
        assert not {"edited", "moved"} & set(after)
    again = [each.id for each in store.experiments.queue("ct200", simulated=False)]
    assert again == [each.id for each in found]
    store.close()


# ---- kill -9 ------------------------------------------------------------------------------------

RUNNER = """
import sys
from pathlib import Path
import msgspec
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ExperimentState
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.store import Store
store = Store.open(Path(sys.argv[1]))
kept, who = store.experiments, sys.argv[2]
print(flush=True)
left = kept.running("ct200", simulated=False)
for number in range(10_000):
    if left:
        mine = kept.take_over(left.pop().id, who=who, at=float(number))
    else:
        mine = kept.claim("ct200", simulated=False, who=who, at=float(number))
    if mine is None:
        sys.exit(5)
    for step in ("planning", "loading", "measuring", "recording"):
        mine = kept.step(mine.id, step, who=who, at=float(number), measurement=f"m{mine.id}")
    measurement = Measurement(
        id=mine.measurement, host="ct200", simulated=False, unit="u", configuration=mine.id,
        plan=BenchPlan(), experiment=mine.id, state=MeasurementState.COMPLETE, began=0.0,
    )
    done = msgspec.structs.replace(mine, state=ExperimentState.DONE)
    store.measurements.finish(done, measurement, who=who, at=float(number))
"""


def test_kill_9_at_any_moment_leaves_a_queue_that_goes_on(tmp_path: Path) -> None:
    file, count, random_ = tmp_path / "s.db", 150, random.Random(7)
    store = Store.open(file)
    values = {"host": "ct200", "title": "t", "request": {}}
    store.experiments.put(
        [msgspec.convert({**values, "id": f"{n:04}"}, Experiment) for n in range(count)]
    )
    kills = 0
    for turn in range(40):
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(file), f"runner {turn}"], stdout=subprocess.PIPE
        )
        with runner:
            assert runner.stdout is not None
            assert runner.stdout.readline() == b"\n"
            if turn < 12:
                # The moment is to be any; nothing is waited for.
                time.sleep(random_.uniform(0.0, 0.06))
                runner.kill()
            code = runner.wait(timeout=60)
        kills += code == -signal.SIGKILL
        _is_whole(store)
        if code == 5:
            break
    assert kills >= 5
    found = store.experiments.queue("ct200", simulated=False)
    assert [each.state for each in found] == [ExperimentState.DONE] * count
    assert {each.attempts for each in found} == {1}
    complete = store.measurements.of_host("ct200", simulated=False)
    assert sorted(each.experiment for each in complete) == sorted(each.id for each in found)
    store.close()


def _is_whole(store: Store) -> None:
    """One at most runs, and what is done, and only that, has its measurement."""
    found = store.experiments.queue("ct200", simulated=False)
    assert sum(each.state is ExperimentState.RUNNING for each in found) <= 1
    done = {each.measurement for each in found if each.state is ExperimentState.DONE}
    with store._engine.connect() as connection:
        kept = connection.scalars(select(measurements.c.id)).all()
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    assert set(kept) == done
    assert len(found) == 150


# ---- migration ----------------------------------------------------------------------------------


def older_database(file: Path) -> None:
    """A database as version 0002 left it, with a load and a change."""
    engine = create_engine(f"sqlite:///{file}")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        upgrade(config, "0002")
    load = LoadRecord(model="m", seconds=1.0, invocation="i")
    Loads(engine, "old").add("ct200", "u", load)
    change = ChangeRecord(id="c", kind="apply", host="ct200", unit="u", who="w", began=1.0)
    Reconfigurations(engine, "old").step(change, StepRecord("planned", 1.0))
    engine.dispose()


def test_an_older_database_keeps_all_that_it_has(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    older_database(file)
    with sqlite3.connect(file) as connection:
        before = "\n".join(connection.iterdump())
    connection.close()
    assert "experiments" not in before
    store = Store.open(file)
    assert [each.invocation for each in store.loads.history("ct200").records] == ["i"]
    (kept,) = store.reconfigurations.history("ct200")
    assert [each.step for each in kept.steps] == ["planned"]
    assert store.experiments.queue("ct200", simulated=False) == []
    store.close()
    with sqlite3.connect(file) as connection:
        after = list(connection.iterdump())
    connection.close()
    rows = [line for line in before.splitlines() if line.startswith("INSERT")]
    assert len(rows) == 4
    assert [line for line in rows if line not in after] == [
        "INSERT INTO \"alembic_version\" VALUES('0002');"
    ]


OPENER = """
import sys
from pathlib import Path
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.store import Store, database, experiments  # imported before all begin at once
import ddtui.store.migrate
print(flush=True)
sys.stdin.readline()
store = Store.open(Path(sys.argv[1]))
new = Experiment(id=sys.argv[2], host="ct200", title="t", request=Request())
store.experiments.put([new])
store.close()
"""


def test_processes_that_bring_an_older_one_over_at_once(tmp_path: Path) -> None:
    older_database(tmp_path / "old.db")
    for turn in range(3):
        file = tmp_path / f"{turn}.db"
        shutil.copy(tmp_path / "old.db", file)
        processes(OPENER, 2, str(file))
        store = Store.open(file)
        assert len(store.experiments.queue("ct200", simulated=False)) == 2
        assert store.experiments.version("ct200", simulated=False) == 2
        assert len(store.loads.history("ct200")) == 1
        store.close()
