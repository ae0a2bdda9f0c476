"""The controller as the screens see it: views of what goes on, questions, presets."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from ddtui.app.change_view import view_of
from ddtui.app.controllers import controller_for
from ddtui.app.live import Watched
from ddtui.app.preset_source import presets_for
from ddtui.app.problems import problem_of
from ddtui.config.errors import ConfigError
from ddtui.config.load import Loaded, load
from ddtui.config.preset_edit import save_preset
from ddtui.config.presets import PROJECT_FILE, Presets
from ddtui.control.controller import Controller
from ddtui.control.held import Remaining
from ddtui.control.journal import ChangeStore
from ddtui.control.outcome import Asked
from ddtui.control.simulated import is_anothers
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.engine import Engine
from ddtui.core.launch import Finding, Launch, Plan, Request
from ddtui.core.load_history import LoadHistory
from ddtui.core.local_time import in_local_time
from ddtui.engines.sglang.dialects import named
from ddtui.experiments.eta import load_estimate
from ddtui.experiments.naming import shown
from ddtui.experiments.presence import holder_of, presence_file
from ddtui.hosts.base import HostError
from ddtui.store import Store, StoreError
from ddtui.ui.source import (
    ControlProblem,
    PresetView,
    Question,
    ReconfigurationView,
    SavePlace,
)


class ControlOfHost:
    """A `ddtui.ui.source.ControlSource` over a controller."""

    def __init__(
        self,
        control: Controller,
        presets: Callable[[], Presets],
        loaded: Loaded,
        past: LoadHistory,
        engine: Engine,
        titles: Callable[[], dict[str, str]] = dict,
    ) -> None:
        """`titles` gives those of experiments by the change that was made for them; may block."""
        self._titles = titles
        self._control = control
        self._presets = presets
        self._loaded = loaded
        self._past = past
        self._engine = engine
        self._task: asyncio.Task[None] | None = None
        self._said = ""
        self._question: Question | None = None
        self._answer: asyncio.Future[bool] | None = None
        self._trouble: ControlProblem | None = None
        self._left: ChangeRecord | None = None
        self._shown: Plan | None = None
        """The rollback that was shown last: no other one is carried out."""
        self._holder = ""
        self._runner = ""
        """Another process, which changes a simulated host of its own: its lock is not seen."""
        self._records: list[ChangeRecord] = []
        self._experiments: dict[str, str] = {}
        self._history: tuple[ReconfigurationView, ...] | None = None
        """Views of the records, made when they are first asked for."""
        self.beside: Controller | None = None
        """Another one that changes the unit from here: that of a runner of experiments."""

    # ---- what is known -------------------------------------------------------------------------

    @property
    def controller(self) -> Controller:
        """What changes the unit for the screens."""
        return self._control

    @property
    def reconfiguration(self) -> ReconfigurationView | None:
        """See ControlSource."""
        theirs = self.beside.running if self.beside is not None else None
        if theirs is not None and theirs.steps and not theirs.ending:
            return view_of(theirs, "", None)
        record, left = self._control.running, self._left
        if record is not None and not record.steps:
            record = None
        if record is not None and self._is_at_work:
            return view_of(record, self._said, self._question)
        if record is not None and (left is None or left.id == record.id):
            # Another one may have carried it on to its end.
            known = [each for each in self._records if each.id == record.id]
            if done := next((each for each in (record, *known) if each.ending), None):
                newest = self._records[0] if known and self._records[0].ending else done
                return view_of(newest, "", None)
        # Not ended, and not carried on here: by another ddtui that has the lock, or by nobody.
        by, left = self._holder or self._runner, left or record
        return None if left is None else view_of(left, "", None, elsewhere=by)

    @property
    def _is_at_work(self) -> bool:
        """Whether a change is carried on here."""
        return self._task is not None and not self._task.done()

    @property
    def holder(self) -> str:
        """See ControlSource."""
        return self._holder

    @property
    def history(self) -> Sequence[ReconfigurationView]:
        """See ControlSource."""
        if self._history is None:
            names = self._experiments
            self._history = tuple(
                view_of(each, "", None, experiment=names.get(each.id, "")) for each in self._records
            )
        return self._history

    async def look(self) -> None:
        """See ControlSource."""
        with_us = self._is_at_work
        try:
            records = await self._control.history()
            if records != self._records:  # it is kept here: it can be read without the host
                self._experiments = await asyncio.to_thread(self._titles)
                self._records, self._history = records, None
            self._left, self._runner = None, ""
            if records and not records[0].ending and not with_us:
                # Known before the host is asked: it may let nobody in.
                self._runner = await asyncio.to_thread(_other_runner, records[0])
                if self._runner or not is_anothers(records[0]):
                    self._left = records[0]
            self._holder = "" if with_us else in_local_time(await self._control.holder())
        except (HostError, StoreError) as error:
            raise problem_of(error) from error

    # ---- presets -------------------------------------------------------------------------------

    def presets(self) -> Sequence[PresetView]:
        """See ControlSource."""
        try:
            found = self._presets()
        except ConfigError as error:
            raise ControlProblem("; ".join(map(str, error.problems))) from error
        return [
            PresetView(
                name,
                preset.table.description,
                preset.source,
                found.request(name),
                tuple(each.name for each in found.chain(name)[:-1]),
                preset.note,
            )
            for name, preset in found.by_name.items()
        ]

    def save_places(self) -> Sequence[SavePlace]:
        """See ControlSource."""
        return [
            SavePlace("user", f"your configuration ({self._loaded.path.file})"),
            SavePlace("project", f"{PROJECT_FILE} in this folder"),
        ]

    def save_preset(self, name: str, description: str, request: Request, place: str) -> str:
        """See ControlSource."""
        file = Path.cwd() / PROJECT_FILE if place == "project" else self._loaded.path.file
        try:
            save_preset(file, name, description, request)
        except ConfigError as error:
            raise ControlProblem("; ".join(map(str, error.problems))) from error
        return str(file)

    def expected_load(self, after: Launch) -> tuple[float | None, str]:
        """See ControlSource: the queue's figure for the very same load."""
        flags, models = self._engine.flags(after.argv), self._engine.models(after.argv)
        found = load_estimate(self._past, flags, models, self._records)
        return (None, "") if found is None else (found.seconds, found.source)

    # ---- changing ------------------------------------------------------------------------------

    async def plan(self, request: Request) -> Plan:
        """See ControlSource."""
        try:
            return await self._control.plan(request, rights=True)
        except (HostError, StoreError) as error:
            raise problem_of(error) from error

    async def rollback_plan(self) -> Plan:
        """See ControlSource."""
        try:
            plan = self._shown = await self._control.rollback_plan()
        except (HostError, StoreError) as error:
            raise problem_of(error) from error
        return msgspec.structs.replace(plan, changes=tuple(map(named, plan.changes)))

    async def against_restart(self) -> Sequence[Finding]:
        """See ControlSource."""
        try:
            return await self._control.against_restart()
        except (HostError, StoreError) as error:
            raise problem_of(error) from error

    def apply(self, plan: Plan) -> None:
        """See ControlSource."""
        self._begin(self._control.apply(plan, self._heard, policy="ask", asked=self._asked()))

    def rollback(self) -> None:
        """See ControlSource."""
        asked = self._asked()
        self._begin(self._control.rollback(self._heard, asked=asked, plan=self._shown))

    def restart(self) -> None:
        """See ControlSource."""
        self._begin(self._control.restart(self._heard, asked=self._asked()))

    def resume(self) -> None:
        """See ControlSource."""
        self._begin(self._control.resume(self._heard, asked=self._asked()))

    def answer(self, question: Question, *, yes: bool) -> None:
        """See ControlSource."""
        if self._question == question and self._answer is not None and not self._answer.done():
            self._answer.set_result(yes)

    def take_trouble(self) -> ControlProblem | None:
        """See ControlSource."""
        trouble, self._trouble = self._trouble, None
        return trouble

    async def close(self) -> None:
        """Stop carrying on; the host goes on with what it was told, and `resume` finds it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, ChangeRecord]) -> None:
        if self._is_at_work:
            work.close()
            self._trouble = ControlProblem("a change is under way already")
            return
        self._said, self._left = "", None
        self._task = asyncio.create_task(self._work(work), name="reconfiguration")

    async def _work(self, work: Coroutine[Any, Any, ChangeRecord]) -> None:
        try:
            await work
        except (HostError, StoreError) as error:
            self._trouble = problem_of(error)
        finally:
            self._question = self._answer = None

    def _heard(self, record: ChangeRecord, step: StepRecord) -> None:
        self._said = "" if record.steps and record.steps[-1] == step else step.detail

    def _asked(self) -> Asked:
        async def rollback(why: str) -> bool:
            return await self._ask("rollback", why)

        async def orphans(left: Remaining) -> bool:
            return await self._ask("orphans", left.text)

        return Asked(rollback, orphans)

    async def _ask(self, kind: Literal["rollback", "orphans"], text: str) -> bool:
        self._question = Question(uuid.uuid4().hex, kind, text)
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._question = self._answer = None


def _other_runner(record: ChangeRecord) -> str:
    """The process that carries a simulated host's change on, where that is another one."""
    if not record.simulated:
        return ""
    try:
        holder = holder_of(presence_file(record.host, simulated=True))
    except StoreError:
        return ""  # not to be read: nobody is known
    return "" if holder is None or holder.pid == os.getpid() else in_local_time(holder.words)


