"""A runner's word: a view of where it stands, and events to whoever listens."""

from __future__ import annotations

from typing import Any

import msgspec

from ddtui.bench.progress import Progress
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.clock import Clock
from ddtui.core.experiment import Experiment
from ddtui.experiments.report import OnEvent, RunEvent, RunnerView, database_words
from ddtui.store.lock_wait import Held

_OF_ITS_STEP = frozenset({"step", "taken over", "taken up"})
"""Events after which an experiment is at its step's beginning."""


class Telling:
    """Keeps the view, and makes the events."""

    def __init__(self, view: RunnerView, clock: Clock, on_event: OnEvent | None) -> None:
        self.view = view
        self._clock = clock
        self._on_event = on_event

    def see(self, **to: Any) -> None:
        """Set fields of the view."""
        self.view = msgspec.structs.replace(self.view, **to)

    def tell(self, what: str, experiment: Experiment | None = None, **fields: Any) -> None:
        """Make an event; `fields` of a RunEvent."""
        if experiment is not None:
            fields = {"experiment": experiment.id, "title": experiment.title} | fields
            if what in _OF_ITS_STEP:
                self.see(experiment=experiment, step=experiment.step, detail="", progress=None)
        if what == "change":
            self.see(detail=fields.get("text", ""))
        if self._on_event is not None:
            self._on_event(RunEvent(at=self._clock(), what=what, **fields))

    def waits(self, words: str) -> None:
        """Why nothing goes on; told once."""
        if words != self.view.waiting:
            self.tell("waiting", text=words)
        self.see(waiting=words)

    def progressed(self, progress: Progress) -> None:
        """The bench under way has come so far."""
        self.see(progress=progress)

    def changed(self, _record: ChangeRecord, step: StepRecord) -> None:
        """A change that is no experiment's own has reached a step."""
        self.tell("change", text=f"{step.step}: {step.detail}" if step.detail else step.step)

    def database(self, held: Held | None) -> None:
        """Another process keeps the database locked, or does no more."""
        self.waits(database_words(held))
        if held is None:
            self.see(waiting="")
