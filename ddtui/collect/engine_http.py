"""The engine's HTTP side: is it healthy, what does it do, how is it configured.

Loops that do not wait for one another: a health request blocks for as long as the engine
takes to generate a token, and 20 s when it hangs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from ddtui.collect.base import Context, Emit, Nudge, Report, SourceTrouble, supervise
from ddtui.collect.engine_client import Answer, EngineClient, NoAnswer, TooLong
from ddtui.collect.engine_standing import HEALTH, INFO, Standing
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.core.clock import Clock
from ddtui.core.engine import Engine
from ddtui.core.samples import (
    Collector,
    EngineCounters,
    EngineSample,
    HealthSample,
    ReportRefusedSample,
)
from ddtui.hosts.base import Host

UNIT_PATIENCE = 2.0
"""Seconds that the unit's command line, which names the port, is waited for at first."""
READY = "/ready"
"""Answers at once, from the engine's own state, where /health generates a token and takes a second
(since 0.5.20)."""
OBJECTION = 0.15
"""Seconds that /health gets to contradict /ready."""
HEALTH_TIMEOUT = 25.0
"""The engine itself gives up after 20 s."""
HEALTH_SLOW = 2.0
"""Seconds after which the other endpoints are asked although /health has not answered yet."""
HEALTH_INTERVAL = 1.0
HEALTH_WHEN_READY = 60.0
"""A health request costs the engine the generation of a token: seldom once it is ready."""
HEALTH_WHEN_BUSY = 120.0
"""Even more seldom while it works, which its figures show."""
HEALTH_WHEN_ALONE = 8.0
"""Where nothing else answers (a key is needed for it), health is the only sign of life. Well below
`readiness.SIGN_OF_LIFE`: else an idle engine would be called degraded between two requests."""
INFO_INTERVAL = 30.0
METRICS = "/metrics"
METRICS_AGAIN = 60.0
"""Seconds after which an engine without metrics is asked for them again."""
LOADS = "/v1/loads?include=all"


class EngineHttpCollector:
    """Health, figures and configuration of the engine."""

    def __init__(
        self, settings: HostSettings, engine: Engine, observed: Observed, context: Context
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._observed = observed
        self._context = context

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.ENGINE, "HTTP", emit, self._context.clock)

        async def work() -> None:
            async with _client(host, self._settings, self._observed) as client:
                standing = Standing(self._observed, report)
                health = HealthPoll(client, standing, self._observed, emit, self._context.clock)
                polls = (
                    health.run,
                    health.watch_ready,
                    FiguresPoll(client, standing, self._engine, emit, self._context.clock).run,
                    InfoPoll(client, standing, self._observed, self._engine, emit,
                             self._context.clock).run,
                )  # fmt: skip
                await _together(
                    [poll(self._settings.engine_interval, self._context.nudge) for poll in polls]
                )

        await supervise(host, report, work, self._context.nudge)


@asynccontextmanager
async def _client(
    host: Host, settings: HostSettings, observed: Observed
) -> AsyncIterator[EngineClient]:
    client = EngineClient(host, settings, observed)
    try:
        yield client
    finally:
        await client.close()


