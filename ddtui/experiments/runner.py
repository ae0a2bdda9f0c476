"""Runs a host's queue: one experiment after the other, to the end, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ddtui.control.drop_in import stamp
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.launch import Request
from ddtui.experiments.baseline import OTHER_HAND, Baseline, BaselineBook
from ddtui.experiments.leaving import Target, done_since, leave_in, measurements_of, target
from ddtui.experiments.needs import Around
from ddtui.experiments.one_experiment import OneExperiment
from ddtui.experiments.presence import present, sole_runner
from ddtui.experiments.report import Ending, OnEvent, RunnerView, time_left
from ddtui.experiments.runners_queue import RunnersQueue
from ddtui.experiments.telling import Telling
from ddtui.hosts.base import HostError
from ddtui.store.errors import Stale, StoreError
from ddtui.store.lock_wait import Held

ASK_EVERY = 1.0
"""Seconds between two looks into the store, for a wish to stop and for what is queued."""
T = TypeVar("T")

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
        self._log_file = log_file
        self._began = around.watching.clock()
        self._stopping = False
        self._task: asyncio.Task[Ending] | None = None
        self._carrying: asyncio.Task[Any] | None = None
        self._counts = dict.fromkeys(("done", "failed", "cancelled"), 0)
        view = RunnerView(host=around.host.name, who=around.who)
        self._telling = Telling(view, around.watching.clock, on_event)
        self._queue = RunnersQueue(around)
        self._baselines = BaselineBook(around, self._queue)
        self._told_of_another_hand = False

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
        view, load = self._telling.view, None
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
            loop.call_soon_threadsafe(self._telling.database, held)

        with contextlib.ExitStack() as stack:
            stack.enter_context(around.wait.heard_by(told))
            if self._presence is not None:
                here = present(
                    self._presence,
                    around.who,
                    self._began,
                    host=around.host.name,
                    log=self._log_file,
                )
                stack.enter_context(here)
            async with sole_runner(around.host, around.runner, text) as lock:
                self._telling.see(since=self._began, running=True)
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
                    self._telling.see(running=False, experiment=None, step="", progress=None)

    # ---- the queue -----------------------------------------------------------------------------

    async def _work(self) -> Ending:
        tell = self._telling.tell
        tell("started", text=f"running the experiments of {self._around.host.name}")
        await self._queue.change_settings(stop="")
        left, trouble, taken = "", "", 0
        while not self._stopping and (self._most is None or taken < self._most):
            if not await self._anything():
                left, trouble = await self._leave()
                if not await self._anything():
                    break
                continue
            begin = self._baselines.begin(self._telling.changed, self._telling.waits)
            base = await self._unless_stopped(begin, "baseline")
            if base is None:
                break
            self._tell_of_another_hand(base)
            experiment = await self._take()
            if experiment is None:
                self._telling.waits("the queue is paused")
                await asyncio.sleep(ASK_EVERY)
                continue
            taken += 1
            await self._carry(experiment, base)
        if self._most is not None and taken >= self._most and not await self._anything():
            left, trouble = await self._leave()
        if self._stopping:
            await self._baselines.stop()
        held = 0 if self._stopping else len(await self._queue.ids(ExperimentState.HELD))
        ending = Ending(
            **self._counts, held=held, stopped=self._stopping, left=left, trouble=trouble
        )
        tell("finished", text=ending.words)
        return ending

    async def _anything(self) -> bool:
        """Whether something is pending, or was left running by a runner that is gone."""
        return await self._queue.has_any(ExperimentState.PENDING, ExperimentState.RUNNING)

    def _tell_of_another_hand(self, base: Baseline) -> None:
        """That what waits is made on something else than its queue began with; once."""
        if self._baselines.replaced and not self._told_of_another_hand:
            self._told_of_another_hand = True
            count = len(base.moved)
            what = "1 experiment is" if count == 1 else f"{count} experiments are"
            words = f"{OTHER_HAND}: {what} made on what is in force now"
            self._telling.tell("other base", text=words)

    async def _take(self) -> Experiment | None:
        """The one that a dead runner has left, else the next."""
        if (taken := await self._queue.left_running()) is not None:
            where = f" at the step '{taken.step}'" if taken.step else ""
            self._telling.tell("taken over", taken, text=f"carried on{where}")
        elif (taken := await self._queue.next()) is not None:
            self._telling.tell("taken up", taken)
        return taken

    async def _carry(self, experiment: Experiment, base: Baseline) -> None:
        telling = self._telling
        one = OneExperiment(
            self._around,
            experiment,
            base.launch,
            patience=self._patience,
            tell=telling.tell,
            on_progress=telling.progressed,
            asking=self._baselines.asking,
            meant_for=base.meant_for(experiment.id),
        )
        telling.see(
            experiment=experiment, step=experiment.step, detail="", progress=None, waiting=""
        )
        try:
            ended = await self._unless_stopped(one.carry(), f"experiment {experiment.id[:8]}")
        except (Stale, StoreError):
            raise
        except HostError as error:
            await self._give_back(experiment, str(error))
            raise
        except Exception as error:
            log.exception("experiment %s", experiment.id)
            cause = {"title": f"a fault in ddtui: {type(error).__name__}: {error}"}
            ended = await self._queue.fail(one.experiment, cause)
        if ended is None:
            await self._give_back(experiment)
            return
        self._counts[ended.state.value] += 1
        telling.tell(
            "ended",
            ended,
            state=ended.state.value,
            measurement=ended.measurement,
            reloaded=ended.reloaded,
            text=str((ended.cause or {}).get("title", "")),
        )
        telling.see(experiment=None, step="", detail="", progress=None)

    async def _give_back(self, experiment: Experiment, why: str = "") -> None:
        """Leave it to the next runner: pending again, or at its step where a change is under way.

        That change is found by the next runner, and carried on for it.
        """
        try:
            if await self._around.control.unfinished() is not None:
                return
        except HostError as error:
            log.info("left as it is: %s", error.what)
            return
        await self._queue.give_back(experiment, why)

    # ---- the end -------------------------------------------------------------------------------

    async def _leave(self) -> tuple[str, str]:
        """At the end of the queue: bring the unit to what the settings name, and prove it."""
        end = self._baselines.at_the_end(self._telling.changed, self._telling.waits)
        base = await self._unless_stopped(end, "baseline")
        if base is None:
            return "", ""  # nothing was run
        settings = await self._queue.settings()
        ended = await done_since(self._around, base)
        wanted = target(settings.leave, ended, await measurements_of(self._around, ended))
        trouble = again = await self._leave_in(wanted, base)
        if trouble and not self._stopping and wanted.request != Request():
            wanted = Target(Request(), "what was in force when the queue began")
            again = await self._leave_in(wanted, base)
            trouble = f"{trouble}; and the baseline: {again}" if again else trouble
        if again:
            return "", trouble
        await self._baselines.end(base)
        self._telling.tell("left", text=wanted.words)
        return wanted.words, trouble

    async def _leave_in(self, wanted: Target, base: Baseline) -> str:
        """Why the unit could not be left in it; empty where it is proved to be in force."""
        telling = self._telling
        telling.see(step="leaving", detail=wanted.words)
        telling.tell("leaving", text=wanted.words)
        work = leave_in(
            self._around,
            wanted,
            base.launch,
            patience=self._patience,
            on_step=telling.changed,
            say=telling.waits,
            asking=self._baselines.asking,
        )
        try:
            why = await self._unless_stopped(work, "leaving")
        finally:
            telling.see(step="", detail="")
        if why is None:
            return "asked to stop before it was in force: the next run goes on with it"
        return why

    # ---- a wish to stop ------------------------------------------------------------------------

    async def _unless_stopped(self, work: Coroutine[Any, Any, T], name: str) -> T | None:
        """Let it be broken off by a wish to stop; None then."""
        carrying = asyncio.create_task(work, name=name)
        self._carrying = carrying
        if self._stopping:
            carrying.cancel()
        try:
            return await carrying
        except asyncio.CancelledError:
            if not self._stopping or not carrying.done():
                raise
            return None
        finally:
            self._carrying = None
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)

    async def _wishes(self) -> None:
        """Look for a wish to stop, of whoever has this queue in his hands."""
        await asyncio.sleep(ASK_EVERY)  # an old one is taken away first
        while True:
            if who := (await self._queue.settings()).stop:
                self._telling.tell("stopping", text=f"{who} wants it to stop")
                self.ask_to_stop()
                return
            await asyncio.sleep(ASK_EVERY)
