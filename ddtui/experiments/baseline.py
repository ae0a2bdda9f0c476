"""What a queue's experiments are made on: what was in force when it began.

It is recorded before anything is changed. Once all has ended it is forgotten, unless something of
the queue may be done yet: what is held may be released, what failed or was cancelled may be
retried. The same request made on what the queue has left would be another configuration.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable

import msgspec

from ddtui.control.journal import OnStep
from ddtui.core.configuration_key import key_of, key_with_secrets
from ddtui.core.experiment import WAITING, Experiment, ExperimentState, InForce, QueueSettings
from ddtui.core.launch import Launch, Plan
from ddtui.experiments.needs import Around
from ddtui.experiments.plan_known import in_force_now
from ddtui.experiments.runners_queue import RunnersQueue
from ddtui.hosts.base import HostError, LinkDown, ProgramTimeout

AGAIN_AFTER = 2.0
"""Seconds after which a host that did not answer is asked again."""
OTHER_HAND = "the unit was changed by another hand since the last run"
Asking = Callable[[Plan], Awaitable[None]]
"""Keeps what is asked for before it is: see BaselineBook."""
_MAY_BE_RETRIED = frozenset({ExperimentState.FAILED, ExperimentState.CANCELLED})

log = logging.getLogger(__name__)


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What was in force when a queue began."""

    launch: Launch
    """With its secrets: it is kept in the store only."""
    at: float
    """Unix seconds when it was recorded."""
    began_as: int = 0
    """The queue's version then: what has ended as a later one is of this queue. 0 where an older
    ddtui recorded it: then the times tell."""
    unit: str = ""
    left: Launch | None = None
    """What the unit was left in once all had ended or a run was stopped; None while the queue is
    worked on, and where that ended in no good order."""
    stopped: bool = False
    """Whether a run was stopped then, and the queue has not ended."""
    rest: tuple[str, ...] = ()
    """Ids of what might be done yet then: it is still of this queue."""
    asked: tuple[str, ...] | None = None
    """Keys of what the unit was in before a run changed it last, and of what that asked for: one of
    them is in force where the run was killed, and nobody else has changed it. None where an older
    ddtui has not kept that."""
    salt: str = ""
    """Of the keys below; empty where an older ddtui has kept none."""
    asked_secrets: tuple[str, ...] = ()
    """The same as `asked`, by keys that tell another secret too: else a run that was killed, and
    goes on, would write an API key back that was renewed meanwhile."""
    moved: tuple[str, ...] = ()
    """Ids of what waited to be made on an earlier one, when another hand had changed the unit."""
    before: Launch | None = None
    """That earlier one."""
    in_force: InForce = InForce()
    """What the queue's settings said of it when all had ended."""

    def lasts(self, now: Launch | None, waiting: Collection[str]) -> bool:
        """Whether the queue goes on with it.

        It does until all has ended; then as long as some of the rest waits. Where somebody has
        changed the unit after a run, what that one wants counts. `now`: the unit's configuration,
        None where it is not known.
        """
        if self.left is None:
            return now is None or self._may_have_left(now)
        if now not in (None, self.left):
            return False
        return self.stopped or not set(self.rest).isdisjoint(waiting)

    def _may_have_left(self, now: Launch) -> bool:
        """Whether a run that was killed can have left the unit in it."""
        if self.asked is None or now == self.launch:
            return True
        if key_of(now) not in {key_of(self.launch), *self.asked}:
            return False
        own = {key_with_secrets(self.launch, self.salt), *self.asked_secrets}
        return not self.salt or key_with_secrets(now, self.salt) in own

    def asking(self, *launches: Launch) -> Baseline:
        """With what the unit is in, and what it is asked for, before it is."""
        return msgspec.structs.replace(
            self,
            asked=tuple(dict.fromkeys(map(key_of, launches))),
            asked_secrets=tuple(
                dict.fromkeys(key_with_secrets(each, self.salt) for each in launches)
            )
            if self.salt
            else (),
        )

    def has(self, experiment_id: str) -> bool:
        """Whether what waits was to be made on this one; of a killed run nobody has kept that."""
        return self.left is None or experiment_id in self.rest

    def meant_for(self, experiment_id: str) -> Launch | None:
        """What it waited to be made on, where that is an earlier one."""
        return self.before if experiment_id in self.moved else None

    def may_do_yet(self, experiment: Experiment) -> bool:
        """Whether an experiment that does not run is of this queue, and may still be done."""
        if experiment.state in WAITING:
            return True
        return experiment.state in _MAY_BE_RETRIED and self.saw_end(experiment)

    def saw_end(self, experiment: Experiment) -> bool:
        """Whether an experiment has ended since this queue began."""
        if self.began_as and experiment.ended_as:
            return experiment.ended_as > self.began_as
        return (experiment.ended or 0.0) >= self.at


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


def moved_from(known: Baseline, waiting: Iterable[str], now: Launch) -> tuple[str, ...]:
    """Ids of what waits, and is not made on what it was to be: `known` does not last."""
    other = key_of(known.launch) != key_of(now)
    return tuple(each for each in waiting if each in known.moved or (other and known.has(each)))


