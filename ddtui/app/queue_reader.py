"""Reads a host's queue when it has changed, and works out what its experiments load and take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from ddtui.app.hosted_runner import HostedRunner
from ddtui.app.live import Watched
from ddtui.app.problems import problem_of
from ddtui.app.queue_known import Known, best_of, results_of
from ddtui.control.controller import Controller, operator
from ddtui.control.lock import lock_holder
from ddtui.core.experiment import Experiment
from ddtui.core.local_time import in_local_time
from ddtui.core.samples import LinkState
from ddtui.experiments.eta import QueueEta, later
from ddtui.experiments.kept import Kept, read_kept
from ddtui.experiments.naming import shown
from ddtui.experiments.presence import HOST_KEY
from ddtui.experiments.queue import Queue
from ddtui.experiments.queue_rules import QueueProblem
from ddtui.experiments.report import time_left
from ddtui.hosts.base import HostError
from ddtui.store import Store, StoreError
from ddtui.ui.queue_source import QueueView, Result
from ddtui.ui.source import ControlProblem

ESTIMATE_EVERY = 3.0
"""Seconds between two estimates at least: each asks the host for the unit's files."""
ESTIMATE_AGAIN = 20.0
"""Seconds after which times are estimated anew though nothing has changed in the queue."""
ELSEWHERE_EVERY = 10.0
"""Seconds between two questions to the host for who runs its queue."""
_LONG_AGO = -1e9

Outcome = TypeVar("Outcome")


class QueueReader:
    """The queue as it was read last. The store is opened when it is first needed."""

    def __init__(self, source: Watched, control: Controller, hosted: HostedRunner) -> None:
        self._source = source
        self._hosted = hosted
        self._queue: Queue | None = None
        self._opening = asyncio.Lock()
        self._shown: tuple[Experiment, ...] = ()
        self._results: dict[str, Result] = {}
        self._eta: QueueEta | None = None
        self._eta_at = 0.0
        self._problem = ""
        self._estimated = self._asked = _LONG_AGO
        self._estimated_of = -1
        self.store: Store | None = None
        """None before it was opened."""
        self.kept: Kept | None = None
        """All that was read last, secrets too; None before anything was."""
        self.known = Known(source, control)

    @property
    def view(self) -> QueueView:
        """What is known now."""
        kept, run = self.kept, self._hosted.view
        if kept is None:
            return QueueView(run=run, problem=self._problem)
        view = QueueView(
            version=kept.version,
            experiments=self._shown,
            settings=kept.settings,
            results=self._results,
            eta=self._eta_now(),
            checked=self.known.checked,
            moved=self.known.moved,
            run=run,
            problem=self._problem,
        )
        if run.progress is None or view.running is None:
            return view
        return msgspec.structs.replace(view, best=best_of(kept, view.running, run.progress))

    def _eta_now(self) -> QueueEta | None:
        """Times go by while the queue is run; else they are those from whenever it begins."""
        if self._eta is None or not self._hosted.view.running:
            return self._eta
        return later(self._eta, max(0.0, self._source.clock() - self._eta_at))

    def find(self, experiment_id: str) -> Experiment | None:
        """An experiment with its secrets."""
        there = self.kept.experiments if self.kept is not None else []
        return next((each for each in there if each.id == experiment_id), None)

    async def look(self, *, afresh: bool = False) -> None:
        """Read what has changed; `afresh` estimates times and asks the host in any case."""
        if afresh:
            self._estimated = self._asked = _LONG_AGO
        await self.read()
        self._hosted.look()
        await self._hosted.look_who()
        self.known.look()
        await self._ask_elsewhere()
        await self._estimate()

    async def read(self) -> None:
        """Read what has changed in the store; asks no host."""
        try:
            queue = await self._opened()
            version = await asyncio.to_thread(queue.version)
            if self.kept is None or version != self.kept.version:
                await self._read(queue)
            self._problem = ""
        except StoreError as error:
            self._problem = f"{error.what}: {error.why}"

    async def close(self) -> None:
        """Close the store."""
        if self.store is not None:
            await asyncio.to_thread(self.store.close)
            self.store = self._queue = None

    async def queue(self) -> Queue:
        """The queue itself. Raises ControlProblem."""
        try:
            return await self._opened()
        except StoreError as error:
            raise problem_of(error) from error

    async def done(self, what: Callable[[], Outcome]) -> Outcome:
        """Do something to the queue in a thread, with what its failures mean."""
        try:
            return await asyncio.to_thread(what)
        except QueueProblem as problem:
            raise ControlProblem(problem.what, problem.remedy) from problem
        except StoreError as error:
            raise problem_of(error) from error

    async def _opened(self) -> Queue:
        async with self._opening:
            if self._queue is None:
                self.store = await asyncio.to_thread(Store.open)
                name, host = self._source.name, self._source.host
                self._queue = Queue(
                    self.store, name, host.simulated, operator(), self._source.clock
                )
            return self._queue

    async def _read(self, queue: Queue) -> None:
        if self.store is None:
            return  # closed meanwhile
        kept = await asyncio.to_thread(read_kept, self.store, queue.host, simulated=queue.simulated)
        self._shown = tuple(map(shown, kept.experiments))
        self._results = results_of(kept)
        self.kept = kept

    async def _ask_elsewhere(self) -> None:
        """Who runs the queue on another machine; costs one command on the host."""
        now, host = self._source.clock(), self._source.host
        if self._hosted.view.where in {"here", "this machine"}:
            self._hosted.elsewhere = ""
        elif now - self._asked >= ELSEWHERE_EVERY and host.link.state is LinkState.LIVE:
            self._asked = now
            try:
                self._hosted.elsewhere = in_local_time(await lock_holder(host, HOST_KEY))
            except HostError:
                self._hosted.elsewhere = ""  # not known: a run would say so before it begins

    async def _estimate(self) -> None:
        kept, now = self.kept, self._source.clock()
        if kept is None:
            return
        since = now - self._estimated
        new = kept.version != self._estimated_of or not self.known.checked
        if since < ESTIMATE_EVERY or not (new or since >= ESTIMATE_AGAIN):
            return
        self._estimated, self._estimated_of = now, kept.version
        self._eta, self._eta_at = await self.known.eta(kept, self._left), now

    def _left(self, experiment: Experiment) -> float | None:
        """Seconds until an experiment that is measured here ends."""
        run = self._hosted.view
        return time_left(run.progress) if experiment.step == "measuring" else None
