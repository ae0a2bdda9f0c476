"""The reducer's part for the engine's live figures: which source to believe, and what is live.

Tokens per second come, in this order, from the rate of a counter that moves at every decode step,
from the engine's periodic decode line, from a gauge. Acceptance length comes from the decode line
or the gauge of the last interval; a lifetime average is kept apart and never shown as live.
"""

from __future__ import annotations

from collections import deque

from ddtui.core.events import Decoded, Prefilled
from ddtui.core.history import Track
from ddtui.core.samples import EngineCounters, EngineSample, ServerInfoSample
from ddtui.core.snapshot import EngineView, Figure, ended, freshest

RATE_WINDOW = 3.0
"""Seconds over which the rate of a counter is taken."""
POLL_VALID = 5.0
"""Seconds for which a polled figure counts as live."""
LINE_VALID = 8.0
"""Seconds for which a decode line counts as live: lines come every 40 steps, some seconds apart."""
IDLE_AFTER = 3.0
"""Seconds without a decode line after which one request at most can still be running unnoticed."""


class CounterRate:
    """Rate of a counter over the last few seconds; a counter that went back was reset."""

    def __init__(self, window: float = RATE_WINDOW) -> None:
        self._window = window
        self._points: deque[tuple[float, float]] = deque()

    @property
    def silent(self) -> bool:
        """Whether the counter was never seen."""
        return not self._points

    def add(self, at: float, total: float) -> float | None:
        """Note the counter; returns its rate per second, or None while there is no interval."""
        if self._points and (total < self._points[-1][1] or at <= self._points[-1][0]):
            self._points.clear()
        self._points.append((at, total))
        while len(self._points) > 2 and self._points[1][0] <= at - self._window:
            self._points.popleft()
        first_at, first = self._points[0]
        return (total - first) / (at - first_at) if at > first_at else None


