"""How a reconfiguration ends: in force, or failed with its cause and rolled back by policy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ddtui.control import drop_in
from ddtui.control.carrying_out import CarryingOut, EndOrphans, Failure, Watching
from ddtui.control.differences import safe_launch, with_drop_in
from ddtui.control.drop_in import Header, stands_before_another
from ddtui.control.host_actions import ActionFailed, UnitActions
from ddtui.control.journal import ChangeStore, Journal
from ddtui.control.reconfiguration import Run, Step
from ddtui.control.standing import standing
from ddtui.control.unit_command import CommandRefused, drop_in_path, overruling, read_unit
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Launch
from ddtui.hosts.base import HostError

DIAGNOSIS_DELAY = 1.5
"""Seconds for the last lines of a failed start to arrive."""


class Asked(msgspec.Struct, frozen=True):
    """How an operator answers while a change goes on; None: no, without asking."""

    rollback: Callable[[str], Awaitable[bool]] | None = None
    """Whether to roll back; is given the failure."""
    orphans: EndOrphans | None = None
    """Whether to end what is left of the old invocation; is given what is still held."""


class Outcome:
    """Carries one record to its end, under a lock that is held."""

    def __init__(
        self,
        work: CarryingOut,
        journal: Journal,
        actions: UnitActions,
        store: ChangeStore,
        watching: Watching,
        asked: Asked,
    ) -> None:
        self._work = work
        self._journal = journal
        self._actions = actions
        self._store = store
        self._watching = watching
        self._asked = asked

    async def reach(self) -> None:
        """Carry it on to its end. Raises LinkDown, ProgramTimeout."""
        work, journal = self._work, self._journal
        run, record = journal.run, journal.record
        if run is None:
            await journal.end(Step.UNKNOWN, "its record holds too little to carry it on")
            return
        if record.state.taking_back is not None:
            await self._take_back(record.state.taking_back)
            return
        if record.state.back is not None:
            await self._roll_back(run, record.state.back)
            return
        try:
            await work.to(run, record.drop_in)
        except (Failure, ActionFailed) as failure:
            await self._failed(failure)
            return
        end = Step.ROLLED_BACK if record.kind == "rollback" else Step.IN_FORCE
        # The cause of an earlier try is no news any more.
        await journal.end(end, journal.record.doubt, cause=None)

    async def _failed(self, failure: Failure | ActionFailed) -> None:
        journal, asked = self._journal, self._asked
        record = journal.record
        why = failure.why if isinstance(failure, Failure) else failure.what
        cause = await self._cause(failure, why)
        await journal.keep(cause=cause)
        if not record.state.stopped and not (journal.run and journal.run.started):
            await self._take_back(why)
            return
        if isinstance(failure, Failure) and failure.by_hand:
            await self._end(Step.FAILED, why)  # whoever stopped it does not want it started
            return
        back = await self._back_to()
        wanted = record.policy == "always" and back is not None
        if record.policy == "ask" and back is not None and asked.rollback is not None:
            wanted = await asked.rollback(str(cause.get("title") or why))
        if not wanted or back is None:
            await self._end(Step.FAILED, why)
            return
        run = journal.run
        before = run.invocation or run.invocation_before if run is not None else ""
        new = Run(drop_in.text_hash(back), record.drop_in_hash, before)
        expected, opaque = await self._expected(back) or (None, record.state.opaque)
        # In the store at once: whoever carries it on must not decide anew.
        await journal.remember(
            expected=expected, opaque=opaque, run=new, back=back, failed=why, prove=()
        )
        await self._roll_back(new, back)

    async def _roll_back(self, run: Run, back: str) -> None:
        work, journal = self._work, self._journal
        if all(each.step != Step.ROLLING_BACK for each in journal.record.steps):
            await journal.step(Step.ROLLING_BACK, journal.record.state.failed)
        try:
            await work.to(run, back)
        except (Failure, ActionFailed) as failure:
            why = failure.why if isinstance(failure, Failure) else failure.what
            await self._end(Step.DEGRADED, f"the rollback failed as well: {why}")
            return
        await journal.remember(proved=back)
        words = (journal.record.state.failed, journal.record.doubt)
        await journal.end(Step.ROLLED_BACK, "; ".join(filter(None, words)))

    async def _take_back(self, why: str) -> None:
        """Nothing was stopped: put the old drop-in back, and leave the engine alone."""
        journal, actions = self._journal, self._actions
        again = journal.record.state.taking_back is not None
        await journal.remember(taking_back=why)
        record = journal.record
        facts = await actions.look()
        ours = record.kind != "restart" and facts.drop_in == record.drop_in_hash
        back = as_before(record)
        if ours:
            try:
                await actions.write(back, facts.drop_in)
            except ActionFailed as error:
                left = (
                    f"the new drop-in is still at {drop_in_path(actions.scope, actions.unit, '~')},"
                    f" and the next start will take it: {error.what}"
                )
                await self._not_taken_back(why, left, error)
                return
        if ours or (again and facts.drop_in == drop_in.text_hash(back)):
            try:
                await actions.systemctl("daemon-reload")
            except ActionFailed as error:
                left = (
                    "the old drop-in is on disk again, but systemd may still hold the new one"
                    f" until `systemctl daemon-reload`: {error.what}"
                )
                await self._not_taken_back(why, left, error)
                return
        await self._end(Step.FAILED, f"{why}; nothing was stopped")

    async def _end(self, step: Step, why: str, **changes: Any) -> None:
        """End it as failed or degraded, with where the host stands."""
        await _end(self._journal, self._actions, self._watching, step, why, **changes)

    async def _not_taken_back(self, why: str, left: str, error: ActionFailed) -> None:
        cause = dict(self._journal.record.cause or {"title": why})
        cause["remedy"] = "\n".join(
            dict.fromkeys(each for each in (cause.get("remedy"), error.remedy) if each)
        )
        await self._end(Step.FAILED, f"{why}; nothing was stopped; {left}", cause=cause)

    async def _back_to(self) -> str | None:
        """What to roll back to: as it was, if that was ready; else what was proved last."""
        record = self._journal.record
        if record.kind != "apply":
            return None
        if record.was_ready:
            return as_before(record)
        last = await asyncio.to_thread(
            self._store.last_in_force, record.host, record.unit, simulated=record.simulated
        )
        if last is None or stands_before_another(last, drop_in.header_of(record.drop_in).base):
            return as_before(record)
        return last or _nothing(record)

    async def _expected(self, back: str) -> tuple[Launch, tuple[str, ...] | None] | None:
        """What runs once `back` is in force again, and its words that the host expands.

        By the record of its proof, else by the unit's files as they are; None where they are not
        readable.
        """
        record = self._journal.record
        opaque = record.state.opaque
        as_before = not record.before_drop_in and not drop_in.sets_anything(back)
        if as_before or back == record.before_drop_in:
            return Launch(record.before_argv, record.before_environment), opaque
        earlier = await asyncio.to_thread(
            self._store.history, record.host, simulated=record.simulated, unit=record.unit
        )
        for each in earlier:
            if not each.is_proved or each.proved_drop_in != back:
                continue
            if each.state.expected is not None:
                return each.state.expected, each.state.opaque
            if each.state.proved is None:
                return Launch(each.after_argv, each.after_environment), each.state.opaque
        return await self._written(back)

    async def _written(self, back: str) -> tuple[Launch, tuple[str, ...] | None] | None:
        """What the unit's files say that it starts with `back` in place of ddtui's drop-in."""
        actions = self._actions
        is_engine = self._watching.engine.is_command
        try:
            text = with_drop_in(await actions.read(), actions.unit, back)
            # One that decides over it is no part of what is wanted: the proof then names it.
            over = overruling(text.files)
            files = [each for each in text.files if each not in over]
            command = read_unit(actions.unit, files, is_engine, text.environment_files)
        except (CommandRefused, ActionFailed) as error:
            self._journal.say(f"what it comes back to is not known in full: {error.what}")
            return None
        return safe_launch(command.launch), tuple(sorted(command.opaque))

    async def _cause(self, failure: Failure | ActionFailed, why: str) -> dict[str, Any]:
        """Why a start failed: by the journal of its invocation, else by what was seen."""
        if isinstance(failure, ActionFailed):
            return {"title": why, "remedy": failure.remedy}
        if not failure.started or failure.by_hand:
            return {"title": why} | ({"remedy": failure.remedy} if failure.remedy else {})
        await asyncio.sleep(DIAGNOSIS_DELAY)
        found = self._work.cause(self._journal.run or Run("", "", ""))
        return {"title": why} if found is None else msgspec.to_builtins(found) | {"seen": why}


def as_before(record: ChangeRecord) -> str:
    """The text of ddtui's drop-in that stands for how it was before the change."""
    return record.before_drop_in or _nothing(record)


def _nothing(record: ChangeRecord) -> str:
    return drop_in.nothing(Header(when=drop_in.stamp(record.began), by=record.who, id=record.id))


async def break_off(
    journal: Journal, actions: UnitActions, watching: Watching, error: HostError
) -> None:
    """End a change for an error in the middle, once something may have been touched.

    Raises LinkDown, ProgramTimeout.
    """
    step = Step.DEGRADED if journal.record.state.back is not None else Step.FAILED
    cause = {"title": error.what} | ({"remedy": error.remedy} if error.remedy else {})
    await _end(journal, actions, watching, step, error.what, cause=cause)


async def _end(
    journal: Journal, actions: UnitActions, watching: Watching, step: Step, why: str, **changes: Any
) -> None:
    record = journal.record
    where = await standing(record, as_before(record), actions, watching)
    await journal.end(step, f"{why}; {where}", **changes)
