"""Brings a configuration into force: compared with what there is, loaded only where it differs."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ddtui.control.controller import NotPossible
from ddtui.control.host_actions import RightMissing
from ddtui.control.journal import OnStep
from ddtui.control.lock import LockHeld
from ddtui.control.outcome import Asked
from ddtui.core.change_record import ChangeRecord
from ddtui.core.configuration_key import key_of
from ddtui.core.launch import Launch, Level, Plan, Request
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.experiments.needs import Around
from ddtui.experiments.running import Action, Facts, Standing, standing
from ddtui.hosts.base import HostError, LinkDown, LinkRefused, ProgramTimeout

LOOK_AGAIN = 0.25
"""Seconds between two looks at what is known; costs the host nothing."""
AGAIN_AFTER = 2.0
"""Seconds after which something that failed for a moment is tried again."""
ELSEWHERE_AGAIN = 5.0
"""Seconds between two tries while somebody else changes the unit."""
UNSEEN_PATIENCE = 900.0
"""Seconds for which nothing certain may be known of the engine while the link is up."""
DEGRADED_PATIENCE = 180.0
"""Seconds for which an engine that was ready may fail to answer."""
TRANSIENT = frozenset({"internal-port-taken"})
"""Causes of failed loads that say nothing of the configuration: the load is tried again."""

Note = Callable[..., Awaitable[None]]
"""Told the id of a change (`change=`) before it is begun, and its `plan`; None for a restart."""


class Bringing:
    """One configuration on its way into force. Made anew by whoever carries it on."""

    def __init__(
        self,
        around: Around,
        request: Request,
        base: Launch | None,
        *,
        patience: float,
        on_step: OnStep,
        say: Callable[[str], None],
        note: Note,
    ) -> None:
        """`base` is what the request is made on; `patience` how long a load may take, seconds."""
        self._around = around
        self._request = request
        self._base = base
        self._patience = patience
        self._on_step = on_step
        self._say = say
        self._note = note
        self.plan: Plan | None = None
        self.record: ChangeRecord | None = None
        """Of the change that was made for it, once that has ended."""
        self.change = ""
        """Id of that change."""
        self.loads = 0
        self.failure = ""
        self._blocked = ""
        self._differs = False
        self._planned = False
        self._waiting_since: float | None = None

    @property
    def configuration(self) -> str:
        """Key of the configuration; empty before it was planned."""
        return "" if self.plan is None else key_of(self.plan.after)

    async def facts(self) -> Facts:
        """How far it is. Raises HostError, StoreError."""
        control = self._around.control
        unfinished = await control.unfinished() is not None
        if self.change and self.record is None and not unfinished:
            self.record = next((each for each in await control.history(20)
                                if each.id == self.change and each.ending), None)  # fmt: skip
        snapshot = self._around.watching.snapshot()
        wanted = self.plan.after if self.plan is not None else None
        stands = standing(snapshot, wanted, self._around.watching.engine)
        return Facts(
            unfinished=unfinished,
            change="failed" if self._failed() else "",
            planned=self._planned,
            blocked=self._blocked,
            differs=self._differs,
            standing=stands,
            waited=self._waited(stands),
            patience=self._patience_for(stands, snapshot),
            loads=self.loads,
            failure=self.failure,
            cells_left=0,
        )

    def _failed(self) -> bool:
        record = self.record
        if record is None or record.ending not in {"failed", "degraded", "rolled back"}:
            return False
        return str((record.cause or {}).get("id", "")) not in TRANSIENT or self.loads > 1

    def _waited(self, stands: Standing) -> float:
        now = asyncio.get_running_loop().time()
        if stands not in {Standing.COMING, Standing.UNSEEN} or not self._around_live():
            self._waiting_since = None  # while the link is down nothing is waited for in vain
            return 0.0
        if self._waiting_since is None:
            self._waiting_since = now
        return now - self._waiting_since

    def _around_live(self) -> bool:
        return self._around.host.link.state is LinkState.LIVE

    def _patience_for(self, stands: Standing, snapshot: Snapshot) -> float:
        if stands is Standing.UNSEEN:
            return UNSEEN_PATIENCE
        if snapshot.readiness.state is ReadinessState.DEGRADED:
            return DEGRADED_PATIENCE
        return self._patience

    def compare_again(self) -> None:
        """Somebody else may have changed the unit: what comes next is to compare it."""
        self._planned = False

    async def act(self, action: Action) -> None:
        """Take one action.

        Raises NotPossible (the unit cannot be changed at all), RightMissing, LinkRefused,
        StoreError.
        """
        try:
            match action:
                case Action.RESUME:
                    await self._resume()
                case Action.PLAN:
                    await self._work_out()
                case Action.APPLY:
                    await self._load(action)
                case Action.RESTART:
                    # By another hand, the unit may be configured otherwise since it was compared:
                    # then a restart would only bring that up once more.
                    await self._work_out()
                    if not self._differs and not self._blocked:
                        await self._load(action)
                case _:
                    await asyncio.sleep(LOOK_AGAIN)
        except (LinkDown, ProgramTimeout) as error:
            self.failure = error.what
            self._say(f"waiting for the host: {error.what}")
            await asyncio.sleep(AGAIN_AFTER)
            await self._around.host.wait_live()
        except LockHeld as error:
            self._planned = False
            self._say(error.what)
            await asyncio.sleep(ELSEWHERE_AGAIN)

    async def _resume(self) -> None:
        self._planned = False
        try:
            record = await self._around.control.resume(self._on_step, asked=Asked())
        except NotPossible as error:  # it has ended meanwhile
            self.failure = error.what
            await asyncio.sleep(LOOK_AGAIN)
            return
        if record.id == self.change:
            self.record = record

    async def _work_out(self) -> None:
        plan = await self._around.control.plan(self._request, self._base)
        errors = [each.text for each in plan.findings if each.level is Level.ERROR]
        self.plan, self._planned = plan, True
        self._blocked = errors[0] if errors else ""
        self._differs = bool(plan.changes)

    async def _load(self, action: Action) -> None:
        control, plan = self._around.control, self.plan
        self.change, self.record = uuid.uuid4().hex, None
        await self._note(change=self.change, plan=plan if action is Action.APPLY else None)
        self.loads += 1
        try:
            if action is Action.APPLY and plan is not None:
                self.record = await control.apply(
                    plan, self._on_step, policy="never", asked=Asked(), change_id=self.change
                )
            else:
                self.record = await control.restart(
                    self._on_step, asked=Asked(), change_id=self.change
                )
        except NotPossible as error:
            # Changed by another hand since it was planned, or a change that must be ended first.
            self.failure, self._planned = error.what, False
            await asyncio.sleep(LOOK_AGAIN)
            return
        except (LinkDown, ProgramTimeout, LockHeld, RightMissing, LinkRefused):
            self.loads -= 1  # nothing was touched
            raise
        except HostError as error:
            self.failure, self._planned = error.what, False
            await asyncio.sleep(AGAIN_AFTER)
            return
        self.failure = str((self.record.cause or {}).get("title", ""))
        self._differs = False
        self._planned = self.record.ending == "in force"

    def cause(self, why: str) -> dict[str, Any]:
        """Why it is not in force: `title`, `evidence`, `remedy` where they are known."""
        if self._failed() and self.record is not None and self.record.cause:
            return dict(self.record.cause)
        findings = self.plan.findings if self.plan is not None else ()
        error = next((each for each in findings if each.level is Level.ERROR), None)
        if self._blocked and error is not None:
            return {"title": error.text, "evidence": [error.reason] if error.reason else [],
                    "remedy": error.remedy, "rule": error.rule}  # fmt: skip
        found = self._around.watching.snapshot().diagnosis
        cause = {"title": why} if found is None else msgspec.to_builtins(found) | {"seen": why}
        return dict(cause)
