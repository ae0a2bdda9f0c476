"""The audit of one reconfiguration: each step is in the store before it is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from ddtui.control.held import Baseline
from ddtui.control.reconfiguration import Run, Step
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.clock import Clock


class ChangeStore(Protocol):
    """Where changes are kept (`ddtui.store.reconfigurations.Reconfigurations`); methods block."""

    def put(self, record: ChangeRecord) -> None:
        """Keep a record."""
        ...

    def step(self, record: ChangeRecord, step: StepRecord) -> None:
        """Keep a step and the record as it then is."""
        ...

    def history(
        self, host: str, *, simulated: bool = False, unit: str = "", most: int = 100
    ) -> list[ChangeRecord]:
        """The latest changes of a host, the newest first."""
        ...

    def unfinished(self, host: str, unit: str, *, simulated: bool = False) -> ChangeRecord | None:
        """The last change of a unit, if it has not ended."""
        ...

    def last_in_force(self, host: str, unit: str, *, simulated: bool = False) -> str | None:
        """The drop-in that was proved last."""
        ...


OnStep = Callable[[ChangeRecord, StepRecord], None]
"""Told of each step as it begins, and of words within one."""


class Journal:
    """Keeps a record current in the store, and tells a listener."""

    def __init__(
        self, record: ChangeRecord, store: ChangeStore, clock: Clock, on_step: OnStep | None
    ) -> None:
        self.record = record
        self._store = store
        self._clock = clock
        self._on_step = on_step

    async def step(self, step: Step, detail: str = "", **changes: Any) -> None:
        """Note a step that is about to be taken. The same one again, unchanged, is no news."""
        last = self.record.steps[-1] if self.record.steps else None
        if last is not None and last.step == step and last.detail == detail and not changes:
            return
        taken = StepRecord(step.value, self._clock(), detail)
        self.record = msgspec.structs.replace(
            self.record, **changes, steps=(*self.record.steps, taken)
        )
        await asyncio.to_thread(self._store.step, self.record, taken)
        if self._on_step is not None:
            self._on_step(self.record, taken)

    async def keep(self, **changes: Any) -> None:
        """Keep what has changed of the record."""
        self.record = msgspec.structs.replace(self.record, **changes)
        await asyncio.to_thread(self._store.put, self.record)

    async def remember(self, **state: Any) -> None:
        """Keep what is needed to carry on."""
        kept = {
            name: msgspec.to_builtins(value) if isinstance(value, Run | Baseline) else value
            for name, value in state.items()
        }
        await self.keep(state=msgspec.structs.replace(self.record.state, **kept))

    def say(self, words: str) -> None:
        """Tell the listener something within the present step; it is not kept."""
        if self._on_step is not None and self.record.steps:
            now = StepRecord(self.record.steps[-1].step, self._clock(), words)
            self._on_step(self.record, now)

    async def end(self, step: Step, detail: str = "", **changes: Any) -> None:
        """Note the end."""
        await self.step(step, detail, ending=step.value, ended=self._clock(), **changes)

    @property
    def run(self) -> Run | None:
        """The way through the steps that is under way."""
        kept = self.record.state.run
        return None if kept is None else msgspec.convert(kept, Run)

    @property
    def invocations(self) -> list[str]:
        """Of the unit before this change, as far as they are known."""
        return list(self.record.state.invocations)

    @property
    def baseline(self) -> Baseline | None:
        """What there was before the stop."""
        kept = self.record.state.baseline
        return None if kept is None else msgspec.convert(kept, Baseline)
