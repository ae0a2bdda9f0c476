"""A bench or a runner that was killed: its measurement is told as interrupted, with its cells."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ddtui.app.results_source import StoredResults
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.core.measurement import Cell, Measurement, Spread
from ddtui.experiments.interrupted import CAUSE, LEFT
from ddtui.experiments.presence import presence_file, present
from ddtui.store import Store
from ddtui.ui.results_source import Asked
from tests.unit.cli.conftest import Run

BENCH = """
import sys
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Cell, Measurement, Spread
from ddtui.experiments.interrupted import this_process
from ddtui.store import Store
store = Store.open()
store.measurements.put(Measurement(
    id="a" * 32, host="demo", simulated=True, unit="llm.service", configuration="c", title="mine",
    plan=BenchPlan(concurrency=(1, 4)), began=1.0, owner=this_process(),
    cells=(Cell(concurrency=1, requests=4, user_rate=Spread(50.0, 49.0, 51.0)),),
))
print("measuring", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bench() -> Iterator[subprocess.Popen[str]]:
    """A process that is in the middle of a bench."""
    with subprocess.Popen(
        [sys.executable, "-c", BENCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "measuring\n"
        yield process
        process.kill()


def row_of(run: Run) -> tuple[str, str, int]:
    """State, cause and number of cells of the only row."""
    (row,) = json.loads(run("results", "demo", "--json").stdout)["rows"]
    return row["state"], row["cause"], len(row["cells"])


async def test_results_tell_it_as_interrupted(run: Run, bench: subprocess.Popen[str]) -> None:
    source = StoredResults("demo", simulated=True)
    assert row_of(run) == ("running", "", 1)
    (row,) = (await source.read(Asked())).view.rows
    before = await source.version()
    assert (row.state, await source.version()) == ("running", before)

    bench.kill()
    bench.wait()

    assert row_of(run) == ("partial", CAUSE, 1)
    assert await source.version() == before + 1  # so that the screen reads anew
    (row,) = (await source.read(Asked())).view.rows
    assert (row.state, row.cause) == ("partial", CAUSE)
    assert await source.version() == before + 1
    await source.close()


async def test_results_tell_what_a_killed_runner_has_left(run: Run) -> None:
    """As the queue's list does; the next runner carries it on."""
    store = Store.open()
    store.experiments.put([Experiment(id="e" * 32, host="demo", simulated=True, title="mine",
                                      request=Request())])  # fmt: skip
    taken = store.experiments.claim("demo", simulated=True, who="ada@desk 1", at=1.0)
    assert taken is not None
    store.experiments.step(taken.id, "measuring", who="ada@desk 1", at=2.0, measurement="m" * 32)
    store.measurements.put(
        Measurement(id="m" * 32, host="demo", simulated=True, unit="llm.service", title="mine",
                    configuration="c", plan=BenchPlan(concurrency=(1, 4)), began=2.0,
                    experiment=taken.id,
                    cells=(Cell(concurrency=1, requests=4, user_rate=Spread(50.0, 49.0, 51.0)),),
        )
    )  # fmt: skip
    store.close()
    source = StoredResults("demo", simulated=True)

    with present(presence_file("demo", simulated=True), "ada@desk", 1.0):
        before = await source.version()
        (row,) = (await source.read(Asked())).view.rows
        assert (row.state, row_of(run)[0]) == ("running", "running")

    assert await source.version() == before + 1  # so that the screen reads anew
    (row,) = (await source.read(Asked())).view.rows
    assert (row.state, row.cause) == ("partial", LEFT)
    assert row_of(run) == ("partial", LEFT, 1)
    await source.close()
