"""Made-up queues: one that stands still, for pictures, and one over a real store."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from ddtui.app.queue_known import results_of
from ddtui.bench.progress import Progress
from ddtui.bench.progress import Step as BenchStep
from ddtui.config.assignments import parse_assignments
from ddtui.config.errors import ConfigError
from ddtui.config.grid_text import parse_grid
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import (
    Experiment,
    ExperimentState,
    Leave,
    Match,
    Place,
    QueueEvent,
    QueueSettings,
)
from ddtui.core.launch import Plan, Request, Value
from ddtui.core.snapshot import History
from ddtui.experiments.eta import Estimate, QueueEta, queue_eta
from ddtui.experiments.grid import expand
from ddtui.experiments.kept import read_kept
from ddtui.experiments.matching import Shape, side_by_side
from ddtui.experiments.naming import shown
from ddtui.experiments.order import Item
from ddtui.experiments.plan_sweep import Arranged, Planned, items_of
from ddtui.experiments.queue import Queue, QueueProblem
from ddtui.experiments.worked import Worked
from ddtui.store import Store
from ddtui.ui.app import DdtuiApp
from ddtui.ui.queue_source import GridView, LikeView, QueueView, Result, RunPlan, RunView
from ddtui.ui.source import ControlProblem
from tests.ui.control_world import FakeControl, control_app, plan_of
from tests.ui.scenes import HOSTILE, NOW

State = ExperimentState
_LOAD = Estimate(551.0, "median of 3 loads of this model, with 9 s to stop and release")
_BENCH = Estimate(240.0, "median of 2 benches by plan standard")
HOUR = 3_600.0


def experiment(
    number: int, title: str, state: State = State.PENDING, **fields: object
) -> Experiment:
    """One with an id that is always the same."""
    knobs = dict(zip(title.split()[::2], title.split()[1::2], strict=False))
    values: dict[str, Value] = {name: int(value) for name, value in knobs.items()}
    made = Experiment(
        id=f"{number:x}" * 32,
        host="ct200",
        title=title,
        request=Request(knobs=values),
        plan=BenchPlan(name="standard", concurrency=(1, 8)),
        state=state,
        sweep="budgets",
        by="mara@desk",
        created=NOW - 2 * HOUR,
    )
    return replace(made, **fields)


CAUSE = {
    "title": "CUDA out of memory while the KV cache was allocated",
    "evidence": ["[14:01:40 TP3] torch.OutOfMemoryError: CUDA out of memory. Tried 2.10 GiB"],
    "remedy": "lower mem_fraction to 0.84, or end what else holds memory on GPU 3",
}
MATCH = Match("nodes", "ceil(8 x 15 / 7) = 18", "budget", 18, "block size 8, budget 8")
EXPERIMENTS = (
    experiment(
        1, "budget 12 topk 4", State.RUNNING, step="measuring", began=NOW - 640, attempts=1,
        reloaded=True, runner="mara@desk 5f", hypothesis="four more nodes pay at low concurrency",
    ),
    experiment(2, "budget 12 topk 6"),
    experiment(3, "budget 16 topk 4", note="the one that Jonas asked for"),
    experiment(4, "budget 16 topk 6", State.HELD),
    experiment(5, "block_size 16 budget 18 topk 4", match=MATCH),
    experiment(
        6, "budget 4 topk 4", State.DONE, baseline=True, began=NOW - 2_400, ended=NOW - 1_780,
        measurement="m6", attempts=1, reloaded=True,
    ),
    experiment(
        7, "budget 8 topk 4", State.DONE, began=NOW - 1_780, ended=NOW - 1_000, measurement="m7",
        attempts=1, reloaded=True,
    ),
    experiment(
        8, "budget 8 topk 6", State.FAILED, began=NOW - 1_000, ended=NOW - 650, cause=CAUSE,
        attempts=2,
    ),
    experiment(9, "budget 8 topk 8", State.CANCELLED, ended=NOW - 900),
)  # fmt: skip
RESULTS = {
    "6" * 32: Result(concurrency=1, user_rate=118.2, total_rate=118.0, acceptance=2.91,
                     passed=14, tasks=16),
    "7" * 32: Result(concurrency=1, user_rate=142.6, total_rate=142.1, acceptance=3.42,
                     passed=15, tasks=16, disturbed=True),
}  # fmt: skip


def legs_of(experiments: Sequence[Experiment]) -> QueueEta:
    """Times as the real one works them out: every one needs a load."""
    going_on = [each for each in experiments if each.state not in {State.DONE, State.FAILED}]
    going_on = [each for each in going_on if each.state is not State.CANCELLED]
    items = [
        Item(
            id=each.id,
            key=each.title,
            running=each.state is State.RUNNING,
            held=each.state is State.HELD,
            fixed=True,
        )
        for each in going_on
    ]
    running = {each.id for each in going_on if each.state is State.RUNNING}
    now = next((each.title for each in going_on if each.id in running), "")
    return queue_eta(items, now, lambda _: _LOAD, lambda _: _BENCH)


def curve(seconds: int = 90) -> History:
    """A bench that goes up, falls between two batches, and goes on."""
    points = range(seconds * 2)
    values = [0.0 if 70 < each < 76 else 150 + 12 * math.sin(each / 9) for each in points]
    return History(tuple(NOW - seconds + each / 2 for each in points), tuple(values))


PROGRESS = Progress(
    step=BenchStep.MEASURING, concurrency=1, cell=1, cells=2, batch=2, batches=3, done=5,
    requests=10, rate=158.4, elapsed=90.0,
)  # fmt: skip
HERE = RunView(
    where="here",
    who="mara@desk",
    since=NOW - 2_420,
    step="measuring",
    progress=PROGRESS,
    curve=curve(),
    eta_seconds=130.0,
)
FULL = QueueView(
    version=41,
    experiments=EXPERIMENTS,
    settings=QueueSettings(host="ct200", leave="best"),
    results=RESULTS,
    eta=legs_of(EXPERIMENTS),
    checked=True,
    best=142.1,
    run=HERE,
)
EMPTY = QueueView(version=0, settings=QueueSettings(host="ct200"))
HOSTILE_VIEW = replace(
    FULL,
    experiments=tuple(
        replace(
            EXPERIMENTS[at % len(EXPERIMENTS)],
            id=f"{at:032x}",
            title=text,
            hypothesis=text,
            note=text,
            cause={"title": text, "evidence": [text], "remedy": text},
            sweep=text,
            by=text,
            request=Request(text[:40], {}, {text[:30]: text}, {text: text}),
        )
        for at, text in enumerate(HOSTILE)
    ),
    run=replace(HERE, who=HOSTILE[0], detail=HOSTILE[0], waiting=HOSTILE[0]),
)

IDLE = replace(FULL, run=RunView())
"""The same while nobody runs it."""


class StillQueue:
    """Shows one view; notes what is asked of it."""

    def __init__(self, view: QueueView = FULL) -> None:
        self.made = view
        self.begun: list[object] = []
        """Runs that were started or stopped."""
        self.changed: list[tuple[str, ...]] = []
        """What was done to the queue."""
        self.trouble: ControlProblem | None = None
        self.make_plan: Callable[[Request], Plan] = plan_of
        self.closed = False
        self.sandboxed = True

    @property
    def view(self) -> QueueView:
        return self.made

    async def look(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.closed = True

    async def log(self, experiment_id: str) -> Sequence[QueueEvent]:
        await asyncio.sleep(0)
        return (
            QueueEvent(experiment_id, NOW - 7_200, "mara@desk", "added"),
            QueueEvent(experiment_id, NOW - 640, "mara@desk 5f", "taken up"),
        )

    async def plan(self, experiment_id: str) -> Plan:
        await asyncio.sleep(0)
        found = self.made.find(experiment_id)
        if found is None:
            raise ControlProblem("it is not in the queue any more")
        return self.make_plan(found.request)

    def grid(self, text: str) -> GridView:
        try:
            return GridView(expansion=expand(parse_grid(text)))
        except ConfigError as error:
            return GridView(fault="\n".join(each.message for each in error.problems))

    async def work_out(
        self, text: str, *, reuse: bool, on_done: Callable[[int, int], None]
    ) -> Worked:
        sweep = parse_grid(text)
        found = expand(sweep, None, {"block_size": 8})
        on_done(len(found.combinations), len(found.combinations))
        await asyncio.sleep(0)
        runs = [Planned(combination=each, key=each.title) for each in found.combinations]
        blocked = tuple(
            replace(each, blocked=("budget 4 is not above block size - 1; set budget=8 or more",))
            for each in runs
            if each.combination.request.knobs.get("budget") == 4
        )
        titles = {each.combination.title for each in blocked}
        kept = tuple(each for each in runs if each.combination.title not in titles)
        eta = queue_eta(items_of(kept), "", lambda _: _LOAD, lambda _: _BENCH)
        return Worked(
            host="ct200",
            simulated=False,
            sweep=sweep,
            plan=BenchPlan(),
            expansion=found,
            arranged=Arranged(runs=kept, blocked=blocked),
            before=0,
            eta=eta,
            checked=True,
            reusable=1,
        )

    def like(self, experiment_id: str, text: str) -> LikeView:
        if any("=" not in word for word in text.split() if word != "control"):
            return LikeView(fault="no NAME=VALUE")
        if "block_size=16" not in text:
            return LikeView(title="budget 12 topk 4")
        reference = Shape(block_size=8, budget=12, topk=4)
        return LikeView(
            title="block_size 16 budget 12 topk 4",
            reference=reference,
            block_size=16,
            choices=side_by_side(reference, 16, 4),
            control="control" in text.split(),
        )

    async def _note(self, *what: str) -> Sequence[str]:
        self.changed.append(what)
        await asyncio.sleep(0)
        return ["1" * 32]

    async def add(self, text: str) -> Sequence[str]:
        return await self._note("add", text)

    async def add_grid(self, worked: Worked) -> Sequence[str]:
        return await self._note("grid", str(len(worked.arranged.runs)))

    async def add_like(self, experiment_id: str, text: str, policy: str) -> Sequence[str]:
        return await self._note("like", experiment_id[:1], text, policy)

    async def edit(self, experiment_id: str, text: str) -> Sequence[str]:
        return await self._note("edit", experiment_id[:1], text)

    async def annotate(
        self, experiment_id: str, *, hypothesis: str | None = None, note: str | None = None
    ) -> Sequence[str]:
        return await self._note("annotate", experiment_id[:1], hypothesis or "", note or "")

    async def move(self, experiment_id: str, place: Place) -> Sequence[str]:
        return await self._note("move", experiment_id[:1], str(place))

    async def hold(self, experiment_id: str) -> Sequence[str]:
        return await self._note("hold", experiment_id[:1])

    async def release(self, experiment_id: str) -> Sequence[str]:
        return await self._note("release", experiment_id[:1])

    async def cancel(self, experiment_id: str) -> Sequence[str]:
        return await self._note("cancel", experiment_id[:1])

    async def retry(self, experiment_id: str) -> Sequence[str]:
        return await self._note("retry", experiment_id[:1])

    async def clear(self) -> Sequence[str]:
        return await self._note("clear")

    async def pause(self, *, paused: bool) -> None:
        await self._note("pause" if paused else "resume")

    async def leave(self, which: Leave) -> None:
        await self._note("leave", which)

    async def prepare_run(self) -> RunPlan:
        await asyncio.sleep(0)
        return RunPlan(view=self.made, sandboxed=self.sandboxed)

    def start_run(self) -> None:
        self.begun.append("start")

    async def stop_run(self) -> str:
        self.begun.append("stop")
        return "stopping"

    def take_trouble(self) -> ControlProblem | None:
        trouble, self.trouble = self.trouble, None
        return trouble


class StoredQueue(StillQueue):
    """Over a real store: what is done to it is done by the queue's own rules."""

    def __init__(self, store: Store) -> None:
        super().__init__(EMPTY)
        self.store = store
        self.queue = Queue(store, "ct200", False, "mara@desk", clock=lambda: NOW)
        self.run = RunView()
        self.read()

    def read(self) -> None:
        """Read all of it."""
        kept = read_kept(self.store, "ct200", simulated=False)
        self.made = QueueView(
            version=kept.version,
            experiments=tuple(map(shown, kept.experiments)),
            settings=kept.settings,
            results=results_of(kept),
            eta=legs_of(kept.experiments),
            checked=True,
            run=self.run,
        )

    async def look(self) -> None:
        await asyncio.sleep(0)
        self.read()

    async def _done(self, what: Callable[[], object]) -> Sequence[str]:
        await asyncio.sleep(0)
        try:
            what()
        except QueueProblem as problem:
            raise ControlProblem(problem.what, problem.remedy) from problem
        self.read()
        return ["1"]

    async def add(self, text: str) -> Sequence[str]:
        try:
            request = parse_assignments(text.split())
        except ConfigError as error:
            raise ControlProblem(error.problems[0].message) from error
        added = [self.queue.draft(request)]
        await self._done(lambda: self.queue.add(added))
        return [each.id for each in added]

    async def edit(self, experiment_id: str, text: str) -> Sequence[str]:
        over = parse_assignments(text.split())
        return await self._done(lambda: self.queue.edit(experiment_id, over))

    async def annotate(
        self, experiment_id: str, *, hypothesis: str | None = None, note: str | None = None
    ) -> Sequence[str]:
        return await self._done(
            lambda: self.queue.annotate(experiment_id, hypothesis=hypothesis, note=note)
        )

    async def move(self, experiment_id: str, place: Place) -> Sequence[str]:
        return await self._done(lambda: self.queue.move(experiment_id, place))

    async def hold(self, experiment_id: str) -> Sequence[str]:
        return await self._done(lambda: self.queue.hold(experiment_id))

    async def release(self, experiment_id: str) -> Sequence[str]:
        return await self._done(lambda: self.queue.release(experiment_id))

    async def cancel(self, experiment_id: str) -> Sequence[str]:
        return await self._done(lambda: self.queue.cancel(experiment_id))

    async def retry(self, experiment_id: str) -> Sequence[str]:
        return await self._done(lambda: self.queue.retry(experiment_id))

    async def clear(self) -> Sequence[str]:
        cleared: list[Experiment] = []
        await self._done(lambda: cleared.extend(self.queue.clear()))
        return [each.id for each in cleared]

    async def pause(self, *, paused: bool) -> None:
        await self._done(self.queue.pause if paused else self.queue.resume)

    async def leave(self, which: Leave) -> None:
        await self._done(lambda: self.queue.leave(which))


def fill(queue: StoredQueue, *values: int) -> None:
    """Add experiments with these budgets."""
    queue.queue.add([queue.queue.draft(Request(knobs={"budget": each})) for each in values])
    queue.read()


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredQueue]:
    """An empty queue that is kept in a store."""
    store = Store.open(tmp_path / "s.db")
    yield StoredQueue(store)
    store.close()


def queue_app(
    queue: StillQueue | None = None,
    scene: str = "live",
    *,
    control: FakeControl | None = None,
    read_only: bool = False,
    key_clock: Callable[[], float] | None = None,
    **settings: object,
) -> DdtuiApp:
    """The app on a scene, with a made-up queue."""
    return control_app(
        scene,
        control,
        read_only=read_only,
        key_clock=key_clock,
        queue=queue or StillQueue(),
        **settings,  # type: ignore[arg-type]
    )
