"""Where a running experiment stands and what comes next. Pure: facts in, decision out.

What comes next follows from what is kept and what is found on the host (a change that has not
ended, the unit's files, what runs, the cells that are whole), not from how far we think we are. So
a runner that was killed, or whose link was cut, is carried on by the next one, and nothing is
loaded or measured twice.
"""

from __future__ import annotations

import enum

import msgspec

from ddtui.control.proof import deviations
from ddtui.core.engine import Engine
from ddtui.core.launch import Launch
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import ReadinessState, Snapshot, Verdict

MOST_LOADS = 3
"""Times that the engine is loaded for one experiment by one runner."""
MOST_FAILURES = 3
"""Times in a row that measuring may break off without a new whole cell."""


class Standing(enum.StrEnum):
    """What runs on the host, against what an experiment wants."""

    PROVED = "proved"
    """It is ready, and nothing speaks against its being what is wanted."""
    OTHER = "other"
    """It is ready with another configuration."""
    COMING = "coming"
    """It starts, or it does not answer as it should and may come back."""
    DOWN = "down"
    LOOPING = "looping"
    """systemd starts it again and again, and it dies each time."""
    UNSEEN = "unseen"
    """Nothing certain is known now."""


_COMING = {
    *(ReadinessState.STARTING, ReadinessState.LOADING_TARGET, ReadinessState.LOADING_DRAFTER),
    *(ReadinessState.ALLOCATING, ReadinessState.CAPTURING, ReadinessState.WARMING_UP),
    *(ReadinessState.DEGRADED, ReadinessState.STOPPING),
}
_DOWN = {ReadinessState.STOPPED, ReadinessState.FAILED}


def standing(
    snapshot: Snapshot, wanted: Launch | None, engine: Engine, *, same_start: bool = False
) -> Standing:
    """What runs; `wanted` is None for whatever is configured.

    `same_start`: it is the start that was proved, so that what was edited since does not count.
    """
    unit = snapshot.unit
    if snapshot.link.state is not LinkState.LIVE or unit is None:
        return Standing.UNSEEN
    state = snapshot.readiness.state
    if state is ReadinessState.CRASH_LOOP:
        return Standing.LOOPING
    if unit.is_auto_restarting:
        return Standing.COMING
    if state in _DOWN:
        return Standing.DOWN
    if state in _COMING:
        return Standing.COMING
    if state is not ReadinessState.READY:
        return Standing.UNSEEN
    evidence = {each.name: each.verdict for each in snapshot.readiness.evidence}
    if evidence.get("configuration") is Verdict.MISSING:
        return Standing.COMING  # it answers, and has not said yet how it was started
    different = wanted is not None and deviations(wanted, snapshot, engine)
    older = wanted is not None and unit.older and not same_start
    return Standing.OTHER if different or older else Standing.PROVED


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What counts for the next step of an experiment."""

    cancelled: bool = False
    """Somebody wants it ended."""
    reused: bool = False
    """Its measurement is an earlier one."""
    whole: bool = False
    """All is measured, and was found to be of one invocation; it is only to be recorded."""
    unfinished: bool = False
    """A change of the unit that was begun from here has not ended."""
    change: str = ""
    """How the change that was made for this experiment ended; empty for none, or not yet."""
    planned: bool = False
    """Whether it has been compared with the unit's files since anything changed them."""
    blocked: str = ""
    """Why it cannot be applied."""
    differs: bool = False
    """Whether the unit is configured otherwise."""
    standing: Standing = Standing.UNSEEN
    waited: float = 0.0
    """Seconds for which it has been coming, or has not been seen."""
    patience: float = 3600.0
    """Seconds that it may."""
    loads: int = 0
    """Times that this runner has loaded the engine for it."""
    cells_left: int = 1
    coding_left: bool = False
    failures: int = 0
    """Times in a row that measuring has broken off without a new whole cell."""
    failure: str = ""
    """Why it did, the last time."""


class Action(enum.StrEnum):
    """What to do next for an experiment."""

    CANCEL = "cancel"
    RESUME = "resume"
    """Carry the change on that has not ended."""
    PLAN = "plan"
    APPLY = "apply"
    RESTART = "restart"
    AWAIT = "await"
    MEASURE = "measure"
    CODE = "code"
    RECORD = "record"
    FAIL = "fail"


class Decision(msgspec.Struct, frozen=True):
    """What to do next, and why."""

    action: Action
    why: str = ""


# One question after the other, most urgent first: each has its own answer.
def decide(facts: Facts) -> Decision:  # noqa: PLR0911
    """The next action."""
    if facts.unfinished:
        # Even where it was cancelled: a unit is not left in the middle of a change.
        return Decision(Action.RESUME)
    if facts.cancelled:
        return Decision(Action.CANCEL)
    if facts.reused or facts.whole:
        return Decision(Action.RECORD)
    if facts.change == "failed":
        return Decision(Action.FAIL, "the engine does not become ready with it")
    if not facts.planned:
        return Decision(Action.PLAN)
    if facts.blocked:
        return Decision(Action.FAIL, facts.blocked)
    if facts.failures >= MOST_FAILURES:
        return Decision(Action.FAIL, f"broken off {facts.failures} times: {facts.failure}")
    if facts.differs:
        return _load(facts, Action.APPLY)
    return _loaded(facts)


def _load(facts: Facts, action: Action) -> Decision:
    if facts.loads >= MOST_LOADS:
        why = f"loaded {facts.loads} times, and it is not in force: {facts.failure or 'it ended'}"
        return Decision(Action.FAIL, why)
    return Decision(action)


def _loaded(facts: Facts) -> Decision:
    """The unit is configured as wanted."""
    match facts.standing:
        case Standing.PROVED if facts.cells_left:
            return Decision(Action.MEASURE)
        case Standing.PROVED:
            return Decision(Action.CODE if facts.coding_left else Action.RECORD)
        case Standing.OTHER | Standing.DOWN:
            return _load(facts, Action.RESTART)
        case Standing.LOOPING:
            return Decision(Action.FAIL, "the engine dies at every start")
        case _ if facts.waited > facts.patience:
            why = f"not ready after {facts.waited:.0f} s"
            if facts.standing is Standing.UNSEEN:
                why = f"nothing certain was known of the engine for {facts.waited:.0f} s"
            return Decision(Action.FAIL, why)
        case _:
            return Decision(Action.AWAIT)
