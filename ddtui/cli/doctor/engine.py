"""What the doctor reads from a snapshot: the unit, the engine, and what each source says."""

from __future__ import annotations

from ddtui.cli.doctor.check import Check, Verdict, fail, ok, warn
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
            checks.append(warn(name, "said nothing in time"))
            continue
        verdict = _VERDICTS[source.status]
        origin = f" ({source.source})" if source.source else ""
        detail = f"{source.detail or source.status.value}{origin}"
        checks.append(Check(name, verdict, detail, source.remedy))
    return checks


def _readiness(snapshot: Snapshot) -> Check:
    state, summary = snapshot.readiness.state, snapshot.readiness.summary
    text = f"{state.value}: {summary}" if summary else state.value
    if state is ReadinessState.READY:
        return ok("engine", text)
    bad = {ReadinessState.FAILED, ReadinessState.CRASH_LOOP, ReadinessState.DEGRADED}
    return fail("engine", text) if state in bad else warn("engine", text)
