"""What a unit that is configured as wanted lacks: an engine that runs, or one that is ready."""

from __future__ import annotations

from ddtui.core.launch import Finding, Level
from ddtui.core.snapshot import ReadinessState, Snapshot

_DOWN = frozenset({ReadinessState.STOPPED, ReadinessState.FAILED, ReadinessState.CRASH_LOOP})


def down(snapshot: Snapshot) -> str:
    """That the engine is down, and how; empty where it runs, or starts, or is not seen."""
    readiness = snapshot.readiness
    return f"the engine is down: {readiness.summary}" if readiness.state in _DOWN else ""


def not_ready(snapshot: Snapshot) -> str:
    """That the engine is not ready, and how it stands; empty where it is."""
    readiness = snapshot.readiness
    if readiness.state is ReadinessState.READY:
        return ""
    return f"the engine is not ready: {readiness.summary or readiness.state}"


def engine_findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What is to say of the engine where nothing is to be written."""
    if why := down(snapshot):
        return (Finding(Level.NOTE, "engine-down", why, remedy="it is started, and proved"),)
    if why := not_ready(snapshot):
        wait = "wait for it: ddtui status HOST --wait 900"
        return (Finding(Level.NOTE, "engine-not-ready", why, remedy=wait),)
    return ()
