"""The JSON of `ddtui status --json`. Keys are stable: they are added to, never renamed."""

from __future__ import annotations

from typing import Any

import msgspec

from ddtui.core.samples import Gpu, UnitStatus
from ddtui.core.snapshot import (
    Alert,
    Evidence,
    Figure,
    LoadView,
    ReadinessState,
    Snapshot,
)


class FigureReport(msgspec.Struct, frozen=True):
    """A figure with its source and its age."""

    value: float
    source: str
    age_seconds: float
    stale: bool
    note: str


class StatusReport(msgspec.Struct, frozen=True):
    """One host at one moment. Memory and disk sizes are bytes, spans are seconds."""

    host: str
    at: float
    """Unix seconds."""
    simulated: bool
    ready: bool
    readiness: str
    summary: str
    evidence: tuple[Evidence, ...]
    link: dict[str, Any]
    sources: dict[str, dict[str, str]]
    unit: UnitStatus | None
    knobs: dict[str, str]
    knobs_source: str
    model: str
    engine_version: str
    engine: dict[str, FigureReport | None]
    idle: bool
    load: LoadView | None
    gpu_source: str
    gpus: tuple[Gpu, ...]
    system: dict[str, Any] | None
    clock_skew: float | None
    alerts: tuple[Alert, ...]


_FIGURES = (
    "throughput",
    "prefill_throughput",
    "acceptance_length",
    "acceptance_lifetime",
    "running",
    "queued",
    "kv_usage",
)


def status_report(snapshot: Snapshot) -> StatusReport:
    """The report of a snapshot."""
    system, unit = snapshot.system, snapshot.unit
    if unit is not None:  # its environment is the unit's own affair
        unit = msgspec.structs.replace(unit, environment=())
    return StatusReport(
        host=snapshot.host,
        at=snapshot.at,
        simulated=snapshot.simulated,
        ready=snapshot.readiness.state is ReadinessState.READY,
        readiness=snapshot.readiness.state.value,
        summary=snapshot.readiness.summary,
        evidence=snapshot.readiness.evidence,
        link={"state": snapshot.link.state, "detail": snapshot.link.detail},
        sources={
            collector.value: {
                "status": source.status.value,
                "source": source.source,
                "detail": source.detail,
                "remedy": source.remedy,
            }
            for collector, source in snapshot.sources.items()
        },
        unit=unit,
        knobs=dict(snapshot.engine.knobs),
        knobs_source=snapshot.engine.knobs_source,
        model=snapshot.engine.model,
        engine_version=snapshot.engine.version,
        engine={name: _figure(getattr(snapshot.engine, name), snapshot.at) for name in _FIGURES},
        idle=snapshot.engine.idle,
        load=snapshot.load,
        gpu_source=snapshot.gpu_source,
        gpus=tuple(view.gpu for view in snapshot.gpus),
        system=None if system is None else _system(system.sample),
        clock_skew=None if system is None else system.clock_skew,
        alerts=tuple(snapshot.alerts),
    )


def _figure(figure: Figure | None, now: float) -> FigureReport | None:
    if figure is None:
        return None
    return FigureReport(
        figure.value, figure.source, round(figure.age(now), 3), figure.stale(now), figure.note
    )


def _system(sample: msgspec.Struct) -> dict[str, Any]:
    left_out = {"at", "source", "host_at", "type"}
    return {
        name: value
        for name, value in msgspec.structs.asdict(sample).items()
        if name not in left_out
    }
