"""Experiments of every host's queue: their order, their states, their logs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

import msgspec
from sqlalchemy import Connection, Engine, case, insert, select, update

from ddtui.core.experiment import (
    ENDED,
    WAITING,
    Experiment,
    ExperimentState,
    Place,
    QueueEvent,
    QueueSettings,
    SettingsFields,
    Step,
    StepFields,
)
from ddtui.store.database import failures, writing
from ddtui.store.places import ORDER, places_for
from ddtui.store.queue_rows import (
    experiment_of,
    experiments_of,
    lock,
    locked,
    row_of,
    save,
    settings_of,
    touch,
    version_of,
    write_events,
)
from ddtui.store.tables import experiment_events as events
from ddtui.store.tables import experiments as table
from ddtui.store.tables import queues

RUNNERS_OWN = (
    *("state", "configuration", "knobs", "change", "measurement", "reused", "reloaded"),
    *("cause", "ended"),
)
"""What a runner says of an experiment when it ends. The rest may have been edited meanwhile."""
_RUNNING = frozenset({ExperimentState.RUNNING})
_LAST = Place()


class Experiments:
    """The queues. Methods block, and raise StoreError; those that change one raise Stale.

    Times (`at`) are Unix seconds, `who` is user@machine. A change is one transaction: it is made
    whole or not at all, and others see all of it or nothing. `simulated` experiments never mix with
    real ones, whatever their host is called.
    """

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
        self._where = where

    # ---- reading --------------------------------------------------------------------------------

    def version(self, host: str, *, simulated: bool) -> int:
        """A number that grows with every change of the host's queue, settings or measurements."""
        with self._reading("the queue") as connection:
            return version_of(connection, host, simulated)

    def get(self, experiment_id: str) -> Experiment | None:
        """The experiment with this id; None where there is none that can be read."""
        with self._reading("an experiment") as connection:
            row = (
                connection.execute(select(table).where(table.c.id == experiment_id))
                .mappings()
                .first()
            )
        return None if row is None else experiment_of(row)

    def queue(self, host: str, *, simulated: bool, cleared: bool = False) -> list[Experiment]:
        """A host's queue: what runs, then what waits in its order, then what ended, as it ended.

        Args:
            host: The host's name.
            simulated: Whether it is the simulated one.
            cleared: Whether to give those too that were cleared.
        """
        query = select(table).where(table.c.host == host, table.c.simulated == simulated)
        if not cleared:
            query = query.where(table.c.cleared.is_(False))
        ended = [each.value for each in ENDED]
        group = case((table.c.state == "running", 0), (table.c.state.in_(ended), 2), else_=1)
        when = case((table.c.state.in_(ended), table.c.ended), else_=0.0)
        with self._reading("the queue") as connection:
            rows = connection.execute(query.order_by(group, when, *ORDER)).mappings().all()
        # Times only tell apart what an older ddtui ended: clocks can be set back.
        return sorted(experiments_of(rows), key=lambda each: each.ended_as)

    def running(self, host: str, *, simulated: bool) -> list[Experiment]:
        """What runs, or was left running by a runner that died. At most one where all is well."""
        return self._some(host, simulated, table.c.state == ExperimentState.RUNNING.value)

    def has_any(self, host: str, states: Iterable[ExperimentState], *, simulated: bool) -> bool:
        """Whether the queue has something in one of these states that can be read.

        However long the queue is, this reads little of it.
        """
        query = select(table).where(
            table.c.host == host,
            table.c.simulated == simulated,
            table.c.cleared.is_(False),
            table.c.state.in_([each.value for each in states]),
        )
        with self._reading("the queue") as connection, connection.execute(query) as rows:
            return any(experiment_of(row) is not None for row in rows.mappings())

    def beginning(self, prefix: str, host: str, *, simulated: bool) -> list[Experiment]:
        """The host's experiments whose ids begin like this, cleared ones too."""
        return self._some(host, simulated, table.c.id.startswith(prefix, autoescape=True))

    def _some(self, host: str, simulated: bool, condition: Any) -> list[Experiment]:
        query = select(table).where(table.c.host == host, table.c.simulated == simulated, condition)
        with self._reading("the queue") as connection:
            rows = connection.execute(query.order_by(*ORDER)).mappings().all()
        return experiments_of(rows)

    def log(self, experiment_id: str) -> list[QueueEvent]:
        """What was done to an experiment, and which steps were begun, the oldest first."""
        names = (events.c.experiment, events.c.at, events.c.who, events.c.what, events.c.detail)
        query = select(*names).where(events.c.experiment == experiment_id).order_by(events.c.id)
        with self._reading("an experiment's log") as connection:
            return [QueueEvent(*row) for row in connection.execute(query)]

    # ---- operators ------------------------------------------------------------------------------

    def put(self, new: Sequence[Experiment], place: Place = _LAST) -> list[Experiment]:
        """Keep new experiments of one host, at a place of its queue and in this order; all or none.

        Returns them with their positions. Raises Stale where `place` names one that does not wait.
        """
        if not new:
            return []
        host, simulated = new[0].host, new[0].simulated
        with self._writing("keep an experiment") as connection:
            touch(connection, host, simulated)
            places = places_for(connection, host, simulated, place, count=len(new))
            kept = [
                msgspec.structs.replace(each, host=host, simulated=simulated, position=position)
                for each, position in zip(new, places, strict=True)
            ]
            connection.execute(insert(table), [row_of(each) for each in kept])
            added = [QueueEvent(each.id, each.created, each.by, "added") for each in kept]
            write_events(connection, added)
        return kept

    def change(
        self,
        experiment_id: str,
        states: Iterable[ExperimentState],
        event: QueueEvent | None = None,
        **to: Any,
    ) -> Experiment:
        """Set fields of an experiment that is in one of `states`, and log `event`.

        Returns it as it is then. Raises Stale.
        """
        return self.revise(
            experiment_id, states, lambda now: msgspec.structs.replace(now, **to), event
        )

    def revise(
        self,
        experiment_id: str,
        states: Iterable[ExperimentState],
        how: Callable[[Experiment], Experiment],
        event: QueueEvent | None = None,
        place: Place | None = None,
    ) -> Experiment:
        """Like `change`, for changes that follow from how it is now; `how` must only compute.

        `place`: where to put it. Raises Stale, and whatever `how` raises: then nothing is changed.
        """
        with self._writing("change an experiment") as connection:
            now = locked(connection, experiment_id, states)
            new = how(now)
            if place is not None and place.of != experiment_id:
                position = places_for(
                    connection, now.host, now.simulated, place, without=experiment_id
                )[0]
                new = msgspec.structs.replace(new, position=position)
            if (new.state in ENDED) != (now.state in ENDED):
                number = version_of(connection, now.host, now.simulated)
                new = msgspec.structs.replace(new, ended_as=number if new.state in ENDED else 0)
            save(connection, new)
            write_events(connection, [] if event is None else [event])
        return new

    def move(self, experiment_id: str, place: Place, event: QueueEvent | None = None) -> Experiment:
        """Put an experiment that waits to another place. Raises Stale, also for `place.of`."""
        return self.revise(experiment_id, WAITING, lambda now: now, event, place)

    def clear(
        self, host: str, *, simulated: bool, who: str, at: float, only: Collection[str] | None
    ) -> list[Experiment]:
        """Take ended experiments off the queue's list: all, or those with the ids in `only`."""
        query = select(table).where(
            table.c.host == host,
            table.c.simulated == simulated,
            table.c.state.in_([each.value for each in ENDED]),
            table.c.cleared.is_(False),
        )
        with self._writing("clear the queue") as connection:
            lock(connection, host, simulated)
            found = experiments_of(connection.execute(query.order_by(*ORDER)).mappings())
            new = [
                msgspec.structs.replace(each, cleared=True)
                for each in found
                if only is None or each.id in only
            ]
            if new:
                touch(connection, host, simulated)
            for each in new:
                save(connection, each)
            write_events(connection, [QueueEvent(each.id, at, who, "cleared") for each in new])
        return new

    # ---- runners --------------------------------------------------------------------------------

    def claim(self, host: str, *, simulated: bool, who: str, at: float) -> Experiment | None:
        """Make the next pending experiment RUNNING, as the runner `who`'s; its attempts grow by 1.

        None where nothing is pending, or the queue is paused. Two runners never get the same one.
        `who` names this runner and no other: later calls of another one raise Stale.
        """
        query = select(table).where(
            table.c.host == host,
            table.c.simulated == simulated,
            table.c.state == ExperimentState.PENDING.value,
        )
        with self._writing("take up an experiment") as connection:
            lock(connection, host, simulated)
            rows = connection.execute(query.order_by(*ORDER)).mappings()
            found = next((each for row in rows if (each := experiment_of(row)) is not None), None)
            if found is None or settings_of(connection, host, simulated).paused:
                return None
            touch(connection, host, simulated)
            taken = msgspec.structs.replace(
                found,
                state=ExperimentState.RUNNING,
                step="",
                runner=who,
                began=at,
                ended=None,
                attempts=found.attempts + 1,
                cancel=False,
                cause=None,
            )
            save(connection, taken)
            write_events(connection, [QueueEvent(taken.id, at, who, "taken up")])
        return taken

    def take_over(self, experiment_id: str, *, who: str, at: float) -> Experiment:
        """Go on with a RUNNING experiment whose runner is gone, at the step that it has reached.

        From then on the old runner's calls raise Stale. Raises Stale where it does not run.
        """
        event = QueueEvent(experiment_id, at, who, "taken over")
        return self.change(experiment_id, _RUNNING, event, runner=who)

    def step(
        self,
        experiment_id: str,
        step: Step,
        *,
        who: str,
        at: float,
        detail: str = "",
        **to: Unpack[StepFields],
    ) -> Experiment:
        """Write down a step that is about to be taken, and set fields with it.

        Returns the experiment as it is then: `cancel` says that somebody wants it ended. Raises
        Stale where it does not run, or another runner has taken it over.
        """
        with self._writing("keep a step") as connection:
            now = locked(connection, experiment_id, _RUNNING, runner=who)
            new = msgspec.structs.replace(now, step=step, **to)
            save(connection, new)
            write_events(connection, [QueueEvent(experiment_id, at, who, step, detail)])
        return new

    def give_back(self, experiment_id: str, *, who: str, at: float, detail: str = "") -> Experiment:
        """Make a RUNNING experiment pending again, before all that waits.

        It may be loaded, and some of it measured: whatever came first would undo that. Raises Stale
        as `step` does.
        """
        with self._writing("give back an experiment") as connection:
            now = locked(connection, experiment_id, _RUNNING, runner=who)
            first = places_for(
                connection, now.host, now.simulated, Place("first"), without=experiment_id
            )[0]
            new = msgspec.structs.replace(
                now,
                state=ExperimentState.PENDING,
                step="",
                runner="",
                began=None,
                position=first,
            )
            save(connection, new)
            write_events(connection, [QueueEvent(experiment_id, at, who, "given back", detail)])
        return new

    def end(self, experiment: Experiment, *, who: str, at: float) -> Experiment:
        """End a RUNNING experiment: `experiment.state` is done, failed or cancelled.

        Only what RUNNERS_OWN names is taken from `experiment`. Raises Stale as `step` does. With a
        measurement use `store.measurements.finish`.
        """
        with self._writing("end an experiment") as connection:
            return end_in(connection, experiment, who=who, at=at)

    # ---- settings -------------------------------------------------------------------------------

    def settings(self, host: str, *, simulated: bool) -> QueueSettings:
        """What holds for a host's queue."""
        with self._reading("the queue") as connection:
            return settings_of(connection, host, simulated)

    def change_settings(
        self, host: str, *, simulated: bool, **to: Unpack[SettingsFields]
    ) -> QueueSettings:
        """Set some of a queue's settings (`leave`, `paused`, `baseline`), and return all."""
        with self._writing("change a queue's settings") as connection:
            touch(connection, host, simulated)
            new = msgspec.structs.replace(settings_of(connection, host, simulated), **to)
            connection.execute(
                update(queues)
                .where(queues.c.host == host, queues.c.simulated == simulated)
                .values(settings=msgspec.to_builtins(new))
            )
        return new

    @contextmanager
    def _reading(self, what: str) -> Iterator[Connection]:
        with failures(f"cannot read {what} from {self._where}"), self._engine.connect() as reader:
            yield reader

    @contextmanager
    def _writing(self, what: str) -> Iterator[Connection]:
        with failures(f"cannot {what} in {self._where}"), writing(self._engine) as writer:
            yield writer


def end_in(connection: Connection, experiment: Experiment, *, who: str, at: float) -> Experiment:
    """End a RUNNING experiment in a transaction that writes; see `Experiments.end`."""
    if experiment.state not in ENDED:
        raise ValueError(f"an experiment does not end {experiment.state}")
    now = locked(connection, experiment.id, _RUNNING, runner=who)
    own = {name: getattr(experiment, name) for name in RUNNERS_OWN}
    own["ended"] = at if experiment.ended is None else experiment.ended
    number = version_of(connection, now.host, now.simulated)
    new = msgspec.structs.replace(now, step="", cancel=False, ended_as=number, **own)
    save(connection, new)
    detail = "" if new.cause is None else str(new.cause.get("title", ""))
    write_events(connection, [QueueEvent(new.id, at, who, new.state.value, detail)])
    return new
