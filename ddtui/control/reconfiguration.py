"""Where a reconfiguration stands and what comes next. Pure: facts in, decision out.

What comes next follows from what is found on the host (hash of the drop-in, state and invocation of
the unit), not from how far we think we are. So a reconfiguration whose link was cut, or whose ddtui
was killed, carries on where the host is, and does nothing twice.
"""

from __future__ import annotations

import enum

import msgspec

from ddtui.control.host_actions import Facts
from ddtui.core.samples import UP, UnitStatus, is_auto_restart
from ddtui.core.snapshot import ReadinessState, Snapshot, Verdict

MOST_TRIES = 3
"""Times that a reload or a start without effect is tried again."""
CONTRADICTED = 20.0
"""Seconds for which evidence may speak against a start before it counts as failed."""


class Step(enum.StrEnum):
    """The steps, in their order; the last ones are ends."""

    PLANNED = "planned"
    LOCKED = "locked"
    WRITTEN = "written"
    RELOADED = "reloaded"
    STOPPING = "stopping"
    RELEASING = "releasing"
    STARTING = "starting"
    LOADING = "loading"
    VERIFYING = "verifying"
    IN_FORCE = "in force"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"
    FAILED = "failed"
    DEGRADED = "degraded"
    """It failed, and the configuration before is not proved to be back either."""
    UNKNOWN = "unknown"
    """Nobody has seen how it ended."""


class Run(msgspec.Struct, frozen=True):
    """What must be remembered of one way through the steps (an apply, or its rollback)."""

    target: str
    """Hash of the drop-in that is to be in force."""
    original: str
    """Hash of the drop-in before; empty for none."""
    invocation_before: str
    """Of the unit before it was stopped; empty where it had none."""
    started: bool = False
    """Whether a start has been ordered."""
    invocation: str = ""
    """Of the unit as we started it."""
    restarts: int = 0
    """NRestarts when that invocation was first seen."""
    boot: str = ""
    """Of the host when the start was ordered; empty where that is not known."""
    reload_due: bool = True
    """Whether systemd has not been told to read the files since. It does not say so itself for the
    first drop-in of a unit (NeedDaemonReload=no): it has never seen the folder."""
    reloads: int = 0
    starts: int = 0


class Action(enum.StrEnum):
    """What to do next."""

    WRITE = "write"
    RELOAD = "reload"
    STOP = "stop"
    AWAIT_STOP = "await stop"
    RELEASE = "release"
    START = "start"
    FOLLOW = "follow"
    FAIL = "fail"


class Decision(msgspec.Struct, frozen=True):
    """What to do next, why (for FAIL), and what to remember."""

    action: Action
    run: Run
    why: str = ""


def decide(run: Run, facts: Facts, *, released: bool = False) -> Decision:
    """The next action. `released` says that nothing of the old invocation is held any more."""
    if facts.load_state not in {"loaded", ""}:
        return Decision(Action.FAIL, run, f"the unit is {facts.load_state}")
    if facts.drop_in != run.target:
        return _written_by_whom(run, facts)
    if not run.started and (run.reload_due or facts.needs_reload):
        if run.reloads >= MOST_TRIES:
            return Decision(Action.FAIL, run, "systemd still asks for a reload after reloads")
        return Decision(Action.RELOAD, msgspec.structs.replace(run, reloads=run.reloads + 1))
    if not run.started or _start_had_no_effect(run, facts):
        return _towards_start(run, facts, released)
    return _started(run, facts)


def _written_by_whom(run: Run, facts: Facts) -> Decision:
    if facts.drop_in == "unreadable":
        return Decision(Action.FAIL, run, "the drop-in may not be read")
    if facts.drop_in == run.original and not run.started:
        return Decision(Action.WRITE, msgspec.structs.replace(run, reload_due=True))
    return Decision(Action.FAIL, run, "somebody else has changed the drop-in meanwhile")


def _start_had_no_effect(run: Run, facts: Facts) -> bool:
    return not run.invocation and facts.invocation in {"", run.invocation_before}


def _towards_start(run: Run, facts: Facts, released: bool) -> Decision:
    """Before a start has shown an effect: the unit must be down and its resources released."""
    if facts.active == "deactivating":
        return Decision(Action.AWAIT_STOP, run)
    if facts.active in UP:
        # Whatever runs was not started by us under the new configuration: a start of its own or of
        # somebody else in between proves nothing.
        again = msgspec.structs.replace(run, invocation_before=facts.invocation, started=False)
        return Decision(Action.STOP, again)
    if not released:
        return Decision(Action.RELEASE, run)
    if run.starts >= MOST_TRIES:
        return Decision(Action.FAIL, run, f"it does not start (result: {facts.result or '?'})")
    ordered = msgspec.structs.replace(
        run,
        started=True,
        starts=run.starts + 1,
        invocation_before=facts.invocation,
        boot=facts.boot,
    )
    return Decision(Action.START, ordered)


