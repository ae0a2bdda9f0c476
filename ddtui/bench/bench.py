"""Measuring an engine: the load generator's front."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import httpx
import msgspec

from ddtui.bench.batch import Meter, Send, run_batch
from ddtui.bench.cells import CellRun
from ddtui.bench.engine_side import EngineSide
from ddtui.bench.errors import BUSY, ConnectionLost, EngineBusy, ServerRefused
from ddtui.bench.exchange import Exchange, Limits, Outcome, exchange
from ddtui.bench.external import run_command
from ddtui.bench.progress import Progress, Step
from ddtui.bench.prompts import batch_of, load_prompts
from ddtui.bench.transport import Connector, ThinTransport
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.engine import Engine
from ddtui.core.generation import GenerationFormat, Prompt, Wanted
from ddtui.core.measurement import Cell
from ddtui.hosts.base import Host

OnProgress = Callable[[Progress], None]
OnCell = Callable[[Cell], None]

PAUSE = 0.25
"""Seconds between two looks at what a stream has brought; its stamps are taken at once."""
_CONNECT_SECONDS = 15.0
_SEND_SECONDS = 60.0


class TextAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that was asked for its text."""

    text: str = ""
    reasoning: str = ""
    finish: str = ""
    """`stop`, `length` (also where it went on beyond what was asked for, and was cut off), ...;
    `stalled` or `failed` where it did not come whole."""
    tokens: int = 0
    error: str = ""


class Bench:
    """Measures one engine, which answers at `address:port` as seen through `connector`.

    Cancelling any of its methods ends every stream and closes every connection.
    """

    def __init__(
        self,
        connector: Connector,
        address: str,
        port: int,
        engine: Engine,
        *,
        api_key: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
        host: Host | None = None,
    ) -> None:
        """`clock` stamps what comes; a test may give the time of a virtual event loop.

        `host` is where a plan's external command runs; without one it fails.
        """
        self._host = host
        self._connector = connector
        self._address = address
        self._port = port
        self._engine = engine
        self._api_key = api_key
        self._clock = clock

    def __repr__(self) -> str:
        return f"Bench({self._address}:{self._port})"

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
        if plan.command:
            return await run_command(
                self._host,
                plan,
                self._engine,
                begun,
                self._clock,
                on_progress,
                on_cell,
            )
        known = {cell.concurrency: cell for cell in begun}
        missing = [each for each in dict.fromkeys(plan.concurrency) if each not in known]
        if missing:
            prompts = await asyncio.to_thread(load_prompts, plan.prompts)
            async with self._client(plan.stall_seconds) as client:
                side = EngineSide(client, self._engine, self._clock)
                teller = _Teller(self._clock, len(missing), on_progress)
                teller.tell(Step.PREPARING)
                wanted = Wanted(
                    model=await side.model(),
                    output_tokens=plan.output_tokens,
                    temperature=plan.temperature,
                    thinking=plan.thinking,
                    seed=plan.seed,
                )
                form = self._engine.generation(plan.endpoint)
                send = self._sender(client, form, wanted, plan.stall_seconds)
                for concurrency in missing:
                    teller.begin_cell(concurrency)
                    cell = await CellRun(
                        plan,
                        concurrency,
                        batch_of(prompts, plan.requests, concurrency, plan.seed),
                        send=send,
                        side=side,
                        clock=self._clock,
                        show=teller.show,
                        budget=budget,
                    ).measure()
                    known[concurrency] = cell
                    if on_cell is not None:
                        on_cell(cell)
        return tuple(known[each] for each in dict.fromkeys(plan.concurrency))

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
        if not prompts:
            return ()
        async with self._client(stall_seconds) as client:
            side = EngineSide(client, self._engine, self._clock)
            wanted = Wanted(
                model=await side.model(),
                output_tokens=output_tokens,
                temperature=temperature,
                thinking=thinking,
                speculation=False,
            )
            form = self._engine.generation("chat")
            send = self._sender(client, form, wanted, stall_seconds, keep_text=True)
            teller = _Teller(self._clock, 1, on_progress)
            teller.begin_cell(concurrency)
            meter = Meter(self._clock)
            batch = await run_batch(
                send,
                prompts,
                concurrency,
                meter,
                on_tick=lambda: teller.show(Step.MEASURING, 1, 1, meter, len(prompts)),
                on_drain=_nothing,
            )
            lost = [each for each in batch.exchanges if each.lost]
            if lost and not await side.reachable():
                raise ConnectionLost(
                    "the connection to the engine broke while it answered",
                    lost[0].error,
                    "see that the unit runs and that the link is up",
                )
        if all(each.status in BUSY for each in batch.exchanges):
            raise EngineBusy(batch.exchanges[0].error)
        refused = [each for each in batch.exchanges if 400 <= each.status < 500]
        if len(refused) == len(batch.exchanges):
            raise ServerRefused("the engine refuses the requests", refused[0].error)
        answers = [_answer(each) for each in batch.exchanges]
        unsent = TextAnswer(finish="failed", error="not sent: too many requests before it failed")
        return tuple(answers + [unsent] * batch.skipped)

    @asynccontextmanager
    async def _client(self, stall_seconds: float) -> AsyncIterator[httpx.AsyncClient]:
        name = f"[{self._address}]" if ":" in self._address else self._address
        headers = {"user-agent": "ddtui", "accept-encoding": "identity"}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        async with httpx.AsyncClient(
            transport=ThinTransport(self._connector, self._clock),
            base_url=f"http://{name}:{self._port}",
            headers=headers,
            timeout=httpx.Timeout(stall_seconds, connect=_CONNECT_SECONDS, write=_SEND_SECONDS),
            trust_env=False,
            follow_redirects=False,
        ) as client:
            yield client

    def _sender(
        self,
        client: httpx.AsyncClient,
        form: GenerationFormat,
        wanted: Wanted,
        stall_seconds: float,
        *,
        keep_text: bool = False,
    ) -> Send:
        limits = Limits(wanted.output_tokens, stall_seconds)

        async def send(prompt: Prompt, watch: Callable[[Exchange], None]) -> Exchange:
            request = client.build_request("POST", form.path, json=form.body(prompt, wanted))
            return await exchange(
                client,
                request,
                form,
                self._clock,
                pause=PAUSE,
                limits=limits,
                keep_text=keep_text,
                watch=watch,
            )

        return send


