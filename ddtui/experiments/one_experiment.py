"""Carries one experiment to its end: in force, measured, judged, recorded; or why not."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, Protocol, Unpack

import msgspec

from ddtui.bench.errors import BenchError
from ddtui.bench.progress import Progress
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.configuration_key import key_of
from ddtui.core.experiment import Experiment, ExperimentState, Step, StepFields
from ddtui.core.launch import Launch, Plan, Value
from ddtui.core.measurement import Cell, Measurement, MeasurementState
from ddtui.core.redact import redact_text
from ddtui.experiments.baseline import Asking
from ddtui.experiments.bringing import AGAIN_AFTER, Bringing
from ddtui.experiments.measuring import (
    Cancelled,
    Disrupted,
    Measuring,
    Unmeasurable,
    as_cause,
)
from ddtui.experiments.needs import Around
from ddtui.experiments.plan_known import knobs_planned
from ddtui.experiments.running import Action, Decision, decide
from ddtui.hosts.base import HostError


class Tell(Protocol):
    """What passes on what happens, as fields of a RunEvent."""

    def __call__(
        self, what: str, experiment: Experiment | None = None, *, step: str = "", text: str = ""
    ) -> None:
        """Tell one event."""
        ...


OTHER_BASE = "another configuration than when it was added: what is in force has changed since"
_STEPS: dict[Action, Step] = {
    Action.RESUME: "loading",
    Action.PLAN: "planning",
    Action.APPLY: "loading",
    Action.RESTART: "loading",
    Action.AWAIT: "loading",
    Action.MEASURE: "measuring",
    Action.CODE: "coding",
    Action.RECORD: "recording",
}
_STATES = {
    ExperimentState.DONE: MeasurementState.COMPLETE,
    ExperimentState.CANCELLED: MeasurementState.PARTIAL,
    ExperimentState.FAILED: MeasurementState.PARTIAL,
}


class OneExperiment:
    """An experiment that is RUNNING as this runner's."""

    def __init__(
        self,
        around: Around,
        experiment: Experiment,
        base: Launch,
        *,
        patience: float,
        tell: Tell,
        on_progress: Callable[[Progress], None],
        asking: Asking,
        meant_for: Launch | None = None,
    ) -> None:
        """Take it.

        Args:
            around: What the runner works with.
            experiment: The experiment.
            base: What its request is made on.
            patience: How long a load may take, seconds.
            tell: Makes an event.
            on_progress: Told how far the bench has come.
            asking: Keeps what the unit is asked for before it is.
            meant_for: What it was to be made on, where that is something else.
        """
        self._around = around
        self._base = base
        self._asking = asking
        self._meant_for = meant_for
        self._tell = tell
        self._on_progress = on_progress
        self.experiment = experiment
        self._added_as = experiment.configuration
        self._bringing = Bringing(
            around,
            experiment.request,
            base,
            patience=patience,
            on_step=self._heard,
            say=self._say,
            note=self._note,
        )
        self._measuring: Measuring | None = None
        self._failures = 0
        self._failure = ""
        self._cause: dict[str, Any] | None = None
        self._whole = False

    async def carry(self) -> Experiment:
        """To the end, over as many connections as that takes; returns it as it is then.

        Raises NotPossible, RightMissing, LinkRefused where no experiment of this host can go on;
        Stale where another runner has taken it over; StoreError. Cancelled, it can be carried on.
        """
        if not self.experiment.step:  # taken up anew: what was done for it earlier is no news
            await self._step("planning", change="", reloaded=False)
            await self._look_at_prompts()
        self._bringing.change = self.experiment.change
        if self.experiment.step == "recording":
            await self._begin_recording()
        while True:
            decision = await self._decide()
            match decision.action:
                case Action.CANCEL:
                    return await self._end(ExperimentState.CANCELLED)
                case Action.FAIL:
                    cause = self._cause or self._bringing.cause(decision.why)
                    return await self._end(ExperimentState.FAILED, cause)
                case Action.RECORD:
                    await self._step("recording")
                    return await self._end(ExperimentState.DONE)
                case Action.MEASURE | Action.CODE:
                    await self._measure(decision.action)
                case action:
                    await self._bring(action)

    async def _decide(self) -> Decision:
        if self._cause is not None:
            return Decision(Action.FAIL, str(self._cause.get("title", "")))
        facts = await self._bringing.facts()
        now = await asyncio.to_thread(self._around.queue.get, self.experiment.id)
        reused = False
        if self.experiment.reused and self.experiment.measurement:
            kept = await asyncio.to_thread(self._around.measured.get, self.experiment.measurement)
            reused = kept is not None and kept.state is MeasurementState.COMPLETE
        measuring = self._measuring
        return decide(
            msgspec.structs.replace(
                facts,
                cancelled=now is not None and now.cancel,
                reused=reused,
                whole=self._whole,
                cells_left=1 if measuring is None else len(measuring.left),
                coding_left=measuring is not None and measuring.coding_left,
                failures=self._failures,
                failure=self._failure or facts.failure,
            )
        )

    async def _look_at_prompts(self) -> None:
        """What cannot be asked is found out before the engine is loaded for it, not after."""
        if self.experiment.reused:
            return
        try:
            await asyncio.to_thread(self._around.tools.prompts_hash, self.experiment.plan)
        except BenchError as error:
            self._cause = as_cause(error)

    # ---- steps ---------------------------------------------------------------------------------

    async def _bring(self, action: Action) -> None:
        step = _STEPS[action]
        if self.experiment.step != step and action is not Action.AWAIT:
            await self._step(step)
        await self._bringing.act(action)
        if action is Action.PLAN:
            await self._tell_of_another_base()

    async def _tell_of_another_base(self) -> None:
        """That it comes out differently than it was meant when it was added; once."""
        now, meant_for = self._bringing.configuration, self._meant_for
        if now and not self._added_as and meant_for is not None:
            try:
                plan = await self._around.control.plan(self.experiment.request, meant_for)
            except HostError:
                plan = None  # then it is told in any case
            self._added_as = key_of(meant_for if plan is None else plan.after)
        if not now or self._added_as in {"", now}:
            return
        self._added_as = now
        await self._step(self.experiment.step or "planning", detail=OTHER_BASE)
        self._tell("other base", self.experiment, text=OTHER_BASE)

    async def _measure(self, action: Action) -> None:
        measuring = self._measuring
        if measuring is None:
            await self._begin_measuring()
            return  # some of it may be whole already
        step = _STEPS[action]
        if self.experiment.step != step:
            await self._step(step)
        cells = len(measuring.measurement.cells)
        try:
            await (measuring.cells() if action is Action.MEASURE else measuring.coding())
        except Cancelled:
            return  # it is seen again where what comes next is decided
        except Unmeasurable as error:
            self._cause = error.cause
        except Disrupted as error:
            whole = len(measuring.measurement.cells) > cells
            self._failures = 1 if whole else self._failures + 1
            self._failure = str(error)
            self._bringing.compare_again()
            self._tell("waiting", self.experiment, text=f"broken off: {error}; tried again")
            await asyncio.sleep(AGAIN_AFTER)
            await self._around.host.wait_live()
        else:
            self._failures = 0
            self._whole = not measuring.left and not measuring.coding_left

    async def _begin_recording(self) -> None:
        """It was about to be recorded: then nothing is to be loaded for it any more."""
        kept = await asyncio.to_thread(self._around.measured.get, self.experiment.measurement)
        if kept is None or kept.state is not MeasurementState.RUNNING:
            return
        measuring = self._measures(kept, self._base)
        if not measuring.left and not measuring.coding_left:
            self._measuring, self._whole = measuring, True

    async def _begin_measuring(self) -> None:
        """Its measurement, begun earlier or now. The id is written down before it is made."""
        around, bringing = self._around, self._bringing
        plan = bringing.plan
        launch = plan.after if plan is not None else self._base
        kept = None
        if self.experiment.measurement and not self.experiment.reused:
            kept = await asyncio.to_thread(around.measured.get, self.experiment.measurement)
        if kept is not None and (
            kept.state is not MeasurementState.RUNNING
            or kept.configuration != bringing.configuration
            or kept.plan != self.experiment.plan
        ):
            kept = None
            self.experiment = msgspec.structs.replace(self.experiment, measurement="")
        new_id = self.experiment.measurement
        await self._step(
            "measuring",
            measurement=new_id if new_id and not self.experiment.reused else uuid.uuid4().hex,
            reused=False,
            configuration=bringing.configuration,
            knobs=self._knobs(),
            reloaded=self._reloaded,
        )
        measurement = kept or Measurement(
            id=self.experiment.measurement,
            host=around.host.name,
            simulated=around.host.simulated,
            unit=around.unit(),
            configuration=bringing.configuration,
            title=self.experiment.title,
            experiment=self.experiment.id,
            plan=self.experiment.plan,
            began=around.watching.clock(),
        )
        self._measuring = self._measures(measurement, launch)

    def _measures(self, measurement: Measurement, launch: Launch) -> Measuring:
        return Measuring(
            self._around,
            measurement,
            launch,
            cancelled=self._is_cancelled,
            on_progress=self._on_progress,
            on_cell=self._cell,
        )

    async def _end(self, state: ExperimentState, cause: dict[str, Any] | None = None) -> Experiment:
        around, measuring = self._around, self._measuring
        at = around.watching.clock()
        cause = None if cause is None else _safe(cause)
        ended = msgspec.structs.replace(
            self.experiment,
            state=state,
            cause=cause,
            ended=at,
            reloaded=self._reloaded,
            configuration=self._bringing.configuration or self.experiment.configuration,
        )
        if measuring is None:
            self.experiment = await asyncio.to_thread(
                around.queue.end, ended, who=around.runner, at=at
            )
            return self.experiment
        found = measuring.measurement
        kind = _STATES[state] if found.cells else MeasurementState.FAILED
        measurement = msgspec.structs.replace(
            found,
            state=kind,
            ended=at,
            cause="" if cause is None else str(cause.get("title", "")),
        )
        self.experiment = await asyncio.to_thread(
            around.measured.finish, ended, measurement, who=around.runner, at=at
        )
        return self.experiment

    @property
    def _reloaded(self) -> bool:
        return self.experiment.reloaded or self._bringing.record is not None

    # ---- the store, and who listens ------------------------------------------------------------

    async def _step(self, step: Step, detail: str = "", **to: Unpack[StepFields]) -> None:
        around = self._around
        self.experiment = await asyncio.to_thread(
            around.queue.step,
            self.experiment.id,
            step,
            who=around.runner,
            at=around.watching.clock(),
            detail=detail,
            **to,
        )
        self._tell("step", self.experiment, step=step)

    async def _note(self, *, change: str, plan: Plan | None) -> None:
        if plan is not None:
            await self._asking(plan)
        await self._step("loading", change=change, knobs=self._knobs())

    def _knobs(self) -> dict[str, Value]:
        """What it has by its plan; what the server chooses itself as it was known before."""
        plan, experiment = self._bringing.plan, self.experiment
        if plan is None:
            return experiment.knobs
        engine = self._around.watching.engine
        return knobs_planned(plan.after, engine, experiment.request, experiment.knobs)

    async def _is_cancelled(self) -> bool:
        now = await asyncio.to_thread(self._around.queue.get, self.experiment.id)
        return now is not None and now.cancel

    def _heard(self, _record: ChangeRecord, step: StepRecord) -> None:
        text = f"{step.step}: {step.detail}" if step.detail else step.step
        self._tell("change", self.experiment, step="loading", text=text)

    def _say(self, words: str) -> None:
        self._tell("waiting", self.experiment, step=self.experiment.step, text=words)

    def _cell(self, cell: Cell) -> None:
        self._tell("cell", self.experiment, step="measuring", text=cell_words(cell))


def cell_words(cell: Cell) -> str:
    """A cell in a line."""
    words = [f"{cell.concurrency} at once"]
    if cell.user_rate is not None:
        words.append(f"{cell.user_rate.median:.1f} tok/s each")
    if cell.total_rate is not None:
        words.append(f"{cell.total_rate.median:.1f} tok/s in total")
    if cell.acceptance_length is not None:
        words.append(f"acceptance length {cell.acceptance_length.median:.2f}")
    if cell.failed or cell.stalled:
        words.append(f"{cell.failed} failed, {cell.stalled} stalled")
    return ", ".join(words)


def _safe(cause: dict[str, Any]) -> dict[str, Any]:
    return {
        name: redact_text(value) if isinstance(value, str) else value
        for name, value in cause.items()
    }
