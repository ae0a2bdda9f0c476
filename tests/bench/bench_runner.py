"""Time between two experiments of a sweep that is spent neither stopping, loading nor measuring.

The simulated host runs at its usual speed (a load takes about 25 s). Counted is all between the end
of one bench and the begin of the next one, but for what goes on from the stop of the engine to the
proof that it is in force: recording, planning, checking, locking, writing, and looking again.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
import uuid
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ddtui.app.reaching import Overrides
from ddtui.bench.transport import Connector
from ddtui.cli.context import Options
from ddtui.cli.run_world import RunWorld, running_on
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.core.measurement import Cell
from ddtui.experiments.needs import Measurer
from ddtui.experiments.report import RunEvent
from ddtui.experiments.runner import Runner

BUDGETS = (8, 4, 12, 16)
PLAN = BenchPlan(
    concurrency=(1,), output_tokens=32, repeats=1, requests=2, warmup_batches=1, coding=False
)


class Timed:
    """A bench whose runs are timed."""

    def __init__(self, bench: Measurer, spans: list[tuple[float, float]]) -> None:
        self._bench = bench
        self._spans = spans

    async def run(self, plan: BenchPlan, **options: Any) -> Sequence[Cell]:
        """See Bench."""
        began = time.monotonic()
        cells = await self._bench.run(plan, **options)
        self._spans.append((began, time.monotonic()))
        return cells


def run() -> dict[str, object]:
    """Seconds between experiments, and what they are made of."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: os.environ.get(name) for name in ("DDTUI_DATA_DIR", "DDTUI_CONFIG_DIR")}
        os.environ |= dict.fromkeys(kept, folder)
        try:
            return asyncio.run(_measured(Path(folder)))
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


async def _measured(folder: Path) -> dict[str, object]:
    spans: list[tuple[float, float]] = []
    marks: list[tuple[float, str]] = []

    def heard(event: RunEvent) -> None:
        marks.append((time.monotonic(), f"{event.what} {event.text}".partition(":")[0].strip()))

    async with running_on(Options(), "demo", Overrides()) as world:
        world.store.experiments.put([_experiment(world, budget) for budget in BUDGETS])
        make = world.around.tools.bench

        def bench(connector: Connector) -> Any:
            return Timed(make(connector), spans)

        tools = msgspec.structs.replace(world.around.tools, bench=bench)
        around = msgspec.structs.replace(world.around, tools=tools)
        ending = await Runner(around, on_event=heard, presence=folder / "here.json").run()
    between = [_between(marks, end, begin) for (_, end), (begin, _) in pairwise(spans)]
    own = [each["own"] for each in between]
    return {
        "experiments done": ending.done,
        "own seconds between two experiments": [round(each, 3) for each in own],
        "longest": round(max(own), 3),
        "aim": 2.0,
        "of it, before the stop": [round(each["before"], 3) for each in between],
        "of it, after the proof": [round(each["after"], 3) for each in between],
        "stopping and loading": [round(each["loading"], 1) for each in between],
    }


def _experiment(world: RunWorld, budget: int) -> Experiment:
    return Experiment(
        id=uuid.uuid4().hex,
        host=world.source.name,
        simulated=True,
        title=f"budget {budget}",
        request=Request(knobs={"budget": budget}),
        plan=PLAN,
    )


def _between(marks: Sequence[tuple[float, str]], end: float, begin: float) -> dict[str, float]:
    here = [(at, what) for at, what in marks if end <= at <= begin]
    stop = next(at for at, what in here if what == "change stopping")
    proved = next(at for at, what in here if what == "change in force")
    before, after = stop - end, begin - proved
    return {"own": before + after, "before": before, "after": after, "loading": proved - stop}


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
