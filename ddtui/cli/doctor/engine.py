"""What the doctor reads from a snapshot: the unit, the engine, and what each source says."""

from __future__ import annotations

from ddtui.cli.doctor.check import AGAIN, Check, Verdict, fail, ok, warn
from ddtui.cli.output import clean
from ddtui.collect.settings import Scope
from ddtui.control.by_hand import by_hand, looked_at
from ddtui.core.samples import Collector, SourceStatus, UnitStatus
from ddtui.core.snapshot import ReadinessState, Snapshot

_SOURCE_NAMES = {
    Collector.GPU: "GPU figures",
    Collector.SYSTEM: "system figures",
    Collector.UNIT: "unit watch",
    Collector.JOURNAL: "journal follow",
    Collector.ENGINE: "engine figures",
    Collector.GPU_PROCESSES: "gpu processes",
    Collector.LISTENER: "port owner",
    Collector.CHECKPOINT: "checkpoint size",
}
_ONLY_TROUBLE = {Collector.GPU_PROCESSES, Collector.LISTENER, Collector.CHECKPOINT}
"""Lesser sources: shown only where something is wrong with them."""
_VERDICTS = {
    SourceStatus.LIVE: Verdict.OK,
    SourceStatus.STARTING: Verdict.WARN,
    SourceStatus.WAITING: Verdict.SKIP,
    SourceStatus.ABSENT: Verdict.WARN,
    SourceStatus.FAILED: Verdict.FAIL,
}

_WHY = "`ddtui diagnose {host}` says why, and what to do"
_TO_READINESS = {
    ReadinessState.FAILED: _WHY,
    ReadinessState.CRASH_LOOP: _WHY,
    ReadinessState.DEGRADED: _WHY,
    ReadinessState.ABSENT: "see what is said of the unit above",
    ReadinessState.UNKNOWN: "see what is said of the unit above",
    ReadinessState.MASKED: "see what is said of the unit above",
    ReadinessState.STOPPED: "`ddtui restart {host}` starts it, and proves that it is ready",
}
"""What to do about an engine that is not ready; the others are on their way."""


def check_snapshot(snapshot: Snapshot, scope: Scope) -> list[Check]:
    """All checks that a few seconds of watching can decide."""
    return [
        _unit(snapshot.unit, clean(snapshot.host), scope),
        *_sources(snapshot),
        _readiness(snapshot),
    ]


def _unit(unit: UnitStatus | None, host: str, scope: Scope) -> Check:
    name = "unit"
    if unit is None:
        return fail(
            name,
            "no unit that runs an engine was found",
            f"name it: `ddtui init {host} --unit UNIT`",
        )
    state = f"{unit.name} {unit.active_state} ({unit.sub_state})"
    if unit.load_state == "not-found":
        return fail(
            name, f"{unit.name}: there is no such unit", f"`ddtui init {host}` looks for it"
        )
    if unit.load_state == "masked":
        return fail(name, f"{unit.name} is masked", by_hand(scope, "unmask", unit.name))
    if unit.load_state not in {"", "loaded"}:
        return fail(name, f"{unit.name}: {unit.load_state}", looked_at(scope, "status", unit.name))
    if unit.is_up:
        return ok(name, state)
    return warn(name, state, by_hand(scope, "start", unit.name))


def _sources(snapshot: Snapshot) -> list[Check]:
    checks = []
    for collector, name in _SOURCE_NAMES.items():
        source = snapshot.sources.get(collector)
        broken = source is not None and source.status is SourceStatus.FAILED
        if collector in _ONLY_TROUBLE and not broken:
            continue
        if source is None:
            checks.append(warn(name, "said nothing in time", AGAIN))
            continue
        verdict = _VERDICTS[source.status]
        origin = f" ({source.source})" if source.source else ""
        detail = f"{source.detail or source.status.value}{origin}"
        needed = AGAIN if verdict in {Verdict.WARN, Verdict.FAIL} else ""
        checks.append(Check(name, verdict, detail, source.remedy or needed))
    return checks


def _readiness(snapshot: Snapshot) -> Check:
    state, summary = snapshot.readiness.state, snapshot.readiness.summary
    # A summary that begins with the state says all.
    text = summary if summary.startswith(state.value) else f"{state.value}: {summary}".rstrip(": ")
    if state is ReadinessState.READY:
        return ok("engine", text)
    remedy = _TO_READINESS.get(state, "wait for it: `ddtui status {host} --wait 900`")
    bad = {ReadinessState.FAILED, ReadinessState.CRASH_LOOP, ReadinessState.DEGRADED}
    judge = fail if state in bad else warn
    return judge("engine", text, remedy.format(host=clean(snapshot.host)))
