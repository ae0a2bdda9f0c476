"""How long experiments will take: each figure with its source, guesses told as such. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import msgspec

from ddtui.core.bench_plan import BenchPlan, same_plan, short_name
from ddtui.core.change_record import ChangeRecord
from ddtui.core.load_eta import Experience
from ddtui.core.load_history import LoadHistory
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.core.text import counted
from ddtui.experiments.order import Item, loads_for

_PEERS = 5
"""Latest measurements and changes that count."""
_WARMUP = 2
"""Batches that a warm-up takes at least."""
_SHARED = 0.75
"""Requests at once: n of them are served n^0.75 times as fast as one. A guess, between batches that
cost nothing and engines that are busy with one request."""
_CODING_TASKS, _CODING_AT_ONCE, _CODING_TOKENS = 16, 4, 1500
_BEFORE_LOADING = frozenset({"locked", "written", "reloaded", "stopping", "releasing"})


class Estimate(msgspec.Struct, frozen=True):
    """A time in seconds, and where it comes from."""

    seconds: float
    source: str
    guess: bool = False
    """Made from sizes, not from anything that was done before."""


class Leg(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment of a queue in time. Seconds from now."""

    id: str
    loads: bool
    """Whether the engine is loaded for it."""
    load: Estimate | None = None
    bench: Estimate | None = None
    ends: float | None = None
    """None where it, or one before it, cannot be estimated; and for one that is held."""


class QueueEta(msgspec.Struct, frozen=True, kw_only=True):
    """A whole queue in time."""

    legs: tuple[Leg, ...]
    reloads: int
    seconds: float | None
    """Until the last one ends; None where that cannot be said."""
    sources: tuple[str, ...]
    """Of all figures, each once."""
    guess: bool = False
    """Whether a figure is only a guess."""


def later(eta: QueueEta, seconds: float) -> QueueEta:
    """The same queue when so many seconds have gone by since it was worked out."""

    def left(ends: float | None) -> float | None:
        return None if ends is None else max(0.0, ends - seconds)

    legs = tuple(msgspec.structs.replace(leg, ends=left(leg.ends)) for leg in eta.legs)
    return msgspec.structs.replace(eta, legs=legs, seconds=left(eta.seconds))


def load_estimate(
    past: LoadHistory,
    flags: Mapping[str, str],
    models: Mapping[str, str],
    changes: Sequence[ChangeRecord] = (),
) -> Estimate | None:
    """Stopping and loading the engine with these flags; None where no such load is known.

    By the loads of the same model that are most like it; the time before it starts (stopping,
    releasing memory) is that of earlier changes.
    """
    tensor = next((flags[each] for each in _TENSOR if flags.get(each, "").isdecimal()), "1")
    like = past.like(models.get("target", ""), models.get("drafter"), int(tensor), flags)
    peers = Experience(like).records
    if not peers:
        return None
    source = f"{_median(len(peers), 'load')} of this model"
    stopping = _stopping(changes)
    seconds = median(each.seconds for each in peers)
    if stopping is not None:
        source += f", with {stopping:.0f} s to stop and release"
    return Estimate(seconds + (stopping or 0.0), source)


_TENSOR = ("tp-size", "tp", "tensor-parallel-size")


def _stopping(changes: Sequence[ChangeRecord]) -> float | None:
    """Seconds until the engine starts, of the latest changes that came into force."""
    found = [
        sum(seconds for step, seconds in each.phases() if step in _BEFORE_LOADING)
        for each in changes
        if each.ending == "in force"
    ]
    return median(found[:_PEERS]) if found else None


def bench_estimate(
    plan: BenchPlan,
    earlier: Sequence[Measurement],
    *,
    rate: float | None = None,
    prompts: int = 10,
) -> Estimate | None:
    """Measuring by a plan; None where nothing is known to tell it from.

    Args:
        plan: What is measured.
        earlier: Measurements of the host, the newest first; complete ones by the same plan count.
        rate: Tokens per second that one request gets now, for a plan that was never run.
        prompts: How many the plan's set has.
    """
    known = [
        each.ended - each.began
        for each in earlier
        if each.ended is not None
        and each.ended > each.began  # else the clock was set back meanwhile
        and each.state is MeasurementState.COMPLETE
        and same_plan(each.plan, plan)
    ][:_PEERS]
    name = short_name(plan)
    if known:
        return Estimate(median(known), f"{_median(len(known), 'bench')} by plan {name}")
    if plan.command:
        source = f"plan {name}, of another program, was never run: ended after this at the latest"
        return Estimate(plan.command_seconds, source, guess=True)
    if not rate or rate <= 0:
        return None
    batches = plan.repeats + min(_WARMUP, plan.warmup_batches)
    seconds = 0.0
    for concurrency in plan.concurrency:
        requests = plan.requests or max(prompts, concurrency)
        seconds += batches * requests * plan.output_tokens / (rate * concurrency**_SHARED)
    words = f"{counted(len(plan.concurrency), 'cell')} x {batches} batches"
    if plan.coding:
        tokens = _CODING_TASKS * min(plan.coding_tokens, _CODING_TOKENS)
        seconds += tokens / (rate * _CODING_AT_ONCE**_SHARED)
        words += " and the coding tasks"
    source = f"guessed: {words} at {rate:.0f} tok/s; plan {name} was never run"
    return Estimate(seconds, source, guess=True)


def queue_eta(
    items: Sequence[Item],
    in_force: str,
    load: Callable[[str], Estimate | None],
    bench: Callable[[str], Estimate | None],
) -> QueueEta:
    """When each item ends, one after the other; `load` and `bench` estimate one by its id."""
    legs, now = [], 0.0
    known = True
    loads = loads_for(items, in_force)
    for item, loaded in zip(items, loads, strict=True):
        loading = load(item.id) if loaded else None
        measuring = bench(item.id) if item.loads else Estimate(0.0, "measured already")
        if item.held:
            legs.append(Leg(id=item.id, loads=False, bench=measuring))
            continue
        known = known and measuring is not None and (loading is not None or not loaded)
        now += (loading.seconds if loading else 0.0) + (measuring.seconds if measuring else 0.0)
        ends = now if known else None
        legs.append(Leg(id=item.id, loads=loaded, load=loading, bench=measuring, ends=ends))
    used = [each for leg in legs if leg.ends is not None for each in (leg.load, leg.bench) if each]
    return QueueEta(
        legs=tuple(legs),
        reloads=sum(loads),
        seconds=now if known else None,
        sources=tuple(dict.fromkeys(each.source for each in used)),
        guess=any(each.guess for each in used),
    )


def _median(number: int, what: str) -> str:
    return f"{'median of ' if number > 1 else ''}{counted(number, what)}"
