"""Results of a made-up campaign, kept in a real store: every kind of row that the screen shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ddtui.app.results_source import StoredResults
from ddtui.bench.spread import spread
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, Match
from ddtui.core.launch import Request
from ddtui.core.measurement import (
    Cell,
    CodingResult,
    Measurement,
    MeasurementState,
    Provenance,
    Spread,
    Verdict,
)
from ddtui.experiments.results import ResultsView, results_view
from ddtui.experiments.results_files import Form
from ddtui.store import Store
from ddtui.ui.app import DdtuiApp
from ddtui.ui.results_source import Asked, Found, ResultsSource
from ddtui.ui.source import ControlProblem, UiSettings
from tests.ui.control_world import FakeControl
from tests.ui.scenes import HOSTILE, NOW, SceneSource

HOST = "ct200"
PLAN = BenchPlan(name="usual", concurrency=(1, 4, 16))
LONG = BenchPlan(name="long", concurrency=(1,), prompts="long", output_tokens=1024)
JITTER = (0.994, 1.0, 1.005)
TASKS = (
    *("intervals", "lru", "parser", "paths", "primes"),
    *("roman", "scheduler", "sudoku", "tokens", "trie"),
)
RATES = {
    (4, 4): (158.2, 3.61),
    (4, 6): (157.1, 3.63),
    (8, 4): (170.4, 4.30),
    (8, 6): (171.6, 4.36),
    (12, 4): (149.3, 4.81),
    (12, 6): (151.9, 4.93),
    (16, 4): (147.5, 5.04),
    (16, 6): (146.2, 5.11),
}
"""tok/s of one user and acceptance length, by budget and top-k."""
USERS = {1: 1.0, 4: 0.74, 16: 0.41}
"""What is left of one user's rate with so many users."""


def figure(median: float, jitter: Iterable[float] = JITTER) -> Spread:
    found = spread(median * each for each in jitter)
    assert found is not None
    return found


def cell(rate: float, length: float, users: int = 1, **more: Any) -> Cell:
    rate *= USERS.get(users, 1.0)
    depth = 7
    plain = Cell(
        concurrency=users,
        requests=30 * users,
        output_tokens=9000 * users,
        seconds=60.0,
        user_rate=figure(rate),
        total_rate=figure(rate * users * 0.97),
        ttft=figure(0.08 * users**0.5),
        tpot=figure(1 / rate),
        itl_p99=figure(2.4 / rate * length),
        acceptance_length=figure(length, (0.999, 1.0, 1.001)),
        positions=tuple((length / (length + 1.3)) ** at for at in range(1, depth + 1)),
        step_time=figure(length / rate, (0.999, 1.0, 1.001)),
        server_rate=rate * users * 0.98,
        server_acceptance=length,
    )
    return msgspec.structs.replace(plain, **more)


def coding(*failing: str) -> CodingResult:
    return CodingResult(
        verdicts={task: Verdict.WRONG if task in failing else Verdict.PASS for task in TASKS},
        details=dict.fromkeys(failing, "2 of 6 tests fail: expected 14, got 13"),
        tasks="t1",
    )


def measured(budget: int, topk: int, **more: Any) -> Measurement:
    rate, length = RATES[budget, topk]
    name = f"{budget}-{topk}"
    plain = Measurement(
        id=f"m-{name}",
        host=HOST,
        simulated=True,
        unit="sglang-kimi.service",
        configuration=f"c{name}{'0' * 58}",
        title=f"budget {budget} topk {topk}",
        knobs={"block_size": "8", "budget": str(budget), "topk": str(topk), "window": "2048"},
        experiment=f"e-{name}",
        plan=PLAN,
        state=MeasurementState.COMPLETE,
        began=NOW - 90_000 + budget * 1_000 + topk * 100,
        ended=NOW - 90_000 + budget * 1_000 + topk * 100 + 420,
        cells=tuple(cell(rate, length, users) for users in PLAN.concurrency),
        coding=coding(*(("parser",) if budget == 16 else ())),
        provenance=Provenance(
            engine="sglang",
            engine_version="0.5.23",
            driver="580.65.06",
            gpus=("NVIDIA RTX PRO 6000 Blackwell Server Edition",) * 8,
            argv=("python", "-m", "sglang.launch_server", "--port", "30000"),
            evidence=("the server reports the flags asked for",),
            load_seconds=412.0 + budget,
            prompts_hash="6b1f0e5a9c3d2b41",
            drop_in_hash="9f3c1d2e4a5b6c7d",
            invocation="3f2a9c1e7b6d4f50",
            clocks_mhz=(2400.0, 2430.0),
            temperature_c=71.0,
        ),
    )
    return msgspec.structs.replace(plain, **more)


