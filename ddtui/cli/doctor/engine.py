"""What the doctor reads from a snapshot: the unit, the engine, and what each source says."""

from __future__ import annotations

from ddtui.cli.doctor.check import Check, Verdict, fail, ok, skip, warn
from ddtui.core.samples import Collector, SourceStatus, UnitStatus
from ddtui.core.snapshot import ReadinessState, Snapshot

_UP = {"active", "activating", "reloading"}
_SOURCE_NAMES = {
    Collector.GPU: "GPU figures",
    Collector.SYSTEM: "system figures",
    Collector.UNIT: "unit watch",
    Collector.JOURNAL: "journal follow",
    Collector.ENGINE: "engine figures",
}
_VERDICTS = {
    SourceStatus.LIVE: Verdict.OK,
    SourceStatus.STARTING: Verdict.WARN,
    SourceStatus.WAITING: Verdict.SKIP,
    SourceStatus.ABSENT: Verdict.WARN,
    SourceStatus.FAILED: Verdict.FAIL,
}


def check_snapshot(snapshot: Snapshot, metrics_flag: str) -> list[Check]:
    """All checks that a few seconds of watching can decide."""
    return [
        _unit(snapshot.unit),
        *_sources(snapshot),
        _metrics(snapshot, metrics_flag),
        _readiness(snapshot),
    ]


def _unit(unit: UnitStatus | None) -> Check:
    name = "unit"
    if unit is None:
        return fail(name, "no unit that runs an engine was found", "`ddtui init` looks for one")
    state = f"{unit.name} {unit.active_state} ({unit.sub_state})"
    if unit.load_state == "not-found":
        return fail(name, f"{unit.name}: there is no such unit", "`ddtui init HOST` looks for it")
    if unit.load_state == "masked":
        return fail(name, f"{unit.name} is masked", f"systemctl unmask {unit.name}")
    if unit.load_state not in {"", "loaded"}:
        return fail(name, f"{unit.name}: {unit.load_state}", f"systemctl status {unit.name}")
    if unit.active_state in _UP:
        return ok(name, state)
    return warn(name, state, f"systemctl start {unit.name}")


def _sources(snapshot: Snapshot) -> list[Check]:
    checks = []
    for collector, name in _SOURCE_NAMES.items():
        source = snapshot.sources.get(collector)
        if source is None:
            checks.append(warn(name, "said nothing in time"))
            continue
        verdict = _VERDICTS[source.status]
        origin = f" ({source.source})" if source.source else ""
        detail = f"{source.detail or source.status.value}{origin}"
        checks.append(Check(name, verdict, detail, source.remedy))
    return checks


def _metrics(snapshot: Snapshot, flag: str) -> Check:
    """Live figures need the engine's metrics; without them the log and lesser endpoints must do."""
    name = "metrics"
    source = snapshot.sources.get(Collector.ENGINE)
    if source is None or source.status is not SourceStatus.LIVE:
        return skip(name, "the engine does not answer now")
    figures = (snapshot.engine.throughput, snapshot.engine.running, snapshot.engine.kv_usage)
    if any(figure is not None and figure.source == "/metrics" for figure in figures):
        return ok(name, "the engine has /metrics")
    return warn(
        name,
        "the engine's /metrics are off: throughput comes from its log or lesser endpoints",
        f"add {flag} to the engine's command line",
    )


def _readiness(snapshot: Snapshot) -> Check:
    state, summary = snapshot.readiness.state, snapshot.readiness.summary
    text = f"{state.value}: {summary}" if summary else state.value
    if state is ReadinessState.READY:
        return ok("engine", text)
    bad = {ReadinessState.FAILED, ReadinessState.CRASH_LOOP, ReadinessState.DEGRADED}
    return fail("engine", text) if state in bad else warn("engine", text)
