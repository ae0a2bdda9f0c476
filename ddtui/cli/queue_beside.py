"""What is told of a queue's experiments beside their rows: what came of them, and who runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ddtui.app.queue_results import result_of
from ddtui.cli.output import say
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.experiments.interrupted import left_behind
from ddtui.experiments.presence import holder_of, presence_file
from ddtui.store.errors import StoreError
from ddtui.ui.queue_source import Result

if TYPE_CHECKING:
    from ddtui.experiments.queue import Queue
    from ddtui.store import Store


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """Of the experiments of one list."""

    left: frozenset[str] = frozenset()
    """Ids of those that stand as running, and that no process of this machine runs."""
    results: Mapping[str, Result] = {}
    """What was measured, by the experiment's id."""


def beside(queue: Queue, store: Store, listed: Sequence[Experiment]) -> Beside:
    """Look it up. Raises StoreError."""
    results = {}
    for each in listed:
        measured = store.measurements.get(each.measurement) if each.measurement else None
        if measured is not None and measured.cells:
            results[each.id] = result_of(measured)
    return Beside(left=_left(queue, listed), results=results)


def _left(queue: Queue, listed: Sequence[Experiment]) -> frozenset[str]:
    running = [each for each in listed if each.state is ExperimentState.RUNNING]
    if not running:
        return frozenset()
    try:
        holder = holder_of(presence_file(queue.host, simulated=queue.simulated))
    except StoreError as error:
        say(f"warning: who runs them is not known: {error}")
        return frozenset()
    # Read once more: a runner may have begun, or ended, since the list was read.
    now = {each.id: each for each in queue.listed(cleared=True)}
    return left_behind((each for each in running if now.get(each.id) == each), holder)