class _Teller:
    """Makes Progress of what a cell shows."""

    def __init__(
        self, clock: Callable[[], float], cells: int, on_progress: OnProgress | None
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._cells = cells
        self._cell = 0
        self._concurrency = 0
        self._on_progress = on_progress

    def begin_cell(self, concurrency: int) -> None:
        """The next cell begins."""
        self._cell += 1
        self._concurrency = concurrency

    def tell(self, step: Step) -> None:
        """A step without requests."""
        if self._on_progress is not None:
            self._on_progress(
                Progress(step=step, cells=self._cells, elapsed=self._clock() - self._began)
            )

    def show(self, step: Step, batch: int, batches: int, meter: Meter, requests: int) -> None:
        """A look at a batch."""
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    step=step,
                    concurrency=self._concurrency,
                    cell=self._cell,
                    cells=self._cells,
                    batch=batch,
                    batches=batches,
                    done=meter.done,
                    requests=requests,
                    rate=meter.rate,
                    series=tuple(meter.series),
                    elapsed=self._clock() - self._began,
                )
            )


def _answer(each: Exchange) -> TextAnswer:
    return TextAnswer(
        text=each.content,
        reasoning=each.reasoning,
        finish=_finish(each),
        tokens=each.tokens or 0,
        error=each.error,
    )


def _finish(each: Exchange) -> str:
    if each.outcome is Outcome.OVERRUN:
        return "length"
    return each.finish if each.ok else each.outcome.value


async def _nothing() -> None:
    return
