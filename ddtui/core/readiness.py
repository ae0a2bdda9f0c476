"""Where the engine stands, and why we say so.

No single answer proves readiness: an HTTP 200 may come from another process, the engine's own
"ready" line may have been earned by another server on the same port, and `active (running)` only
says that a process exists. READY therefore needs the conjunction: the unit is up, a health endpoint
answered 200 under this invocation, the port is not held by someone else, and nothing contradicts
the configuration. What is proved and what is only consistent is shown piece by piece.
"""

from __future__ import annotations

import msgspec

from ddtui.core.cause_of_failure import Cause
from ddtui.core.engine import Engine
from ddtui.core.events import Phase
from ddtui.core.invocation import Invocation
from ddtui.core.reported_command import compared
from ddtui.core.samples import HealthSample, ListenerOwner, UnitStatus
from ddtui.core.snapshot import Evidence, LoadView, Readiness, ReadinessState, Verdict
from ddtui.core.text import clean

SIGN_OF_LIFE = 15.0
"""Seconds without any answer of the engine after which a ready engine is called degraded."""
LISTENER_VALID = 45.0

_BY_PHASE = {
    Phase.STARTING: ReadinessState.STARTING,
    Phase.TARGET: ReadinessState.LOADING_TARGET,
    Phase.DRAFTER: ReadinessState.LOADING_DRAFTER,
    Phase.KV_CACHE: ReadinessState.ALLOCATING,
    Phase.GRAPHS: ReadinessState.CAPTURING,
    Phase.WARMUP: ReadinessState.WARMING_UP,
    Phase.READY: ReadinessState.WARMING_UP,  # the log says so; that alone is no proof
}


LOOPING = 2
"""Restarts by systemd without a ready engine in between that make a crash loop."""


class Moment(msgspec.Struct, frozen=True):
    """When readiness is assessed, on the operator's clock."""

    now: float
    """The present, or the last moment anything was heard while the link is down."""
    live_since: float = 0.0
    """Since when the link is up: silence before that says nothing of the engine."""
    answered_at: float = float("-inf")
    """When the engine last gave any figures."""
    unit_at: float = float("-inf")
    """When the unit was last heard of."""


def assess(
    unit: UnitStatus | None,
    run: Invocation | None,
    load: LoadView | None,
    engine: Engine,
    moment: Moment,
    cause: Cause | None = None,
    earlier: Cause | None = None,
) -> tuple[ReadinessState, str, tuple[Evidence, ...]]:
    """State, summary and evidence.

    `cause` is why this invocation failed, where it has; `earlier` why the one before it did.
    """
    if unit is None:
        return ReadinessState.UNKNOWN, "nothing heard of the unit yet", ()
    settled = _settled(unit, run, cause)
    if settled is not None:
        return (*settled, (_unit_evidence(unit, moment),))
    if run is None:
        return (
            ReadinessState.STARTING,
            "started, nothing in the journal yet",
            (_unit_evidence(unit, moment),),
        )
    evidence = (
        _unit_evidence(unit, moment),
        _log_evidence(run, cause),
        _owner_evidence(run, moment),
        _health_evidence(run, moment),
        _configuration_evidence(run, unit, engine),
    )
    state, summary = _running(run, load, evidence)
    restarts = unit.restarts or 0
    if state is not ReadinessState.READY and run.was_ready_at is None and restarts >= LOOPING:
        last = cause or earlier
        words = f"; last: {last.title}" if last else ""
        summary = f"{summary}, after {restarts} deaths in a row{words}"
        state = ReadinessState.CRASH_LOOP
    return state, summary, evidence


def _settled(
    unit: UnitStatus, run: Invocation | None, cause: Cause | None
) -> tuple[ReadinessState, str] | None:
    """States in which no process of the engine is up; None when one is, or is starting."""
    active = unit.active_state
    words = f": {cause.title}" if cause else ""
    if unit.is_auto_restarting:
        restarts = unit.restarts or 0
        times = {0: "", 1: ", restarted once"}.get(restarts, f", restarted {restarts} times")
        state = ReadinessState.CRASH_LOOP if restarts else ReadinessState.FAILED
        return state, f"died ({_ending(unit)}), systemd restarts it{times}{words}"
    if active == "failed":
        return ReadinessState.FAILED, f"failed ({_ending(unit)}){words}"
    if active == "deactivating":
        draining = ", draining requests" if run and run.draining else ""
        return ReadinessState.STOPPING, "stopping" + draining
    if unit.is_up:
        return None
    return _down(unit)


