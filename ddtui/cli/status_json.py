"""The JSON of `ddtui status --json`. Keys are stable: they are added to, never renamed.

A key with a unit ends with it. The operating guide has what is said of each key here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from ddtui.core.knobs import by_name
from ddtui.core.samples import Gpu, SystemSample, UnitStatus
from ddtui.core.snapshot import Figure, LoadView, PhaseView, ReadinessState, Snapshot


class FigureReport(msgspec.Struct, frozen=True):
    """A figure with its source and its age."""

    value: float
    """The figure itself."""
    unit: str
    """What it is counted in."""
    source: str
    """What said so."""
    age_seconds: float
    """How old it is."""
    stale: bool
    """Whether it is too old to be taken for what holds now."""
    note: str
    """What is to be known of it; else empty."""


class EvidenceReport(msgspec.Struct, frozen=True):
    """One reason for the readiness."""

    name: str
    """`unit`, `log`, `port owner`, `health`, `configuration`, ..."""
    verdict: str
    """`proved`, `consistent`, `missing` or `against`."""
    detail: str
    """What was seen."""
    at: float | None
    """When."""


class SourceReport(msgspec.Struct, frozen=True):
    """Whether a collector has its source."""

    status: str
    """`starting`, `live`, `waiting`, `absent` or `failed`."""
    source: str
    """Where its figures are from."""
    detail: str
    """What is wrong, or what was found."""
    remedy: str
    """What to do; empty where nothing is needed."""


class LinkReport(msgspec.Struct, frozen=True):
    """The connection to the host."""

    state: str
    """`connecting`, `live`, `retrying`, `refused` or `closed`."""
    detail: str
    """Where it leads, or what is wrong."""
    remedy: str
    """What to do; empty where nothing is needed."""


class UnitReport(msgspec.Struct, frozen=True):
    """What systemd says of the unit, named as systemd names it. Its variables are not told."""

    name: str
    """The unit."""
    load_state: str
    """`loaded`, `not-found`, `masked`, ..."""
    active_state: str
    """`active`, `activating`, `inactive`, `failed`, ..."""
    sub_state: str
    """Such as `running` or `auto-restart`."""
    result: str
    """How it ended last: `success`, `exit-code`, `oom-kill`, ..."""
    main_pid: int
    """0 where it does not run."""
    invocation: str
    """InvocationID: another one at every start."""
    started_at: float | None
    """On the host's clock."""
    state_changed_at: float | None
    """On the host's clock."""
    restarts: int | None
    """How often systemd has restarted it by itself."""
    exit_code: str
    """`exited`, `killed` or `dumped`; empty while it runs."""
    exit_status: int | None
    """Status or signal of its main process."""
    memory_bytes: int | None
    """Memory of its control group."""
    tasks: int | None
    """Processes and threads of its control group."""
    unit_file_state: str
    """`enabled`, `disabled`, ..."""
    fragment: str
    """Its own file."""
    drop_ins: tuple[str, ...]
    """Files beside it, in their order."""
    control_group: str
    """Its control group."""
    needs_daemon_reload: bool
    """Whether a file was changed that systemd has not read yet."""
    command_line: tuple[str, ...]
    """Of the main process, else as systemd would start it; secrets masked."""
    older: tuple[str, ...]
    """What the process was started with otherwise than the unit has it now."""
    doubts: tuple[str, ...]
    """Why that may be so, where it is not known."""
    working_directory: str
    """As the unit sets it."""
    status_text: str
    """What the service says of itself."""


class PhaseReport(msgspec.Struct, frozen=True):
    """One phase of a load."""

    phase: str
    """`starting`, `loading target`, ..."""
    status: str
    """`pending`, `running`, `done`, `failed` or `skipped`."""
    began: float | None
    """On the host's clock."""
    ended: float | None
    """On the host's clock."""
    fraction: float | None
    """How far it is, 0 to 1."""
    source: str
    """What tells that."""
    detail: str
    """What is loaded, in words."""
    expected_seconds: float | None
    """How long it took in earlier loads."""


class LoadReport(msgspec.Struct, frozen=True):
    """The load of one invocation."""

    invocation: str
    """Which start it is of."""
    began: float
    """On the host's clock."""
    ended: float | None
    """On the host's clock; null while it goes on."""
    current: str
    """The phase that it is in."""
    finished: bool
    """Whether it has come to its end."""
    failed: bool
    """Whether it failed."""
    fraction: float | None
    """Of the whole load in time, 0 to 1."""
    eta_seconds: float | None
    """Until the end of `eta_of`."""
    eta_of: str
    """`ready`, or the phase whose end alone can be told."""
    eta_source: str
    """What the ETA is made of; without one, why there is none."""
    stalled_seconds: float | None
    """Without progress by any source, where that is longer than earlier loads explain."""
    advice: str
    """Which sources have stopped, in words."""
    straggler: str
    """A rank or GPU that is clearly behind the others."""
    phases: tuple[PhaseReport, ...]
    """Each phase."""


