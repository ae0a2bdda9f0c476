"""Which configuration a unit is left in at the end of its queue, and bringing it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from ddtui.control.journal import OnStep
from ddtui.core.experiment import Experiment, ExperimentState, Leave
from ddtui.core.launch import Launch, Plan, Request
from ddtui.core.measurement import Cell, Measurement, MeasurementState
from ddtui.experiments.baseline import Asking, Baseline
from ddtui.experiments.bringing import Bringing
from ddtui.experiments.needs import Around
from ddtui.experiments.running import Action, decide


class Target(msgspec.Struct, frozen=True):
    """What a unit is to be left in."""

    request: Request
    """Made on the baseline; an empty one for the baseline itself."""
    words: str


def target(
    leave: Leave, experiments: Sequence[Experiment], measurements: Sequence[Measurement]
) -> Target:
    """The configuration to leave, of the experiments that this queue has done.

    `best`: the highest rate of a user at the lowest concurrency that its experiments share; of
    equal ones the longer acceptance length, then the earlier one. `last`: that of the last
    experiment that was measured now. Where there is none, the baseline. Pure.
    """
    done = sorted(
        (each for each in experiments if each.state is ExperimentState.DONE),
        key=lambda each: (each.ended_as, each.ended or 0.0),
    )
    ran = [each for each in done if not each.reused]
    if leave == "last" and ran:
        return Target(ran[-1].request, f"the last one, {ran[-1].title}")
    if leave == "best":
        by_id = {each.id: each for each in measurements}
        measured = [
            (each, by_id[each.measurement])
            for each in done
            if each.measurement in by_id
            and by_id[each.measurement].state is MeasurementState.COMPLETE
        ]
        if (found := _best(measured)) is not None:
            return Target(found.request, f"the best one, {found.title}")
    why = "" if leave == "baseline" else f" (no {leave} one: nothing was measured)"
    return Target(Request(), f"what was in force when the queue began{why}")


def _best(measured: Sequence[tuple[Experiment, Measurement]]) -> Experiment | None:
    rated = [
        (each, {cell.concurrency: cell for cell in found.cells if cell.user_rate is not None})
        for each, found in measured
    ]
    rated = [(each, cells) for each, cells in rated if cells]
    if not rated:
        return None
    common = set.intersection(*(set(cells) for _, cells in rated))
    at = min(common) if common else None
    ranked = [
        (_rank(cells[min(cells) if at is None else at]), -number, each)
        for number, (each, cells) in enumerate(rated)
    ]
    return max(ranked, key=lambda found: found[:2])[2]


def _rank(cell: Cell) -> tuple[float, float]:
    rate, length = cell.user_rate, cell.acceptance_length
    return (rate.median if rate else 0.0, length.median if length else 0.0)


async def leave_in(
    around: Around,
    wanted: Target,
    base: Launch,
    *,
    patience: float,
    on_step: OnStep,
    say: Callable[[str], None],
    asking: Asking,
) -> str:
    """Bring what a unit is to be left in into force, and prove it.

    Returns why that failed; empty where it is in force. Raises NotPossible, RightMissing,
    LinkRefused, StoreError.
    """

    async def note(*, change: str, plan: Plan | None) -> None:
        say(f"change {change[:8]}")
        if plan is not None:
            await asking(plan)

    bringing = Bringing(
        around, wanted.request, base, patience=patience, on_step=on_step, say=say, note=note
    )
    while True:
        decision = decide(await bringing.facts())
        if decision.action is Action.RECORD:
            return ""
        if decision.action is Action.FAIL:
            return str(bringing.cause(decision.why).get("title", decision.why))
        await bringing.act(decision.action)


async def done_since(around: Around, base: Baseline) -> list[Experiment]:
    """Experiments that ended since a queue began, cleared ones too. Raises StoreError."""
    host = around.host
    everything = await asyncio.to_thread(
        around.queue.queue, host.name, simulated=host.simulated, cleared=True
    )
    return [each for each in everything if base.saw_end(each)]


async def measurements_of(around: Around, experiments: Sequence[Experiment]) -> list[Measurement]:
    """Their measurements, as far as they can be read. Raises StoreError."""
    found = [
        await asyncio.to_thread(around.measured.get, each.measurement)
        for each in experiments
        if each.measurement
    ]
    return [each for each in found if each is not None]
