"""Measuring an engine: the load generator's front."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ddtui.bench.progress import Progress
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.engine import Engine
from ddtui.core.generation import Prompt
from ddtui.core.measurement import Cell
from ddtui.hosts.base import Host, Port, Receiver

OnProgress = Callable[[Progress], None]
OnCell = Callable[[Cell], None]


class Connector(Protocol):
    """What opens connections: a Host, or `ddtui.hosts.ports.DirectPorts`."""

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host."""
        ...


class TextAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that was asked for its text."""

    text: str = ""
    reasoning: str = ""
    finish: str = ""
    """`stop`, `length`, ...; `stalled` or `failed` where it did not come whole."""
    tokens: int = 0
    error: str = ""


class Bench:
    """Measures one engine, which answers at `address:port` as seen through `connector`.

    Cancelling any of its methods ends every stream and closes every connection.
    """

    def __init__(
        self,
        connector: Host | Connector,
        address: str,
        port: int,
        engine: Engine,
        *,
        api_key: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`clock` stamps what comes; a test may give the time of a virtual event loop."""
        self._connector = connector
        self._address = address
        self._port = port
        self._engine = engine
        self._api_key = api_key
        self._clock = clock

    async def run(
        self,
        plan: BenchPlan,
        *,
        begun: Sequence[Cell] = (),
        budget: int | None = None,
        on_progress: OnProgress | None = None,
        on_cell: OnCell | None = None,
    ) -> tuple[Cell, ...]:
        """Measure every concurrency of the plan; those of `begun` are not measured again.

        `budget` is the draft tree's, for the node use. `on_cell` is called as each new cell is
        whole, so that it can be stored before the next one begins. Returns all cells, in the
        plan's order. Raises BenchError.
        """
        raise NotImplementedError

    async def ask(
        self,
        prompts: Sequence[Prompt],
        *,
        output_tokens: int,
        concurrency: int = 4,
        temperature: float = 0.0,
        thinking: bool | None = None,
        stall_seconds: float = 120.0,
        on_progress: OnProgress | None = None,
    ) -> tuple[TextAnswer, ...]:
        """Answers by the chat endpoint, untimed, in the prompts' order. Raises BenchError."""
        raise NotImplementedError
