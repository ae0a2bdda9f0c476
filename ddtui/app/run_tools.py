"""What a runner works with on a watched host: bench, judge, counters and a controller."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import httpx

from ddtui.app.controllers import controller_for
from ddtui.app.live import Watched
from ddtui.bench.bench import Bench, OnProgress
from ddtui.bench.coding_answer import Answer
from ddtui.bench.coding_tasks import coding_tasks
from ddtui.bench.judge import judge
from ddtui.bench.prompts import prompts_hash
from ddtui.bench.transport import Connector
from ddtui.control.controller import operator
from ddtui.core.generation import Prompt
from ddtui.core.measurement import CodingResult
from ddtui.experiments.needs import Around, Tools
from ddtui.store import Store
from ddtui.store.lock_wait import LockWait

if TYPE_CHECKING:
    from ddtui.config.load import Loaded
    from ddtui.control.reconfiguration import Limits
    from ddtui.core.bench_plan import BenchPlan
    from ddtui.core.load_history import LoadHistory

DATABASE_SECONDS = 600.0
"""For how long a run waits while another process keeps the database locked."""
_METRICS = "/metrics"
_METRICS_SECONDS = 10.0


def tools_for(source: Watched, *, limited_allowed: bool = False) -> Tools:
    """Bench, judge and counters of a watched host.

    `limited_allowed`: the operator has said yes to running a model's code with limits alone.
    """
    key = _Key(source)

    def bench(connector: Connector) -> Bench:
        address, port = source.engine_address()
        return Bench(connector, address, port, source.engine, api_key=key.known, host=source.host)

    async def code(plan: BenchPlan, on_progress: OnProgress) -> CodingResult:
        tasks = coding_tasks()
        await key.read()
        asked = [Prompt.of(task.question, task.id) for task in tasks]
        answers = await bench(source.host).ask(
            asked,
            output_tokens=plan.coding_tokens,
            temperature=plan.temperature,
            thinking=plan.thinking,
            stall_seconds=plan.stall_seconds,
            on_progress=on_progress,
        )
        came = {
            task.id: Answer(each.text, each.finish)
            for task, each in zip(tasks, answers, strict=True)
            if each.finish not in {"failed", "stalled"}
        }
        return await judge(came, tasks, limited_allowed=limited_allowed)

    return Tools(
        bench=bench,
        code=code,
        prompts_hash=lambda plan: "" if plan.command else prompts_hash(plan.prompts),
        requests=_finished_requests(source, key),
    )


class _Key:
    """The engine's API key. A program that prints it may be slow: it is read in a thread."""

    def __init__(self, source: Watched) -> None:
        self._source = source
        self.known: str | None = None
        """As it was read last; None where none is configured."""

    async def read(self) -> str | None:
        """Read it anew: it may have been changed. Raises ApiKeyError."""
        self.known = await asyncio.to_thread(self._source.settings.api_key)
        return self.known


def _finished_requests(source: Watched, key: _Key) -> Callable[[], Awaitable[float | None]]:
    """The engine's count; it is asked before each bench, which then has the key too."""

    async def finished() -> float | None:
        address, port = source.engine_address()
        name = f"[{address}]" if ":" in address else address
        headers = {"user-agent": "ddtui", "accept-encoding": "identity"}
        if secret := await key.read():
            headers["authorization"] = f"Bearer {secret}"
        try:
            async with (
                asyncio.timeout(_METRICS_SECONDS),
                httpx.AsyncClient(
                    transport=source.host.transport(), trust_env=False, headers=headers
                ) as client,
            ):
                answer = await client.get(f"http://{name}:{port}{_METRICS}")
        except (httpx.HTTPError, TimeoutError):
            return None  # it has no such counter, or does not answer: a bench will see the latter
        if answer.status_code != 200:
            return None
        found = source.engine.parse_metrics(answer.text)
        return None if found is None else found.requests_total

    return finished


def around_for(
    source: Watched,
    loaded: Loaded,
    store: Store,
    past: LoadHistory | None = None,
    *,
    limits: Limits | None = None,
    limited_allowed: bool = False,
) -> Around:
    """What a runner works with, with a controller of its own."""
    control = controller_for(source, loaded, store.reconfigurations, limits, past)
    return Around(
        host=source.host,
        control=control,
        watching=source.watching(),
        unit=source.unit_name,
        queue=store.experiments,
        measured=store.measurements,
        tools=tools_for(source, limited_allowed=limited_allowed),
        wait=store.wait,
        who=operator(),
        runner=f"{operator()} {uuid.uuid4().hex}",
    )


def patient_store() -> Store:
    """The store of a run, which outlasts another process that keeps it locked. Blocks."""
    return Store.open(wait=LockWait(DATABASE_SECONDS))
