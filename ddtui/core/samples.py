"""Samples: one timestamped observation from one source.

Everything that ddtui knows of a host arrives as one of these. Collectors make them, a recording
stores them, and `ddtui.core.host_state.HostState` reduces them; nothing else reaches the screens.

Conventions: times are Unix seconds (float) on the operator's clock unless a field says otherwise;
memory and disk sizes are bytes; utilization is percent (0 to 100); power is watts; temperatures are
degrees Celsius; clocks are MHz. `None` always means "this source did not say" and is never replaced
by zero.
"""

from __future__ import annotations

import enum

import msgspec

from ddtui.core.text import named_values


class Sample(msgspec.Struct, frozen=True, tag=True):
    """Base of all samples."""

    at: float
    """When it was received: Unix seconds on the operator's clock."""
    source: str
    """What said so, in the operator's words: `nvidia-smi`, `nvml`, `journal`, `/metrics`, ..."""


# ---- the link -----------------------------------------------------------------------------------


class LinkState(enum.StrEnum):
    """Where the connection to the host stands."""

    CONNECTING = "connecting"
    LIVE = "live"
    RETRYING = "retrying"  # down, the next try is scheduled
    REFUSED = "refused"  # authentication or host key: no retry before the operator acts
    CLOSED = "closed"


class LinkSample(Sample, frozen=True, tag=True):
    """A change of the connection's state."""

    state: LinkState
    detail: str = ""
    """What happened, in words: the reason of a failure, or where the connection leads."""
    remedy: str = ""
    """What the operator can do; empty when nothing is needed."""
    attempt: int = 0
    """Tries since the link was last live."""
    retry_at: float | None = None
    """When the next try is due."""


class Collector(enum.StrEnum):
    """The sources that are collected, each on its own."""

    GPU = "gpu"
    GPU_PROCESSES = "gpu processes"
    SYSTEM = "system"
    UNIT = "unit"
    JOURNAL = "journal"
    ENGINE = "engine"
    LISTENER = "listener"
    CHECKPOINT = "checkpoint"


class SourceStatus(enum.StrEnum):
    """Whether a collector has its source."""

    STARTING = "starting"
    LIVE = "live"
    WAITING = "waiting"  # not there now and expected to come (an engine that is loading)
    ABSENT = "absent"  # the host does not have it (no nvidia-smi)
    FAILED = "failed"  # it broke; tried again


class SourceSample(Sample, frozen=True, tag=True):
    """A change of a collector's own state."""

    collector: Collector
    status: SourceStatus
    detail: str = ""
    remedy: str = ""


# ---- GPUs ---------------------------------------------------------------------------------------


class Gpu(msgspec.Struct, frozen=True):
    """One GPU's reading. Only `index` is certain; drivers leave out what a board does not have."""

    index: int
    uuid: str = ""
    name: str = ""
    bus_id: str = ""
    driver: str = ""
    memory_used: int | None = None
    memory_total: int | None = None
    utilization: float | None = None
    """Share of time in which a kernel ran (the driver's utilization.gpu)."""
    memory_utilization: float | None = None
    """Share of time in which memory was read or written; not how full it is."""
    power: float | None = None
    power_limit: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    fan: float | None = None
    sm_clock: float | None = None
    memory_clock: float | None = None
    throttle_reasons: int | None = None
    """The driver's bit mask clocks_event_reasons.active; see `ddtui.core.gpus.throttle_words`."""
    ecc_uncorrected: int | None = None
    mig_enabled: bool | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    performance_state: str = ""
    lost: str = ""
    """Not empty when the driver no longer answers for this GPU: its words."""


class GpuSample(Sample, frozen=True, tag=True):
    """All GPUs at one moment, by index."""

    gpus: tuple[Gpu, ...]


class GpuProcess(msgspec.Struct, frozen=True):
    """One process that holds memory of one GPU."""

    pid: int
    gpu_uuid: str
    name: str = ""
    memory: int | None = None
    in_unit: bool | None = None
    """Whether it belongs to the unit's control group; None where that cannot be known."""


class GpuProcessSample(Sample, frozen=True, tag=True):
    """Every compute process on every GPU at one moment."""

    processes: tuple[GpuProcess, ...]


# ---- the machine --------------------------------------------------------------------------------