class EngineState:
    """Reduces engine samples and the decode and prefill events of the log."""

    def __init__(self) -> None:
        self._throughput_track = Track()
        self._acceptance_track = Track()
        self.reset()

    def reset(self) -> None:
        """Forget the figures of an earlier invocation; its past stays on the charts."""
        self.info: ServerInfoSample | None = None
        self._rate = CounterRate()
        self._prefill_rate = CounterRate()
        self._counter_throughput: Figure | None = None
        self._line_throughput: Figure | None = None
        self._gauge_throughput: Figure | None = None
        self._prefill: Figure | None = None
        self._line_acceptance: Figure | None = None
        self._gauge_acceptance: Figure | None = None
        self._lifetime: Figure | None = None
        self._running: Figure | None = None
        self._queued: Figure | None = None
        self._kv: Figure | None = None
        self._graph: bool | None = None
        self._moving_at = float("-inf")
        self._polled_at = float("-inf")

    def apply(self, sample: EngineSample) -> None:
        """Take one reading of the engine's endpoints."""
        counters, at, source = sample.counters, sample.at, sample.source
        self._polled_at = at
        if counters.decode_tokens_total is not None:
            rate = self._rate.add(at, counters.decode_tokens_total)
            if rate is not None:
                self._counter_throughput = Figure(rate, f"{source} counter", at, POLL_VALID)
                self._throughput_track.add(at, rate)
                if rate > 0:
                    self._moving_at = at
        if counters.prompt_tokens_total is not None:
            rate = self._prefill_rate.add(at, counters.prompt_tokens_total)
            if rate is not None:
                self._prefill = Figure(rate, f"{source} counter", at, POLL_VALID)
        alive = self._rate.silent or at - self._moving_at <= RATE_WINDOW
        self._running = _polled(self._running, counters.running, source, at, alive=alive)
        self._queued = _polled(self._queued, counters.queued, source, at, alive=alive)
        self._kv = _polled(self._kv, counters.kv_usage, source, at, alive=alive)
        self._take_gauges(counters, source, at)

    def _take_gauges(self, counters: EngineCounters, source: str, at: float) -> None:
        """Gauges change only at the engine's log ticks: an unmoved one keeps its old time."""
        throughput = counters.generation_throughput
        if throughput is not None:
            before = self._gauge_throughput
            moved = before is None or before.value != throughput
            seen = at if moved or before is None else before.at
            self._gauge_throughput = Figure(throughput, f"{source} gauge", seen, LINE_VALID)
        acceptance = counters.acceptance_length
        if acceptance is None or acceptance < 1:  # 0 is how the gauge says "nothing yet"
            return
        if counters.acceptance_is_lifetime:
            self._lifetime = Figure(acceptance, source, at, 60.0, "lifetime average")
            return
        before = self._gauge_acceptance
        moved = before is None or before.value != acceptance or self._moving_at == at
        seen = at if moved or before is None else before.at
        self._gauge_acceptance = Figure(acceptance, f"{source} gauge", seen, LINE_VALID)
        if moved and before is not None:
            self._acceptance_track.add(at, acceptance)

    def decoded(self, event: Decoded, at: float) -> None:
        """Take a decode line; `at` is its time on the operator's clock."""
        source = "decode line"
        if event.throughput is not None:
            self._line_throughput = Figure(event.throughput, source, at, LINE_VALID)
            if self._counter_throughput is None:
                self._throughput_track.add(at, event.throughput)
        if event.acceptance_length is not None:
            self._line_acceptance = Figure(event.acceptance_length, source, at, LINE_VALID)
            self._acceptance_track.add(at, event.acceptance_length)
        self._graph = event.graph if event.graph is not None else self._graph
        self._from_line(event.running, event.queued, event.kv_usage, at)
        self._moving_at = max(self._moving_at, at)

    def prefilled(self, event: Prefilled, at: float) -> None:
        """Take a prefill line; `at` is its time on the operator's clock."""
        if event.throughput is not None and self._polled_at < at - POLL_VALID:
            self._prefill = Figure(event.throughput, "prefill line", at, LINE_VALID)
        self._from_line(event.running, event.queued, event.kv_usage, at)

    def _from_line(
        self, running: int | None, queued: int | None, kv: float | None, at: float
    ) -> None:
        """Use what a line says of the queue only where nothing is polled."""
        if self._polled_at >= at - POLL_VALID:
            return
        if running is not None:
            self._running = Figure(running, "log line", at, LINE_VALID)
        if queued is not None:
            self._queued = Figure(queued, "log line", at, LINE_VALID)
        if kv is not None:
            self._kv = Figure(kv, "log line", at, LINE_VALID)

    @property
    def answered_at(self) -> float:
        """When an endpoint last gave figures (operator's clock); minus infinity if never."""
        return self._polled_at

    def view(
        self, now: float, knobs: dict[str, str], knobs_source: str, *, up: bool = True
    ) -> EngineView:
        """The engine's figures as they stand at `now`; none is live when the engine is not `up`."""
        view = self._view(now, knobs, knobs_source)
        return view if up else ended(view)

    def _view(self, now: float, knobs: dict[str, str], knobs_source: str) -> EngineView:
        running = self._running
        idle = (
            running is not None
            and running.value == 0
            and not running.stale(now)
            and now - self._moving_at > IDLE_AFTER
        )
        info = self.info
        return EngineView(
            throughput=freshest(
                now, self._counter_throughput, self._line_throughput, self._gauge_throughput
            ),
            prefill_throughput=self._prefill,
            acceptance_length=freshest(now, self._line_acceptance, self._gauge_acceptance),
            acceptance_lifetime=self._lifetime,
            running=running,
            queued=self._queued,
            kv_usage=self._kv,
            graph_in_use=self._graph,
            throughput_history=self._throughput_track.history(),
            acceptance_history=self._acceptance_track.history(),
            version=info.version if info else "",
            model=info.model if info else "",
            knobs=knobs,
            knobs_source=knobs_source,
            idle=idle,
        )


def _polled(
    before: Figure | None, value: float | None, source: str, at: float, *, alive: bool
) -> Figure | None:
    """A polled gauge. Unmoved while no token is counted (not `alive`), it keeps its old time.

    Engines set their gauges at their log ticks only, so that the last one before they fell silent
    stays; zero is what they set when nothing is left.
    """
    if value is None:
        return before
    unmoved = before is not None and before.value == value and value != 0 and not alive
    return Figure(value, source, before.at if unmoved and before else at, POLL_VALID)
