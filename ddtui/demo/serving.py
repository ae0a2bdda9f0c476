"""The simulated scheduler: batches requests, prefills, decodes, counts, and logs as SGLang does.

With clients waiting for tokens it wakes at every pass; with background traffic alone a few times a
second, doing the passes that were due, so that a demo costs next to nothing.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from ddtui.core.clock import Clock
from ddtui.demo.coding_answers import Script
from ddtui.demo.config import EngineConfig
from ddtui.demo.speed_model import SpeedModel

_IDLE_WAKE = 0.2
_MOST_PASSES = 64
_ROUNDING = 1e-6
_IDLE_RESET = 30.0
"""Seconds after which SGLang zeroes its gauges when nothing runs."""
_REST = 12.0
"""Seconds without a client's request after which made-up users come back: they rest during a bench,
as an operator's do, who drains the traffic first."""


@dataclass
class Generation:
    """One request on its way. Times are Unix seconds."""

    rid: str
    prompt_tokens: int
    max_tokens: int
    arrived: float
    streaming: bool = False
    watched: bool = True
    """Whether a client waits for its tokens; background traffic has none."""
    cached_tokens: int = 0
    subject: str = ""
    """What was asked; empty where the same question may be answered in another way."""
    luck: random.Random = field(default_factory=random.Random)
    """Decides which drafts are accepted."""
    thoughts: int = 0
    """Tokens at the beginning that are reasoning, where the answer is not scripted."""
    ease: float = 1.0
    tokens: int = 0
    passes: int = 0
    histogram: list[int] = field(default_factory=list)
    """Passes by drafts accepted."""
    scheduled: float = 0.0
    first_token: float = 0.0
    finished: float = 0.0
    aborted: bool = False
    script: Script | None = None
    """What is answered, where that is known beforehand."""
    progress: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever `tokens` or `finished` changed."""

    @property
    def correct_drafts(self) -> int:
        """Drafts that were accepted."""
        return sum(index * count for index, count in enumerate(self.histogram))


BUCKETS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
"""Upper bounds of the histograms, in seconds."""


@dataclass
class Histogram:
    """Observed seconds by bucket; the last count is of those above every bound."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one value."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


def _histograms() -> dict[bool, Histogram]:
    """One for plain and one for streaming requests."""
    return {False: Histogram(), True: Histogram()}


@dataclass
class Totals:
    """Counters since the start of the engine."""

    decode_tokens: int = 0
    prefill_tokens: int = 0
    cached_tokens: int = 0
    prompt_tokens: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    generated: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    requests: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    aborted: int = 0
    verify_calls: int = 0
    first_token: dict[bool, Histogram] = field(default_factory=_histograms)
    latency: dict[bool, Histogram] = field(default_factory=_histograms)


@dataclass
class Gauges:
    """Figures that move at log lines only, as SGLang's do."""

    running: int = 0
    queued: int = 0
    throughput: float = 0.0
    used_tokens: int = 0
    acceptance_length: float = 0.0
    acceptance_rate: float = 0.0
    cache_hit_rate: float = 0.0


@dataclass
class _Interval:
    """What happened since the last decode line."""

    began: float = 0.0
    iterations: int = 0
    tokens: int = 0
    passes: int = 0
    correct: int = 0


