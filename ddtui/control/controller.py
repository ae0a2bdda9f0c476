"""Changes a host's engine: plan, apply, roll back, restart; one at a time, resumable, audited."""

from __future__ import annotations

import asyncio
import getpass
import os
import platform
from collections.abc import Callable
from typing import Literal

import msgspec

from ddtui.control import drop_in
from ddtui.control.carrying_out import LOOK_AGAIN, Watching
from ddtui.control.differences import (
    differences,
    not_running_as_written,
    not_to_be_written,
    of_the_unit,
    safe_launch,
    safe_request,
    with_drop_in,
)
from ddtui.control.drop_in import Header
from ddtui.control.earlier import Earlier, earlier, only_the_drop_in
from ddtui.control.exec_start import ExecError
from ddtui.control.host_actions import Facts, UnitActions
from ddtui.control.in_the_way import (
    carry_on,
    going_on,
    interrupted,
    left_behind,
    left_elsewhere,
)
from ddtui.control.journal import ChangeStore, Journal, OnStep
from ddtui.control.lock import LockHeld, lock_holder, lock_key
from ddtui.control.new_record import new_record
from ddtui.control.of_scope import OfScope
from ddtui.control.outcome import Asked
from ddtui.control.planner import Planner
from ddtui.control.proof import restart_due
from ddtui.control.reconfiguration import Limits, Run
from ddtui.control.rights_check import RightsCheck, check_rights
from ddtui.control.running_now import down, engine_findings
from ddtui.control.simulated import NOTHING_CHANGED, OfThisHost
from ddtui.control.to_its_end import to_its_end
from ddtui.control.unit_command import CommandRefused, UnitCommand, drop_in_path, read_unit
from ddtui.control.unit_files import UnitText
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Finding, Launch, Level, Plan, Request
from ddtui.hosts.base import HostError

Policy = Literal["ask", "always", "never"]
KNOWN_CHANGES = 5
"""Earlier changes whose invocations may have left processes."""
LOCK_FREES = 10.0
"""Seconds for the host to see that a ddtui which was killed is gone: then its lock is free."""


class NotPossible(HostError):
    """A change cannot be made, and nothing was touched: why, and what to do."""