def experiment(budget: int, topk: int, **more: Any) -> Experiment:
    name = f"{budget}-{topk}"
    plain = Experiment(
        id=f"e-{name}",
        host=HOST,
        simulated=True,
        title=f"budget {budget} topk {topk}",
        request=Request(knobs={"budget": budget, "topk": topk}),
        plan=PLAN,
        state=ExperimentState.DONE,
        sweep="budgets",
        created=NOW - 95_000 + budget * 10 + topk,
        measurement=f"m-{name}",
        configuration=f"c{name}{'0' * 58}",
    )
    return msgspec.structs.replace(plain, **more)


def campaign() -> tuple[list[Measurement], list[Experiment]]:
    """Eight configurations, one of them the baseline; what failed, was disturbed, ended early."""
    measurements = [measured(*pair) for pair in RATES]
    measurements[5] = msgspec.structs.replace(
        measurements[5], disturbed=("3 requests of others were seen",)
    )
    measurements[7] = msgspec.structs.replace(
        measurements[7],
        state=MeasurementState.PARTIAL,
        cells=measurements[7].cells[:1],
        cause="the link broke",
        coding=None,
    )
    experiments = [experiment(*pair) for pair in RATES]
    experiments[2] = msgspec.structs.replace(
        experiments[2],
        baseline=True,
        hypothesis="the trained block with a tree of its own size is the best trade",
    )
    experiments[6] = msgspec.structs.replace(
        experiments[6],
        note="try again with the new kernels",
        match=Match("ratio", "ceil(16 x 15 / 15) = 16", "budget", 16, "block size 8, budget 8"),
    )
    experiments.append(
        msgspec.structs.replace(
            experiment(8, 4),
            id="e-64",
            title="budget 64 topk 4",
            request=Request(knobs={"budget": 64, "topk": 4}),
            state=ExperimentState.FAILED,
            configuration="c64",
            measurement="",
            baseline=False,
            hypothesis="",
            attempts=3,
            cause={
                "title": "out of GPU memory while capturing graphs",
                "remedy": "lower mem_fraction or graph_max_batch",
            },
        )
    )
    experiments.append(
        msgspec.structs.replace(
            experiment(16, 4), id="e-next", state=ExperimentState.PENDING, sweep="later"
        )
    )
    return measurements, experiments


def hostile() -> tuple[list[Measurement], list[Experiment]]:
    """Texts that would move the cursor, colour the screen, or pass for markup."""
    measurements, experiments = [], []
    for at, text in enumerate(HOSTILE):
        pair = list(RATES)[at % len(RATES)]
        more = measured(*pair, id=f"h{at}", configuration=f"h{at}", experiment=f"x{at}")
        measurements.append(
            msgspec.structs.replace(
                more,
                title=text,
                knobs={**more.knobs, text[:40]: text},
                disturbed=(text,),
                cause=text,
                provenance=Provenance(engine=text, driver=text, evidence=(text,)),
            )
        )
        experiments.append(
            experiment(
                *pair, id=f"x{at}", title=text, hypothesis=text, note=text, measurement=f"h{at}"
            )
        )
    return measurements, experiments


class GivenResults:
    """Results that are there already: counts what it is asked, and waits where it is told to.

    Every file that is to be written exists.
    """

    def __init__(self, kept: tuple[list[Measurement], list[Experiment]] | None = None) -> None:
        self.view = results_view(HOST, *(campaign() if kept is None else kept))
        self.reads: list[Asked] = []
        self.looks = 0
        self.now = 1
        self.go = asyncio.Event()
        self.go.set()
        self.problem: ControlProblem | None = None
        self.exported: list[Path] = []

    async def version(self) -> int:
        self.looks += 1
        if self.problem is not None:
            raise self.problem
        return self.now

    async def read(self, asked: Asked) -> Found:
        self.reads.append(asked)
        await self.go.wait()
        return Found(self.view, ("budgets", "later"))

    async def there_already(self, view: ResultsView, form: Form, file: Path) -> Sequence[Path]:
        return [file]

    async def export(self, view: ResultsView, form: Form, file: Path) -> Sequence[Path]:
        self.exported.append(file)
        return [file]


def stored(
    file: Path, kept: tuple[list[Measurement], list[Experiment]] | None = None
) -> StoredResults:
    """A store with a campaign, and what reads it."""
    measurements, experiments = campaign() if kept is None else kept
    store = Store.open(file)
    try:
        if experiments:
            store.experiments.put(experiments)
        for each in measurements:
            store.measurements.put(each)
    finally:
        store.close()
    return StoredResults(
        HOST, simulated=True, open_store=lambda: Store.open(file), clock=lambda: NOW
    )


def results_app(
    source: ResultsSource,
    scene: str = "idle",
    key_clock: Callable[[], float] = lambda: 0.0,
    **settings: Any,
) -> DdtuiApp:
    """The app on a scene, with results."""
    return DdtuiApp(
        SceneSource(scene),
        settings=UiSettings(**settings),
        clock=lambda: NOW,
        control=FakeControl(),
        results=source,
        key_clock=key_clock,
    )
