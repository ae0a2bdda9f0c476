"""What a unit that is configured as wanted lacks: an engine that runs, or one that is ready."""

from __future__ import annotations

from ddtui.control.host_actions import Facts
from ddtui.core.launch import Finding, Level
from ddtui.core.samples import LinkState, is_auto_restart
from ddtui.core.snapshot import ReadinessState, Snapshot

_DOWN = frozenset({ReadinessState.STOPPED, ReadinessState.FAILED, ReadinessState.CRASH_LOOP})


def down(snapshot: Snapshot, facts: Facts) -> str:
    """That the engine is down, and how; empty where it runs, or starts.

    `facts` are the host's own word of now: what the monitor knows may be older.
    """
    readiness = snapshot.readiness
    if facts.active in {"inactive", "failed"} or is_auto_restart(facts.sub):
        words = readiness.summary if readiness.state in _DOWN else f"{facts.active} ({facts.sub})"
        return f"the engine is down: {words}"
    is_same = snapshot.unit is not None and snapshot.unit.invocation == facts.invocation
    if is_same and readiness.state is ReadinessState.CRASH_LOOP:
        return f"the engine is down: {readiness.summary}"
    return ""


def not_ready(snapshot: Snapshot) -> str:
    """That the engine is not ready, and how it stands; empty where it is."""
    readiness = snapshot.readiness
    if snapshot.link.state is not LinkState.LIVE:
        return "whether the engine is ready is not known: the link is down"
    if readiness.state is ReadinessState.READY:
        return ""
    return f"the engine is not ready: {readiness.summary or readiness.state}"


def engine_findings(snapshot: Snapshot, why: str) -> tuple[Finding, ...]:
    """What is to say of the engine where nothing is to be written; `why` is that it is down."""
    if why:
        return (Finding(Level.NOTE, "engine-down", why, remedy="it is started, and proved"),)
    if why := not_ready(snapshot):
        wait = "wait for it: ddtui status HOST --wait 900"
        return (Finding(Level.NOTE, "engine-not-ready", why, remedy=wait),)
    return ()
