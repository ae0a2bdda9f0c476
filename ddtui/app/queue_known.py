"""What is known of a queue beside its rows: what each loads, how long it takes, what came of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

import msgspec

from ddtui.app.live import Watched
from ddtui.app.queue_results import result_of
from ddtui.app.sweep_work import values_on
from ddtui.bench.errors import BadPrompts
from ddtui.bench.progress import Progress
from ddtui.bench.prompts import load_prompts
from ddtui.control.controller import Controller
from ddtui.core.bench_plan import BenchPlan, same_plan
from ddtui.core.configuration_key import key_of
from ddtui.core.experiment import WAITING, Experiment, ExperimentState
from ddtui.core.launch import Launch, Request, Value
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.experiments.baseline import made_on, meant_for, moved_ones
from ddtui.experiments.eta import Estimate, QueueEta, bench_estimate, load_estimate, queue_eta
from ddtui.experiments.kept import Kept
from ddtui.experiments.matching import Circumstances
from ddtui.experiments.order import Item, item_of
from ddtui.experiments.plan_known import circumstances, rate_of
from ddtui.experiments.plan_sweep import AT_ONCE
from ddtui.hosts.base import HostError
from ddtui.ui.queue_source import Result

MOST_PLANNED = 24
"""Configurations that are worked out on the host in one go: the next look goes on with the rest."""
_SOME_PROMPTS = 10
_LOOKS = 120
"""Looks at what the engine serves that a guess is made of."""


class Known:
    """Works out what each experiment loads, on the host, and remembers it."""

    def __init__(self, source: Watched, control: Controller) -> None:
        self._source = source
        self._control = control
        self._keys: dict[tuple[bytes, str], str] = {}
        self._launch: Launch | None = None
        self._prompts: dict[str, int] = {}
        self._served: deque[float] = deque(maxlen=_LOOKS)
        self.checked = False
        """Whether it is known of all that wait what they load."""
        self.moved: frozenset[str] = frozenset()
        """Ids of what would be another configuration than when it was added."""

    @property
    def launch(self) -> Launch | None:
        """What the unit is configured as, as it was read last."""
        return self._launch

    def look(self) -> None:
        """Note how fast the engine serves. To be called about every second."""
        if (now := rate_of((), self._source.snapshot_now())) is not None:
            self._served.append(now)

    @property
    def served(self) -> float | None:
        """Tokens per second that one request has got lately; None before that was seen."""
        return median(self._served) if self._served else None

    async def base(self, kept: Kept) -> Launch:
        """What experiments are made on. Raises HostError."""
        now = (await self._control.command()).launch
        return made_on(kept.settings, kept.experiments, now) or now

    async def eta(self, kept: Kept, left: Callable[[Experiment], float | None]) -> QueueEta:
        """When what runs and waits ends; `left` gives the seconds of one that runs, if known."""
        going_on = kept.going_on
        self._launch = await self._read_launch() or self._launch
        base = made_on(kept.settings, kept.experiments, self._launch) or self._launch
        await self._work_out(going_on, base)
        snapshot, source = self._source.snapshot_now(), self._source
        ready = snapshot.readiness.state is ReadinessState.READY
        in_force = key_of(self._launch) if ready and self._launch is not None else ""
        load = None
        if base is not None:
            load = load_estimate(
                kept.loads,
                source.engine.flags(base.argv),
                source.engine.models(base.argv),
                kept.changes,
            )
        rate, by_id = self._rate(kept, snapshot), {each.id: each for each in going_on}

        def loading(experiment_id: str) -> Estimate | None:
            running = by_id[experiment_id].state is ExperimentState.RUNNING
            return Estimate(0.0, "") if running else load

        def measuring(experiment_id: str) -> Estimate | None:
            each = by_id[experiment_id]
            count = self._count(each.plan)
            bench = bench_estimate(each.plan, kept.measurements, rate=rate, prompts=count)
            if each.state is not ExperimentState.RUNNING:
                return bench
            return self._rest(each, load, bench, left(each))

        items = [self._item(each, base) for each in going_on]
        self.checked = all(each.key or each.held for each in items)
        self.moved = come_out_otherwise(going_on, items, await self._otherwise(kept, items))
        found = queue_eta(items, in_force, loading, measuring)
        return msgspec.structs.replace(found, sources=tuple(filter(None, found.sources)))

    async def _otherwise(self, kept: Kept, items: Sequence[Item]) -> set[str]:
        """Ids of what is made on something else, and is not known to come out the same there."""
        now = {each.id: each.key for each in items}
        found = moved_ones(kept.settings, kept.experiments, self._launch)
        waiting = [each for each in kept.going_on if each.id in found and not each.configuration]
        then = {each.id: meant_for(kept.settings, each.id) for each in waiting}
        bases = {key_of(base): base for base in then.values() if base is not None}
        for key, base in bases.items():
            meant = [each for each in waiting if (its := then[each.id]) and key_of(its) == key]
            await self._work_out(meant, base)
        same = {each.id for each in waiting if self._item(each, then[each.id]).key == now[each.id]}
        return {each for each in found if each not in same or not now[each]}

    async def _read_launch(self) -> Launch | None:
        if self._source.host.link.state is not LinkState.LIVE:
            return None
        try:
            return (await self._control.command()).launch
        except HostError:
            return None  # what is known stays: the unit may not be known yet, or the link broke

    def _rate(self, kept: Kept, snapshot: Snapshot) -> float | None:
        """Tokens per second of one request: as measured, else as the engine has served lately.

        Of one moment alone it would jump: batches begin and end, and an engine rests in between.
        """
        return rate_of(kept.complete, None) or self.served or rate_of((), snapshot)

    async def _work_out(self, waiting: Sequence[Experiment], base: Launch | None) -> None:
        if base is None or self._source.host.link.state is not LinkState.LIVE:
            return
        key = key_of(base)
        missing = [each for each in waiting if (_content(each.request), key) not in self._keys]
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(request: Request) -> None:
            async with gate:
                try:
                    after = (await self._control.plan(request, base)).after
                except HostError:
                    return  # tried again at the next look
            self._keys[_content(request), key] = key_of(after)

        await asyncio.gather(*(one(each.request) for each in missing[:MOST_PLANNED]))

    def _item(self, each: Experiment, base: Launch | None) -> Item:
        known = "" if base is None else self._keys.get((_content(each.request), key_of(base)), "")
        return item_of(each, known)

    def _rest(
        self,
        each: Experiment,
        load: Estimate | None,
        bench: Estimate | None,
        left: float | None,
    ) -> Estimate | None:
        """What is left of one that runs: as its bench tells, else of what all of it takes."""
        if left is not None:
            return Estimate(left, "the running bench")
        if bench is None:
            return None
        whole = bench.seconds + (load.seconds if load else 0.0)
        spent = max(0.0, self._source.clock() - (each.began or 0.0))
        return msgspec.structs.replace(bench, seconds=max(0.0, whole - spent))

    def _count(self, plan: BenchPlan) -> int:
        if plan.command:
            return 1
        if plan.prompts not in self._prompts:
            try:
                self._prompts[plan.prompts] = max(1, len(load_prompts(plan.prompts)))
            except BadPrompts:
                self._prompts[plan.prompts] = _SOME_PROMPTS  # the bench itself says what is wrong
        return self._prompts[plan.prompts]

    def values(self, kept: Kept) -> Mapping[str, Value]:
        """Settings that the queue's experiments are made on, as far as they are known."""
        base = made_on(kept.settings, kept.experiments, self._launch) or self._launch
        if base is None:
            return {}
        return values_on(base, self._launch or base, self._source, kept.settings)

    def circumstances(self, kept: Kept) -> Circumstances:
        """What bears on matching."""
        base = made_on(kept.settings, kept.experiments, self._launch) or self._launch
        values, key = self.values(kept), "" if base is None else key_of(base)
        return circumstances(values, kept.complete, key, kept.settings.in_force.limits)


