"""Benches by hand whose process was killed: told by the process that is not there any more.

A bench that is ended keeps its measurement as ended; one that is killed has no time for that. What
the queue's runners measure is carried on by the next runner, and is no matter of this module.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Iterable

import msgspec
import psutil

from ddtui.core.measurement import Measurement, MeasurementState, Owner
from ddtui.experiments.needs import Around

SAME_START = 2.0
"""Seconds by which the system's word on the start of a process may differ: its clock is set."""
CAUSE = "interrupted: the ddtui that measured it was killed, or its machine went down"


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
    measurements: Iterable[Measurement], gone: Callable[[Owner | None], bool] = is_gone
) -> list[Measurement]:
    """The measurements, with those that were interrupted told as such; their cells are whole."""
    return [_ended(each) if _is_interrupted(each, gone) else each for each in measurements]


def _is_interrupted(found: Measurement, gone: Callable[[Owner | None], bool]) -> bool:
    by_hand = not found.experiment
    return by_hand and found.state is MeasurementState.RUNNING and gone(found.owner)


def _ended(found: Measurement) -> Measurement:
    has_some = bool(found.cells or found.coding)
    state = MeasurementState.PARTIAL if has_some else MeasurementState.FAILED
    return msgspec.structs.replace(found, state=state, cause=CAUSE, owner=None)


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
