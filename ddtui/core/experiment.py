"""An experiment: a configuration to load, and the bench to run on it. Pure data."""

from __future__ import annotations

import enum
from typing import Any, Literal, TypedDict

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.launch import Limits, Request, Value


class ExperimentState(enum.StrEnum):
    """Where an experiment stands."""

    PENDING = "pending"
    HELD = "held"
    """Kept in its place, and passed over."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({ExperimentState.DONE, ExperimentState.FAILED, ExperimentState.CANCELLED})
WAITING = frozenset({ExperimentState.PENDING, ExperimentState.HELD})

Step = Literal["", "planning", "loading", "measuring", "coding", "recording"]
"""What a running experiment does; written to the store before it is begun."""

Leave = Literal["baseline", "best", "last"]
"""Which configuration a unit is left in once its queue is done."""


class Match(msgspec.Struct, frozen=True):
    """Where a value comes from that was computed to match another configuration."""

    policy: str
    """Name of the policy, as `ddtui.experiments.matching` has it."""
    formula: str
    """With its figures: `ceil(16 x 15 / 7) = 35`."""
    knob: str
    value: int
    reference: str
    """What it matches, in words: `block size 8, budget 16`."""
    block_size: int | None = None
    """Of what it matches."""
    budget: int | None = None
    """Of what it matches."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment of a host's queue."""

    id: str
    host: str
    simulated: bool = False
    position: float = 0.0
    """Place in the queue: the lowest is next. Only the order counts."""
    title: str
    """The configuration in short, as tables show it: `budget 8 topk 4`."""
    request: Request
    """Values as asked for, secrets too: kept in the store only, redacted wherever shown."""
    plan: BenchPlan = BenchPlan()
    state: ExperimentState = ExperimentState.PENDING
    step: Step = ""
    sweep: str = ""
    """Name of the sweep it belongs to; empty for one added by itself."""
    baseline: bool = False
    """Whether the others of its sweep are compared with it."""
    hypothesis: str = ""
    note: str = ""
    match: Match | None = None
    by: str = ""
    """user@machine of who added it."""
    created: float = 0.0
    """Unix seconds on the operator's clock, like the times below."""
    began: float | None = None
    ended: float | None = None
    ended_as: int = 0
    """Its place among what has ended: it grows from one end to the next, whatever the clocks say,
    which can be set back, or be another machine's. 0 where it has not ended, or an older ddtui
    ended it."""
    attempts: int = 0
    """How often it was begun."""
    configuration: str = ""
    """Key of the server's configuration, once it was planned on the host."""
    knobs: dict[str, Value] = {}
    """As it was planned on the host, by name: those too that its request leaves to the server."""
    change: str = ""
    """Id of the reconfiguration that brings its configuration into force; empty for none needed."""
    measurement: str = ""
    """Id of its measurement; given before it is begun, so that none is made twice."""
    reused: bool = False
    """Whether the measurement is an earlier one of the same configuration and plan."""
    reloaded: bool = False
    """Whether the engine was loaded for it."""
    cause: dict[str, Any] | None = None
    """Why it failed: `title`, `evidence`, `remedy`."""
    runner: str = ""
    """Who runs it, or ran it last: a name that no other runner has. What another one writes of it
    is refused."""
    cancel: bool = False
    """Somebody wants the running experiment ended; its runner sees that at the next step."""
    like: str = ""
    """Id of the experiment that it was made after."""
    cleared: bool = False
    """Ended, and taken off the queue's list; its measurement stays in the results."""


class DraftFields(TypedDict, total=False):
    """Fields of an Experiment that one may have from the begin, beside what it is of."""

    state: ExperimentState
    """Pending or held."""
    sweep: str
    baseline: bool
    hypothesis: str
    note: str
    like: str
    configuration: str
    knobs: dict[str, Value]
    measurement: str
    reused: bool


class StepFields(TypedDict, total=False):
    """Fields of an Experiment that its runner sets with a step."""

    change: str
    measurement: str
    reused: bool
    configuration: str
    knobs: dict[str, Value]
    reloaded: bool


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue's experiments are made on, as far as matching needs it without the host."""

    knobs: dict[str, Value] = {}
    """By name: set by flags, or chosen by the server itself."""
    limits: Limits = Limits()


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a whole queue."""

    host: str
    simulated: bool = False
    leave: Leave = "last"
    paused: bool = False
    """The runner takes up nothing more until it is released."""
    baseline: dict[str, Any] = {}
    """What was in force when the queue began (`ddtui.experiments.baseline.Baseline`): the requests
    of its experiments are made on it. Empty while no run of it has begun."""
    in_force: InForce = InForce()
    """As the host told it when a sweep was worked out, or when the queue began. Empty where it was
    not asked, and once the queue has left the unit in something else."""
    stop: str = ""
    """Who wants the runner to stop, wherever it runs; empty for nobody."""


class SettingsFields(TypedDict, total=False):
    """Fields of QueueSettings that are set one by one."""

    leave: Leave
    paused: bool
    baseline: dict[str, Any]
    in_force: InForce
    stop: str


class Place(msgspec.Struct, frozen=True):
    """Where in the queue something is put, among what is pending or held."""

    where: Literal["first", "last", "before", "after"] = "last"
    of: str = ""
    """Id of the experiment that it is put before or after."""


class QueueEvent(msgspec.Struct, frozen=True):
    """One entry of an experiment's log: a step that was begun, or what an operator did to it."""

    experiment: str
    at: float
    """Unix seconds on the operator's clock."""
    who: str
    what: str
    """The step (`loading`), or what was done: `added`, `edited`, `held`."""
    detail: str = ""