def moved_ones(
    settings: QueueSettings, experiments: Iterable[Experiment], now: Launch | None
) -> frozenset[str]:
    """Ids of what waits to be made on something else than its queue began with.

    `now`: the unit's configuration, where it is known.
    """
    found = baseline_of(settings)
    waiting = [each.id for each in experiments if each.state in WAITING]
    if found is None or now is None or found.lasts(now, waiting):
        return frozenset(() if found is None else found.moved)
    return frozenset(moved_from(found, waiting, now))


def meant_for(settings: QueueSettings, experiment_id: str) -> Launch | None:
    """What one of the `moved_ones` was to be made on; None where that is not kept."""
    found = baseline_of(settings)
    return None if found is None else found.meant_for(experiment_id) or found.launch


class BaselineBook:
    """Records a host's baseline for its runner. All raise StoreError."""

    def __init__(self, around: Around, queue: RunnersQueue) -> None:
        self._around = around
        self._queue = queue
        self._begun = False
        self.replaced = False
        """Whether another hand has changed the unit, so that this run began with another one."""

    async def at_the_end(self, on_step: OnStep, say: Callable[[str], None]) -> Baseline | None:
        """What the queue was worked on with; None where it is not to be left in anything.

        So it is where it was not begun, has ended already, or the unit was changed after a run was
        stopped or killed. Raises as `begin`.
        """
        found = baseline_of(await self._queue.settings())
        if found is None or await self._goes_on(found):
            return found
        if found.left is not None and not found.stopped:
            return None
        if found.lasts(await self._in_force(on_step, say), ()):
            return found
        say(f"{OTHER_HAND}: it is left as it is")
        return None

    async def begin(self, on_step: OnStep, say: Callable[[str], None]) -> Baseline:
        """The queue's own one; recorded now where it has none.

        What another hand does to the unit while this run lasts changes nothing. Raises NotPossible,
        ActionFailed, LinkRefused.
        """
        settings = await self._queue.settings()
        known = baseline_of(settings)
        if known is not None and await self._goes_on(known):
            self._begun = True
            return known
        launch = await self._in_force(on_step, say)
        waiting = await self._queue.ids(*WAITING, ExperimentState.RUNNING)
        self._begun = True
        if known is not None and known.lasts(launch, waiting):
            if known.left is not None:
                known = msgspec.structs.replace(
                    known.asking(known.left), left=None, rest=(), stopped=False
                )
                await self._record(known, known.in_force)
            return known
        moved = () if known is None else moved_from(known, waiting, launch)
        self.replaced = bool(moved)
        around = self._around
        found = Baseline(
            launch=launch,
            at=around.watching.clock(),
            began_as=await self._queue.version(),
            unit=around.unit(),
            asked=(),
            salt=secrets.token_hex(16),
            moved=moved,
            before=known.launch if moved and known is not None else None,
        )
        snapshot, engine = around.watching.snapshot(), around.watching.engine
        in_force = in_force_now(launch, engine, snapshot, settings.in_force)
        await self._record(found, in_force)
        return found

    async def asking(self, plan: Plan) -> None:
        """Keep what the unit is in and what is asked for, before it is: a killed run tells nobody.

        Nothing of it is kept where the queue has no baseline.
        """
        settings = await self._queue.settings()
        if (found := baseline_of(settings)) is not None and found.left is None:
            await self._record(found.asking(plan.before, plan.after), settings.in_force)

    async def _goes_on(self, known: Baseline) -> bool:
        """Whether it is the queue's own one whoever has changed the unit.

        In the hands of this run, and where the change that was asked for last has not ended: it is
        carried on with what it was made for.
        """
        if known.left is not None:
            return False
        change = None if self._begun else await self._around.control.unfinished()
        if change is None:
            return self._begun
        wanted = Launch(change.after_argv, change.after_environment)
        return known.asked is None or key_of(wanted) in known.asked

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
        try:
            if await control.unfinished() is None:
                left = (await control.command()).launch
                rest = tuple(await self._queue.ids(*WAITING))
                kept = msgspec.structs.replace(found, left=left, stopped=True, rest=rest)
                await self._record(kept, (await self._queue.settings()).in_force)
        except HostError as error:  # then what was asked for last tells of a change by hand
            log.info("what the unit is in when the run stops is not known: %s", error.what)

    async def end(self, base: Baseline) -> None:
        """All has ended, and the unit is left in something: keep it for the rest, or forget it."""
        everything = await self._queue.experiments(cleared=True)
        rest = [each for each in everything if base.may_do_yet(each)]
        if rest:
            try:
                left = (await self._around.control.command()).launch
            except HostError as error:  # then it is recorded anew, as for another queue
                log.info("what the queue left the unit in is not known: %s", error.what)
            else:
                known = (await self._queue.settings()).in_force
                ids = tuple(each.id for each in rest)
                kept = msgspec.structs.replace(
                    base, left=left, stopped=False, rest=ids, in_force=known
                )
                waits = any(each.state in WAITING for each in rest)
                await self._record(kept, known if waits else InForce())
                return
        await self._queue.change_settings(baseline={}, in_force=InForce())