class GpuReport(msgspec.Struct, frozen=True):
    """One GPU; null is what the driver does not tell."""

    index: int
    """As the driver counts."""
    uuid: str
    """As the driver has it."""
    name: str
    """Model of the board."""
    bus_id: str
    """PCI address."""
    driver: str
    """Version of the driver."""
    memory_used_bytes: int | None
    """Memory that is held, by whomever."""
    memory_total_bytes: int | None
    """Memory that there is."""
    utilization_percent: float | None
    """Share of time in which a kernel ran."""
    memory_utilization_percent: float | None
    """Share of time in which memory was read or written."""
    power_watts: float | None
    """Power drawn."""
    power_limit_watts: float | None
    """Power allowed."""
    temperature_c: float | None
    """Of the chip."""
    memory_temperature_c: float | None
    """Of the memory."""
    fan_percent: float | None
    """Speed of the fan."""
    sm_clock_mhz: float | None
    """Clock of the multiprocessors."""
    memory_clock_mhz: float | None
    """Clock of the memory."""
    throttle_reasons: int | None
    """The driver's bit mask of why the clock is held down."""
    ecc_uncorrected: int | None
    """Errors of memory that could not be corrected."""
    mig_enabled: bool | None
    """Whether it is divided (MIG)."""
    pcie_generation: int | None
    """Of the link as it is now."""
    pcie_width: int | None
    """Lanes of the link as it is now."""
    performance_state: str
    """`P0` to `P15`."""
    lost: str
    """The driver's words where it does not answer for this GPU any more; else empty."""


class SystemReport(msgspec.Struct, frozen=True):
    """The host's own load; rates are over the seconds before."""

    cpu_percent: float | None
    """Busy share of all cores."""
    cores: int | None
    """How many there are."""
    load_1m: float | None
    """Load average of a minute."""
    memory_total_bytes: int | None
    """Main memory."""
    memory_available_bytes: int | None
    """What programs may still have of it."""
    page_cache_bytes: int | None
    """What holds files."""
    disk_read_bytes_per_second: float | None
    """Of all disks."""
    disk_write_bytes_per_second: float | None
    """Of all disks."""
    model_disk: str
    """The disk that holds the model."""
    model_disk_read_bytes_per_second: float | None
    """Of that disk."""
    network_in_bytes_per_second: float | None
    """Of all interfaces."""
    network_out_bytes_per_second: float | None
    """Of all interfaces."""
    uptime_seconds: float | None
    """Since the host was booted."""


class AlertReport(msgspec.Struct, frozen=True):
    """Something that the operator should know."""

    key: str
    """What tells it from others."""
    severity: str
    """`info`, `warning` or `critical`."""
    text: str
    """What it is."""
    since: float | None
    """Since when."""


class StatusReport(msgspec.Struct, frozen=True):
    """One host at one moment."""

    host: str
    """The host's name."""
    at: float
    """When it was looked at."""
    simulated: bool
    """Whether it is the simulated host."""
    ready: bool
    """Whether the engine is proved to be ready; the exit status says the same."""
    readiness: str
    """`ready`, `loading target`, `failed`, `absent`, ..."""
    summary: str
    """That in a line."""
    evidence: tuple[EvidenceReport, ...]
    """Why."""
    link: LinkReport
    """The connection to the host."""
    sources: dict[str, SourceReport]
    """By collector: `unit`, `gpu`, `gpu_processes`, `journal`, ..."""
    unit: UnitReport | None
    """What systemd says of the unit."""
    knobs: dict[str, str]
    """What is in force, by the names that `--set` takes."""
    knobs_source: str
    """What says so."""
    model: str
    """The served model."""
    engine_version: str
    """The server's own version."""
    engine: dict[str, FigureReport | None]
    """`throughput`, `prefill_throughput`, `acceptance_length`, `acceptance_lifetime`, `running`,
    `queued`, `kv_usage`."""
    idle: bool
    """Whether the engine is up and nobody asks it anything."""
    load: LoadReport | None
    """The last load of the model."""
    gpu_source: str
    """What the GPU figures are from."""
    gpus: tuple[GpuReport, ...]
    """Each GPU."""
    system: SystemReport | None
    """The host's own load."""
    clock_skew_seconds: float | None
    """How far the host's clock is ahead of this machine's."""
    alerts: tuple[AlertReport, ...]
    """What the operator should know."""


