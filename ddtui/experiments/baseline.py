"""What a queue's experiments are made on: what was in force when it began.

It is recorded before anything is changed. Once all has ended it is forgotten, unless something of
the queue may be done yet: what is held may be released, what failed or was cancelled may be
retried. The same request made on what the queue has left would be another configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable

import msgspec

from ddtui.control.journal import OnStep
from ddtui.core.experiment import WAITING, Experiment, ExperimentState, InForce, QueueSettings
from ddtui.core.launch import Launch
from ddtui.experiments.needs import Around
from ddtui.experiments.plan_known import in_force_now
from ddtui.experiments.runners_queue import RunnersQueue
from ddtui.hosts.base import HostError, LinkDown, ProgramTimeout

AGAIN_AFTER = 2.0
"""Seconds after which a host that did not answer is asked again."""
_MAY_BE_RETRIED = frozenset({ExperimentState.FAILED, ExperimentState.CANCELLED})

log = logging.getLogger(__name__)


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What was in force when a queue began."""

    launch: Launch
    """With its secrets: it is kept in the store only."""
    at: float
    """Unix seconds when it was recorded: the queue's experiments began later."""
    unit: str = ""
    left: Launch | None = None
    """What the unit was left in once all had ended or a run was stopped; None while the queue is
    worked on, and where that ended in no good order."""
    stopped: bool = False
    """Whether a run was stopped then, and the queue has not ended."""
    rest: tuple[str, ...] = ()
    """Ids of what might be done yet then: it is still of this queue."""
    in_force: InForce = InForce()
    """What the queue's settings said of it when all had ended."""

    def lasts(self, now: Launch | None, waiting: Collection[str]) -> bool:
        """Whether the queue goes on with it.

        It does until all has ended; then as long as some of the rest waits. Where somebody has
        changed the unit after a run, what that one wants counts. `now`: the unit's configuration,
        None where it is not known.
        """
        if self.left is None:
            return True
        if now not in (None, self.left):
            return False
        return self.stopped or not set(self.rest).isdisjoint(waiting)

    def may_do_yet(self, experiment: Experiment) -> bool:
        """Whether an experiment that does not run is of this queue, and may still be done."""
        if experiment.state in WAITING:
            return True
        ended_here = (experiment.ended or 0.0) >= self.at
        return experiment.state in _MAY_BE_RETRIED and ended_here


def baseline_of(settings: QueueSettings) -> Baseline | None:
    """What the settings keep; None before the queue has begun, and where it cannot be read."""
    if not settings.baseline:
        return None
    try:
        return msgspec.convert(settings.baseline, Baseline)
    except msgspec.ValidationError as error:
        log.warning("the baseline that was kept is unreadable and recorded anew: %s", error)
        return None


def made_on(
    settings: QueueSettings, experiments: Iterable[Experiment], now: Launch | None
) -> Launch | None:
    """What a queue's experiments are made on; None where that is what is in force.

    `now`: the unit's configuration, where it is known.
    """
    found = baseline_of(settings)
    waiting = [each.id for each in experiments if each.state in WAITING]
    return found.launch if found is not None and found.lasts(now, waiting) else None


class BaselineBook:
    """Records a host's baseline for its runner. All raise StoreError."""

    def __init__(self, around: Around, queue: RunnersQueue) -> None:
        self._around = around
        self._queue = queue

    async def at_the_end(self, on_step: OnStep, say: Callable[[str], None]) -> Baseline | None:
        """What the queue was worked on with; None where it is not to be left in anything.

        So it is where it was not begun, has ended already, or the unit was changed after a run was
        stopped. Raises as `begin`.
        """
        found = baseline_of(await self._queue.settings())
        if found is None or found.left is None:
            return found
        lasts = found.stopped and found.lasts(await self._in_force(on_step, say), ())
        return found if lasts else None

    async def begin(self, on_step: OnStep, say: Callable[[str], None]) -> Baseline:
        """The queue's own one; recorded now where it has none.

        Raises NotPossible, ActionFailed, LinkRefused.
        """
        settings = await self._queue.settings()
        known = baseline_of(settings)
        if known is not None and known.left is None:
            return known
        launch = await self._in_force(on_step, say)
        if known is not None and known.lasts(launch, await self._queue.ids(*WAITING)):
            found = msgspec.structs.replace(known, left=None, rest=(), stopped=False)
            await self._record(found, known.in_force)
            return found
        around = self._around
        found = Baseline(launch=launch, at=around.watching.clock(), unit=around.unit())
        snapshot, engine = around.watching.snapshot(), around.watching.engine
        in_force = in_force_now(launch, engine, snapshot, settings.in_force)
        await self._record(found, in_force)
        return found

    async def _record(self, found: Baseline, in_force: InForce) -> None:
        await self._queue.change_settings(baseline=msgspec.to_builtins(found), in_force=in_force)

    async def _in_force(self, on_step: OnStep, say: Callable[[str], None]) -> Launch:
        """What the unit is configured as, once no change of it is under way any more."""
        around = self._around
        while True:
            try:
                await around.host.wait_live()
                if await around.control.unfinished() is not None:
                    await around.control.resume(on_step)
                return (await around.control.command()).launch
            except (LinkDown, ProgramTimeout) as error:
                say(error.what)
                await asyncio.sleep(AGAIN_AFTER)

    async def stop(self) -> None:
        """A run was stopped: keep what the unit is in now, so that a change by hand is noticed.

        Not where a change is under way: the next run carries it on first.
        """
        found = baseline_of(await self._queue.settings())
        if found is None or found.left is not None:
            return
        control = self._around.control
        with contextlib.suppress(HostError):  # then the queue goes on with it in any case
            if await control.unfinished() is None:
                left = (await control.command()).launch
                kept = msgspec.structs.replace(found, left=left, stopped=True)
                await self._record(kept, (await self._queue.settings()).in_force)

    async def end(self, base: Baseline) -> None:
        """All has ended, and the unit is left in something: keep it for the rest, or forget it."""
        everything = await self._queue.experiments(cleared=True)
        rest = [each for each in everything if base.may_do_yet(each)]
        if rest:
            with contextlib.suppress(HostError):  # then it is recorded anew, as for another queue
                left = (await self._around.control.command()).launch
                known = (await self._queue.settings()).in_force
                ids = tuple(each.id for each in rest)
                kept = msgspec.structs.replace(
                    base, left=left, stopped=False, rest=ids, in_force=known
                )
                waits = any(each.state in WAITING for each in rest)
                await self._record(kept, known if waits else InForce())
                return
        await self._queue.change_settings(baseline={}, in_force=InForce())
