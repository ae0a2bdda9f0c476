"""A batch of requests, so many at a time, and the rate at which its tokens come meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from ddtui.bench.exchange import Exchange
from ddtui.core.garbage import all_set_apart
from ddtui.core.generation import Prompt

TICK = 0.25
"""Seconds between two looks at what has come."""
_RATE_SPAN = 2.0
"""Seconds over which the present rate is taken."""
_MOST_POINTS = 480
_FUTILE = 8
"""Failures in a row, or as many as run at once, after which nothing more is sent."""

Send = Callable[[Prompt, Callable[[Exchange], None]], Awaitable[Exchange]]
"""Sends one request; the second argument is told whenever something has come."""


class Batch(msgspec.Struct, frozen=True):
    """Requests that have ended, in the order in which they were sent."""

    exchanges: tuple[Exchange, ...]
    skipped: int = 0
    """Requests that were not sent any more because too many failed in a row."""


class Meter:
    """Counts the tokens of a batch as they come."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.began = clock()
        self.done = 0
        self.rate: float | None = None
        """Tokens per second of all streams now; None where the server counts none on the way."""
        self.series: list[tuple[float, float]] = []
        """(Seconds since the batch began, tok/s)."""
        self._tokens: dict[int, int] = {}
        self._recent: deque[tuple[float, int]] = deque([(self.began, 0)])
        self._total = 0
        self._every = TICK

    def saw(self, number: int, exchange: Exchange) -> None:
        """A stream has brought something, or has ended."""
        if exchange.tokens is not None:
            self._total += exchange.tokens - self._tokens.get(number, 0)
            self._tokens[number] = exchange.tokens

    def tick(self) -> None:
        """Take the present rate."""
        now = self._clock()
        recent = self._recent
        recent.append((now, self._total))
        while len(recent) > 2 and recent[1][0] <= now - _RATE_SPAN:
            recent.popleft()
        seconds, tokens = now - recent[0][0], self._total - recent[0][1]
        if not self._total or seconds <= 0:
            return
        self.rate = tokens / seconds
        if not self.series or now - self.began - self.series[-1][0] >= 0.9 * self._every:
            self.series.append((now - self.began, self.rate))
        if len(self.series) > _MOST_POINTS:
            self.series, self._every = self.series[::2], 2 * self._every


async def run_batch(
    send: Send,
    prompts: Sequence[Prompt],
    concurrency: int,
    meter: Meter,
    *,
    on_tick: Callable[[], None],
    on_drain: Callable[[], Awaitable[None]],
) -> Batch:
    """Send every prompt, `concurrency` at a time.

    `on_drain` is awaited when the first stream ends that no further request follows, beside those
    that still run.
    """
    waiting = iter(enumerate(prompts))
    ended: dict[int, Exchange] = {}
    drained = asyncio.Event()
    in_a_row = [0]  # failures

    async def work() -> None:
        for number, prompt in waiting:
            done = await send(prompt, partial(meter.saw, number))
            meter.saw(number, done)
            ended[number] = done
            meter.done += 1
            in_a_row[0] = 0 if done.ok else in_a_row[0] + 1
            if in_a_row[0] >= max(_FUTILE, concurrency):
                break
        drained.set()

    async def drain() -> None:
        await drained.wait()
        await on_drain()

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK)
            meter.tick()
            on_tick()

    with all_set_apart():
        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(tick())
            draining = group.create_task(drain())
            work_group = []
            for _ in range(min(concurrency, len(prompts))):
                work_group.append(group.create_task(work()))
                await asyncio.sleep(0)  # what the first streams bring is read while others begin
            await asyncio.gather(*work_group, draining)
            ticking.cancel()
    meter.tick()
    ordered = tuple(ended[number] for number in sorted(ended))
    return Batch(ordered, len(prompts) - len(ordered))
