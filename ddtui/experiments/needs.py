"""What a runner depends on: the queue, the measurements, a bench, a judge of code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from ddtui.bench.bench import OnCell, OnProgress
from ddtui.bench.transport import Connector
from ddtui.control.carrying_out import Watching
from ddtui.control.controller import Controller
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Cell, CodingResult
from ddtui.hosts.base import Host
from ddtui.store.lock_wait import LockWait

if TYPE_CHECKING:  # the database's library is not loaded for those who only work out times
    from ddtui.store.experiments import Experiments
    from ddtui.store.measurements import Measurements


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
    """What a runner depends on."""

    host: Host
    control: Controller
    watching: Watching
    unit: Callable[[], str]
    queue: Experiments
    measured: Measurements
    tools: Tools
    wait: LockWait = msgspec.field(default_factory=LockWait)
    """How its stores wait while another process keeps the database locked."""
    who: str
    """user@machine of the operator."""
    runner: str
    """A name that no other runner has, ever."""
