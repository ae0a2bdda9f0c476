"""Runs a host's queue: one experiment after the other, to the end, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any

import msgspec

from ddtui.bench.progress import Progress
from ddtui.control.drop_in import stamp
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.experiment import WAITING, Experiment, ExperimentState, InForce
from ddtui.core.launch import Request
from ddtui.experiments.leaving import (
    Baseline,
    Target,
    baseline_of,
    done_since,
    leave_in,
    measurements_of,
    target,
)
from ddtui.experiments.needs import Around
from ddtui.experiments.one_experiment import OneExperiment
from ddtui.experiments.plan_known import in_force_now
from ddtui.experiments.presence import present, sole_runner
from ddtui.experiments.report import (
    Ending,
    OnEvent,
    RunEvent,
    RunnerView,
    database_words,
    time_left,
)
from ddtui.hosts.base import HostError, LinkDown, ProgramTimeout
from ddtui.store.errors import Stale, StoreError
from ddtui.store.lock_wait import Held

ASK_EVERY = 1.0
"""Seconds between two looks into the store, for a wish to stop and for what is queued."""
AGAIN_AFTER = 2.0

log = logging.getLogger(__name__)


class Runner:
    """The runner of one host. Its Controller must be its own: no screen's.

    `start` it, read `state` as often as wanted, `stop` it; or await `run`.
    """

    def __init__(
        self,
        around: Around,
        *,
        presence: Path | None = None,
        most: int | None = None,
        patience: float = 3600.0,
        on_event: OnEvent | None = None,
        log_file: str = "",
    ) -> None:
        """`most` experiments at most; `presence` is the file that says who runs them, here."""
        self._around = around
        self._presence = presence
        self._most = most
        self._patience = patience
        self._on_event = on_event
        self._log_file = log_file
        self._began = around.watching.clock()
        self._stopping = False
        self._task: asyncio.Task[Ending] | None = None
        self._carrying: asyncio.Task[Any] | None = None
        self._counts = dict.fromkeys(("done", "failed", "cancelled"), 0)
        self._view = RunnerView(host=around.host.name, who=around.who)

    # ---- for whoever hosts it ------------------------------------------------------------------

    def start(self) -> asyncio.Task[Ending]:
        """Begin, in a task of its own; a second call gives the same one."""
        if self._task is None:
            self._task = asyncio.create_task(self.run(), name="experiments")
        return self._task

    async def stop(self) -> None:
        """End cleanly: the cell under way is given up, and what was kept can be carried on.

        Returns once it has ended. What has failed is told by the task that `start` gave.
        """
        self.ask_to_stop()
        if self._task is not None:
            await asyncio.wait({self._task})

    def ask_to_stop(self) -> None:
        """Begin to end, as `stop` does, without waiting for it."""
        self._stopping = True
        self._around.wait.end()
        if self._carrying is not None:
            self._carrying.cancel()

    @property
    def state(self) -> RunnerView:
        """Where it stands."""
        view, load = self._view, None
        if view.progress is None and view.step == "loading":
            load = self._around.watching.snapshot().load
        eta = time_left(view.progress) if load is None else load.eta_seconds
        return msgspec.structs.replace(view, eta_seconds=eta)

    async def run(self) -> Ending:
        """To the end of the queue, or until it is asked to stop.

        Raises:
            RunnerHeld: Somebody else runs this host's experiments.
            NotPossible, ActionFailed: The unit cannot be read, or not be changed by this operator.
            LinkRefused: The host cannot be reached without the operator.
            StoreError: What must be kept cannot be.
        """
        around = self._around
        self._began = around.watching.clock()
        text = f"{around.who} since {stamp(self._began)}: experiments"
        loop = asyncio.get_running_loop()

        def told(held: Held | None) -> None:
            loop.call_soon_threadsafe(self._database, held)

        with contextlib.ExitStack() as stack:
            stack.enter_context(around.wait.heard_by(told))
            if self._presence is not None:
                where, log = around.host.name, self._log_file
                here = present(self._presence, around.who, self._began, host=where, log=log)
                stack.enter_context(here)
            async with sole_runner(around.host, around.runner, text) as lock:
                self._see(since=self._began, running=True)
                work = asyncio.create_task(self._work(), name="queue")
                wishes = asyncio.create_task(self._wishes(), name="wishes to stop")
                try:
                    await asyncio.wait({work, lock}, return_when=asyncio.FIRST_COMPLETED)
                    if not work.done():
                        lock.result()
                    return await work
                finally:
                    for each in (work, wishes):
                        each.cancel()
                    await asyncio.gather(work, wishes, return_exceptions=True)
                    self._see(running=False, experiment=None, step="", progress=None)

    # ---- the queue -----------------------------------------------------------------------------

    async def _work(self) -> Ending:
        self._tell("started", text=f"running the experiments of {self._around.host.name}")
        await self._settings(stop="")
        left, trouble, taken = "", "", 0
        while not self._stopping and (self._most is None or taken < self._most):
            if not await self._anything():
                left, trouble = await self._leave()
                if not await self._anything():
                    break
                continue
            base = await self._baseline()
            experiment = await self._take()
            if experiment is None:
                self._wait_for("the queue is paused")
                await asyncio.sleep(ASK_EVERY)
                continue
            taken += 1
            await self._carry(experiment, base)
        if self._most is not None and taken >= self._most and not await self._anything():
            left, trouble = await self._leave()
        ending = Ending(**self._counts, stopped=self._stopping, left=left, trouble=trouble)
        self._tell("finished", text=ending.words)
        return ending

    async def _anything(self) -> bool:
        """Whether something is pending, or was left running by a runner that is gone."""
        return bool(await self._ids(ExperimentState.PENDING, ExperimentState.RUNNING))

    async def _take(self) -> Experiment | None:
        """The one that a dead runner has left, at the step that it had reached; else the next."""
        around, host = self._around, self._around.host
        at = around.watching.clock()
        left = await asyncio.to_thread(around.queue.running, host.name, simulated=host.simulated)
        if left:
            taken = await asyncio.to_thread(
                around.queue.take_over, left[0].id, who=around.runner, at=at
            )
            where = f" at the step '{taken.step}'" if taken.step else ""
            self._tell("taken over", taken, text=f"carried on{where}")
            return taken
        claimed = await asyncio.to_thread(
            around.queue.claim, host.name, simulated=host.simulated, who=around.runner, at=at
        )
        if claimed is not None:
            self._tell("taken up", claimed)
        return claimed

    async def _carry(self, experiment: Experiment, base: Baseline) -> None:
        one = OneExperiment(
            self._around,
            experiment,
            base.launch,
            patience=self._patience,
            tell=self._tell,
            on_progress=self._progressed,
        )
        self._see(experiment=experiment, step=experiment.step, detail="", progress=None, waiting="")
        carrying = asyncio.create_task(one.carry(), name=f"experiment {experiment.id[:8]}")
        self._carrying = carrying
        if self._stopping:
            carrying.cancel()
        try:
            ended = await carrying
        except asyncio.CancelledError:
            if not self._stopping or not carrying.done():
                raise
            await self._give_back(experiment)
            return
        except (HostError, Stale, StoreError) as error:
            if not isinstance(error, Stale | StoreError):
                await self._give_back(experiment, str(error))
            raise
        except Exception as error:
            log.exception("experiment %s", experiment.id)
            cause = {"title": f"a fault in ddtui: {type(error).__name__}: {error}"}
            ended = await self._fail(one.experiment, cause)
        finally:
            self._carrying = None
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
        self._counts[ended.state.value] += 1
        self._tell(
            "ended",
            ended,
            state=ended.state.value,
            measurement=ended.measurement,
            reloaded=ended.reloaded,
            text=str((ended.cause or {}).get("title", "")),
        )
        self._see(experiment=None, step="", detail="", progress=None)

    async def _fail(self, experiment: Experiment, cause: dict[str, Any]) -> Experiment:
        around, at = self._around, self._around.watching.clock()
        failed = msgspec.structs.replace(experiment, state=ExperimentState.FAILED, cause=cause)
        return await asyncio.to_thread(around.queue.end, failed, who=around.runner, at=at)

    async def _give_back(self, experiment: Experiment, why: str = "") -> None:
        """Leave it to the next runner: pending again, or at its step where a change is under way.

        That change is found by the next runner, and carried on for it.
        """
        around, at = self._around, self._around.watching.clock()
        try:
            if await around.control.unfinished() is not None:
                return
        except HostError as error:
            log.info("left as it is: %s", error.what)
            return
        await asyncio.to_thread(
            around.queue.give_back, experiment.id, who=around.runner, at=at, detail=why
        )

    # ---- begin and end -------------------------------------------------------------------------

    async def _settings(self, **to: Any) -> None:
        host = self._around.host
        await asyncio.to_thread(
            self._around.queue.change_settings, host.name, simulated=host.simulated, **to
        )

    async def _known_baseline(self) -> Baseline | None:
        host = self._around.host
        settings = await asyncio.to_thread(
            self._around.queue.settings, host.name, simulated=host.simulated
        )
        return baseline_of(settings)

    async def _baseline(self) -> Baseline:
        """What was in force when the queue began: recorded once, before anything is changed."""
        known = await self._known_baseline()
        if known is not None and known.left is None:
            return known
        around = self._around
        while True:
            try:
                await around.host.wait_live()
                if await around.control.unfinished() is not None:
                    await around.control.resume(self._heard)
                launch = (await around.control.command()).launch
                break
            except (LinkDown, ProgramTimeout) as error:
                self._wait_for(error.what)
                await asyncio.sleep(AGAIN_AFTER)
        if known is not None and known.lasts(launch, await self._ids(*WAITING)):
            found = msgspec.structs.replace(known, left=None, held=())
            await self._settings(baseline=msgspec.to_builtins(found))
            return found
        found = Baseline(launch=launch, at=around.watching.clock(), unit=around.unit())
        host, snapshot = around.host, around.watching.snapshot()
        settings = await asyncio.to_thread(
            around.queue.settings, host.name, simulated=host.simulated
        )
        in_force = in_force_now(launch, around.watching.engine, snapshot, settings.in_force)
        await self._settings(baseline=msgspec.to_builtins(found), in_force=in_force)
        return found

    async def _leave(self) -> tuple[str, str]:
        """At the end of the queue: bring the unit to what the settings name, and prove it."""
        base = await self._known_baseline()
        if base is None or base.left is not None:
            return "", ""  # nothing was run
        around, host = self._around, self._around.host
        settings = await asyncio.to_thread(
            around.queue.settings, host.name, simulated=host.simulated
        )
        ended = await done_since(around, base.at)
        wanted = target(settings.leave, ended, await measurements_of(around, ended))
        trouble = again = await self._leave_in(wanted, base)
        if trouble and not self._stopping and wanted.request != Request():
            wanted = Target(Request(), "what was in force when the queue began")
            again = await self._leave_in(wanted, base)
            trouble = f"{trouble}; and the baseline: {again}" if again else trouble
        if again:
            return "", trouble
        await self._end(base)
        self._tell("left", text=wanted.words)
        return wanted.words, trouble

    async def _end(self, base: Baseline) -> None:
        """Forget what the queue was made on; with something held it is kept for that."""
        if held := await self._ids(ExperimentState.HELD):
            with contextlib.suppress(HostError):  # then it is recorded anew, as for another queue
                left = (await self._around.control.command()).launch
                kept = msgspec.structs.replace(base, left=left, held=tuple(held))
                await self._settings(baseline=msgspec.to_builtins(kept))
                return
        await self._settings(baseline={}, in_force=InForce())

    async def _ids(self, *states: ExperimentState) -> list[str]:
        host = self._around.host
        found = await asyncio.to_thread(
            self._around.queue.queue, host.name, simulated=host.simulated
        )
        return [each.id for each in found if each.state in states]

    async def _leave_in(self, wanted: Target, base: Baseline) -> str:
        self._see(step="leaving", detail=wanted.words)
        self._tell("leaving", text=wanted.words)
        work = leave_in(
            self._around,
            wanted,
            base.launch,
            patience=self._patience,
            on_step=self._heard,
            say=self._wait_for,
        )
        leaving = asyncio.create_task(work, name="leaving")
        self._carrying = leaving
        try:
            return await leaving
        except asyncio.CancelledError:
            if self._stopping and leaving.done():
                return "asked to stop before it was in force: the next run goes on with it"
            raise
        finally:
            self._carrying = None
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            self._see(step="", detail="")

    async def _wishes(self) -> None:
        """Look for a wish to stop, of whoever has this queue in his hands."""
        host = self._around.host
        await asyncio.sleep(ASK_EVERY)  # an old one is taken away first
        while True:
            settings = await asyncio.to_thread(
                self._around.queue.settings, host.name, simulated=host.simulated
            )
            if settings.stop:
                self._tell("stopping", text=f"{settings.stop} wants it to stop")
                self.ask_to_stop()
                return
            await asyncio.sleep(ASK_EVERY)

    # ---- who listens ---------------------------------------------------------------------------

    def _see(self, **to: Any) -> None:
        self._view = msgspec.structs.replace(self._view, **to)

    def _progressed(self, progress: Progress) -> None:
        self._see(progress=progress)

    def _heard(self, _record: ChangeRecord, step: StepRecord) -> None:
        words = f"{step.step}: {step.detail}" if step.detail else step.step
        self._tell("change", text=words)

    def _database(self, held: Held | None) -> None:
        self._wait_for(database_words(held))
        if held is None:
            self._see(waiting="")

    def _wait_for(self, words: str) -> None:
        if words != self._view.waiting:
            self._tell("waiting", text=words)
        self._see(waiting=words)

    def _tell(self, what: str, experiment: Experiment | None = None, **fields: Any) -> None:
        if experiment is not None:
            fields = {"experiment": experiment.id, "title": experiment.title} | fields
            if what in {"step", "taken over", "taken up"}:
                self._see(experiment=experiment, step=experiment.step, detail="", progress=None)
        if what == "change":
            self._see(detail=fields.get("text", ""))
        if self._on_event is not None:
            self._on_event(RunEvent(at=self._around.watching.clock(), what=what, **fields))