def _down(unit: UnitStatus) -> tuple[ReadinessState, str]:
    """Why a unit that is not running is not."""
    match unit.load_state:
        case "masked":
            return ReadinessState.MASKED, "masked: systemd will not start it"
        case "not-found":
            return ReadinessState.ABSENT, f"there is no unit {unit.name}"
        case "bad-setting" | "error":
            words = f"systemd could not read its unit file ({unit.load_state})"
            return ReadinessState.FAILED, words
        case _ if unit.active_state == "inactive":
            return ReadinessState.STOPPED, "stopped"
        case _:
            return ReadinessState.UNKNOWN, f"unit state {unit.active_state or 'not known'}"


def _ending(unit: UnitStatus) -> str:
    """How the main process ended, in systemd's words."""
    if unit.exit_code and unit.exit_status is not None:
        return f"{unit.result or 'ended'}, {unit.exit_code}, status {unit.exit_status}"
    return unit.result or "no reason given"


def _running(
    run: Invocation, load: LoadView | None, evidence: tuple[Evidence, ...]
) -> tuple[ReadinessState, str]:
    """State of an engine whose unit is up."""
    against = [piece for piece in evidence if piece.verdict is Verdict.AGAINST]
    health = next(piece for piece in evidence if piece.name == "health")
    owner = next(piece for piece in evidence if piece.name == "port owner")
    configuration = next(piece for piece in evidence if piece.name == "configuration")
    proofs = sum(piece.verdict is Verdict.PROVED for piece in evidence)
    answered = health.verdict is Verdict.PROVED
    witnessed = run.fired_up is not None or configuration.verdict in _FOR
    if answered and witnessed and _owned(run, owner, configuration) and not against:
        proved = "proved" if proofs == len(evidence) else f"{proofs} of {len(evidence)} proved"
        return ReadinessState.READY, f"ready ({proved})"
    if run.was_ready_at is not None:
        why = "; ".join(piece.detail for piece in against) or health.detail
        return ReadinessState.DEGRADED, f"was ready, now: {why}"
    phase = load.current if load else Phase.STARTING
    state = _BY_PHASE[phase]
    if against:
        return state, f"{state.value}; {against[0].detail}"
    return state, state.value


_FOR = {Verdict.PROVED, Verdict.CONSISTENT}


def _owned(run: Invocation, owner: Evidence, configuration: Evidence) -> bool:
    """Whether the port may be taken for this invocation's.

    Nobody has looked yet: no. It was looked and cannot be seen: only with every other witness.
    """
    if owner.verdict is Verdict.PROVED or run.was_ready_at is not None:
        return True
    if run.listener is None or run.fired_up is None:
        return False
    if owner.verdict is Verdict.CONSISTENT:
        return True
    unseen = run.listener.owner is ListenerOwner.UNKNOWN
    return unseen and configuration.verdict is Verdict.PROVED


def _unit_evidence(unit: UnitStatus, moment: Moment) -> Evidence:
    words = f"{unit.active_state or '?'} ({unit.sub_state or '?'})"
    silent = moment.now - max(moment.unit_at, moment.live_since)
    if silent > SIGN_OF_LIFE:
        return Evidence("unit", Verdict.MISSING, f"{words}, not heard of for {silent:.0f} s")
    if unit.active_state == "active":
        pid = f", main pid {unit.main_pid}" if unit.main_pid else ""
        return Evidence("unit", Verdict.PROVED, f"{words}{pid}")
    if unit.is_up:
        return Evidence("unit", Verdict.MISSING, words)
    return Evidence("unit", Verdict.AGAINST, words)


def _log_evidence(run: Invocation, cause: Cause | None) -> Evidence:
    """The engine's own words under this invocation: a witness, never the proof."""
    root = run.root_failure
    if cause is not None:
        # Also where it says that it is ready: its port may be another server's.
        return Evidence("log", Verdict.AGAINST, cause.title, root.stamp if root else None)
    if run.fired_up is not None:
        return Evidence(
            "log", Verdict.PROVED, "says it is ready, under this invocation", run.fired_up
        )
    if root is not None:
        return Evidence("log", Verdict.AGAINST, root.message, root.stamp)
    if run.port_opened is not None:
        return Evidence("log", Verdict.CONSISTENT, "HTTP server started", run.port_opened)
    return Evidence("log", Verdict.MISSING, "has not said that it is ready")