async def _together(polls: list[Awaitable[None]]) -> None:
    """Run endless loops until the first fails; raises what it raised, and ends the others."""
    tasks = [asyncio.ensure_future(poll) for poll in polls]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pause(nudge: Nudge, standing: Standing, announced: int, seconds: float) -> None:
    """Wait; cut short by the operator, by the engine's word that it can be asked, by its opening.

    `announced` is how often it had said so before it was asked last.
    """
    observed, was_open = standing.observed, standing.reachable

    def news() -> bool:
        return observed.announced != announced or (standing.reachable and not was_open)

    waits = [
        asyncio.ensure_future(nudge.wait(seconds)),
        asyncio.ensure_future(observed.wait_for(news, math.inf)),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


class HealthPoll:
    """Asks /health once a second until the engine is ready, then seldom."""

    def __init__(
        self, client: EngineClient, standing: Standing, observed: Observed, emit: Emit, clock: Clock
    ) -> None:
        self._client = client
        self._standing = standing
        self._observed = observed
        self._emit = emit
        self._clock = clock
        self._asked_at = 0.0
        self._denied_at = 0.0
        """When /health last said anything but 200."""

    async def run(self, interval: float, nudge: Nudge) -> None:  # noqa: ARG002 - its own pace
        """Ask for ever, one request at a time."""
        await self._observed.wait_for(lambda: self._observed.unit is not None, UNIT_PATIENCE)
        loop = asyncio.get_running_loop()
        while True:
            announced = self._observed.announced
            due = not self._standing.ready or self._due(loop.time())
            if due and self._observed.port_known:
                self._asked_at = loop.time()
                await self._ask()
            self._standing.say()
            await _pause(nudge, self._standing, announced, HEALTH_INTERVAL)

    def _due(self, now: float) -> bool:
        pace = HEALTH_WHEN_BUSY if self._observed.running else HEALTH_WHEN_READY
        if self._standing.only_health:
            pace = HEALTH_WHEN_ALONE
        return now - self._asked_at >= pace

    async def _ask(self) -> None:
        invocation = self._observed.invocation
        request = asyncio.create_task(self._client.get(HEALTH, HEALTH_TIMEOUT))
        try:
            await asyncio.wait({request}, timeout=HEALTH_SLOW)
            if not request.done():  # connected, and the engine takes its time
                self._standing.open = True
                self._standing.say()
            answer = await request
        except NoAnswer as exc:
            self._denied_at = asyncio.get_running_loop().time()
            self._standing.silent(exc)
            error = "port closed" if exc.closed else exc.error
            self._emit(
                HealthSample(self._clock(), HEALTH, HEALTH, error=error, seconds=exc.seconds)
            )
            return
        finally:
            request.cancel()
        self._take(answer, HEALTH, invocation)

    def _take(self, answer: Answer, path: str, invocation: str) -> None:
        if invocation != self._observed.invocation:
            return  # the answer of an engine that is gone
        if answer.status != 200:
            self._denied_at = asyncio.get_running_loop().time()
        self._standing.answered(answer, path)
        self._standing.say()
        self._emit(
            HealthSample(self._clock(), path, path, status=answer.status, seconds=answer.seconds)
        )

    async def watch_ready(self, interval: float, nudge: Nudge) -> None:
        """Ask /ready for ever, once each time that the engine's log says that it is ready.

        Not sooner, and only where /health, asked at the same moment, does not say otherwise at
        once: another kind of server may say 200 to whatever it is asked.
        """
        loop = asyncio.get_running_loop()
        asked = 0
        while True:
            invocation, announced = self._observed.invocation, self._observed.announced
            said = bool(invocation) and self._observed.said_ready == invocation
            if said and asked != announced:
                asked, began = announced, loop.time()
                with suppress(NoAnswer):  # what is wrong is left for /health to say
                    answer = await self._client.get(READY, HEALTH_SLOW)
                    await asyncio.sleep(OBJECTION if answer.status == 200 else 0)
                    if answer.status == 200 and self._denied_at < began:
                        self._take(answer, READY, invocation)
            await _pause(nudge, self._standing, announced, interval)


class FiguresPoll:
    """Asks for the engine's figures: /metrics, else the JSON endpoints."""

    def __init__(
        self, client: EngineClient, standing: Standing, engine: Engine, emit: Emit, clock: Clock
    ) -> None:
        self._client = client
        self._standing = standing
        self._engine = engine
        self._emit = emit
        self._clock = clock
        self._metrics_at = 0.0

    async def run(self, interval: float, nudge: Nudge) -> None:
        """Ask for ever, once an interval, while the port is open."""
        while True:
            announced = self._standing.observed.announced
            if self._standing.reachable:
                try:
                    await self._ask()
                except NoAnswer as exc:
                    self._standing.silent(exc)
                self._standing.say()
            await _pause(nudge, self._standing, announced, interval)

    async def _ask(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._standing.metrics is not False or now - self._metrics_at >= METRICS_AGAIN:
            self._metrics_at = now
            counters = await self._metrics()
            self._standing.metrics = counters is not None
            if counters is not None:
                return self._say(counters, METRICS)
        answer = await self._client.get(LOADS)
        name = LOADS.partition("?")[0]
        self._standing.answered(answer, name)
        counters = self._parse(answer, self._engine.parse_loads)
        if counters is not None:
            return self._say(counters, name)
        self._standing.figures = ""  # the poll of the engine's report takes over
        return None

    async def _metrics(self) -> EngineCounters | None:
        try:
            answer = await self._client.get(METRICS)
        except TooLong as exc:
            self._standing.silent(exc)
            return None
        self._standing.answered(answer, METRICS)
        return self._parse(answer, lambda body: self._engine.parse_metrics(body.decode()))

    def _parse(
        self, answer: Answer, parser: Callable[[bytes], EngineCounters | None]
    ) -> EngineCounters | None:
        """The figures, or None where this engine has no such endpoint or something else answers."""
        if answer.status != 200:
            return None
        try:
            return parser(answer.body)
        except ValueError:  # not this engine's: the same as not there
            return None

    def _say(self, counters: EngineCounters, source: str) -> None:
        self._standing.figures = source
        self._emit(EngineSample(self._clock(), source, counters))


class InfoPoll:
    """Asks for the engine's own report: once an invocation when its port opens, then seldom."""

    def __init__(
        self,
        client: EngineClient,
        standing: Standing,
        observed: Observed,
        engine: Engine,
        emit: Emit,
        clock: Clock,
    ) -> None:
        self._client = client
        self._standing = standing
        self._observed = observed
        self._engine = engine
        self._emit = emit
        self._clock = clock
        self._path = INFO[0]
        self._refused_by = ""
        """The invocation that refused last."""
        self._asked = ""
        self._asked_at = 0.0

    async def run(self, interval: float, nudge: Nudge) -> None:
        """Ask for ever."""
        loop = asyncio.get_running_loop()
        before = self._observed.announced
        while True:
            invocation = self._observed.invocation or "?"
            due = invocation != self._asked or loop.time() - self._asked_at >= INFO_INTERVAL
            announced = self._observed.announced
            if not self._standing.reachable and announced == before:
                self._asked = ""
            elif due or (self._standing.metrics is False and not self._standing.figures):
                try:
                    if await self._ask(invocation):
                        self._asked, self._asked_at = invocation, loop.time()
                except NoAnswer as exc:
                    self._standing.silent(exc)
                self._standing.say()
            before = announced
            await _pause(nudge, self._standing, announced, interval)

    async def _ask(self, invocation: str) -> bool:
        """Ask once; whether there was an answer that settles it (a refusal does by the second)."""
        asked_at = self._clock()
        answer = await self._client.get(self._path)
        self._standing.answered(answer, self._path)
        if answer.status == 404:
            self._path = INFO[1] if self._path == INFO[0] else INFO[0]
            return self._path == INFO[0]  # neither is there
        if answer.status in {401, 403}:
            self._emit(ReportRefusedSample(asked_at, self._path, answer.status))
            is_second, self._refused_by = self._refused_by == invocation, invocation
            return is_second
        self._refused_by = ""
        if answer.status != 200:
            return False
        try:
            info, counters = self._engine.parse_server_info(answer.body, self._clock(), self._path)
        except ValueError as exc:
            raise SourceTrouble(
                f"{self._path} is not {self._engine.name}'s: {exc}",
                "another program may have the port: see who owns it",
            ) from exc
        self._emit(info)
        if self._standing.metrics is False and not self._standing.figures:
            self._emit(EngineSample(self._clock(), self._path, counters))
        return True