def _started(run: Run, facts: Facts) -> Decision:
    """A start was ordered and has shown an effect."""
    if is_auto_restart(facts.sub):
        return Decision(Action.FAIL, run, f"it died ({facts.result}) and systemd restarts it")
    if facts.active == "deactivating":
        return Decision(Action.AWAIT_STOP, run)
    if facts.active not in UP and _booted_anew(run, facts):
        return Decision(Action.FAIL, run, "the host was booted anew, and the unit was not started")
    if facts.active not in UP:
        how = facts.result if facts.active == "failed" else "stopped"
        return Decision(Action.FAIL, run, f"it has ended ({how or facts.active})")
    if facts.restarts > run.restarts:
        return Decision(Action.FAIL, run, "it died, and systemd has restarted it")
    if facts.invocation == run.invocation:
        return Decision(Action.FOLLOW, run)
    if facts.invocation in {"", run.invocation_before}:
        return Decision(Action.FAIL, run, "it runs under an invocation that was not started here")
    ours = msgspec.structs.replace(run, invocation=facts.invocation, restarts=facts.restarts)
    # Restarted by another hand, with our drop-in: it must be proved anew.
    by = "with the host" if _booted_anew(run, facts) else "by somebody else"
    note = f"the unit was restarted {by}" if run.invocation else ""
    return Decision(Action.FOLLOW, ours, note)


def _booted_anew(run: Run, facts: Facts) -> bool:
    return bool(run.boot and facts.boot) and run.boot != facts.boot


def _died_beside_a_post(unit: UnitStatus) -> bool:
    """Whether the main process has failed while a command of ExecStartPost= keeps the unit up."""
    ended = bool(unit.exit_code) and (unit.exit_code, unit.exit_status) != ("exited", 0)
    return unit.sub_state == "start-post" and not unit.main_pid and ended


class View(enum.StrEnum):
    """What a snapshot says of a start that is followed."""

    WAIT = "wait"
    LOOK = "look"
    """Something has happened to the unit: ask the host."""
    READY = "ready"
    FAILED = "failed"


class Limits(msgspec.Struct, frozen=True):
    """Seconds that things may take."""

    stop: float = 120.0
    release: float = 120.0
    load: float = 3600.0
    stall: float = 900.0
    """Without progress by any source, beyond what this host's history explains."""
    verify: float = 60.0


class Follower:
    """Follows one invocation through snapshots until it is ready or has failed."""

    def __init__(self, run: Run, limits: Limits, now: float) -> None:
        self._run = run
        self._limits = limits
        self._began = now
        self._against: dict[str, float] = {}
        """Since when each kind of evidence has spoken against the start."""

    def judge(self, snapshot: Snapshot) -> tuple[View, str]:
        """What to make of the snapshot, and why."""
        unit = snapshot.unit
        if unit is None or snapshot.unit_at is None or snapshot.unit_at < self._began:
            return View.WAIT, "waiting for the unit's state"
        if unit.invocation != self._run.invocation or (unit.restarts or 0) > self._run.restarts:
            return View.LOOK, "the unit was started anew"
        ended = unit.active_state in {"failed", "inactive", "deactivating"}
        if ended or unit.is_auto_restarting:
            return View.LOOK, "the unit has ended"
        readiness = snapshot.readiness
        if readiness.state is ReadinessState.READY:
            return View.READY, readiness.summary
        if failing := self._failing(snapshot, unit):
            return View.FAILED, failing
        return View.WAIT, readiness.summary

    def _failing(self, snapshot: Snapshot, unit: UnitStatus) -> str:
        """Why the start, which goes on as systemd has it, has failed; empty where it has not."""
        if _died_beside_a_post(unit):
            how = f"{unit.exit_code}, status {unit.exit_status}"
            return f"its process has ended ({how}), and ExecStartPost= still waits"
        if contradiction := self._contradiction(snapshot):
            return contradiction
        load, state = snapshot.load, snapshot.readiness.state
        if load is not None and load.stalled_for and load.stalled_for > self._limits.stall:
            return f"no progress for {load.stalled_for:.0f} s ({state})"
        if snapshot.at - self._began > self._limits.load:
            return f"not ready after {self._limits.load:.0f} s ({state})"
        return ""

    def _contradiction(self, snapshot: Snapshot) -> str:
        """Evidence that has spoken against the start for too long: its words."""
        speaking = {
            each.name: each.detail
            for each in snapshot.readiness.evidence
            if each.verdict is Verdict.AGAINST
        }
        self._against = {name: self._against.get(name, snapshot.at) for name in speaking}
        for name, since in self._against.items():
            if snapshot.at - since >= CONTRADICTED:
                return f"{name}: {speaking[name]}"
        return ""
