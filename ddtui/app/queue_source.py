"""A host's queue and its runner as the screens see them, over the host that they watch already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ddtui.app.control_source import ControlOfHost
from ddtui.app.hosted_runner import HostedRunner, Listener
from ddtui.app.live import Watched
from ddtui.app.problems import problem_of
from ddtui.app.queue_previews import Previews, config_problem
from ddtui.app.queue_reader import QueueReader
from ddtui.app.queue_words import Typed, read_line
from ddtui.app.run_tools import around_for, patient_store
from ddtui.app.sweep_work import CONTROL_NOTE, drafts
from ddtui.bench.sandbox import probe
from ddtui.config.errors import ConfigError
from ddtui.config.load import Loaded
from ddtui.config.presets import merged
from ddtui.control.controller import Controller, operator
from ddtui.core.experiment import WAITING, Experiment, ExperimentState, Leave, Place, QueueEvent
from ddtui.core.launch import Plan, Request
from ddtui.core.samples import LinkState
from ddtui.core.sweep import CONTROL
from ddtui.experiments.baseline import baseline_of
from ddtui.experiments.presence import ask_to_stop, presence_file
from ddtui.experiments.queue import Queue
from ddtui.experiments.runner import Runner
from ddtui.experiments.worked import Worked
from ddtui.hosts.base import HostError
from ddtui.store import StoreError
from ddtui.ui.queue_source import GridView, LikeView, QueueView, RunPlan
from ddtui.ui.source import ControlProblem


class QueueOfHost:
    """A `ddtui.ui.queue_source.QueueSource`."""

    def __init__(
        self,
        source: Watched,
        control: Controller,
        loaded: Loaded,
        runner_is: Callable[[Controller | None], None] = lambda _: None,
    ) -> None:
        """`runner_is` is told the controller of a runner here, and None once it has ended."""
        self._source = source
        self._control = control
        self._loaded = loaded
        self._runner_is = runner_is
        self._presence = presence_file(source.name, simulated=source.host.simulated)
        self._hosted = HostedRunner(self._runner, self._presence, source.clock)
        self._reader = QueueReader(source, control, self._hosted)
        self._previews = Previews(source, control, loaded, self._reader)

    # ---- looking -------------------------------------------------------------------------------

    @property
    def view(self) -> QueueView:
        """See QueueSource."""
        return self._reader.view

    async def look(self) -> None:
        """See QueueSource."""
        await self._reader.look()

    async def close(self) -> None:
        """See QueueSource."""
        await self._hosted.stop()
        await self._reader.close()

    async def log(self, experiment_id: str) -> Sequence[QueueEvent]:
        """See QueueSource."""
        queue = await self._reader.queue()
        return await self._reader.done(lambda: queue.log(experiment_id))

    async def plan(self, experiment_id: str) -> Plan:
        """See QueueSource."""
        kept, found = self._reader.kept, self._reader.find(experiment_id)
        if kept is None or found is None:
            raise ControlProblem("it is not in the queue any more")
        try:
            base = await self._reader.known.base(kept)
            return await self._control.plan(found.request, base)
        except HostError as error:
            raise problem_of(error) from error

    def grid(self, text: str) -> GridView:
        """See QueueSource."""
        return self._previews.grid(text)

    async def work_out(
        self, text: str, *, reuse: bool, on_done: Callable[[int, int], None]
    ) -> Worked:
        """See QueueSource."""
        return await self._previews.work_out(text, reuse=reuse, on_done=on_done)

    def like(self, experiment_id: str, text: str) -> LikeView:
        """See QueueSource."""
        return self._previews.like(experiment_id, text)

    # ---- changing the queue --------------------------------------------------------------------

    async def add(self, text: str) -> Sequence[str]:
        """See QueueSource."""
        typed = self._read_typed(text, preset=True)
        if typed.request == Request() and typed.plan is None:
            raise ControlProblem("name a preset, or what to set: budget=16 topk=4 plan=quick")
        return await self._add(lambda queue: [queue.draft(typed.request, typed.plan)])

    async def add_grid(self, worked: Worked) -> Sequence[str]:
        """See QueueSource."""
        return await self._add(
            lambda queue: drafts(queue, worked.sweep, worked.plan, worked.arranged)
        )

    async def add_like(self, experiment_id: str, text: str, policy: str) -> Sequence[str]:
        """See QueueSource."""
        typed, view = self._read_typed(text, control=True), self.like(experiment_id, text)
        wanted = [policy] if policy else []
        if policy and view.control and policy != CONTROL:
            wanted.append(CONTROL)
        found = {each.policy: each for each in view.choices}
        for name in wanted:
            if name not in found or found[name].value is None:
                why = "; ".join(found[name].errors) if name in found else view.note
                raise ControlProblem(f"{name} gives no budget: {why or 'nothing is matched'}")

        def made(queue: Queue) -> list[Experiment]:
            if not wanted or view.reference is None:
                return [queue.draft_like(experiment_id, typed.request, typed.plan)]
            new = []
            for name in wanted:
                budget = Request(knobs={"budget": found[name].value})
                over = merged(typed.request, budget)
                match = found[name].as_match(view.reference)
                note = CONTROL_NOTE if name == CONTROL else ""
                new.append(
                    queue.draft_like(experiment_id, over, typed.plan, match=match, note=note)
                )
            return new

        return await self._add(made)

    async def edit(self, experiment_id: str, text: str) -> Sequence[str]:
        """See QueueSource."""
        typed = self._read_typed(text, without=True)
        if typed.empty:
            raise ControlProblem("say what to change: budget=16, -topk, plan=quick")
        return await self._change(
            lambda queue: queue.edit(
                experiment_id, typed.request, typed.plan, without=typed.without
            )
        )

    async def annotate(
        self, experiment_id: str, *, hypothesis: str | None = None, note: str | None = None
    ) -> Sequence[str]:
        """See QueueSource."""
        return await self._change(
            lambda queue: queue.annotate(experiment_id, hypothesis=hypothesis, note=note)
        )

    async def move(self, experiment_id: str, place: Place) -> Sequence[str]:
        """See QueueSource."""
        return await self._change(lambda queue: queue.move(experiment_id, place))

    async def hold(self, experiment_id: str) -> Sequence[str]:
        """See QueueSource."""
        return await self._change(lambda queue: queue.hold(experiment_id))

    async def release(self, experiment_id: str) -> Sequence[str]:
        """See QueueSource."""
        return await self._change(lambda queue: queue.release(experiment_id))

    async def cancel(self, experiment_id: str) -> Sequence[str]:
        """See QueueSource."""
        return await self._change(lambda queue: queue.cancel(experiment_id))

    async def retry(self, experiment_id: str) -> Sequence[str]:
        """See QueueSource."""
        return await self._change(lambda queue: queue.retry(experiment_id))

    async def clear(self) -> Sequence[str]:
        """See QueueSource."""
        queue = await self._reader.queue()
        cleared = await self._reader.done(queue.clear)
        await self._reader.read()
        return [each.id for each in cleared]

    async def pause(self, *, paused: bool) -> None:
        """See QueueSource."""
        queue = await self._reader.queue()
        await self._reader.done(queue.pause if paused else queue.resume)
        await self._reader.read()

    async def leave(self, which: Leave) -> None:
        """See QueueSource."""
        queue = await self._reader.queue()
        await self._reader.done(lambda: queue.leave(which))
        await self._reader.read()

    def _read_typed(self, text: str, **may: bool) -> Typed:
        try:
            return read_line(self._loaded, self._source.name, text, **may)
        except ConfigError as error:
            raise config_problem(error) from error

    async def _add(self, made: Callable[[Queue], Sequence[Experiment]]) -> Sequence[str]:
        queue = await self._reader.queue()
        added = await self._reader.done(lambda: queue.add(made(queue)))
        await self._reader.read()
        return [each.id for each in added]

    async def _change(self, how: Callable[[Queue], Experiment]) -> Sequence[str]:
        queue = await self._reader.queue()
        changed = await self._reader.done(lambda: how(queue))
        await self._reader.read()
        return [changed.id]

    # ---- running -------------------------------------------------------------------------------

    async def prepare_run(self) -> RunPlan:
        """See QueueSource."""
        await self._reader.look(afresh=True)
        view = self.view
        if view.problem or not view.read:
            raise ControlProblem(f"The queue cannot be read. {view.problem}".strip())
        if self._source.host.link.state is not LinkState.LIVE:
            raise ControlProblem(
                f"{self._source.name} is not connected.", "It is tried again by itself."
            )
        waiting = view.in_state(ExperimentState.RUNNING, ExperimentState.PENDING)
        base = baseline_of(view.settings)
        if not waiting and (base is None or base.left is not None):
            held = any(each.state in WAITING for each in view.experiments)
            if held:
                raise ControlProblem("All that waits is held.", "Release one, or add one.")
            raise ControlProblem("Nothing waits to be run.", "Add an experiment, or a grid.")
        run = view.run
        holder = "" if run.where in {"nobody", "here"} else run.who
        coding = any(each.plan.coding for each in waiting)
        sandboxed = not coding or (await probe()).level == "isolated"
        return RunPlan(view=view, holder=holder, sandboxed=sandboxed)

    def start_run(self) -> None:
        """See QueueSource."""
        self._hosted.start()

    async def stop_run(self) -> str:
        """See QueueSource."""
        await self._hosted.look_who()
        run = self._hosted.view
        if run.where == "here":
            self._hosted.ask_to_stop()
            return "stopping: what is whole is kept, what is under way is given up"
        if run.where == "this machine":
            try:
                asked = await asyncio.to_thread(ask_to_stop, self._presence)
            except (StoreError, OSError) as error:
                raise problem_of(error) from error
            return "" if asked is None else f"process {asked.pid} was asked to stop"
        if run.where == "elsewhere":
            store = self._reader.store
            if store is None:
                raise ControlProblem("The queue cannot be read.")
            host = self._source.host
            await self._reader.done(
                lambda: store.experiments.change_settings(
                    self._source.name, simulated=host.simulated, stop=operator()
                )
            )
            return (
                f"the wish is kept here; a runner with another database does not see it:"
                f" ask {run.who}"
            )
        raise ControlProblem("Nobody runs the queue.")

    def take_trouble(self) -> ControlProblem | None:
        """See QueueSource."""
        return self._hosted.take_trouble()

    @asynccontextmanager
    async def _runner(self, on_event: Listener) -> AsyncIterator[Runner]:
        """A runner over the host that is watched, with a store and a controller of its own."""
        source = self._source
        store = await asyncio.to_thread(patient_store)
        try:
            around = around_for(source, self._loaded, store)
            self._runner_is(around.control)
            yield Runner(around, presence=self._presence, on_event=on_event)
        finally:
            self._runner_is(None)
            await asyncio.to_thread(store.close)


@asynccontextmanager
async def screen_queue(
    source: Watched, control: ControlOfHost, loaded: Loaded
) -> AsyncIterator[QueueOfHost]:
    """The queue for the screens, until the context is left; `control` is what they change with."""

    def runner_is(controller: Controller | None) -> None:
        control.beside = controller

    queue = QueueOfHost(source, control.controller, loaded, runner_is)
    try:
        yield queue
    finally:
        await queue.close()
