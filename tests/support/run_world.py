"""A runner over the scripted host, a bench that takes its time, and stores that may kill it."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from ddtui.bench.bench import OnCell, OnProgress
from ddtui.bench.errors import ConnectionLost
from ddtui.bench.progress import Progress
from ddtui.bench.progress import Step as BenchStep
from ddtui.bench.transport import Connector
from ddtui.collect.settings import HostSettings
from ddtui.control.carrying_out import Watching
from ddtui.control.controller import Controller
from ddtui.control.host_actions import UnitActions
from ddtui.control.planner import Planner
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.core.measurement import Cell, CodingResult, Measurement, Spread
from ddtui.core.measurement import Verdict as Judged
from ddtui.engines.sglang import SGLANG
from ddtui.experiments.needs import Around, Tools
from ddtui.experiments.report import Ending, RunEvent
from ddtui.experiments.runner import Runner
from ddtui.hosts.base import Host
from ddtui.store import Store
from ddtui.store.experiments import Experiments
from ddtui.store.measurements import Measurements
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import PORT, UNIT, Script

BLOCK = "speculative-dflash-block-size"
BATCH = 3.0
"""Seconds that the bench takes for a cell."""


@contextmanager
def store_in_memory() -> Iterator[Store]:
    """A store whose commits wait for no disk, where the system has a file system in memory."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        store = Store.open(Path(folder) / "ddtui.sqlite3")
        try:
            yield store
        finally:
            store.close()


class Killed(BaseException):
    """What ends a process without a word."""


class Deadly:
    """Passes calls on to a store, and kills the runner before or after one that writes."""

    def __init__(self, store: Any, world: RunWorld, name: str, writes: Sequence[str]) -> None:
        self._store, self._world, self._name, self._writes = store, world, name, writes

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in self._writes:
            return call

        def counted(*args: Any, **options: Any) -> Any:
            world = self._world
            world.writes.append(name)
            world.stores.append(self._name)
            here = world.kill_at is not None and len(world.writes) - 1 == world.kill_at[0]
            if here and world.kill_at is not None and world.kill_at[1] == "before":
                raise Killed(name)
            result = call(*args, **options)
            if here:
                raise Killed(name)
            return result

        return counted


class FakeBench:
    """Measures the scripted engine: every cell takes BATCH seconds, and needs it all the time."""

    def __init__(self, world: RunWorld) -> None:
        self._world = world

    async def run(
        self,
        plan: BenchPlan,
        *,
        begun: Sequence[Cell] = (),
        budget: int | None = None,
        on_progress: OnProgress | None = None,
        on_cell: OnCell | None = None,
    ) -> tuple[Cell, ...]:
        """See Bench."""
        cells = {each.concurrency: each for each in begun}
        for number, concurrency in enumerate(plan.concurrency, 1):
            if concurrency in cells:
                continue
            engine = self._world.machine.engine
            for part in range(6):
                now = Progress(step=BenchStep.MEASURING, concurrency=concurrency, cell=number,
                               cells=len(plan.concurrency), batch=1, batches=1, done=part,
                               requests=6, elapsed=part * BATCH / 6)  # fmt: skip
                if on_progress is not None:
                    on_progress(now)
                await asyncio.sleep(BATCH / 6)
                self._world.alive(engine)
            block = self._world.block()
            rate = Spread(100.0 + block / (1 if concurrency == 1 else 2), 99.0, 101.0)
            cells[concurrency] = Cell(
                concurrency=concurrency, requests=6, user_rate=rate, notes=(f"block {block}",)
            )
            self._world.cells.append((block, concurrency))
            if on_cell is not None:
                on_cell(cells[concurrency])
        return tuple(cells[each] for each in plan.concurrency)


