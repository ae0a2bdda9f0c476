"""A host's queue in the hands of its runner, without halting the event loop for the store."""

from __future__ import annotations

import asyncio
from typing import Any, Unpack

import msgspec

from ddtui.core.experiment import Experiment, ExperimentState, QueueSettings, SettingsFields
from ddtui.experiments.needs import Around


class RunnersQueue:
    """What one runner asks of its host's queue, and writes as its own.

    All raise StoreError; those that write an experiment raise Stale where another runner has it.
    """

    def __init__(self, around: Around) -> None:
        self._around = around
        self._host = around.host.name
        self._simulated = around.host.simulated

    async def settings(self) -> QueueSettings:
        """What holds for the whole queue."""
        return await asyncio.to_thread(
            self._around.queue.settings, self._host, simulated=self._simulated
        )

    async def change_settings(self, **to: Unpack[SettingsFields]) -> None:
        """Set some of that."""
        await asyncio.to_thread(
            self._around.queue.change_settings, self._host, simulated=self._simulated, **to
        )

    async def version(self) -> int:
        """Grows with every change of it."""
        return await asyncio.to_thread(
            self._around.queue.version, self._host, simulated=self._simulated
        )

    async def experiments(self, *, cleared: bool = False) -> list[Experiment]:
        """All of them; `cleared` ones on request."""
        return await asyncio.to_thread(
            self._around.queue.queue, self._host, simulated=self._simulated, cleared=cleared
        )

    async def has_any(self, *states: ExperimentState) -> bool:
        """Whether something is in one of these states."""
        return await asyncio.to_thread(
            self._around.queue.has_any, self._host, states, simulated=self._simulated
        )

    async def ids(self, *states: ExperimentState) -> list[str]:
        """Of those in one of these states."""
        return [each.id for each in await self.experiments() if each.state in states]

    async def left_running(self) -> Experiment | None:
        """The one that a dead runner has left at some step; this runner's now."""
        queue, at = self._around.queue, self._around.watching.clock()
        left = await asyncio.to_thread(queue.running, self._host, simulated=self._simulated)
        if not left:
            return None
        return await asyncio.to_thread(queue.take_over, left[0].id, who=self._around.runner, at=at)

    async def next(self) -> Experiment | None:
        """The next one, this runner's now; None where none is pending, or the queue is paused."""
        return await asyncio.to_thread(
            self._around.queue.claim,
            self._host,
            simulated=self._simulated,
            who=self._around.runner,
            at=self._around.watching.clock(),
        )

    async def fail(self, experiment: Experiment, cause: dict[str, Any]) -> Experiment:
        """End it as failed."""
        around, at = self._around, self._around.watching.clock()
        failed = msgspec.structs.replace(experiment, state=ExperimentState.FAILED, cause=cause)
        return await asyncio.to_thread(around.queue.end, failed, who=around.runner, at=at)

    async def give_back(self, experiment: Experiment, why: str) -> None:
        """Make it pending again, as the next one."""
        around, at = self._around, self._around.watching.clock()
        await asyncio.to_thread(
            around.queue.give_back, experiment.id, who=around.runner, at=at, detail=why
        )