_Report = TypeVar("_Report", bound=msgspec.Struct)
_TOKENS = "tokens per second"
_FIGURES = {
    "throughput": _TOKENS,
    "prefill_throughput": _TOKENS,
    "acceptance_length": "tokens per pass",
    "acceptance_lifetime": "tokens per pass",
    "running": "requests",
    "queued": "requests",
    "kv_usage": "share from 0 to 1",
}
"""The engine's figures, and what each is counted in."""
_OF_GPU = {
    "memory_used": "memory_used_bytes",
    "memory_total": "memory_total_bytes",
    "utilization": "utilization_percent",
    "memory_utilization": "memory_utilization_percent",
    "power": "power_watts",
    "power_limit": "power_limit_watts",
    "temperature": "temperature_c",
    "memory_temperature": "memory_temperature_c",
    "fan": "fan_percent",
    "sm_clock": "sm_clock_mhz",
    "memory_clock": "memory_clock_mhz",
}
_OF_SYSTEM = {
    "cpu": "cpu_percent",
    "memory_total": "memory_total_bytes",
    "memory_available": "memory_available_bytes",
    "page_cache": "page_cache_bytes",
    "disk_read": "disk_read_bytes_per_second",
    "disk_write": "disk_write_bytes_per_second",
    "model_disk_read": "model_disk_read_bytes_per_second",
    "network_in": "network_in_bytes_per_second",
    "network_out": "network_out_bytes_per_second",
    "uptime": "uptime_seconds",
}


def status_report(snapshot: Snapshot) -> StatusReport:
    """The report of a snapshot."""
    engine, system = snapshot.engine, snapshot.system
    return StatusReport(
        host=snapshot.host,
        at=snapshot.at,
        simulated=snapshot.simulated,
        ready=snapshot.readiness.state is ReadinessState.READY,
        readiness=snapshot.readiness.state.value,
        summary=snapshot.readiness.summary,
        evidence=tuple(_of(each, EvidenceReport) for each in snapshot.readiness.evidence),
        link=_of(snapshot.link, LinkReport),
        sources={
            collector.value.replace(" ", "_"): _of(source, SourceReport)
            for collector, source in snapshot.sources.items()
        },
        unit=_unit(snapshot.unit),
        knobs=by_name(engine.knobs),
        knobs_source=engine.knobs_source,
        model=engine.model,
        engine_version=engine.version,
        engine={
            name: _figure(getattr(engine, name), unit, snapshot.at)
            for name, unit in _FIGURES.items()
        },
        idle=engine.idle,
        load=_load(snapshot.load),
        gpu_source=snapshot.gpu_source,
        gpus=tuple(_gpu(view.gpu) for view in snapshot.gpus),
        system=None if system is None else _system(system.sample),
        clock_skew_seconds=None if system is None else system.clock_skew,
        alerts=tuple(_of(each, AlertReport) for each in snapshot.alerts),
    )


def _of(
    told: msgspec.Struct, report: type[_Report], names: Mapping[str, str] | None = None
) -> _Report:
    """A report of what has the same names, or those that `names` gives them."""
    others = names or {}
    values = {others.get(name, name): each for name, each in msgspec.structs.asdict(told).items()}
    return report(**{name: values[name] for name in report.__struct_fields__})


def _figure(figure: Figure | None, unit: str, now: float) -> FigureReport | None:
    if figure is None:
        return None
    return FigureReport(
        figure.value, unit, figure.source, round(figure.age(now), 3), figure.stale(now), figure.note
    )


def _unit(unit: UnitStatus | None) -> UnitReport | None:
    return None if unit is None else _of(unit, UnitReport, {"memory": "memory_bytes"})


def _load(load: LoadView | None) -> LoadReport | None:
    if load is None:
        return None
    told = _of(load, LoadReport, {"stalled_for": "stalled_seconds"})
    return msgspec.structs.replace(told, phases=tuple(map(_phase, load.phases)))


def _phase(phase: PhaseView) -> PhaseReport:
    return _of(phase, PhaseReport)


def _gpu(gpu: Gpu) -> GpuReport:
    return _of(gpu, GpuReport, _OF_GPU)


def _system(sample: SystemSample) -> SystemReport:
    return _of(sample, SystemReport, _OF_SYSTEM)