class _Changes:
    """The store of changes, opened when it is first needed: that would hold up the first screen."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._opening = threading.Lock()

    def _opened(self) -> Store:
        with self._opening:
            if self._store is None:
                self._store = Store.open()
        return self._store

    def _changes(self) -> ChangeStore:
        return self._opened().reconfigurations

    def put(self, record: ChangeRecord) -> None:
        self._changes().put(record)

    def step(self, record: ChangeRecord, step: StepRecord) -> None:
        self._changes().step(record, step)

    def history(
        self, host: str, *, simulated: bool = False, unit: str = "", most: int = 100
    ) -> list[ChangeRecord]:
        return self._changes().history(host, simulated=simulated, unit=unit, most=most)

    def unfinished(self, host: str, unit: str, *, simulated: bool = False) -> ChangeRecord | None:
        return self._changes().unfinished(host, unit, simulated=simulated)

    def last_in_force(self, host: str, unit: str, *, simulated: bool = False) -> str | None:
        return self._changes().last_in_force(host, unit, simulated=simulated)

    def titles(self, host: str, *, simulated: bool) -> dict[str, str]:
        """Titles of a host's experiments, by the change that was made for each."""
        found = self._opened().experiments.queue(host, simulated=simulated, cleared=True)
        return {each.change: shown(each).title for each in found if each.change}

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


@asynccontextmanager
async def screen_control(source: Watched, loaded: Loaded) -> AsyncIterator[ControlOfHost]:
    """What the screens change a host with, until the context is left."""
    changes = _Changes()
    control = ControlOfHost(
        controller_for(source, loaded, changes),
        lambda: presets_for(_read_again(loaded), source.name),
        loaded,
        source.past_loads,
        source.engine,
        lambda: changes.titles(source.name, simulated=source.host.simulated),
    )
    try:
        yield control
    finally:
        await control.close()
        await asyncio.to_thread(changes.close)


def _read_again(loaded: Loaded) -> Loaded:
    """The configuration as its file is now: presets may have been saved, or edited."""
    return load(loaded.path.file if loaded.path.required or loaded.exists else None)
