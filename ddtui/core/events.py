"""What a line of an engine's log means, in words that hold for every engine.

An engine adapter (`ddtui.engines`) turns journal lines into these; `HostState` and the load tracker
consume them.
"""

from __future__ import annotations

import enum

import msgspec


class Phase(enum.StrEnum):
    """The phases of a start, in the order in which an engine passes through them."""

    STARTING = "starting"  # process start, imports, argument checks, distributed init
    TARGET = "loading target"
    DRAFTER = "loading drafter"
    KV_CACHE = "allocating KV cache"
    GRAPHS = "capturing graphs"
    WARMUP = "warming up"
    READY = "ready"


class EngineEvent(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Base of all events; these two are given by keyword."""

    stamp: float
    """The journal's stamp of the line: Unix seconds on the host's clock."""
    rank: str = ""
    """The engine's own rank prefix (`TP0`, `DP0 TP1 EP1`); empty for the main process."""


class PhaseBegan(EngineEvent, frozen=True, tag=True):
    """A phase began on a rank (`READY` has no end)."""

    phase: Phase
    detail: str = ""


class PhaseEnded(EngineEvent, frozen=True, tag=True):
    """A phase ended on a rank."""

    phase: Phase
    seconds: float | None = None
    """The engine's own figure of how long it took."""
    memory_used: int | None = None
    """Bytes of GPU memory the phase took, by the engine's own figure."""
    memory_available: int | None = None
    detail: str = ""


class BarMoved(EngineEvent, frozen=True, tag=True):
    """A progress bar advanced."""

    phase: Phase
    done: int
    total: int
    elapsed: float | None = None
    """Seconds by the bar's own clock."""
    label: str = ""


class Decoded(EngineEvent, frozen=True, tag=True):
    """The engine's periodic decode line."""

    throughput: float | None = None
    """Tokens per second over all requests since the previous such line."""
    acceptance_length: float | None = None
    acceptance_rate: float | None = None
    running: int | None = None
    queued: int | None = None
    kv_usage: float | None = None
    tokens: int | None = None
    graph: bool | None = None


class Prefilled(EngineEvent, frozen=True, tag=True):
    """The engine's prefill line."""

    new_sequences: int | None = None
    new_tokens: int | None = None
    cached_tokens: int | None = None
    running: int | None = None
    queued: int | None = None
    kv_usage: float | None = None
    throughput: float | None = None


class Configured(EngineEvent, frozen=True, tag=True):
    """A line that proves part of the configuration in force, such as the server's arguments."""

    values: dict[str, str | int | float | bool | None]


class PortOpened(EngineEvent, frozen=True, tag=True):
    """The HTTP server listens."""

    url: str = ""


class FiredUp(EngineEvent, frozen=True, tag=True):
    """The engine says that it is ready. A witness, not a proof."""


class Draining(EngineEvent, frozen=True, tag=True):
    """The engine was told to stop and waits for its requests."""


class Failed(EngineEvent, frozen=True, tag=True):
    """A line that tells of a failure: an exception's last line, a wrapper, a refused argument."""

    message: str
    wrapper: bool = False
    """True when the line only reports that something else failed."""
    ends_process: bool = False
    """The process that wrote it is gone, whatever others write afterwards."""


class FailureContinued(EngineEvent, frozen=True, tag=True):
    """A further line of the message of the failure that was told last."""

    message: str


class ExceptionAlone(EngineEvent, frozen=True, tag=True):
    """An exception's last line without a traceback: it counts only where the engine then ends."""

    message: str


AnyEvent = (
    PhaseBegan
    | PhaseEnded
    | BarMoved
    | Decoded
    | Prefilled
    | Configured
    | PortOpened
    | FiredUp
    | Draining
    | Failed
    | FailureContinued
    | ExceptionAlone
)
