"""Measurements with the figures that the demo's speed model was made after, and their experiments.

Budget 8 gives about 170 tok/s, 12 gives 149 with acceptance length 4.81 and 5 of 5 coding tasks, 16
gives 147.5 and 4 of 5.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ddtui.bench.spread import spread
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState
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

TASKS = ("intervals", "lru", "parser", "paths", "primes")
PLAN = BenchPlan(name="mine", concurrency=(1,))
JITTER = (0.994, 1.0, 1.005)
"""What three repeats are of their median."""


def figure(median: float, jitter: tuple[float, ...] = JITTER) -> Spread:
    found = spread(median * each for each in jitter)
    assert found is not None
    return found


def cell(
    rate: float,
    length: float | None = 4.3,
    *,
    concurrency: int = 1,
    jitter: tuple[float, ...] = JITTER,
    **more: Any,
) -> Cell:
    return Cell(
        concurrency=concurrency,
        requests=30,
        output_tokens=9000,
        seconds=60.0,
        user_rate=figure(rate, jitter),
        total_rate=figure(rate * concurrency * 0.97, jitter),
        ttft=figure(0.08),
        tpot=figure(1 / rate),
        acceptance_length=None if length is None else figure(length, (0.999, 1.0, 1.001)),
        step_time=None if length is None else figure(length / rate, (0.999, 1.0, 1.001)),
        **more,
    )


def coding(*failing: str, tasks: str = "t1") -> CodingResult:
    return CodingResult(
        verdicts={task: Verdict.WRONG if task in failing else Verdict.PASS for task in TASKS},
        tasks=tasks,
    )


def measured(budget: int, cells: tuple[Cell, ...], **more: Any) -> Measurement:
    """A measurement of one budget at top-k 4; `more` replaces fields."""
    plain = Measurement(
        id=f"m-{budget}",
        host="ct200",
        simulated=False,
        unit="llm.service",
        configuration=f"config-{budget}",
        title=f"budget {budget} topk 4",
        knobs={"block_size": "8", "budget": str(budget), "topk": "4"},
        experiment=f"e-{budget}",
        plan=PLAN,
        state=MeasurementState.COMPLETE,
        began=1_000.0 + budget,
        ended=1_100.0 + budget,
        cells=cells,
        provenance=Provenance(
            engine="sglang",
            engine_version="0.5.23",
            driver="580.65",
            gpus=("RTX PRO 6000",) * 8,
            argv=("python", "-m", "sglang.launch_server", "--port", "30000"),
            load_seconds=412.0,
            prompts_hash="p1",
            clocks_mhz=(2400.0, 2430.0),
        ),
    )
    return msgspec.structs.replace(plain, **more)


def experiment(budget: int, **more: Any) -> Experiment:
    plain = Experiment(
        id=f"e-{budget}",
        host="ct200",
        title=f"budget {budget} topk 4",
        request=Request(knobs={"budget": budget, "topk": 4}),
        plan=PLAN,
        state=ExperimentState.DONE,
        sweep="budgets",
        created=float(budget),
        measurement=f"m-{budget}",
        configuration=f"config-{budget}",
    )
    return msgspec.structs.replace(plain, **more)


def seed_measurements() -> list[Measurement]:
    return [
        measured(8, (cell(170.0, 4.30),), coding=coding()),
        measured(12, (cell(149.0, 4.81),), coding=coding()),
        measured(16, (cell(147.5, 5.04),), coding=coding("parser")),
    ]


def seed_experiments() -> list[Experiment]:
    return [experiment(8), experiment(12, baseline=True), experiment(16)]
