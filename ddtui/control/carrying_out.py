"""Carries a reconfiguration through its steps: looks at the host, does what comes next, again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from ddtui.control.differences import set_by
from ddtui.control.held import HostProcess, Remaining, baseline, remaining
from ddtui.control.host_actions import START_LIMIT, ActionFailed, Facts, UnitActions
from ddtui.control.journal import Journal
from ddtui.control.lock import Lock
from ddtui.control.proof import (
    Proof,
    all_taken,
    deviation_words,
    deviations,
    not_taken,
    prove,
    report_is_refused,
    unreported,
)
from ddtui.control.reconfiguration import Action, Follower, Limits, Run, Step, View, decide
from ddtui.control.unit_command import DROP_IN_NAME
from ddtui.core.cause_of_failure import Cause
from ddtui.core.clock import Clock
from ddtui.core.engine import Engine
from ddtui.core.launch import Change, Launch
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.hosts.base import ProgramTimeout

LOOK_AGAIN = 1.0
"""Seconds between two looks at the host while something is awaited there."""
SNAPSHOT_AGAIN = 0.2
"""Seconds between two looks at what the monitor knows; costs the host nothing."""
STOP_SLACK = 15.0
"""Seconds beyond the unit's own limits in which systemd must have ended it."""
ASK_AFTER = 3.0
"""Seconds that left-over processes have to end by themselves before anyone is asked."""
MOST_MISSED = 5
"""Orders to stop that find another start of a unit that dies again and again, each for the start
that was seen; the next one is for whatever runs."""
SAY_AFTER = 2.0
"""Seconds that a proof may take without a word on what it waits for."""
SAY_STOPPING = 5.0
"""Seconds of a stop between two words on how long it takes."""
GRACE = 5.0
"""Seconds for an orphan to end by itself after TERM."""

BY_HAND = "somebody stopped the unit meanwhile; it is not started again"
AFTER_A_STOP = (
    "ask who stopped it, and why. `ddtui restart` starts it as it is configured now,"
    " `ddtui rollback` brings back the configuration before"
)

EndOrphans = Callable[[Remaining], Awaitable[bool]]


def _time() -> float:
    """Seconds that never go back; the loop's, so that a test can let them pass."""
    return asyncio.get_running_loop().time()


