"""The simulated SGLang: one life from start to exit, on a StartPlan, then a Scheduler.

It knows nothing of where its text goes (a journal, or a real standard error) nor of who asks its
HTTP routes.
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from ddtui.core.clock import Clock, system_clock
from ddtui.core.events import Phase
from ddtui.demo.config import EngineConfig
from ddtui.demo.failures import Exit
from ddtui.demo.serving import Scheduler
from ddtui.demo.startup import StartPlan, Step
from ddtui.demo.traffic import BACK, background_traffic

Output = Callable[[float, str, str], None]
"""Called with the moment (Unix seconds), the role of the writing process and its text."""

_DRAIN_REPORT = 5.0
"""Seconds between two lines while requests are drained."""
TERMINATED = Exit("exited", 0)
KILLED = Exit("killed", 9)


class EngineState(enum.StrEnum):
    """Where the engine stands."""

    LOADING = "loading"
    WARMING = "warming"  # the port is open, /health says 503
    READY = "ready"
    DRAINING = "draining"
    ENDED = "ended"


class SimulatedEngine:
    """One process tree of the simulated SGLang."""

    def __init__(
        self,
        config: EngineConfig,
        output: Output,
        *,
        clock: Clock = system_clock,
        speed: float = 1.0,
        seed: int = 0,
        failure: str | None = None,
        traffic: bool = False,
        opener: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.config = config
        self.state = EngineState.LOADING
        self.started_at = clock()
        self.clock = clock
        self.hung = False
        """True when the schedulers no longer answer."""
        self.deaf = False
        """True when SIGTERM no longer ends it."""
        self.main_pid = 1
        """What it calls itself in its log; set it before the start."""
        self.health_seconds = 1.0
        """How long an idle health check takes."""
        rng = random.Random(seed)
        self.plan = StartPlan(config, speed=speed, rng=rng, failure=failure)
        self.scheduler = Scheduler(
            config, self._log_scheduler, capacity=self.plan.kv_tokens, clock=clock, rng=rng
        )
        self._output = output
        self._opener = opener
        self._rng = rng
        self.traffic = traffic
        """Whether made-up requests arrive once it serves."""
        self._signal = asyncio.Event()
        self._exit: Exit | None = None
        self._ended = asyncio.Event()
        quiet = config.arguments.get("uvicorn_access_log_exclude_prefixes")
        self._quiet = tuple(str(prefix) for prefix in quiet) if isinstance(quiet, list) else ()

    @property
    def port_open(self) -> bool:
        """Whether the HTTP port accepts connections."""
        return self.state in (EngineState.WARMING, EngineState.READY, EngineState.DRAINING)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started_at

    @property
    def phase(self) -> Phase:
        """The phase of the start that it is in."""
        elapsed = self.elapsed
        if self.state in (EngineState.READY, EngineState.DRAINING):
            return Phase.READY
        for phase, (_, end) in self.plan.windows.items():
            if elapsed < end or (self.plan.stops_at or end) < end:
                return phase
        return Phase.WARMUP

    @property
    def activity(self) -> float:
        """How busy the GPUs are, 0 to 1."""
        if self.phase is Phase.GRAPHS and self.plan.failure is None:
            return 0.6
        if self.scheduler.running:
            return min(1.0, 0.82 + 0.03 * len(self.scheduler.running))
        return 0.0

    def memory(self, rank: int) -> int:
        """Bytes of GPU memory that a rank holds."""
        return 0 if self.state is EngineState.ENDED else self.plan.memory(self.elapsed, rank)

    def read_bytes(self) -> int:
        """Bytes that its processes have read from disk, together."""
        return self.plan.read_bytes(self.elapsed)

    # ---- its life -------------------------------------------------------------------------------

    def begin_in_the_past(self, age: float) -> None:
        """Let the start have been `age` seconds ago; its lines get the stamps of that time."""
        self.started_at = self.clock() - age
        for step in self.plan.steps():
            if self.started_at + step.at <= self.clock():
                self._emit(step)
        self._advance()

    async def run(self) -> Exit:
        """Live until the end; returns how it ended. Cancelling it is a SIGKILL."""
        try:
            await self._start()
            if self._exit is None:
                await self._serve()
        finally:
            self.state = EngineState.ENDED
            self.scheduler.abort(None)
            self._ended.set()
        return self._exit or KILLED

    async def wait_ended(self) -> None:
        """Return once it has ended: its connections break then."""
        await self._ended.wait()

    def terminate(self) -> None:
        """SIGTERM: requests are drained once the engine serves; before that it just ends.

        With its port taken by another process it does not end, as the real one does not.
        """
        if self.deaf:
            return
        if self._exit is None:
            self._exit = TERMINATED if self.port_open else Exit("killed", 15)
        self._signal.set()

    def kill(self, signal: int = 9) -> None:
        """A signal that ends it at once."""
        self._exit = Exit("killed", signal)
        self._signal.set()

    async def _start(self) -> None:
        plan, skip = self.plan, self.elapsed
        for step in plan.steps():
            if step.at <= skip:
                continue
            if await self._signalled(self.started_at + step.at - self.clock()):
                return
            if step.at > plan.port_opens_at and not await self._open():
                return
            self._advance()
            self._emit(step)
        if plan.failure is None:
            self._advance()
        elif plan.exits is None:
            self.hung = True
            self.deaf = plan.failure.phase is Phase.WARMUP
            await self._signal.wait()
        else:
            self._exit = plan.exits

    async def _open(self) -> bool:
        """Open the real port, once; False when it is taken and the engine is to stay as it is."""
        opener, self._opener = self._opener, None
        if opener is None:
            return True
        try:
            await opener()
        except OSError as error:
            where = f"('{self.config.bind_host}', {self.config.port})"
            text = f"error while attempting to bind on address {where}"
            reason = (error.strerror or str(error)).lower()
            self._main(f"ERROR:    [Errno {error.errno}] {text}: {reason}")
            self._main("INFO:     Waiting for application shutdown.")
            self.hung = self.deaf = True
            await self._signal.wait()
            return False
        return True

    async def _signalled(self, seconds: float) -> bool:
        """Wait; True when a signal came meanwhile."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._signal.wait()
        return self._signal.is_set()

    def _advance(self) -> None:
        elapsed = self.elapsed + 1e-6
        if self.plan.failure is not None:
            return
        if elapsed >= self.plan.ready_at:
            self.state = EngineState.READY
        elif elapsed >= self.plan.port_opens_at:
            self.state = EngineState.WARMING

    async def _serve(self) -> None:
        jobs: list[Coroutine[None, None, None]] = [self.scheduler.run()]
        if self.traffic:
            fresh = self.elapsed < self.plan.ready_at + BACK
            back_in = BACK if fresh else 0.0
            jobs.append(background_traffic(self.scheduler, self._rng, back_in=back_in))
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            await self._signal.wait()
            if self._exit == TERMINATED:
                await self._drain(tasks[1:])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self, traffic: list[asyncio.Task[None]]) -> None:
        self.state = EngineState.DRAINING
        for task in traffic:
            task.cancel()
        self._main(
            "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
        )
        while self._exit == TERMINATED:
            rids = [request.rid for request in self.scheduler.running]
            self._main(
                f"Gracefully exiting... Remaining number of requests {len(rids)}. "
                f"Remaining requests remaining_rids={rids}."
            )
            if not rids:
                break
            for request in [*self.scheduler.running, *self.scheduler.waiting]:
                if not request.watched:
                    self.scheduler.abort(request.rid)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_REPORT):
                    await self.scheduler.wait_idle()
        pid = self.main_pid
        self._main(f"kill_process_tree called: parent_pid={pid}, include_parent=False, pid={pid}")

    # ---- its text -------------------------------------------------------------------------------

    def log_access(self, call: str, status: int, reason: str, client: str) -> None:
        """One line of the access log, unless its path is excluded."""
        path = call.split(" ", 1)[-1].split("?", 1)[0]
        if not path.startswith(self._quiet) or not self._quiet:
            self._main(f'INFO:     {client} - "{call} HTTP/1.1" {status} {reason}')

    def warn(self, text: str) -> None:
        """A line of the main process."""
        self._main(text)

    def _main(self, text: str) -> None:
        self._emit(Step(self.elapsed, "main", text))

    def _log_scheduler(self, text: str) -> None:
        self._emit(Step(self.elapsed, "TP0", text))

    def _emit(self, step: Step) -> None:
        at = self.started_at + step.at
        text = step.text.replace("{pid}", str(self.main_pid))
        if step.stamped:
            rank = f" {step.role}" if self.config.tp > 1 and step.role.startswith("TP") else ""
            stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
            text = f"[{stamp}{rank}] {text}\n"
        self._output(at, step.role, text)
