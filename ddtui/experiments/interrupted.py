"""Measurements that nobody is measuring any more, though they were kept as under way.

A bench by hand that is ended keeps its measurement as ended; one that is killed has no time for
that: it is told by the process that is not there any more. What a queue's runner was measuring is
carried on by the next runner, unless its experiment was cancelled, changed or begun anew while it
waited: it is told by the experiment.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec
import psutil

from ddtui.core.experiment import WAITING, Experiment, ExperimentState
from ddtui.core.measurement import Measurement, MeasurementState, Owner
from ddtui.experiments.needs import Around
from ddtui.experiments.presence import Holder

SAME_START = 2.0
"""Seconds by which the system's word on the start of a process may differ: its clock is set."""
CAUSE = "interrupted: the ddtui that measured it was killed, or its machine went down"
WAITS = "broken off: its experiment waits to be carried on"
LEFT = "interrupted: nobody runs its experiment now from this machine"
GIVEN_UP = "given up: its experiment was changed, or begun anew"


def this_process() -> Owner:
    """The owner of what this process measures."""
    return Owner(os.getpid(), psutil.Process().create_time(), platform.node())


def is_gone(owner: Owner | None) -> bool:
    """Whether the process is surely not there any more.

    Nothing is known of those of another machine. Without an owner it was measured by a ddtui that
    did not note it.
    """
    if owner is None:
        return True
    if owner.machine != platform.node():
        return False
    try:
        began = psutil.Process(owner.pid).create_time()
    except psutil.NoSuchProcess:
        return True
    return abs(began - owner.started) > SAME_START


def as_they_ended(
    measurements: Iterable[Measurement],
    experiments: Iterable[Experiment] = (),
    *,
    left: Collection[str] = (),
    gone: Callable[[Owner | None], bool] = is_gone,
) -> list[Measurement]:
    """The measurements, with those that were interrupted told as such; their cells are whole.

    `experiments` are those that the measurements are of; of one that is not among them nothing is
    known, and its measurement stays as it is. `left`: ids of those that are `left_behind`.
    """
    by_id = {each.id: each for each in experiments}
    return [_as_it_ended(each, by_id, left, gone) for each in measurements]


def left_behind(experiments: Iterable[Experiment], holder: Holder | None) -> frozenset[str]:
    """Ids of those that stand as running, and that no process of this machine runs.

    `holder` is who runs them, as the system says; a `ddtui bench` keeps others away as well.
    """
    runs = None if holder is None else f"{holder.who} "
    return frozenset(
        each.id
        for each in experiments
        if each.state is ExperimentState.RUNNING
        and (runs is None or not each.runner.startswith(runs))
    )


def _as_it_ended(
    found: Measurement,
    experiments: Mapping[str, Experiment],
    left: Collection[str],
    gone: Callable[[Owner | None], bool],
) -> Measurement:
    if found.state is not MeasurementState.RUNNING:
        return found
    if not found.experiment:
        return _ended(found, CAUSE) if gone(found.owner) else found
    owner, has_some = experiments.get(found.experiment), bool(found.cells or found.coding)
    # One without a figure is nobody's result: what became of its experiment tells it all.
    if owner is None or not has_some or not (why := _left_by(owner, found, left)):
        return found
    return _ended(found, why)


def _left_by(owner: Experiment, found: Measurement, left: Collection[str]) -> str:
    """Why nobody measures for an experiment any more; empty where somebody does."""
    if owner.measurement != found.id:
        return GIVEN_UP
    if owner.state is ExperimentState.RUNNING:
        return LEFT if owner.id in left else ""
    return WAITS if owner.state in WAITING else f"its experiment was ended: {owner.state.value}"


def _ended(found: Measurement, why: str) -> Measurement:
    has_some = bool(found.cells or found.coding)
    state = MeasurementState.PARTIAL if has_some else MeasurementState.FAILED
    return msgspec.structs.replace(found, state=state, cause=why, owner=None)


async def keep_as_ended(around: Around) -> None:
    """Keep those of a host as they ended. Raises StoreError."""
    host = around.host
    known = await asyncio.to_thread(
        around.measured.of_host,
        host.name,
        simulated=host.simulated,
        state=MeasurementState.RUNNING,
    )
    for before, now in zip(known, as_they_ended(known), strict=True):
        if now is not before:
            await asyncio.to_thread(around.measured.put, now)