def come_out_otherwise(
    going_on: Sequence[Experiment], items: Sequence[Item], otherwise: Collection[str] = ()
) -> frozenset[str]:
    """What comes out differently than when it was added: the queue began with something else.

    `otherwise`: ids of what is made on something else; it counts where it was not worked out.
    """
    return frozenset(
        each.id
        for each, item in zip(going_on, items, strict=True)
        if each.state in WAITING
        and (
            bool(item.key) and each.configuration != item.key
            if each.configuration
            else each.id in otherwise
        )
    )


def _content(request: Request) -> bytes:
    return msgspec.json.encode(request)


def results_of(kept: Kept) -> dict[str, Result]:
    """What came of each experiment, in short."""
    by_id = {each.id: each for each in kept.measurements}
    found = {each.id: by_id.get(each.measurement) for each in kept.experiments}
    return {
        name: result_of(each) for name, each in found.items() if each is not None and each.cells
    }


def best_of(kept: Kept, running: Experiment, progress: Progress) -> float | None:
    """The most tok/s of all streams that was measured so far of the cell that the bench is at."""
    rates = [
        cell.total_rate.median
        for each in kept.complete
        if same_plan(each.plan, running.plan)
        for cell in each.cells
        if cell.concurrency == progress.concurrency and cell.total_rate is not None
    ]
    return max(rates, default=None)
