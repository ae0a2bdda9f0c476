"""Measures what is in force: cells kept one by one, and nothing kept that was disrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from ddtui.bench.bench import OnProgress
from ddtui.bench.errors import BenchError, ConnectionLost, EngineBusy, NothingSucceeded
from ddtui.config.api_key import ApiKeyError
from ddtui.core.knobs import by_name
from ddtui.core.launch import Launch
from ddtui.core.measurement import Cell, CodingResult, Measurement
from ddtui.core.samples import LinkState
from ddtui.experiments.needs import Around
from ddtui.experiments.provenance import provenance, seen_meanwhile
from ddtui.experiments.running import Standing, standing
from ddtui.experiments.witness import CountedPorts, Witness
from ddtui.hosts.base import HostError, LinkRefused

LOOK_EVERY = 0.25
"""Seconds between two looks at what is known while it is measured."""
ASK_EVERY = 1.0
"""Seconds between two looks into the store for a wish to end it."""

T = TypeVar("T")


class Disrupted(Exception):
    """What was going on has broken off for a reason that may pass: it is tried again."""


class Unmeasurable(Exception):
    """It cannot be measured, and trying again does not help: `cause` says why."""

    def __init__(self, cause: dict[str, Any]) -> None:
        super().__init__(str(cause.get("title", "")))
        self.cause = cause


class Cancelled(Exception):
    """Somebody wants it ended."""


class Measuring:
    """One measurement on its way to being whole. Made anew by whoever carries it on."""

    def __init__(
        self,
        around: Around,
        measurement: Measurement,
        launch: Launch,
        *,
        cancelled: Callable[[], Awaitable[bool]],
        on_progress: OnProgress,
        on_cell: Callable[[Cell], None] = lambda _: None,
    ) -> None:
        """`launch` is the configuration that must be in force all the time."""
        self._around = around
        self.measurement = measurement
        self._launch = launch
        self._cancelled = cancelled
        self._on_progress = on_progress
        self._on_cell = on_cell
        self._invocation = ""
        self._asked = 0.0

    @property
    def left(self) -> tuple[int, ...]:
        """Concurrencies that have no whole cell yet."""
        plan, have = self.measurement.plan, {each.concurrency for each in self.measurement.cells}
        if plan.command:  # it gives its whole cells when it has come to its end
            whole = any(not each.partial for each in self.measurement.cells)
            return () if whole else plan.concurrency
        return tuple(each for each in plan.concurrency if each not in have)

    @property
    def coding_left(self) -> bool:
        """Whether the coding tasks are still to be asked for."""
        return self.measurement.plan.coding and self.measurement.coding is None

    async def cells(self) -> None:
        """Measure what is left. Raises Disrupted, Unmeasurable, Cancelled, LinkRefused."""
        await self._told(self._cells())

    async def coding(self) -> None:
        """Ask for the coding tasks and judge the answers. Raises as `cells` does."""
        await self._told(self._coding())

    # ---- within --------------------------------------------------------------------------------

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        """Work, with what its failures mean."""
        try:
            await work
        except LinkRefused:
            raise
        except (BenchError, HostError, ApiKeyError) as error:
            await self._judge(error)

    async def _cells(self) -> None:
        await self._settle()
        around, plan = self._around, self.measurement.plan
        witness = Witness(max(plan.concurrency, default=1), around.watching.clock)
        ports = CountedPorts(around.host)
        base, earlier = self.measurement.provenance, self.measurement.disturbed
        before = await around.tools.requests()
        whole: asyncio.Queue[Cell] = asyncio.Queue()
        bench = around.tools.bench(ports).run(
            plan,
            begun=self.measurement.cells,
            budget=_number(around.watching.snapshot().engine.knobs.get("budget")),
            on_progress=self._on_progress,
            on_cell=whole.put_nowait,
        )

        async def tell_of_others() -> None:
            # What an external bench sends is not seen from here.
            after = None if plan.command else await around.tools.requests()
            foreign = 0 if plan.command else witness.foreign(before, after, ports.sent)
            self.measurement = msgspec.structs.replace(
                self.measurement,
                provenance=seen_meanwhile(base, witness, foreign),
                disturbed=_disturbed(earlier, foreign),
            )
            await self._put(self.measurement)

        async def keep() -> None:
            if whole.empty():
                return
            while not whole.empty():
                await self._keep(whole.get_nowait())
            await tell_of_others()  # with the cell: whoever carries it on has not seen them

        try:
            await self._guarded(bench, witness, keep)
        except (Cancelled, asyncio.CancelledError):
            # What became whole since the last look, and what an external bench had to give.
            with suppress(Disrupted):
                while not whole.empty():
                    await self._keep(whole.get_nowait())
            raise
        await self._same()  # at once: what happens to the engine from now on is another matter
        await tell_of_others()

    async def _coding(self) -> None:
        await self._settle()
        if self.left:  # another invocation: its figures come first
            raise Disrupted("the engine was restarted after it was measured")
        found: list[CodingResult] = []

        async def work() -> None:
            code = self._around.tools.code
            found.append(await code(self.measurement.plan, self._on_progress))

        await self._guarded(work(), None, _nothing)
        await self._same()
        self.measurement = msgspec.structs.replace(self.measurement, coding=found[0])
        await self._put(self.measurement)

    async def _settle(self) -> None:
        """Be sure of the invocation, and of what is asked: cells of others do not count."""
        facts = await self._around.control.look()
        self._invocation = facts.invocation
        known, plan = self.measurement.provenance, self.measurement.plan
        same = known.invocation == facts.invocation
        if same and not self.left:
            return  # nothing is asked any more that the cells have to agree with
        asked = await asyncio.to_thread(self._around.tools.prompts_hash, plan)
        if same and known.prompts_hash == asked:
            return
        snapshot = self._around.watching.snapshot()
        if snapshot.unit is None or snapshot.unit.invocation != facts.invocation:
            raise Disrupted("the unit was started anew")
        watching = self._around.watching
        self.measurement = msgspec.structs.replace(
            self.measurement,
            cells=(),
            coding=None,
            disturbed=(),
            provenance=provenance(
                snapshot,
                facts,
                self._launch,
                asked,
                watching.engine.name,
            ),
            knobs=by_name(snapshot.engine.knobs),
        )
        await self._put(self.measurement)

    async def _keep(self, cell: Cell) -> None:
        """Keep a cell, once it is sure that the same invocation gave it."""
        self._check()
        order = self.measurement.plan.concurrency
        others = [each for each in self.measurement.cells if each.concurrency != cell.concurrency]
        cells = sorted(
            [*others, cell],
            key=lambda each: order.index(each.concurrency) if each.concurrency in order else 0,
        )
        kept = msgspec.structs.replace(self.measurement, cells=tuple(cells))
        await self._put(kept)
        self.measurement = kept
        if not cell.partial:
            self._on_cell(cell)

    async def _put(self, measurement: Measurement) -> None:
        """Keep it; refused (Stale) where another runner has taken its experiment over."""
        around = self._around
        who = around.runner if measurement.experiment else None
        await asyncio.to_thread(around.measured.put, measurement, who=who)

    async def _guarded(
        self,
        work: Coroutine[Any, Any, Any],
        witness: Witness | None,
        keep: Callable[[], Awaitable[None]],
    ) -> None:
        """Work, looked after: ended as soon as it is disrupted or unwanted."""
        task = asyncio.ensure_future(work)
        watching = self._around.watching
        seen = witness or Witness(1, watching.clock)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_EVERY)
                seen.look(watching.snapshot())
                if slept := seen.slept():
                    raise Disrupted(f"this machine slept for {slept:.0f} s")
                self._check()
                await keep()
                await self._ask()
            await keep()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        task.result()

    async def _judge(self, error: BenchError | HostError | ApiKeyError) -> None:
        """Raise what an error means for the measurement."""
        if isinstance(error, ConnectionLost | EngineBusy | HostError):
            raise Disrupted(str(error)) from error
        if isinstance(error, ApiKeyError):
            raise Unmeasurable({"title": f"the engine's API key cannot be had: {error}"}) from error
        if isinstance(error, NothingSucceeded):
            try:
                await self._same()
            except LinkRefused:
                raise
            except HostError as lost:  # whether it was the engine's fault cannot be told
                raise Disrupted(str(lost)) from lost
        raise Unmeasurable(as_cause(error)) from error

    def _check(self) -> None:
        """Raise Disrupted where another invocation runs by now, or the link is down."""
        if self._around.host.link.state is not LinkState.LIVE:
            raise Disrupted("the link broke")
        unit = self._around.watching.snapshot().unit
        if unit is not None and unit.invocation and unit.invocation != self._invocation:
            raise Disrupted("the engine was restarted while it was measured")
        if unit is not None and unit.active_state in {"failed", "inactive", "deactivating"}:
            raise Disrupted(f"the unit is {unit.active_state}")

    async def _ask(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._asked >= ASK_EVERY:
            self._asked = now
            if await self._cancelled():
                raise Cancelled

    async def _same(self) -> None:
        """Be sure that it is the same invocation still, by the host's own word."""
        facts = await self._around.control.look()
        if facts.invocation != self._invocation or facts.active != "active":
            raise Disrupted("the engine was restarted while it was measured")
        watching = self._around.watching
        now = watching.snapshot()
        if standing(now, self._launch, watching.engine, same_start=True) is not Standing.PROVED:
            raise Disrupted("the engine is no longer proved to be in force")


def as_cause(error: BenchError) -> dict[str, Any]:
    """Why something cannot be measured, as it is kept with an experiment."""
    cause = {"title": error.what, "evidence": [error.why] if error.why else []}
    return cause | ({"remedy": error.remedy} if error.remedy else {})


def _disturbed(before: tuple[str, ...], foreign: int) -> tuple[str, ...]:
    if not foreign:
        return before
    words = "1 request" if foreign == 1 else f"{foreign} requests"
    return tuple(dict.fromkeys((*before, f"{words} of others were seen")))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


async def _nothing() -> None:
    return
