"""What would be queued, shown while it is typed: a grid, and "the same with ... to match"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from ddtui.app.live import Watched
from ddtui.app.preset_source import presets_for
from ddtui.app.problems import problem_of
from ddtui.app.queue_asked import plan_of
from ddtui.app.queue_reader import QueueReader
from ddtui.app.queue_words import read_line
from ddtui.app.sweep_asked import sweep_asked
from ddtui.app.sweep_work import Asked
from ddtui.app.sweep_work import work_out as work_out_there
from ddtui.bench.errors import BadPrompts
from ddtui.bench.prompts import load_prompts
from ddtui.config.errors import ConfigError
from ddtui.config.load import Loaded
from ddtui.config.presets import merged
from ddtui.control.controller import Controller
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request, Value
from ddtui.experiments.grid import expand
from ddtui.experiments.matching_like import CannotMatch, choices, shapes
from ddtui.experiments.naming import retitled, shown
from ddtui.experiments.plan_known import knobs_known
from ddtui.experiments.worked import Worked
from ddtui.hosts.base import HostError
from ddtui.store import StoreError
from ddtui.ui.queue_source import GridView, LikeView
from ddtui.ui.source import ControlProblem

MOST_TYPED = 500
"""Combinations up to which a grid is expanded while it is typed."""


class Previews:
    """Works them out: without the host as they are typed, with it where that is asked for."""

    def __init__(
        self, source: Watched, control: Controller, loaded: Loaded, reader: QueueReader
    ) -> None:
        self._source = source
        self._control = control
        self._loaded = loaded
        self._reader = reader

    def grid(self, text: str) -> GridView:
        """See QueueSource."""
        kept = self._reader.kept
        try:
            sweep = sweep_asked(self._loaded, [text.strip()])
            if sweep.combinations > MOST_TYPED:
                return GridView(note=f"{sweep.combinations} combinations")
            presets = presets_for(self._loaded, self._source.name)
            values = self._reader.known.values(kept) if kept is not None else {}
            known = self._reader.known.circumstances(kept) if kept is not None else None
            return GridView(expansion=expand(sweep, presets.request, values, known))
        except ConfigError as error:
            return GridView(fault="\n".join(each.message for each in error.problems))

    async def work_out(
        self, text: str, *, reuse: bool, on_done: Callable[[int, int], None]
    ) -> Worked:
        """See QueueSource."""
        try:
            sweep = sweep_asked(self._loaded, [text.strip()])
            plan = plan_of(self._loaded, sweep)
            prompts = () if plan.command else await asyncio.to_thread(load_prompts, plan.prompts)
            asked = Asked(
                loaded=self._loaded,
                sweep=sweep,
                plan=plan,
                prompts=prompts,
                reuse=reuse,
                served=self._reader.known.served,
            )
            return await work_out_there(self._source, self._control, asked, on_done)
        except ConfigError as error:
            raise config_problem(error) from error
        except BadPrompts as error:
            raise ControlProblem(str(error), error.remedy) from error
        except (HostError, StoreError) as error:
            raise problem_of(error) from error

    def like(self, experiment_id: str, text: str) -> LikeView:
        """See QueueSource."""
        old = self._reader.find(experiment_id)
        try:
            typed = read_line(self._loaded, self._source.name, text, control=True)
        except ConfigError as error:
            return LikeView(fault=error.problems[0].message)
        if old is None:
            return LikeView(fault="it is not in the queue any more")
        view = LikeView(title=_title_like(old, typed.request))
        if "block_size" not in typed.request.knobs:
            return view
        in_force = self._in_force(old)
        known = (
            self._reader.known.circumstances(self._reader.kept)
            if self._reader.kept is not None
            else None
        )
        try:
            reference, block, _ = shapes(old.request, typed.request, in_force)
            found = choices(old, typed.request, in_force=in_force, known=known)
        except CannotMatch as error:
            return msgspec.structs.replace(view, note=str(error))
        titles = tuple(
            view.title
            if each.value is None
            else _title_like(old, merged(typed.request, Request(knobs={"budget": each.value})))
            for each in found
        )
        return msgspec.structs.replace(
            view,
            reference=reference,
            block_size=block,
            choices=found,
            titles=titles,
            control=typed.control,
        )

    def _in_force(self, old: Experiment) -> dict[str, Value]:
        """Values that an experiment leaves to the server: as measured, else as in force."""
        kept = self._reader.kept
        if kept is None:
            return {}
        values = self._reader.known.values(kept)
        measured = next((each for each in kept.measurements if each.id == old.measurement), None)
        return {**values, **knobs_known(old, kept.settings.in_force, measured)}


def _title_like(old: Experiment, over: Request) -> str:
    """The title of an experiment like another one, with values on top."""
    title = retitled(old.title, old.request, merged(old.request, over))
    return shown(msgspec.structs.replace(old, title=title)).title


def config_problem(error: ConfigError) -> ControlProblem:
    """Mistakes in a line, as the screens tell them."""
    return ControlProblem("\n".join(each.message for each in error.problems))
