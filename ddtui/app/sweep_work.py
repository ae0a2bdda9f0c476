"""Works out a sweep with all that is known of a host, and puts it into the queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from ddtui.app.live import Watched
from ddtui.app.preset_source import presets_for
from ddtui.bench.prompts import hash_of
from ddtui.config.hosts import HostTarget, Reach
from ddtui.config.load import Loaded
from ddtui.control.controller import Controller, operator
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.configuration_key import key_of
from ddtui.core.experiment import Experiment, ExperimentState, InForce, Leave, QueueSettings
from ddtui.core.generation import Prompt
from ddtui.core.launch import Launch, Limits, Request, Value
from ddtui.core.measurement import Measurement
from ddtui.core.snapshot import ReadinessState
from ddtui.core.sweep import Sweep
from ddtui.experiments.baseline import made_on
from ddtui.experiments.eta import Estimate, bench_estimate, load_estimate, queue_eta
from ddtui.experiments.grid import expand
from ddtui.experiments.kept import Kept, read_kept
from ddtui.experiments.order import Item, item_of
from ddtui.experiments.plan_known import (
    circumstances,
    knobs_of,
    knobs_planned,
    rate_of,
    usable_again,
    values_in_force,
)
from ddtui.experiments.plan_sweep import Arranged, arranged, items_of, planned, with_baseline
from ddtui.experiments.queue import Queue
from ddtui.experiments.worked import Worked
from ddtui.store import Store

CONTROL_NOTE = "control: its budget is not matched"
_LOOK_AGAIN, _LOOKS = 0.25, 24
"""Seconds between two looks at what the engine serves, and how many there are at most."""

OnDone = Callable[[int, int], None]
"""Told how many configurations are worked out, and of how many."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asked for."""

    loaded: Loaded
    sweep: Sweep
    plan: BenchPlan
    prompts: tuple[Prompt, ...] = ()
    """Of the plan; none for an external bench."""
    reuse: bool = False
    served: float | None = None
    """Tokens/s that one request has got lately, where that was watched; else it is of now."""


async def work_out(source: Watched, control: Controller, asked: Asked, on_done: OnDone) -> Worked:
    """The sweep on a host that is watched. Raises ConfigError, HostError, StoreError."""
    store = await asyncio.to_thread(Store.open)
    try:
        return await _work_out(source, control, asked, on_done, store)
    finally:
        await asyncio.to_thread(store.close)


async def _work_out(
    source: Watched, control: Controller, asked: Asked, on_done: OnDone, store: Store
) -> Worked:
    simulated = source.host.simulated
    kept = await asyncio.to_thread(read_kept, store, source.name, simulated=simulated)
    launch = (await control.command()).launch
    base = made_on(kept.settings, kept.going_on, launch) or launch
    base_key, now_key = key_of(base), key_of(launch)
    snapshot = source.snapshot_now()
    values = values_on(base, launch, source, kept.settings)
    limits = (await control.plan(Request(), base)).limits
    # What the drafter and the rows of a full batch bear is said by the checks of each plan.
    said_by_checks = Limits(graph_widths=limits.graph_widths)
    known = circumstances(values, kept.complete, base_key, said_by_checks)
    known = msgspec.structs.replace(known, max_running=None)
    presets = presets_for(asked.loaded, source.name)
    expansion = expand(asked.sweep, presets.request, values, known)
    total = len(expansion.combinations)
    found = await planned(
        expansion.combinations,
        lambda request: control.plan(request, base),
        lambda done: on_done(done, total),
        lambda request, after: knobs_planned(after, source.engine, request, values),
    )
    found = with_baseline(asked.sweep, found, base_key)
    running = snapshot.readiness.state is ReadinessState.READY
    before = await _items(kept.going_on, control, base)
    loaded = _loaded_after(before, now_key if running else "")
    measured = await asyncio.to_thread(
        _measured_before, store, source, asked, [each.key for each in found]
    )
    result = arranged(asked.sweep, found, loaded, measured.get if asked.reuse else None)
    load, rate = await _times_known(source, asked, kept, base, running=running)
    plans = {each.id: each.plan for each in kept.going_on}
    count = max(1, len(asked.prompts))
    eta = queue_eta(
        [*before, *items_of(result.runs)],
        now_key if running else "",
        lambda _id: load,
        lambda item: bench_estimate(
            plans.get(item, asked.plan), kept.measurements, rate=rate, prompts=count
        ),
    )
    return Worked(
        host=source.name,
        simulated=simulated,
        sweep=asked.sweep,
        plan=asked.plan,
        expansion=expansion,
        arranged=result,
        before=len(before),
        eta=eta,
        checked=True,
        at_the_end=_at_the_end(
            kept.settings.leave, _loaded_after(items_of(result.runs), loaded), base_key
        ),
        in_force=InForce(knobs=knobs_of(values), limits=limits),
        reusable=sum(each.runs and measured.get(each.key) is not None for each in found),
    )