class SystemSample(Sample, frozen=True, tag=True):
    """The host's own load. Rates are per second over the interval since the previous sample."""

    host_at: float | None = None
    """The host's own clock (Unix seconds), for the skew."""
    cpu: float | None = None
    """Busy share of all cores, percent."""
    cores: int | None = None
    load_1m: float | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    page_cache: int | None = None
    disk_read: float | None = None
    disk_write: float | None = None
    model_disk_read: float | None = None
    """Read rate of the block device that holds the model, bytes per second."""
    model_disk: str = ""
    network_in: float | None = None
    network_out: float | None = None
    uptime: float | None = None


class RankIoSample(Sample, frozen=True, tag=True):
    """Bytes that the unit's processes have read from storage, summed over its control group.

    From `read_bytes` of /proc/PID/io (which needs the process's own user or root). `rchar` is not
    used: it does not move for mapped files.
    """

    read_bytes: int | None
    """None when no process of the unit may be read."""
    processes: int = 0
    unreadable: int = 0


class CheckpointSample(Sample, frozen=True, tag=True):
    """Size on disk of a model that the unit serves."""

    model: str
    """As named on the command line: a path or a hub name."""
    role: str
    """`target` or `drafter`."""
    size: int | None = None
    shards: int | None = None
    path: str = ""
    disk: str = ""
    """Device that holds it (`/dev/nvme0n1`), or the name of its file system where there is none."""


# ---- the unit -----------------------------------------------------------------------------------


UP = frozenset({"active", "activating", "reloading", "refreshing"})
"""Values of ActiveState in which a process of the unit runs, or is being started."""


def is_auto_restart(sub_state: str) -> bool:
    """Whether a unit of this SubState has died, and waits for systemd to start it again."""
    return sub_state.startswith("auto-restart")  # or auto-restart-queued


class UnitStatus(msgspec.Struct, frozen=True):
    """What systemd says of the unit. Field names follow systemd's properties."""

    name: str
    load_state: str = ""
    """loaded, not-found, masked, bad-setting, error."""
    active_state: str = ""
    """active, activating, deactivating, inactive, failed, reloading, refreshing."""
    sub_state: str = ""
    result: str = ""
    main_pid: int = 0
    invocation: str = ""
    """InvocationID: 32 hex digits, new at every start."""
    started_at: float | None = None
    """ActiveEnterTimestamp or, while starting, ExecMainStartTimestamp: Unix seconds on the host's
    clock.
    """
    state_changed_at: float | None = None
    """StateChangeTimestamp: Unix seconds on the host's clock."""
    restarts: int | None = None
    exit_code: str = ""
    """ExecMainCode in words: exited, killed, dumped; empty while running."""
    exit_status: int | None = None
    memory: int | None = None
    tasks: int | None = None
    unit_file_state: str = ""
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    control_group: str = ""
    needs_daemon_reload: bool = False
    command_line: tuple[str, ...] = ()
    """argv of the running main process, else of ExecStart as systemd would run it; secrets
    removed.
    """
    command_line_printed: bool = False
    """The command line is ExecStart as systemd prints it: without quotes, so that a word with
    blanks is several, and quotes within a word may be lost."""
    program: str = ""
    """What runs, where ExecStart gives the process another name (`@`) in its command line."""
    environment: tuple[str, ...] = ()
    """`NAME=value` pairs set by the unit, with the values that its main process was started with as
    far as they may be read; secrets removed."""
    environment_read: bool = False
    """The environment is what the main process was started with: what the unit sets and is not in
    it, is not set."""
    older: tuple[str, ...] = ()
    """What the main process was started with otherwise than the unit has it now, in words, beyond
    what its command line and environment show."""
    doubts: tuple[str, ...] = ()
    """Why it may run with an older configuration, where that is not known; in words."""
    overridden: tuple[str, ...] = ()
    """`NAME=value` of variables that the program has set otherwise itself after its start, `NAME`
    of those that it has taken away; secrets removed."""
    working_directory: str = ""
    status_text: str = ""
    """What the service says of itself (sd_notify STATUS=)."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment by name."""
        return named_values(self.environment)

    @property
    def is_up(self) -> bool:
        """Whether a process of it runs, or is being started; also while it waits to be."""
        return self.active_state in UP

    @property
    def is_auto_restarting(self) -> bool:
        """Whether it has died, and waits for systemd to start it again."""
        return is_auto_restart(self.sub_state)


class UnitSample(Sample, frozen=True, tag=True):
    """The unit's state after a change, or as a sign of life."""

    unit: UnitStatus


