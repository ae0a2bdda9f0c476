"""The frozen view of a host that screens, verbs and the runner read.

`HostState.snapshot(now)` makes one; nobody changes it. Every figure carries its source and the time
it was observed, so that whoever shows it can show its age.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from ddtui.core.cause_of_failure import Cause
from ddtui.core.events import Phase
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import (
    CheckpointSample,
    Collector,
    Gpu,
    GpuProcess,
    LinkSample,
    ListenerSample,
    ServerInfoSample,
    SourceSample,
    SystemSample,
    UnitStatus,
)

STALE_AFTER_INTERVALS = 3
"""A figure older than this many of its source's intervals is stale."""


class Figure(msgspec.Struct, frozen=True):
    """One number with where it came from and when."""

    value: float
    source: str
    at: float
    """When it was observed: Unix seconds on the operator's clock."""
    valid_for: float = 3.0
    """Seconds after which it is stale."""
    note: str = ""
    """A caveat to show beside it, such as `lifetime average`."""

    def age(self, now: float) -> float:
        """Seconds since it was observed, never negative."""
        return max(0.0, now - self.at)

    def stale(self, now: float) -> bool:
        """Whether it is too old to be taken for the present."""
        return self.age(now) > self.valid_for


def freshest(now: float, *figures: Figure | None) -> Figure | None:
    """The first live figure in the order of trust given, else the newest of the stale ones."""
    known = [figure for figure in figures if figure is not None]
    for figure in known:
        if not figure.stale(now):
            return figure
    return max(known, key=lambda figure: figure.at, default=None)


class History(msgspec.Struct, frozen=True):
    """A figure over time, oldest first.

    `times` are Unix seconds on the operator's clock; values are NaN where nothing was said.
    """

    times: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


class GpuView(msgspec.Struct, frozen=True):
    """One GPU: its last reading and its recent past."""

    gpu: Gpu
    at: float
    memory_history: History = History()
    """Memory used, bytes."""
    utilization_history: History = History()
    unit_memory: int | None = None
    """Bytes held by the unit's processes, where known."""


class EngineView(msgspec.Struct, frozen=True):
    """The engine's live figures. A figure is None where no source gives it."""

    throughput: Figure | None = None
    """Generated tokens per second over all requests, now."""
    prefill_throughput: Figure | None = None
    acceptance_length: Figure | None = None
    acceptance_lifetime: Figure | None = None
    running: Figure | None = None
    queued: Figure | None = None
    kv_usage: Figure | None = None
    """Share of the KV cache in use, 0 to 1."""
    graph_in_use: bool | None = None
    throughput_history: History = History()
    acceptance_history: History = History()
    version: str = ""
    model: str = ""
    knobs: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Named knobs in force, for display, with the values of the strongest source."""
    knobs_source: str = ""
    idle: bool = False
    """True when the engine is up and nothing is running: no figure moves, and none is stale for
    it.
    """


def ended(view: EngineView) -> EngineView:
    """The last figures of an engine that is gone: none of them is live."""
    last = {
        name: msgspec.structs.replace(figure, valid_for=-1.0)
        for name in view.__struct_fields__
        if isinstance(figure := getattr(view, name), Figure)
    }
    return msgspec.structs.replace(view, idle=False, **last)


class PhaseStatus(enum.StrEnum):
    """Where one phase of a load stands."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # this start has no such phase (no drafter, no graphs)


class PhaseView(msgspec.Struct, frozen=True):
    """One phase of the load in progress, or of the last one."""

    phase: Phase
    status: PhaseStatus
    began: float | None = None
    ended: float | None = None
    """Unix seconds on the host's clock."""
    fraction: float | None = None
    """0 to 1; None when no source tells."""
    source: str = ""
    """What the fraction comes from: `log bar`, `GPU memory`, `storage reads`, `elapsed vs
    history`.
    """
    detail: str = ""
    expected_seconds: float | None = None
    """How long the phase took on this host before, for the same model."""