class RunWorld(ChangeWorld):
    """Host, what is known of it, a queue, and runners that come and go."""

    def __init__(self, script: Script, store: Store, name: str, seed: int = 0) -> None:
        super().__init__(script, seed)
        self.host.name = name
        self.kept = store
        self.writes: list[str] = []
        """Every call that has written to a store."""
        self.stores: list[str] = []
        """The store of each."""
        self.kill_at: tuple[int, str] | None = None
        """Number of the write that kills the runner, and whether before or after it."""
        self.cells: list[tuple[int, int]] = []
        """Cells that came to their end: block size, concurrency."""
        self.events: list[RunEvent] = []
        self.requests = 0.0
        self.heed: Callable[[RunEvent], None] = lambda _: None
        self.queue = Deadly(
            store.experiments,
            self,
            "queue",
            ("claim", "take_over", "step", "give_back", "end", "change_settings"),
        )
        self.measured = Deadly(store.measurements, self, "measurements", ("put", "finish"))
        self.changes = Deadly(self.store, self, "changes", ("put", "step"))

    def block(self) -> int:
        """The block size that runs."""
        engine = self.machine.engine
        return 0 if engine is None else int(engine.argv[engine.argv.index(f"--{BLOCK}") + 1])

    def alive(self, engine: Any) -> None:
        """Raise ConnectionLost unless this engine answers still."""
        if not self.host.live.is_set():
            raise ConnectionLost("the link broke")
        if self.machine.engine is not engine or self.machine.http != 200:
            raise ConnectionLost("the engine does not answer")

    def add(
        self, title: str, plan: BenchPlan, request: Request | None = None, *, block: int = 0
    ) -> Experiment:
        """Queue an experiment: a request, or a block size; neither for what is in force."""
        request = request or Request(flags={BLOCK: block} if block else {})
        new = Experiment(
            id=uuid.uuid4().hex, host=self.host.name, title=title, request=request, plan=plan
        )
        return self.kept.experiments.put([new])[0]

    def around(self) -> Around:
        """What a ddtui that has just been started works with."""
        host = cast(Host, self.host)
        watching = Watching(SGLANG, self.watched.snapshot, lambda: PORT, self.watched.clock)
        control = Controller(
            lambda: UnitActions(host, "system", UNIT),
            watching,
            Planner(host, HostSettings(unit=UNIT)),
            self.changes,
            limits=self.limits,
            who="ada@desk",
        )

        async def code(_plan: BenchPlan, _on_progress: OnProgress) -> CodingResult:
            engine = self.machine.engine
            await asyncio.sleep(1.0)
            self.alive(engine)
            return CodingResult(verdicts={"one": Judged.PASS})

        async def requests() -> float | None:
            return self.requests

        def bench(_connector: Connector) -> FakeBench:
            return FakeBench(self)

        return Around(
            host=host,
            control=control,
            watching=watching,
            unit=lambda: UNIT,
            queue=cast("Experiments", self.queue),
            measured=cast("Measurements", self.measured),
            tools=Tools(
                bench=bench, code=code, prompts_hash=lambda plan: plan.prompts, requests=requests
            ),
            who="ada@desk",
            runner=f"ada@desk {uuid.uuid4().hex}",
        )

    def runner(self, **options: Any) -> Runner:
        """A new one."""
        return Runner(self.around(), on_event=self.note, **options)

    def note(self, event: RunEvent) -> None:
        """What every runner tells."""
        self.events.append(event)
        self.heed(event)

    async def to_the_end(self, most_deaths: int = 3) -> Ending:
        """Run; whoever is killed is followed by another one."""
        for _ in range(most_deaths + 1):
            try:
                return await self.runner().run()
            except Killed:
                self.kill_at = None
                await asyncio.sleep(0.1)
        raise AssertionError("killed too often")

    # ---- what came of it -----------------------------------------------------------------------

    def experiments(self) -> list[Experiment]:
        """All of the queue, by title."""
        found = self.kept.experiments.queue(self.host.name, simulated=False)
        return sorted(found, key=lambda each: each.title)

    def measurements(self) -> list[Measurement]:
        """All of the host, by title."""
        found = self.kept.measurements.of_host(self.host.name, simulated=False)
        return sorted(found, key=lambda each: each.title)

    def outcome(self) -> list[tuple[Any, ...]]:
        """What must be the same however often the runner was killed."""
        by_id = {each.id: each for each in self.measurements()}
        found: list[tuple[Any, ...]] = []
        for each in self.experiments():
            measurement = by_id.pop(each.measurement, None)
            cells: tuple[Any, ...] = ()
            if measurement is not None:
                cells = tuple((cell.concurrency, cell.notes) for cell in measurement.cells)
                assert measurement.experiment == each.id
                assert measurement.configuration == each.configuration
                state: Any = (measurement.state, measurement.coding is not None)
            else:
                state = None
            title = (each.cause or {}).get("title")
            found.append((each.title, each.state, title, state, cells))
        assert not by_id, f"measurements of nobody: {list(by_id.values())}"
        return found
