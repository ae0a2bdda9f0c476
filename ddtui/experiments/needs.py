"""What the runner needs of others: the queue, the measurements, a bench, a judge of code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from ddtui.bench.progress import Progress
from ddtui.control.carrying_out import Watching
from ddtui.control.controller import Controller
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, QueueSettings, Step
from ddtui.core.measurement import Cell, CodingResult, Measurement, MeasurementState
from ddtui.hosts.base import Host, Port, Receiver
from ddtui.store.lock_wait import LockWait

OnProgress = Callable[[Progress], None]
OnCell = Callable[[Cell], None]


class Queue(Protocol):
    """`ddtui.store.experiments.Experiments`; methods block."""

    def get(self, experiment_id: str) -> Experiment | None:
        """See Experiments."""
        ...

    def queue(self, host: str, *, simulated: bool, cleared: bool = False) -> list[Experiment]:
        """See Experiments."""
        ...

    def has_any(self, host: str, states: Iterable[ExperimentState], *, simulated: bool) -> bool:
        """See Experiments."""
        ...

    def running(self, host: str, *, simulated: bool) -> list[Experiment]:
        """See Experiments."""
        ...

    def claim(self, host: str, *, simulated: bool, who: str, at: float) -> Experiment | None:
        """See Experiments."""
        ...

    def take_over(self, experiment_id: str, *, who: str, at: float) -> Experiment:
        """See Experiments."""
        ...

    def step(
        self, experiment_id: str, step: Step, *, who: str, at: float, detail: str = "", **to: Any
    ) -> Experiment:
        """See Experiments."""
        ...

    def give_back(self, experiment_id: str, *, who: str, at: float, detail: str = "") -> Experiment:
        """See Experiments."""
        ...

    def end(self, experiment: Experiment, *, who: str, at: float) -> Experiment:
        """See Experiments."""
        ...

    def settings(self, host: str, *, simulated: bool) -> QueueSettings:
        """See Experiments."""
        ...

    def change_settings(self, host: str, *, simulated: bool, **to: Any) -> QueueSettings:
        """See Experiments."""
        ...


class Measured(Protocol):
    """`ddtui.store.measurements.Measurements`; methods block."""

    def get(self, measurement_id: str) -> Measurement | None:
        """See Measurements."""
        ...

    def of_host(
        self, host: str, *, simulated: bool, state: MeasurementState | None = None
    ) -> list[Measurement]:
        """See Measurements."""
        ...

    def put(self, measurement: Measurement, *, who: str | None = None) -> None:
        """See Measurements."""
        ...

    def finish(
        self, experiment: Experiment, measurement: Measurement, *, who: str, at: float
    ) -> Experiment:
        """See Measurements."""
        ...


class Connector(Protocol):
    """What opens connections to the engine."""

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host."""
        ...


class Measurer(Protocol):
    """`ddtui.bench.bench.Bench`."""

    async def run(
        self,
        plan: BenchPlan,
        *,
        begun: Sequence[Cell] = (),
        budget: int | None = None,
        on_progress: OnProgress | None = None,
        on_cell: OnCell | None = None,
    ) -> tuple[Cell, ...]:
        """See Bench."""
        ...


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What measures."""

    bench: Callable[[Connector], Measurer]
    """A bench of the engine as it is reached now, over what opens connections."""
    code: Callable[[BenchPlan, OnProgress], Awaitable[CodingResult]]
    """Asks for the coding tasks and judges the answers. Raises BenchError, HostError."""
    prompts_hash: Callable[[BenchPlan], str]
    requests: Callable[[], Awaitable[float | None]]
    """The engine's own count of finished requests; None where it has none."""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """All that one runner works with."""

    host: Host
    control: Controller
    watching: Watching
    unit: Callable[[], str]
    queue: Queue
    measured: Measured
    tools: Tools
    wait: LockWait = msgspec.field(default_factory=LockWait)
    """How its stores wait while another process keeps the database locked."""
    who: str
    """user@machine of the operator."""
    runner: str
    """A name that no other runner has, ever."""