class LoadView(msgspec.Struct, frozen=True):
    """The load of one invocation."""

    invocation: str
    began: float
    """Unix seconds on the host's clock."""
    phases: tuple[PhaseView, ...]
    current: Phase
    finished: bool = False
    failed: bool = False
    ended: float | None = None
    fraction: float | None = None
    """Of the whole load in time, 0 to 1."""
    eta_seconds: float | None = None
    """Seconds until the end of `eta_of`; None when nothing can be said."""
    eta_of: Phase = Phase.READY
    """READY: until the engine is ready. TARGET or DRAFTER: only until the weights are loaded; how
    long the rest takes is not known.
    """
    eta_source: str = ""
    """`3 loads of this model`, `present rate`, ...; without an ETA why there is none."""
    stalled_for: float | None = None
    """Seconds without progress by any source, when that is longer than this host's history
    explains.
    """
    advice: str = ""
    """While it is stalled: which sources of progress have stopped, in words."""
    straggler: str = ""
    """A rank or GPU that is clearly behind the others."""


class ReadinessState(enum.StrEnum):
    """Where the engine stands."""

    UNKNOWN = "unknown"
    ABSENT = "absent"  # no such unit
    MASKED = "masked"
    STOPPED = "stopped"
    STOPPING = "stopping"
    STARTING = "starting"
    LOADING_TARGET = "loading target"
    LOADING_DRAFTER = "loading drafter"
    ALLOCATING = "allocating KV cache"
    CAPTURING = "capturing graphs"
    WARMING_UP = "warming up"
    READY = "ready"
    DEGRADED = "degraded"  # it was ready under this invocation and no longer answers as it should
    CRASH_LOOP = "crash loop"
    FAILED = "failed"


class Verdict(enum.StrEnum):
    """What one piece of evidence says."""

    PROVED = "proved"
    CONSISTENT = "consistent"
    MISSING = "missing"
    AGAINST = "against"


class Evidence(msgspec.Struct, frozen=True):
    """One reason for the readiness shown."""

    name: str
    """`unit`, `invocation`, `port owner`, `health`, `configuration`, `log`."""
    verdict: Verdict
    detail: str
    at: float | None = None


class Readiness(msgspec.Struct, frozen=True):
    """Readiness with its evidence."""

    state: ReadinessState
    since: float | None = None
    """Unix seconds on the operator's clock."""
    summary: str = ""
    """One line in words."""
    evidence: tuple[Evidence, ...] = ()


class Severity(enum.StrEnum):
    """How much an alert matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Alert(msgspec.Struct, frozen=True):
    """Something that the operator should see now."""

    key: str
    severity: Severity
    text: str
    since: float


class SystemView(msgspec.Struct, frozen=True):
    """The host's own load."""

    sample: SystemSample
    clock_skew: float | None = None
    """Host's clock minus the operator's, seconds (link delay included)."""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything known of one host at one moment."""

    at: float
    host: str
    simulated: bool
    link: LinkSample
    last_heard: float | None
    """When any sample last came from the host."""
    sources: Mapping[Collector, SourceSample]
    gpus: tuple[GpuView, ...]
    gpu_source: str
    gpu_at: float | None
    gpu_interval: float
    processes: tuple[GpuProcess, ...]
    system: SystemView | None
    unit: UnitStatus | None
    unit_at: float | None
    listener: ListenerSample | None
    checkpoints: tuple[CheckpointSample, ...]
    engine: EngineView
    load: LoadView | None
    readiness: Readiness
    alerts: Sequence[Alert]
    log: LogBuffer
    """Shared and growing; read it through its own methods."""
    diagnosis: Cause | None = None
    """Why the invocation failed, where it has."""
    server_info: ServerInfoSample | None = None
    """The server's own report, if it was given under the present invocation."""
    report_refusals: int = 0
    """Times that the present invocation has refused its report (401, 403) since it gave one."""