class Failure(Exception):
    """The reconfiguration has failed: why, in words."""

    def __init__(self, why: str, *, started: bool, remedy: str = "", by_hand: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
        self.by_hand = by_hand
        """Whether somebody stopped the unit meanwhile: then it is not started again here."""
        self.started = started
        """Whether a start had been ordered: then the engine's log may tell the cause."""


class Watching(msgspec.Struct, frozen=True):
    """How what is known of the host is had."""

    engine: Engine
    snapshot: Callable[[], Snapshot]
    port: Callable[[], int]
    clock: Clock


class CarryingOut:
    """One way through the steps to a drop-in's being in force, under a lock that is held."""

    def __init__(
        self,
        actions: UnitActions,
        watching: Watching,
        journal: Journal,
        lock: Lock,
        limits: Limits,
        end_orphans: EndOrphans | None,
    ) -> None:
        self._actions = actions
        self._watching = watching
        self._journal = journal
        self._lock = lock
        self._limits = limits
        self._end_orphans = end_orphans
        self._released = False
        self._stop_began: float | None = None
        self._causes: dict[str, Cause] = {}
        """Why starts have failed, by their invocation: systemd may have begun the next one."""
        self._missed = 0
        """Orders to stop, one after the other, that came when the unit had another invocation."""
        self._say_next = SAY_STOPPING

    async def to(self, run: Run, text: str) -> Run:
        """Bring `text` into force and prove readiness; returns the run at its end.

        Raises Failure, LinkDown, ProgramTimeout, ActionFailed.
        """
        while True:
            self._lock.check()
            facts = await self._actions.look()
            decision = decide(run, facts, released=self._released)
            run = decision.run
            await self._journal.remember(run=run)
            match decision.action:
                case Action.WRITE:
                    await self._journal.step(Step.WRITTEN)
                    await self._actions.write(text, run.original)
                case Action.RELOAD:
                    await self._journal.step(Step.RELOADED)
                    await self._actions.systemctl("daemon-reload")
                    run = msgspec.structs.replace(run, reload_due=False)
                case Action.STOP:
                    await self._stop(facts)
                case Action.AWAIT_STOP:
                    await self._await_stop(facts)
                case Action.RELEASE:
                    await self._release(facts)
                case Action.START:
                    await self._start(run, facts)
                case Action.FOLLOW:
                    if await self._follow(run, decision.why):
                        return run
                case Action.FAIL:
                    if (failure := await self._why_ended(run, facts, decision.why)) is not None:
                        raise failure

    # ---- stop and release ------------------------------------------------------------------------

    async def _stop(self, facts: Facts) -> None:
        self._released = False
        if not self._missed:  # else its next start would be over before the order is there
            await self._note_what_is_held(facts)
        await self._journal.step(Step.STOPPING, stopped_detail(facts))
        self._stop_begins()
        limit = self._stop_limit(facts)
        meant = facts.invocation if self._missed < MOST_MISSED else ""
        ordered = asyncio.create_task(self._actions.systemctl("stop", limit, meant))
        try:
            while not ordered.done():
                await asyncio.wait({ordered}, timeout=SAY_STOPPING)
                if not ordered.done():
                    self._say_stopping(facts)
            self._missed = 0 if ordered.result() else self._missed + 1
        except ProgramTimeout:
            self._say_stopping(facts)
        except ActionFailed:
            await self._nothing_stopped()
            raise
        finally:
            ordered.cancel()
            await asyncio.gather(ordered, return_exceptions=True)

    async def _note_what_is_held(self, facts: Facts) -> None:
        """Before a stop: what the unit has, and what others do."""
        held = await self._actions.held(facts.control_group, self._watching.port(), ())
        before = baseline(held, {facts.invocation, *self._journal.invocations})
        if (earlier := self._journal.baseline) is not None:
            # GPU memory comes back to where it was before the first stop.
            before = msgspec.structs.replace(
                earlier, processes=(*earlier.processes, *before.processes)
            )
        await self._journal.remember(baseline=before, stopped=True)

    def _stop_begins(self) -> float:
        self._stop_began, self._say_next = _time(), SAY_STOPPING
        return self._stop_began

    def _say_stopping(self, facts: Facts) -> None:
        """How long it has been stopping, and when systemd ends it."""
        waited = 0.0 if self._stop_began is None else _time() - self._stop_began
        kills = "systemd has no limit for it (TimeoutStopSec), or none is known"
        if facts.stop_timeout:
            kills = f"systemd kills what is left of it after {facts.stop_timeout:.0f} s"
            kills += " (TimeoutStopSec)"
        self._journal.say(f"still stopping after {waited:.0f} s; {kills}")

    async def _nothing_stopped(self) -> None:
        """A stop was refused: where the unit runs as it did at the beginning, none has been."""
        facts, before = await self._actions.look(), self._journal.record.state.before
        if facts.active == "active" and facts.invocation == before:
            await self._journal.remember(stopped=False)

    async def _await_stop(self, facts: Facts) -> None:
        began = self._stop_begins() if self._stop_began is None else self._stop_began
        if _time() - began > (limit := self._stop_limit(facts)):
            left = await self._remaining(facts)
            self._stop_began = None  # a rollback waits for it once more
            raise Failure(
                f"it has not stopped within {limit:.0f} s: {left.text or facts.sub}", started=False
            )
        if _time() - began >= self._say_next:
            self._say_next += SAY_STOPPING
            self._say_stopping(facts)
        await asyncio.sleep(LOOK_AGAIN)

    def _stop_limit(self, facts: Facts) -> float:
        """Seconds for the stop: systemd ends what outlasts the unit's own limit, so no less.

        That limit holds twice: for ExecStop=, and for what its signal ends. Where systemd has none,
        ours decides: a stop that never ends would keep the lock for ever.
        """
        return max(self._limits.stop, 2 * facts.stop_timeout + STOP_SLACK)

    async def _remaining(self, facts: Facts) -> Remaining:
        before = self._journal.baseline
        if before is None:
            # It was down when we came: what others hold now is theirs.
            held = await self._actions.held(facts.control_group, self._watching.port(), ())
            before = baseline(held, {facts.invocation, *self._journal.invocations})
            await self._journal.remember(baseline=before)
        known = [each.pid for each in before.processes]
        group = facts.control_group
        held = await self._actions.held(group, self._watching.port(), known)
        engine = self._watching.engine
        return remaining(before, held, self._watching.port(), engine.is_command)

    async def _release(self, facts: Facts) -> None:
        """Wait until nothing of the old invocation is held any more."""
        await self._journal.step(Step.RELEASING)
        began, asked = _time(), False
        while True:
            self._lock.check()
            left = await self._remaining(facts)
            if left.nothing:
                self._released = True
                return
            self._journal.say(f"still held: {left.text}")
            waited = _time() - began
            lingering = (left.orphans or left.processes) and waited >= ASK_AFTER
            if lingering and self._end_orphans and not asked:
                asked = True
                if await self._end_orphans(left):
                    await self._end([*left.orphans, *left.processes])
                    continue
            if waited > self._limits.release:
                raise Failure(
                    f"not released within {self._limits.release:.0f} s: {left.text}",
                    started=False,
                    remedy=_way_to_end([*left.orphans, *left.processes]),
                )
            await asyncio.sleep(LOOK_AGAIN)

    async def _end(self, processes: Sequence[HostProcess]) -> None:
        """End processes: TERM, and KILL for those that stay."""
        signals: tuple[Literal["TERM", "KILL"], ...] = ("TERM", "KILL")
        for signal in signals:
            for each in processes:
                await self._actions.end_process(each.pid, each.begun, signal)
            await asyncio.sleep(GRACE if signal == "TERM" else LOOK_AGAIN)

    # ---- start and follow ------------------------------------------------------------------------

    async def _start(self, run: Run, facts: Facts) -> None:
        if run.starts > 1:  # the last order had no effect, or somebody undid it at once
            known = {*self._journal.invocations, facts.invocation, run.invocation_before}
            known.add(self._journal.record.state.before)
            if set((await self._stopped())[-1:]) - known:
                raise Failure(BY_HAND, started=True, remedy=AFTER_A_STOP, by_hand=True)
        await self._journal.step(Step.STARTING)
        if facts.active == "failed":
            await self._actions.systemctl("reset-failed")
        ordered = asyncio.create_task(self._actions.systemctl("start", START_LIMIT))
        try:
            await self._until_begun(ordered, run)
        finally:
            ordered.cancel()  # systemd goes on: only the waiting for it ends
            await asyncio.gather(ordered, return_exceptions=True)

    async def _until_begun(self, ordered: asyncio.Task[bool], run: Run) -> None:
        """Return once the start has begun; how it goes on is followed, whatever systemd waits for.

        A unit that notifies, or whose ExecStartPost waits for the port, keeps `systemctl start`
        until it is loaded. Raises ActionFailed for a start that was refused.
        """
        earlier = {"", run.invocation_before}
        while not ordered.done():
            await asyncio.wait({ordered}, timeout=LOOK_AGAIN)
            self._lock.check()
            if not ordered.done() and (await self._actions.look()).invocation not in earlier:
                return
        try:
            ordered.result()
        except ProgramTimeout:
            self._journal.say("systemd is still starting it")
        except ActionFailed:
            # One that began and failed has its cause in the log, not in systemctl's words.
            if (await self._actions.look()).invocation in earlier:
                raise

    async def _stopped(self) -> list[str]:
        """Invocations that somebody told systemd to stop; none where the host does not tell."""
        try:
            return await self._actions.stopped_on_request()
        except ActionFailed as error:
            self._journal.say(f"whether somebody stopped it is not known: {error.what}")
            return []

    async def _why_ended(self, run: Run, facts: Facts, why: str) -> Failure | None:
        """The failure, told from a stop by another hand; None where it runs again after one."""
        ours = run.invocation or facts.invocation
        is_down = run.started and facts.active in {"inactive", "failed"}
        if is_down and ours and ours in await self._stopped():
            await asyncio.sleep(LOOK_AGAIN)  # a restart by hand is down for a moment
            if (await self._actions.look()).active not in {"inactive", "failed"}:
                return None
            return Failure(BY_HAND, started=True, remedy=AFTER_A_STOP, by_hand=True)
        return Failure(why, started=run.started)

    def cause(self, run: Run) -> Cause | None:
        """Why the start that was followed has failed, as far as that is known."""
        snapshot = self._watching.snapshot()
        unit, found = snapshot.unit, snapshot.diagnosis
        if unit is not None and unit.invocation == run.invocation and found is not None:
            self._causes[run.invocation] = found
        return self._causes.get(run.invocation, found)

    async def _follow(self, run: Run, note: str) -> bool:
        """Follow the start until it is proved (True) or the unit must be looked at again."""
        watching = self._watching
        await self._journal.step(Step.LOADING, note, invocation=run.invocation)
        follower = Follower(run, self._limits, watching.clock())
        said = ""
        while True:
            self._lock.check()
            view, words = follower.judge(watching.snapshot())
            self.cause(run)
            if view is View.READY:
                break
            if view is View.LOOK:
                for _ in range(round(LOOK_AGAIN / SNAPSHOT_AGAIN)):
                    await asyncio.sleep(SNAPSHOT_AGAIN)  # what follows from it may be under way
                    self.cause(run)
                return False
            if view is View.FAILED:
                raise Failure(words, started=True)
            if words != said:
                said = words
                self._journal.say(words)
            await asyncio.sleep(SNAPSHOT_AGAIN)
        await self._journal.step(Step.VERIFYING)
        return await self._verify(run)

    async def _verify(self, run: Run) -> bool:
        """Whether it is in force: reported by the server, of the unit as we started it."""
        watching = self._watching
        began, said = _time(), ""
        while True:
            snapshot = watching.snapshot()
            proofs = proofs_of(self._journal, snapshot, watching.engine)
            unit = snapshot.unit
            if unit is None or unit.invocation != run.invocation:
                return False
            reported = snapshot.server_info is not None
            reported = reported or report_is_refused(snapshot, watching.engine)
            if reported and snapshot.readiness.state is ReadinessState.READY:
                break
            if _time() - began > self._limits.verify:
                if snapshot.readiness.state is not ReadinessState.READY:
                    why = f"it was ready and is no more: {snapshot.readiness.summary}"
                    raise Failure(why, started=True)
                break  # the server has no such report: what can be had is consistent
            awaited = awaited_proof(snapshot, watching.engine)
            if awaited != said and _time() - began >= SAY_AFTER:
                said = awaited
                self._journal.say(awaited)
            await asyncio.sleep(SNAPSHOT_AGAIN)
        facts = await self._actions.look()
        same = facts.invocation == run.invocation and facts.restarts == run.restarts
        if not same or facts.drop_in != run.target:
            return False
        found, as_before = not_as_expected(self._journal, snapshot, watching.engine)
        others = await self._overruling(found)
        named = {each.name for each in found}
        proofs = (
            *(each for each in proofs if each.name not in named),
            *(not_taken(each, others.get(each.name, "")) for each in found),
        )
        doubts = (unreported(snapshot, watching.engine), as_before, edited_since(snapshot))
        await self._journal.keep(
            proofs=[msgspec.to_builtins(each) for each in proofs],
            doubt="; ".join(filter(None, doubts)),
            evidence=[msgspec.to_builtins(each) for each in snapshot.readiness.evidence],
        )
        if found:
            raise Failure(_otherwise(found, others, snapshot), started=True)
        if not all_taken(proofs):
            wrong = next(each for each in proofs if each.outcome == "not taken")
            raise Failure(f"{wrong.name}: {wrong.reason}", started=True)
        return True

    async def _overruling(self, found: Sequence[Change]) -> dict[str, str]:
        """The unit's file that sets each of these over ddtui's drop-in, where one does."""
        if not found:
            return {}
        try:
            text = await self._actions.read()
        except ActionFailed as error:
            self._journal.say(f"which file decides is not known: {error.what}")
            return {}
        setting = {each.name: set_by(each, text.files) for each in found}
        return {
            name: path
            for name, path in setting.items()
            if path and PurePosixPath(path).name != DROP_IN_NAME
        }


def _way_to_end(processes: Sequence[HostProcess]) -> str:
    if not processes:
        return "see who has it with nvidia-smi and ss on the host"
    pids = " ".join(str(each.pid) for each in processes)
    return f"end them on the host (sudo kill {pids}), or here with --end-orphans"


def awaited_proof(snapshot: Snapshot, engine: Engine) -> str:
    """What the proof of an engine that was ready waits for, in words."""
    if snapshot.readiness.state is not ReadinessState.READY:
        return f"waiting for it to be ready again: {snapshot.readiness.summary}"
    return f"waiting for the server's own report ({unreported(snapshot, engine)})"


def stopped_detail(facts: Facts) -> str:
    """What is being stopped, for the audit."""
    return f"invocation {facts.invocation}" if facts.invocation else facts.active


def proofs_of(journal: Journal, snapshot: Snapshot, engine: Engine) -> tuple[Proof, ...]:
    """What became of the changes that the record names."""
    record = journal.record
    changes = record.state.prove
    if changes is None:
        changes = msgspec.convert(record.changes, tuple[Change, ...])
    after = Launch(record.after_argv, record.after_environment)
    return prove(changes, after, snapshot, engine, record.state.findings)


def not_as_expected(
    journal: Journal, snapshot: Snapshot, engine: Engine
) -> tuple[list[Change], str]:
    """How what runs is not the whole configuration that is to be in force; empty where it is.

    And, in words, what was so before the change as well, which then is none of its doing (a wrapper
    that adds flags of its own).
    """
    record = journal.record
    if (expected := record.state.expected) is None:
        return [], "the whole command line was not compared: what it was is not known"
    set_somewhere = set(record.after_environment) | set(record.before_environment)
    unwanted = set_somewhere - set(expected.environment)
    found = deviations(expected, snapshot, engine, unwanted, record.state.opaque)
    known = record.state.deviated
    same = [each for each in found if each in known]
    words = f"as before the change, {deviation_words(same)}" if same else ""
    return [each for each in found if each not in known], words


def edited_since(snapshot: Snapshot) -> str:
    """Why what was started may be older than what is configured by now, in words."""
    unit = snapshot.unit
    older = (*unit.older, *unit.doubts) if unit is not None else ()
    return f"the unit was changed meanwhile: {'; '.join(older[:2])}" if older else ""


def _otherwise(found: Sequence[Change], others: Mapping[str, str], snapshot: Snapshot) -> str:
    """Why it is not in force, and who causes it."""
    after = [path for path in other_drop_ins(snapshot) if path not in others.values()]
    whose = [f"{path} decides over it" for path in dict.fromkeys(others.values())]
    whose += [f"{path} is in force as well" for path in after]
    words = f" ({'; '.join(whose)})" if whose else ""
    return f"the unit's command is not the expected one: {deviation_words(found)}{words}"


def other_drop_ins(snapshot: Snapshot) -> tuple[str, ...]:
    """Drop-ins of the unit that systemd reads after ddtui's: they decide over it."""
    unit = snapshot.unit
    paths = unit.drop_ins if unit is not None else ()
    return tuple(path for path in paths if PurePosixPath(path).name > DROP_IN_NAME)