def operator() -> str:
    """Who changes something: user@machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"
    return f"{user}@{platform.node() or '?'}"


class NoUnit(NotPossible):
    """There is no unit to change: none is known, or not by this name."""


class Controller:
    """Changes the unit of one watched host."""

    def __init__(
        self,
        actions: Callable[[], UnitActions],
        watching: Watching,
        planner: Planner,
        store: ChangeStore,
        *,
        limits: Limits | None = None,
        who: str = "",
        options: str = "",
    ) -> None:
        """`actions` gives those of the unit, once that is known; it raises NotPossible before.

        `options` name the unit on a command line, where the configuration names another one.
        """
        self._actions_of = actions
        self._watching = watching
        self._planner = planner
        self._store = store
        self._here: ChangeStore = OfThisHost(store)
        self._limits = limits or Limits()
        self._who = who or operator()
        self._options = options
        self._journal: Journal | None = None
        self._is_carrying = False
        self._rights = RightsCheck()

    # ---- looking -------------------------------------------------------------------------------

    @property
    def running(self) -> ChangeRecord | None:
        """The change that goes on here, or that ended here last; None when there was none."""
        return self._journal.record if self._journal is not None else None

    async def holder(self) -> str:
        """Who changes the unit now, as the lock on the host says; empty for nobody."""
        actions = self._actions_of()
        return await self._held_by(actions, await actions.read())

    async def _held_by(self, actions: UnitActions, text: UnitText) -> str:
        return await lock_holder(actions.host, lock_key(actions.scope, actions.unit, text.uid))

    async def history(self, most: int = 100) -> list[ChangeRecord]:
        """Earlier changes of the unit, the newest first. Raises StoreError."""
        actions = self._actions_of()
        return await asyncio.to_thread(
            OfScope(self._store, actions.scope).history,
            actions.host.name,
            simulated=actions.host.simulated,
            unit=actions.unit,
            most=most,
        )

    async def unfinished(self) -> ChangeRecord | None:
        """A change that was begun from here and has not ended: `resume` carries it on."""
        actions = self._actions_of()
        return await asyncio.to_thread(
            OfScope(self._here, actions.scope).unfinished,
            actions.host.name,
            actions.unit,
            simulated=actions.host.simulated,
        )

    async def look(self) -> Facts:
        """The unit as the host says that it is now. Raises HostError."""
        return await self._actions_of().look()

    async def command(self) -> UnitCommand:
        """The unit's command as it is on the host. Raises NotPossible."""
        return self._command(self._actions_of(), await self._actions_of().read())

    def _command(self, actions: UnitActions, text: UnitText) -> UnitCommand:
        if (trouble := text.trouble) is not None:
            kind = NoUnit if text.load_state == "not-found" else NotPossible
            raise kind(trouble.what, trouble.remedy)
        engine = self._watching.engine
        try:
            return read_unit(actions.unit, text.files, engine.is_command, text.environment_files)
        except CommandRefused as error:
            raise NotPossible(error.what, error.way_out) from error

    async def plan(
        self, request: Request, base: Launch | None = None, *, rights: bool = False
    ) -> Plan:
        """What a request would change, checked. Raises NotPossible, HostError.

        `base` is what the request is made on; what the unit is configured as where it is left out.
        `rights`: it is meant to be applied, so that a missing right is an error.
        """
        actions = self._actions_of()
        text = await actions.read()
        command = self._command(actions, text)
        snapshot = self._watching.snapshot()
        plan = await self._planner.plan(command, request, snapshot, base)
        findings = (
            *plan.findings,
            *of_the_unit(text),
            *not_running_as_written(
                command.launch, snapshot, self._watching.engine, command.opaque
            ),
            *not_to_be_written(command, plan.after),
        )
        due = self._older(command)
        if rights:
            holder, left = await self._held_by(actions, text), await self.unfinished()
            others = going_on(holder) if holder else left_behind(left, self.carry_on)
            is_down = "" if plan.changes else down(snapshot, await actions.look())
            due = due or is_down
            standing = () if plan.changes else engine_findings(snapshot, is_down)
            findings = (*findings, *others, *standing)
        if rights and (plan.changes or due):
            findings = (*findings, *await self._rights.findings(actions))
        return msgspec.structs.replace(plan, findings=findings, restart_due=due)

    @property
    def carry_on(self) -> str:
        """The command that carries an interrupted change of the unit on."""
        return carry_on(self._actions_of().host.name, self._options)

    async def _refuse_beside_another(self, actions: UnitActions, text: UnitText) -> None:
        """Raises LockHeld for a change that goes on, NotPossible for one that was interrupted."""
        if holder := await self._held_by(actions, text):
            raise LockHeld(holder)
        if (left := await self.unfinished()) is not None:
            raise NotPossible(interrupted(left), f"carry it on: {self.carry_on}")

    def _older(self, command: UnitCommand) -> str:
        """Why an engine that runs must be restarted for what is written; empty for no reason."""
        snapshot, engine = self._watching.snapshot(), self._watching.engine
        return restart_due(command.launch, snapshot, engine, command.opaque)

    # ---- changing ------------------------------------------------------------------------------

    async def apply(
        self,
        plan: Plan,
        on_step: OnStep | None = None,
        *,
        policy: Policy = "ask",
        asked: Asked | None = None,
        change_id: str = "",
    ) -> ChangeRecord:
        """Bring a plan into force, or say why not; returns the record of it, ended.

        One for which nothing is to be written restarts the unit, where that is due. `change_id`
        names the record, for one who has noted it before it is begun.
        Raises NotPossible, RightMissing and LockHeld while nothing has been touched.
        """
        if plan.blocked:
            errors = [each.text for each in plan.findings if each.level is Level.ERROR]
            raise NotPossible(f"the plan is blocked: {errors[0]}", "see its findings")
        actions = self._actions_of()
        text = await actions.read()
        command = self._command(actions, text)
        await self._refuse_beside_another(actions, text)
        if command.launch != plan.before:
            raise NotPossible("the unit has changed since the plan was made", "plan again")
        if plan.restart_only:
            is_down = down(self._watching.snapshot(), await actions.look())
            if not (is_down or self._older(command)):
                raise NotPossible("the engine was started since the plan was made", "plan again")
            return await self.restart(on_step, asked=asked, change_id=change_id, of=plan.request)
        who, watching, own = self._who, self._watching, text.own
        record = new_record("apply", who, watching, actions, command, own, change_id, plan.request)
        wanted = safe_launch(plan.after)
        content = _rendered(plan, record, command, text)
        record = msgspec.structs.replace(
            record,
            preset=plan.request.preset,
            request=safe_request(plan.request),
            after_argv=wanted.argv,
            after_environment=wanted.environment,
            changes=[msgspec.to_builtins(each) for each in plan.changes],
            drop_in=content,
            drop_in_hash=drop_in.text_hash(content),
            policy=policy,
            # As the drop-in has it: flags in a variable of the unit change the environment, too.
            state=msgspec.structs.replace(
                record.state,
                findings=plan.findings,
                expected=safe_launch(self._launch_with(actions, text, content)),
            ),
        )
        await self._check(actions, content)
        return await self._begin(record, actions, on_step, asked)

    async def restart(
        self,
        on_step: OnStep | None = None,
        *,
        asked: Asked | None = None,
        change_id: str = "",
        of: Request | None = None,
    ) -> ChangeRecord:
        """Stop, release, start and prove the unit as it is configured; `change_id` as in apply.

        `of` is what was asked for where it is written already.
        """
        actions = self._actions_of()
        text = await actions.read()
        command = self._command(actions, text)
        await self._refuse_beside_another(actions, text)
        who, watching, own = self._who, self._watching, text.own
        record = new_record("restart", who, watching, actions, command, own, change_id, of)
        record = msgspec.structs.replace(
            record, drop_in=text.own, drop_in_hash=drop_in.text_hash(text.own), policy="never"
        )
        await self._check(actions, "")
        return await self._begin(record, actions, on_step, asked)

    async def rollback_plan(self, *, force: bool = False) -> Plan:
        """What rolling back would change, and what speaks against it.

        `force`: also past a unit that was replaced. Raises NotPossible for nothing to go back to.
        """
        actions = self._actions_of()
        text = await actions.read()
        await self._refuse_beside_another(actions, text)
        back = await self._earlier(actions, text, force)
        command = self._command(actions, text)
        before, after = command.launch, self._launch_with(actions, text, back.drop_in)
        findings = [*back.findings, *of_the_unit(text)]
        if drop_in.sets_anything(back.drop_in):
            findings += await self._planner.in_sight(command, after)
        changes = tuple(differences(before, after, self._watching.engine.flags))
        if not changes:
            snapshot, engine = self._watching.snapshot(), self._watching.engine
            otherwise = not_running_as_written(before, snapshot, engine, command.opaque)
            path, same = drop_in_path(actions.scope, actions.unit, "~"), before == after
            findings.append(
                only_the_drop_in(text.own, back.drop_in, path, same=same, runs_so=not otherwise)
            )
            findings += otherwise
        findings += await self._rights.findings(actions)
        plan = Plan(Request(), before, after, changes, tuple(findings))
        return msgspec.structs.replace(plan, back_to=back.named, undoes=back.undoes)

    async def rollback(
        self,
        on_step: OnStep | None = None,
        *,
        asked: Asked | None = None,
        force: bool = False,
        plan: Plan | None = None,
    ) -> ChangeRecord:
        """Bring back what was configured before the last change; no other than `plan` shows.

        Raises NotPossible for nothing, and for a unit that was replaced since without `force`.
        """
        actions = self._actions_of()
        text = await actions.read()
        await self._refuse_beside_another(actions, text)
        back = await self._earlier(actions, text, force)
        for each in back.findings:
            if each.level is Level.ERROR:
                raise NotPossible(each.text, each.remedy)
        command = self._command(actions, text)
        who, watching, own = self._who, self._watching, text.own
        record = new_record("rollback", who, watching, actions, command, own)
        content = back.drop_in or drop_in.nothing(
            Header(when=drop_in.stamp(record.began), by=record.who, id=record.id)
        )
        after = self._launch_with(actions, text, content)
        if plan is not None and (plan.before, plan.after) != (command.launch, after):
            raise NotPossible("the unit has changed since what was shown", "look at it again")
        expected = safe_launch(after)
        differing = differences(command.launch, after, self._watching.engine.flags)
        record = msgspec.structs.replace(
            record,
            after_argv=expected.argv,
            after_environment=expected.environment,
            drop_in=content,
            drop_in_hash=drop_in.text_hash(content),
            policy="never",
            changes=[msgspec.to_builtins(each) for each in differing],
            state=msgspec.structs.replace(record.state, expected=expected, back_to=back.named),
        )
        await self._check(actions, content)
        return await self._begin(record, actions, on_step, asked)

    async def resume(
        self, on_step: OnStep | None = None, *, asked: Asked | None = None
    ) -> ChangeRecord:
        """Carry on a change that was interrupted.

        Raises NotPossible when there is none, and LockHeld where another process carries it on.
        """
        actions = self._actions_of()
        if await self.unfinished() is not None:
            await self._lock_freed(actions)
        record = await self.unfinished()  # as whoever had the lock has left it
        if record is None:
            known = await asyncio.to_thread(self._here.history, actions.host.name, most=20)
            remedy = left_elsewhere(known, actions.unit, actions.scope)
            raise NotPossible("no change of this unit was interrupted", remedy)
        return await self._carry(record, actions, on_step, asked or Asked())

    async def _lock_freed(self, actions: UnitActions) -> None:
        """Wait a little while somebody has the lock: it may be that of a ddtui that was killed."""
        text, waited = await actions.read(), 0.0
        while waited < LOCK_FREES and await self._held_by(actions, text):
            await asyncio.sleep(LOOK_AGAIN)
            waited += LOOK_AGAIN

    # ---- within --------------------------------------------------------------------------------

    def _launch_with(self, actions: UnitActions, text: UnitText, content: str) -> Launch:
        """How the unit would start with another text in ddtui's drop-in."""
        return self._command(actions, with_drop_in(text, actions.unit, content)).launch

    async def _earlier(self, actions: UnitActions, text: UnitText, force: bool) -> Earlier:
        """What a rollback goes back to. Raises NotPossible."""
        found = await earlier(OfScope(self._here, actions.scope), actions, text)
        if found is None and actions.host.simulated:
            raise NotPossible(NOTHING_CHANGED)
        if found is None:
            raise NotPossible(
                f"no earlier configuration of {actions.unit} is known here",
                "`ddtui history` shows the changes made from this machine",
            )
        return found.forced() if force else found

    async def _check(self, actions: UnitActions, content: str) -> None:
        """Everything that can be known before something is touched."""
        await check_rights(actions)
        if content:
            verified = await actions.verify(content)
            if verified.errors:
                raise NotPossible(
                    f"systemd would not take the changed unit: {verified.errors[0]}",
                    "; ".join(verified.errors[1:4]),
                )

    async def against_restart(self) -> tuple[Finding, ...]:
        """What speaks against a restart: a missing right, what the unit itself warns of.

        Raises NotPossible and LockHeld, where it cannot be done at all, and HostError.
        """
        actions = self._actions_of()
        text = await actions.read()
        await self._refuse_beside_another(actions, text)
        self._command(actions, text)
        return (*await self._rights.findings(actions), *of_the_unit(text))

    async def _begin(
        self,
        record: ChangeRecord,
        actions: UnitActions,
        on_step: OnStep | None,
        asked: Asked | None,
    ) -> ChangeRecord:
        facts = await actions.look()
        run = Run(record.drop_in_hash, drop_in.text_hash(record.before_drop_in), facts.invocation)
        # systemd forgets the invocation of a unit that is down; earlier changes have it.
        earlier = await self.history(KNOWN_CHANGES)
        state = msgspec.structs.replace(
            record.state,
            run=msgspec.to_builtins(run),
            before=facts.invocation,
            invocations=tuple(sorted({each for known in earlier for each in known.invocations})),
        )
        record = msgspec.structs.replace(record, state=state)
        return await self._carry(record, actions, on_step, asked or Asked())

    async def _carry(
        self, record: ChangeRecord, actions: UnitActions, on_step: OnStep | None, asked: Asked
    ) -> ChangeRecord:
        """Go on until it has ended. Raises as `to_its_end` does."""
        if self._is_carrying:
            raise NotPossible("a change is under way here already")
        self._is_carrying, before = True, self._journal
        try:
            text = await actions.read()
            if not record.steps:
                state = msgspec.structs.replace(record.state, machine=text.machine)
                record = msgspec.structs.replace(record, state=state)
            here = OfScope(self._here, actions.scope)
            self._journal = journal = Journal(record, self._store, self._watching.clock, on_step)
            await to_its_end(journal, actions, text, here, self._watching, self._limits, asked)
        except LockHeld:
            self._journal = before  # it is not carried on here
            raise
        finally:
            self._is_carrying = False
            if self._journal is not None and not self._journal.record.steps:
                self._journal = before  # nothing was touched
        return journal.record


def _rendered(plan: Plan, record: ChangeRecord, command: UnitCommand, text: UnitText) -> str:
    """The drop-in that a plan makes of the unit. Raises NotPossible."""
    header = Header(
        when=drop_in.stamp(record.began),
        by=record.who,
        preset=plan.request.preset,
        id=record.id,
        base=drop_in.base_hash(text.files),
        previous=drop_in.text_hash(text.own),
    )
    try:
        return drop_in.render(command.lines(plan.after), header)
    except (CommandRefused, ExecError) as error:
        raise NotPossible(str(error), getattr(error, "way_out", "")) from error