async def _times_known(
    source: Watched,
    asked: Asked,
    kept: Kept,
    base: Launch,
    *,
    running: bool,
) -> tuple[Estimate | None, float | None]:
    """How long a load takes, and the tokens/s of a request, as far as they are known.

    A look that is fresh has seen nothing served yet: where the engine runs, it is waited for.
    """

    def load() -> Estimate | None:
        flags, models = source.engine.flags(base.argv), source.engine.models(base.argv)
        known = load_estimate(kept.loads, flags, models, kept.changes)
        return known or load_estimate(source.past_loads, flags, models, kept.changes)

    def rate() -> float | None:
        measured = rate_of(kept.complete, None)
        return measured or asked.served or rate_of((), source.snapshot_now())

    if running and asked.served is None:
        for _ in range(_LOOKS):
            if load() is not None and rate() is not None:
                break
            await asyncio.sleep(_LOOK_AGAIN)
    return load(), rate()


async def work_out_offline(target: HostTarget, asked: Asked) -> Worked:
    """The sweep without its host: nothing is checked. Raises ConfigError."""
    presets = presets_for(asked.loaded, target.name)
    expansion = expand(asked.sweep, presets.request)
    found = with_baseline(asked.sweep, await planned(expansion.combinations, None), "")
    result = arranged(asked.sweep, found, "")
    eta = queue_eta(items_of(result.runs), "", lambda _: None, lambda _: None)
    return Worked(
        host=target.name,
        simulated=target.reach is Reach.DEMO,
        sweep=asked.sweep,
        plan=asked.plan,
        expansion=expansion,
        arranged=result,
        before=0,
        eta=eta,
        checked=False,
    )


def values_on(
    base: Launch, launch: Launch, source: Watched, settings: QueueSettings
) -> dict[str, Value]:
    """Settings that experiments are made on; `launch` is what the unit is configured as now.

    What the server chose itself is seen while it runs with `base`; else it is as it was seen then.
    """
    if base == launch:
        return values_in_force(base, source.engine, source.snapshot_now())
    return {**settings.in_force.knobs, **values_in_force(base, source.engine)}


async def _items(waiting: Sequence[Experiment], control: Controller, base: Launch) -> list[Item]:
    """What is in the queue already; what was never worked out is worked out now."""
    items = []
    for each in waiting:
        key = each.configuration
        if not key and each.state is not ExperimentState.HELD:
            after = (await control.plan(each.request, base)).after
            key = key_of(after)
        items.append(item_of(each, key))
    return items


def _at_the_end(leave: Leave, loaded: str, base: str) -> str:
    """What the engine is loaded for at the end of the queue; `loaded` is what it has by then."""
    if leave == "baseline" and loaded != base:
        return "one more load at the end: the unit is left as it was before the queue"
    if leave == "best":
        return "at most one more load at the end: the unit is left in the best one"
    return ""


def _loaded_after(items: Sequence[Item], now: str) -> str:
    """The key of what is loaded once all items have run."""
    keys = [each.key for each in items if not each.held and each.loads]
    return keys[-1] if keys else now


def _measured_before(
    store: Store, source: Watched, asked: Asked, keys: Sequence[str]
) -> Mapping[str, Measurement]:
    find = partial(store.measurements.of_configuration, source.name, plan=asked.plan)
    version = source.snapshot_now().engine.version
    prompts = hash_of(asked.prompts) if asked.prompts else ""
    found: dict[str, Measurement] = {}
    for key in {each for each in keys if each}:
        earlier = find(configuration=key, simulated=source.host.simulated, unit=source.unit_name())
        if (usable := usable_again(earlier, version, prompts)) is not None:
            found[key] = usable
    return found


def queued(worked: Worked, *, held: bool) -> tuple[list[Experiment], list[Experiment]]:
    """The sweep put into the queue; returns what was added, and the whole queue."""
    store = Store.open()
    try:
        queue = Queue(store, worked.host, worked.simulated, operator())
        added = queue.add(drafts(queue, worked.sweep, worked.plan, worked.arranged, held=held))
        if worked.in_force is not None:
            queue.know(worked.in_force)
        return added, queue.listed()
    finally:
        store.close()


def drafts(
    queue: Queue, sweep: Sweep, plan: BenchPlan, result: Arranged, *, held: bool = False
) -> list[Experiment]:
    """The experiments of a sweep, not added yet."""
    name = sweep.name or time.strftime("grid-%m%d-%H%M%S")
    state = ExperimentState.HELD if held else ExperimentState.PENDING
    return [
        queue.draft(
            each.combination.request,
            plan,
            title=each.combination.title,
            state=state,
            sweep=name,
            baseline=each.combination.baseline and not each.again,
            hypothesis=sweep.hypothesis,
            note=_note(each.again, each.combination.control),
            match=each.combination.match,
            configuration=each.key,
            knobs=each.knobs,
            measurement="" if each.measured is None else each.measured.id,
            reused=each.measured is not None,
        )
        for each in result.runs
    ]


def _note(again: bool, control: bool) -> str:
    if again:
        return "the baseline again, so that a drift shows"
    return CONTROL_NOTE if control else ""
