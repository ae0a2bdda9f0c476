"""What one bench of one configuration gave, and under which circumstances. Pure data."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from ddtui.core.bench_plan import BenchPlan


class Spread(msgspec.Struct, frozen=True):
    """A figure over the repeats: the median with its 95 % confidence interval."""

    median: float
    low: float
    high: float
    values: tuple[float, ...] = ()
    """One of each repeat."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What one concurrency gave. Times in seconds, rates in tokens per second."""

    concurrency: int
    requests: int
    """Requests that count."""
    failed: int = 0
    stalled: int = 0
    errors: dict[str, int] = {}
    """What went wrong, and how often."""
    output_tokens: int = 0
    seconds: float = 0.0
    """Measured time, warm-up left out."""
    user_rate: Spread | None = None
    """What one user sees while it streams: 1 / TPOT."""
    total_rate: Spread | None = None
    """All tokens of the window over its length."""
    ttft: Spread | None = None
    """First event with a token of any channel."""
    ttfo: Spread | None = None
    """First visible content, which comes after the reasoning."""
    tpot: Spread | None = None
    itl: Spread | None = None
    itl_p99: Spread | None = None
    acceptance_length: Spread | None = None
    """1 + accepted drafts / verifications, of the requests' own counts."""
    acceptance_macro: float | None = None
    """Mean of the requests' acceptance lengths, as papers give it."""
    positions: tuple[float, ...] = ()
    """Share of verifications that accepted at least 1, 2, ... drafts."""
    passes: int = 0
    """Verifications that `positions` are of; 0 where that is not known."""
    node_use: float | None = None
    """(acceptance length - 1) / budget."""
    step_time: Spread | None = None
    """Acceptance length x TPOT: one pass of the target, at concurrency 1."""
    server_rate: float | None = None
    """The same window by the engine's counters, tok/s."""
    server_acceptance: float | None = None
    """The same window by the engine's counters."""
    server_ttft: float | None = None
    """Seconds, by the engine's own clock where it tells: without the link."""
    link_rtt: float | None = None
    """Seconds that the way to the engine and back took meanwhile."""
    warmup_batches: int = 0
    steady: bool = True
    """Whether the warm-up ended with two batches that agree."""
    partial: bool = False
    """Of an external bench that had not come to its end: there may have been more of it to come."""
    notes: tuple[str, ...] = ()


class Verdict(enum.StrEnum):
    """How the answer to a coding task ended; only a pass counts as passed."""

    PASS = "pass"  # noqa: S105 - a verdict
    WRONG = "wrong"
    ERROR = "error"
    TIMEOUT = "time-out"
    MEMORY = "memory"
    NO_CODE = "no code"
    TRUNCATED = "truncated"
    NOT_RUN = "not run"


class CodingResult(msgspec.Struct, frozen=True, kw_only=True):
    """The coding tests of one measurement."""

    verdicts: dict[str, Verdict]
    """By task."""
    details: dict[str, str] = {}
    """Why a task did not pass, in a line; cleaned."""
    isolation: str = "isolated"
    """`isolated` (bubblewrap), `limited` (resource limits only), or `not run`."""
    tasks: str = ""
    """Hash of the tasks and their tests."""

    @property
    def passed(self) -> int:
        """Tasks that passed."""
        return sum(each is Verdict.PASS for each in self.verdicts.values())

    @property
    def total(self) -> int:
        """Tasks that were judged: those not run say nothing of the model."""
        return sum(each is not Verdict.NOT_RUN for each in self.verdicts.values())


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Under which circumstances something was measured. Secrets are removed."""

    ddtui: str = ""
    engine: str = ""
    engine_version: str = ""
    driver: str = ""
    gpus: tuple[str, ...] = ()
    """Their names."""
    argv: tuple[str, ...] = ()
    """The command line in force."""
    environment: dict[str, str] = {}
    """Of the unit."""
    server_args: dict[str, Any] = {}
    """As the server reports them."""
    evidence: tuple[str, ...] = ()
    """What proved that this configuration was in force, in words."""
    doubts: tuple[str, ...] = ()
    """Why the process may have run with an older configuration, where that was not known."""
    drop_in_hash: str = ""
    invocation: str = ""
    prompts_hash: str = ""
    load_seconds: float | None = None
    clocks_mhz: tuple[float, float] | None = None
    """Lowest and highest SM clock of all GPUs during the run."""
    throttled: tuple[str, ...] = ()
    """Reasons seen during the run."""
    temperature_c: float | None = None
    """The hottest GPU during the run."""
    foreign_requests: int = 0
    """Requests of others, seen during the run."""


class MeasurementState(enum.StrEnum):
    """Whether a measurement can be used."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"
    """Ended early; the cells that it has are whole, or say that they are not."""
    FAILED = "failed"


class Owner(msgspec.Struct, frozen=True):
    """The process that measures."""

    pid: int
    started: float
    """When it began, by its system: tells it from another one with the same number. Unix seconds.
    """
    machine: str


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One bench of one configuration."""

    id: str
    host: str
    simulated: bool
    unit: str
    configuration: str
    """Key of the server's configuration: equal for equal flags and environment."""
    title: str = ""
    """The configuration in short: the knobs that were asked for, or the preset."""
    knobs: dict[str, str] = {}
    """In force, by name."""
    experiment: str = ""
    """Id of the experiment; empty for a bench by hand."""
    plan: BenchPlan
    state: MeasurementState = MeasurementState.RUNNING
    began: float
    """Unix seconds on the operator's clock."""
    ended: float | None = None
    cells: tuple[Cell, ...] = ()
    coding: CodingResult | None = None
    provenance: Provenance = Provenance()
    disturbed: tuple[str, ...] = ()
    """Why the figures may not be of this configuration alone."""
    cause: str = ""
    """Why it ended early, or failed."""
    owner: Owner | None = None
    """Who measures it, while a bench by hand is under way."""
