"""Works out on the host what a sweep would do: what can be loaded, and in which order.

Nothing is changed. What a check forbids takes out that configuration only, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ddtui.core.configuration_key import key_of
from ddtui.core.launch import Change, Launch, Level, Plan, Request, Value
from ddtui.core.measurement import Measurement
from ddtui.core.sweep import Sweep
from ddtui.experiments.grid import Combination, marked
from ddtui.experiments.order import Item, ordered

AT_ONCE = 4
"""Configurations that are worked out at a time: each takes a few commands on the host."""

PlanOf = Callable[[Request], Awaitable[Plan]]
"""`Controller.plan` on the launch that the queue's experiments are made on."""
KnobsOf = Callable[[Request, Launch], dict[str, Value]]
"""Knobs that a launch has, which was planned for a request."""
MeasuredBefore = Callable[[str], Measurement | None]
"""An earlier measurement that may be used again, by the key of its configuration."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration of a sweep, checked."""

    combination: Combination
    key: str = ""
    """Of the configuration; empty where it was not worked out."""
    blocked: tuple[str, ...] = ()
    """Why it cannot be loaded; empty for one that can."""
    warnings: tuple[str, ...] = ()
    knobs: dict[str, Value] = {}
    """By name, those too that it leaves to the server."""
    changes: tuple[Change, ...] = ()
    """Against what is configured now."""
    same_as: str = ""
    """Title of an earlier one that is the same configuration on this server."""
    measured: Measurement | None = None
    """Made earlier by the same plan; may be used again."""
    again: bool = False
    """The baseline once more, at the end."""

    @property
    def runs(self) -> bool:
        """Whether it becomes an experiment."""
        return not self.blocked and not self.same_as


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep ready to be queued."""

    runs: tuple[Planned, ...]
    """In the order in which they are run."""
    blocked: tuple[Planned, ...] = ()
    same: tuple[Planned, ...] = ()
    """Left out: they are another one's configuration."""


async def planned(
    combinations: Sequence[Combination],
    plan_of: PlanOf | None,
    on_done: Callable[[int], None] | None = None,
    knobs_of: KnobsOf | None = None,
) -> list[Planned]:
    """Each combination worked out and checked on the host; without `plan_of` only as it is.

    `on_done` is told how many are. `knobs_of` tells what a planned launch has. Raises what
    `plan_of` raises.
    """
    gate, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(combination: Combination) -> Planned:
        nonlocal done
        if combination.impossible:
            found = Planned(combination=combination, blocked=(combination.impossible,))
        elif plan_of is None:
            found = Planned(combination=combination, warnings=combination.warnings)
        else:
            async with gate:
                plan = await plan_of(combination.request)
            knobs = {} if knobs_of is None else knobs_of(combination.request, plan.after)
            found = msgspec.structs.replace(_checked(combination, plan), knobs=knobs)
        done += 1
        if on_done is not None:
            on_done(done)
        return found

    tasks = [asyncio.create_task(one(each)) for each in combinations]
    try:
        return _without_doubles(await asyncio.gather(*tasks))
    finally:  # where one has failed, the others need not go on
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _checked(combination: Combination, plan: Plan) -> Planned:
    errors = [each for each in plan.findings if each.level is Level.ERROR]
    warnings = [each.text for each in plan.findings if each.level is Level.WARNING]
    return Planned(
        combination=combination,
        key=key_of(plan.after),
        blocked=tuple(
            f"{each.text}; {each.remedy}" if each.remedy else each.text for each in errors
        ),
        # What a check says in its own words need not be said by the matching too.
        warnings=tuple(dict.fromkeys((*combination.warnings, *warnings))),
        changes=plan.changes,
    )


def _without_doubles(found: Sequence[Planned]) -> list[Planned]:
    """Configurations that come out the same on this server are measured once."""
    seen: dict[str, str] = {}
    result = []
    for each in found:
        if not each.key or each.blocked:
            result.append(each)
            continue
        first = seen.setdefault(each.key, each.combination.title)
        same = "" if first == each.combination.title else first
        result.append(msgspec.structs.replace(each, same_as=same))
    return result


def with_baseline(sweep: Sweep, found: Sequence[Planned], base_key: str) -> list[Planned]:
    """The baseline marked, where the sweep leaves it open: what is in force, else the first one.

    None is, where all are matched to something that is not of the sweep: then results compare them
    with the baseline that there is already.
    """
    if sweep.baseline != "auto":
        return list(found)
    runs = [at for at, each in enumerate(found) if each.runs]
    in_force = [at for at in runs if base_key and found[at].key == base_key]
    own = [at for at in runs if found[at].combination.match is None]
    if not (in_force or own):
        return list(found)
    at = (in_force or own)[0]
    first, *_ = marked([each.combination for each in found], at)
    baseline = msgspec.structs.replace(found[at], combination=first)
    return [baseline, *found[:at], *found[at + 1 :]]


def arranged(
    sweep: Sweep, found: Sequence[Planned], loaded: str, measured: MeasuredBefore | None = None
) -> Arranged:
    """What runs, in the order that loads the engine least; `loaded` is the key of what is by then.

    `measured` gives earlier measurements to use again.
    """
    runs = [each for each in found if each.runs]
    if measured is not None:
        runs = [
            msgspec.structs.replace(each, measured=measured(each.key) if each.key else None)
            for each in runs
        ]
    baseline = next((each for each in runs if each.combination.baseline), None)
    if sweep.again and baseline is not None and len(runs) > 1:
        runs.append(msgspec.structs.replace(baseline, again=True, measured=None))
    order = ordered(items_of(runs), loaded)
    return Arranged(
        runs=tuple(runs[int(each.id)] for each in order),
        blocked=tuple(each for each in found if each.blocked),
        same=tuple(each for each in found if each.same_as and not each.blocked),
    )


def items_of(runs: Sequence[Planned]) -> list[Item]:
    """What runs as items of an order; their ids are their places in `runs`."""
    return [
        Item(
            id=str(at),
            key=each.key,
            baseline=each.combination.baseline and not each.again,
            fixed=each.again,
            loads=each.measured is None,
        )
        for at, each in enumerate(runs)
    ]