class Scheduler:
    """Runs requests at the speed of a SpeedModel."""

    def __init__(
        self,
        config: EngineConfig,
        log: Callable[[str], None],
        *,
        capacity: int,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.config = config
        self.model = SpeedModel(config, rng)
        self.capacity = capacity
        """Tokens of KV cache."""
        self.totals = Totals()
        self.gauges = Gauges()
        self.running: list[Generation] = []
        self.waiting: list[Generation] = []
        self.lifetime_passes = 0
        """Verification passes since the start or the last flush, with `lifetime_tokens`."""
        self.lifetime_tokens = 0
        self._log = log
        self._clock = clock
        self._rng = rng
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._interval = _Interval()
        self._decoded = 0.0
        """When passes were made last, or could have begun."""
        self._owed = 0.0
        """Share of a pass that is due since then."""
        self._every = max(1, config.number("decode_log_interval", 40))
        self._limit = max(1, config.number("max_running_requests", 48))
        self._serial = 0
        self._quiet_until = 0.0
        """Until when made-up users send nothing."""
        self._cached: set[str] = set()
        """Subjects in the prefix cache."""

    @property
    def busy(self) -> bool:
        """Whether any request runs or waits."""
        return bool(self.running or self.waiting)

    async def wait_idle(self) -> None:
        """Return once no request runs or waits."""
        await self._idle.wait()

    def submit(
        self,
        prompt_tokens: int,
        max_tokens: int,
        *,
        streaming: bool,
        watched: bool = True,
        subject: str = "",
    ) -> Generation:
        """Queue a request.

        The same `subject` has the same luck with its drafts on every server: what differs between
        two configurations is theirs.
        """
        self._serial += 1
        luck = random.Random(subject or self._rng.random())
        rid = f"{self._rng.getrandbits(96):024x}{self._serial:08x}"
        request = Generation(
            rid,
            max(1, prompt_tokens),
            max(1, max_tokens),
            self._clock(),
            streaming=streaming,
            watched=watched,
            subject=subject,
            luck=luck,
            ease=luck.uniform(0.97, 1.03),
            histogram=[0] * (self.model.horizon + 1),
        )
        if watched:
            self._rest(_REST)
        self.waiting.append(request)
        self._idle.clear()
        self._work.set()
        return request

    def _rest(self, seconds: float) -> None:
        self._quiet_until = max(self._quiet_until, self._clock() + seconds)

    async def wait_quiet(self) -> None:
        """Return once no client's request is on its way, nor was a little while ago."""
        while True:
            wait = self._quiet_until - self._clock()
            if wait <= 0 and not self._clients:
                return
            await asyncio.sleep(max(wait, _IDLE_WAKE))

    @property
    def _clients(self) -> bool:
        return any(each.watched for each in [*self.running, *self.waiting])

    def abort(self, rid: str | None) -> None:
        """End one request, or all of them."""
        for request in [*self.running, *self.waiting]:
            if rid is None or request.rid.startswith(rid):
                request.aborted = True
                self._finish(request)

    def flush(self) -> bool:
        """Empty the prefix cache and the lifetime figures; False while requests run."""
        self._rest(_REST)
        if self.busy:
            return False
        self.lifetime_passes = self.lifetime_tokens = 0
        self._cached.clear()
        self._log("Cache flushed successfully!")
        return True

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            if not self.busy:
                await self._wait_for_work()
                self._interval = _Interval(began=self._clock())
                self._decoded, self._owed = self._clock(), 0.0
            await self._admit()
            await self._decode()

    async def _wait_for_work(self) -> None:
        self._work.clear()
        try:
            async with asyncio.timeout(_IDLE_RESET):
                await self._work.wait()
        except TimeoutError:
            self.gauges = Gauges(
                acceptance_length=self.gauges.acceptance_length,
                acceptance_rate=self.gauges.acceptance_rate,
                cache_hit_rate=self.gauges.cache_hit_rate,
            )
            await self._work.wait()

    async def _admit(self) -> None:
        batch: list[Generation] = []
        while self.waiting and len(self.running) + len(batch) < self._limit:
            batch.append(self.waiting.pop(0))
        if not batch:
            return
        for request in batch:
            request.cached_tokens = int(request.prompt_tokens * self._cached_share(request))
            request.scheduled = self._clock()
        cached = sum(request.cached_tokens for request in batch)
        new = sum(request.prompt_tokens for request in batch) - cached
        seconds = self.model.prefill_seconds(new)
        await asyncio.sleep(seconds)
        self.totals.prefill_tokens += new
        self.totals.cached_tokens += cached
        gauges = self.gauges
        gauges.running, gauges.queued = len(self.running), len(self.waiting)
        gauges.cache_hit_rate = cached / (cached + new)
        self._log(
            f"Prefill batch, #new-seq: {len(batch)}, #new-token: {new}, #cached-token: {cached}, "
            f"token usage: {self.used_tokens / self.capacity:.2f}, #running-req: {gauges.running}, "
            f"#queue-req: {gauges.queued}, #pending-token: 0, cuda graph: False, "
            f"input throughput (token/s): {new / seconds:.2f}"
        )
        self._decoded = now = self._clock()
        for request in batch:
            if request.aborted:
                continue
            request.tokens, request.first_token = 1, now
            self.totals.first_token[request.streaming].observe(now - request.arrived)
            self.running.append(request)
            self._step_ended(request)

    def _cached_share(self, request: Generation) -> float:
        """How much of its prompt the prefix cache holds."""
        if not request.subject:
            return self._rng.uniform(0.0, 0.6) if request.prompt_tokens > 64 else 0.0
        known = request.subject in self._cached
        self._cached.add(request.subject)
        return 0.97 if known else 0.0

    async def _decode(self) -> None:
        if not self.running:
            return
        step = self.model.step_seconds(len(self.running))
        watched = any(request.watched for request in self.running)
        await asyncio.sleep(step * (1 - self._owed) if watched else _IDLE_WAKE)
        now = self._clock()
        # What a busy machine wakes late is made up for: the mean is the model's.
        due = self._owed + (now - self._decoded) / step + _ROUNDING
        self._decoded, self._owed = now, max(0.0, due % 1 - _ROUNDING)
        for _ in range(min(_MOST_PASSES, int(due))):
            if not self.running:
                return
            self._pass()

    def _pass(self) -> None:
        """One target pass over the batch."""
        now, interval = self._clock(), self._interval
        for request in list(self.running):
            accepted = self.model.accepted(request.ease, request.luck)
            emitted = min(accepted + 1, request.max_tokens - request.tokens)
            request.tokens += emitted
            request.passes += 1
            request.histogram[accepted] += 1
            interval.tokens += emitted
            interval.passes += 1
            interval.correct += accepted
            self.totals.decode_tokens += emitted
            self.lifetime_tokens += emitted
            self.lifetime_passes += 1
            self._step_ended(request)
        interval.iterations += 1
        if interval.iterations >= self._every:
            self._log_decode(now)

    def _step_ended(self, request: Generation) -> None:
        if request.tokens >= request.max_tokens:
            self._finish(request)
        request.progress.set()

    def _finish(self, request: Generation) -> None:
        now = self._clock()
        request.finished = now
        for batch in (self.running, self.waiting):
            if request in batch:
                batch.remove(request)
        totals, streaming = self.totals, request.streaming
        totals.requests[streaming] += 1
        totals.aborted += request.aborted
        totals.prompt_tokens[streaming] += request.prompt_tokens
        totals.generated[streaming] += request.tokens
        totals.verify_calls += request.passes if self.config.algorithm else 0
        totals.latency[streaming].observe(now - request.arrived)
        if request.watched:
            self._rest(_REST)
        request.progress.set()
        if not self.busy:
            self._idle.set()

    @property
    def used_tokens(self) -> int:
        """Tokens in the KV cache that running requests hold."""
        return sum(request.prompt_tokens + request.tokens for request in self.running)

    def _log_decode(self, now: float) -> None:
        interval, gauges = self._interval, self.gauges
        gauges.running, gauges.queued = len(self.running), len(self.waiting)
        gauges.used_tokens = self.used_tokens
        gauges.throughput = interval.tokens / max(now - interval.began, 1e-3)
        speculation = ""
        if self.config.algorithm:
            drafts = self.config.block_size - 1
            gauges.acceptance_length = interval.tokens / interval.passes
            gauges.acceptance_rate = interval.correct / (interval.passes * drafts)
            speculation = (
                f"accept len: {gauges.acceptance_length:.2f}, "
                f"accept rate: {gauges.acceptance_rate:.2f}, "
            )
        self._log(
            f"Decode batch, #running-req: {gauges.running}, #token: {gauges.used_tokens}, "
            f"token usage: {gauges.used_tokens / self.capacity:.2f}, {speculation}"
            f"cuda graph: True, gen throughput (token/s): {gauges.throughput:.2f}, "
            f"#queue-req: {gauges.queued}"
        )
        self._interval = _Interval(began=now)