class ListenerOwner(enum.StrEnum):
    """Who holds the engine's port, as far as this user can see."""

    NOBODY = "nobody"
    UNIT = "unit"  # a process of the unit's control group has the socket open: proved
    SAME_USER = "same user"  # the socket's uid is the unit's uid: consistent, not proved
    FOREIGN = "foreign"  # another process has it, or another uid
    UNKNOWN = "unknown"


class ListenerSample(Sample, frozen=True, tag=True):
    """Who listens on the engine's port."""

    port: int
    owner: ListenerOwner
    pid: int | None = None
    uid: int | None = None
    detail: str = ""


# ---- the journal --------------------------------------------------------------------------------


class JournalLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the unit's journal, control characters removed, secrets removed, length capped.

    One journal entry may give several: progress bars are joined by carriage returns and can be
    glued in front of another line.
    """

    stamp: float
    """The journal's realtime stamp: Unix seconds on the host's clock."""
    text: str
    invocation: str = ""
    pid: int | None = None
    priority: int | None = None
    from_manager: bool = False
    """Written by systemd about the unit, not by the unit's processes."""
    truncated: bool = False
    continued: bool = False
    """The rest of a line that journald cut (at 48 KiB): never the beginning of a log line."""
    bar: bool = False
    """A state of a progress bar, not a line of the log: superseded by the next one."""


class JournalSample(Sample, frozen=True, tag=True):
    """New lines, oldest first. `cursor` resumes after the last of them."""

    lines: tuple[JournalLine, ...]
    cursor: str = ""
    suppressed: int = 0
    """Lines that journald itself dropped by its rate limit, as it reports them."""


# ---- the engine's HTTP side ---------------------------------------------------------------------


class HealthSample(Sample, frozen=True, tag=True):
    """One answer, or none, of an engine endpoint."""

    endpoint: str
    status: int | None = None
    """HTTP status; None when no answer came."""
    error: str = ""
    seconds: float | None = None


class EngineCounters(msgspec.Struct, frozen=True):
    """What one reading of the engine's figures gave, whatever the endpoint."""

    decode_tokens_total: float | None = None
    """Counter of generated tokens, moving at every decode step where the engine has such a
    counter.
    """
    generation_tokens_total: float | None = None
    """Counter that moves when requests finish (lumpy)."""
    prompt_tokens_total: float | None = None
    verify_calls_total: float | None = None
    requests_total: float | None = None
    """Counter of finished requests; the engine's own checks of its health are not among them."""
    generation_throughput: float | None = None
    """The engine's own gauge, tokens per second."""
    acceptance_length: float | None = None
    acceptance_is_lifetime: bool = False
    """True where the figure is an average since start or flush, not of the last interval."""
    draft_tokens: float | None = None
    running: float | None = None
    queued: float | None = None
    kv_usage: float | None = None
    """Share of the KV cache in use, 0 to 1."""
    max_total_tokens: float | None = None
    cache_hit_rate: float | None = None
    first_token_seconds_total: float | None = None
    """Counter: seconds from a request's arrival to its first token, added up over requests."""
    first_tokens_total: float | None = None
    """Counter of the requests in that sum."""


class EngineSample(Sample, frozen=True, tag=True):
    """Figures of the engine from `source` (`/metrics`, `/v1/loads`, `/server_info`)."""

    counters: EngineCounters


class ServerInfoSample(Sample, frozen=True, tag=True):
    """The engine's own report of its configuration, secrets removed."""

    arguments: dict[str, str | int | float | bool | None]
    """Resolved server arguments, flat; nested values are left out."""
    launch_command: tuple[str, ...] = ()
    """The command line that it reports, in words; taken apart as a shell would where it is text."""
    launch_text: str = ""
    """The same as it was reported, where that is one text: servers join it without quotes."""
    version: str = ""
    status: str = ""
    model: str = ""


class ReportRefusedSample(Sample, frozen=True, tag=True):
    """The engine answered that it does not give its report: a key is needed, or a better one."""

    status: int
    """401 or 403."""


AnySample = (
    LinkSample
    | SourceSample
    | GpuSample
    | GpuProcessSample
    | SystemSample
    | RankIoSample
    | CheckpointSample
    | UnitSample
    | ListenerSample
    | JournalSample
    | HealthSample
    | EngineSample
    | ServerInfoSample
    | ReportRefusedSample
)