def _owner_evidence(run: Invocation, moment: Moment) -> Evidence:
    listener = run.listener
    if listener is None or moment.now - max(listener.at, moment.live_since) > LISTENER_VALID:
        return Evidence("port owner", Verdict.MISSING, "who holds the port is not known")
    port = listener.port
    match listener.owner:
        case ListenerOwner.UNIT:
            pid = f", pid {listener.pid}" if listener.pid else ""
            text = f"port {port} is the unit's{pid}"
            return Evidence("port owner", Verdict.PROVED, text, listener.at)
        case ListenerOwner.SAME_USER:
            text = f"port {port} is of the unit's user (process not readable)"
            return Evidence("port owner", Verdict.CONSISTENT, text, listener.at)
        case ListenerOwner.FOREIGN:
            why = listener.detail or f"process {listener.pid or '?'} has it"
            text = f"port {port} is not the unit's: {why}"
            return Evidence("port owner", Verdict.AGAINST, text, listener.at)
        case ListenerOwner.NOBODY:
            return Evidence("port owner", Verdict.MISSING, f"port {port} is closed", listener.at)
        case _:
            return Evidence(
                "port owner", Verdict.MISSING, listener.detail or "not known", listener.at
            )


def _health_evidence(run: Invocation, moment: Moment) -> Evidence:
    health = run.health
    if health is None:
        return Evidence("health", Verdict.MISSING, "no answer yet")
    if health.status != 200:
        return Evidence("health", Verdict.MISSING, _health_words(health), health.at)
    last_sign = max(health.at, moment.answered_at)
    # Health is asked rarely, since each time costs a generation: that the engine goes on giving
    # figures keeps its last 200 true.
    if moment.now - max(last_sign, moment.live_since) > SIGN_OF_LIFE:
        words = f"no answer for {moment.now - last_sign:.0f} s"
        return Evidence("health", Verdict.MISSING, words, health.at)
    return Evidence("health", Verdict.PROVED, _health_words(health), health.at)


def _health_words(health: HealthSample) -> str:
    if health.status is None:
        return f"{health.endpoint}: {health.error or 'no answer'}"
    if health.status == 503:
        return f"{health.endpoint} 503 (warming up, draining or stuck)"
    return f"{health.endpoint} {health.status}"


def _configuration_evidence(run: Invocation, unit: UnitStatus, engine: Engine) -> Evidence:
    """What the server reports against what the unit's command line asks for."""
    name = "configuration"
    info = run.info
    if info is None:
        return Evidence(name, Verdict.MISSING, "not reported by the server yet")
    if info.launch_command:
        exact, different = compared(
            unit.command_line, info, engine, printed=unit.command_line_printed
        )
        if exact:
            text = "reports the unit's own command line"
            return Evidence(name, Verdict.PROVED, text, info.at)
        if not different:
            text = "reports flags that read as the unit's own"
            return Evidence(name, Verdict.CONSISTENT, text, info.at)
        text = "the server was started with other flags: " + ", ".join(
            f"{each.name} {_value(each.told)} (unit: {_value(each.asked)})"
            for each in different[:3]
        )
        return Evidence(name, Verdict.AGAINST, text, info.at)
    asked = engine.flags(unit.command_line)
    wrong = [
        f"{key} {info.arguments[key.replace('-', '_')]} (unit: {value})"
        for key, value in asked.items()
        if _contradicts(info.arguments.get(key.replace("-", "_")), value)
    ]
    if wrong:
        text = "the server reports " + ", ".join(wrong[:3])
        return Evidence(name, Verdict.AGAINST, text, info.at)
    return Evidence(name, Verdict.CONSISTENT, "reports no other values", info.at)


def _value(text: str | None) -> str:
    return "unset" if text is None else clean(text, 80)


def _contradicts(reported: str | int | float | bool | None, asked: str) -> bool:
    """Whether a reported number is not the one asked for (words are resolved too freely)."""
    if reported is None or isinstance(reported, bool):
        return False
    if isinstance(reported, (int, float)):
        try:
            return float(asked) != float(reported)
        except ValueError:
            return False
    return False


def readiness(
    before: Readiness | None,
    found: tuple[ReadinessState, str, tuple[Evidence, ...]],
    began: float | None,
    now: float,
) -> Readiness:
    """A Readiness that knows since when its state holds.

    `began` is when the host says that it began, for a state that we did not see begin ourselves.
    """
    state, summary, evidence = found
    if before is not None and before.state is state:
        since = before.since
    elif before is not None and before.state is ReadinessState.DEGRADED:
        since = now
    else:
        since = now if began is None else min(began, now)
    return Readiness(state, since, summary, evidence)
