"""Measurements of every host: what benches gave, and which may be used again."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, RowMapping, Select, insert, select, update

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.store.database import failures, writing
from ddtui.store.experiments import end_in
from ddtui.store.queue_rows import locked, touch
from ddtui.store.tables import measurements as table

_COLUMNS = ("id", "host", "simulated", "unit", "configuration", "experiment", "began", "ended")
_log = logging.getLogger(__name__)


class Measurements:
    """The table of measurements. Methods block, and raise StoreError.

    Simulated and real ones never mix, whatever their host is called.
    """

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
        self._where = where

    def put(self, measurement: Measurement, *, who: str | None = None) -> None:
        """Keep a measurement, new or as it is now.

        `who`: the runner of its experiment. Then Stale is raised, and nothing kept, where that does
        not run any more or another runner has taken it over: one that slept must not write over
        what the next one has measured.
        """
        with self._writing("keep a measurement") as connection:
            if who is not None:
                locked(connection, measurement.experiment, {ExperimentState.RUNNING}, runner=who)
            _put(connection, measurement)

    def finish(
        self, experiment: Experiment, measurement: Measurement, *, who: str, at: float
    ) -> Experiment:
        """End a RUNNING experiment and keep its measurement, both or neither.

        Args:
            experiment: In the state that it ends in (done, failed, cancelled), as its runner has
                it: only what `experiments.RUNNERS_OWN` names is taken from it.
            measurement: COMPLETE for one that is done; whatever came for another one.
            who: The runner, as it claimed the experiment.
            at: Unix seconds.

        Returns the experiment as it is kept. Raises Stale where it does not run, or another runner
        has taken it over; then the measurement is not kept either.
        """
        with self._writing("keep a measurement") as connection:
            ended = msgspec.structs.replace(experiment, measurement=measurement.id)
            new = end_in(connection, ended, who=who, at=at)
            _put(connection, measurement)
        return new

    def get(self, measurement_id: str) -> Measurement | None:
        """The measurement with this id; None where there is none that can be read."""
        found = self._found(select(table).where(table.c.id == measurement_id))
        return found[0] if found else None

    def of_host(
        self,
        host: str,
        *,
        simulated: bool,
        unit: str = "",
        since: float | None = None,
        state: MeasurementState | None = None,
        most: int | None = None,
    ) -> list[Measurement]:
        """A host's measurements, the newest first.

        Args:
            host: The host's name.
            simulated: Whether it is the simulated one.
            unit: Only of this unit.
            since: Only those that began then or later; Unix seconds.
            state: Only those in this state.
            most: At most so many.
        """
        query = select(table).where(table.c.host == host, table.c.simulated == simulated)
        if unit:
            query = query.where(table.c.unit == unit)
        if since is not None:
            query = query.where(table.c.began >= since)
        if state is not None:
            query = query.where(table.c.state == state.value)
        return self._found(query.order_by(table.c.began.desc(), table.c.id).limit(most))

    def of_configuration(
        self, host: str, configuration: str, plan: BenchPlan, *, simulated: bool, unit: str = ""
    ) -> list[Measurement]:
        """Complete measurements that may be used again, the newest first.

        They are of the same host, the same configuration (by its key) and the same plan, however
        the plan is called. Whether versions, prompts and circumstances (`provenance`, `disturbed`)
        fit too is the caller's to judge. An empty key is no configuration: nothing is like it.
        """
        if not configuration:
            return []
        query = select(table).where(
            table.c.host == host,
            table.c.simulated == simulated,
            table.c.configuration == configuration,
            table.c.plan_key == plan_key(plan),
            table.c.state == MeasurementState.COMPLETE.value,
        )
        if unit:
            query = query.where(table.c.unit == unit)
        return self._found(query.order_by(table.c.began.desc(), table.c.id))

    def _found(self, query: Select[Any]) -> list[Measurement]:
        what = f"cannot read measurements from {self._where}"
        with failures(what), self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        return [found for row in rows if (found := _measurement(row)) is not None]

    @contextmanager
    def _writing(self, what: str) -> Iterator[Connection]:
        with failures(f"cannot {what} in {self._where}"), writing(self._engine) as writer:
            yield writer


def plan_key(plan: BenchPlan) -> str:
    """A key that is equal for plans that measure the same, however they are called.

    Only what differs from the defaults counts, so that a new option leaves old keys as they are.
    """
    default = msgspec.to_builtins(BenchPlan())
    # Through the types: 1 and 1.0 seconds are the same.
    plain = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(plan), BenchPlan))
    own = {name: plain[name] for name in plain if name != "name" and plain[name] != default[name]}
    return hashlib.sha256(msgspec.json.encode(own, order="sorted")).hexdigest()


def _put(connection: Connection, measurement: Measurement) -> None:
    touch(connection, measurement.host, measurement.simulated)
    row = {name: getattr(measurement, name) for name in _COLUMNS}
    row["plan_key"] = plan_key(measurement.plan)
    row["state"] = measurement.state.value
    row["record"] = msgspec.to_builtins(measurement)
    this = table.c.id == measurement.id
    if connection.execute(update(table).where(this).values(row)).rowcount == 0:
        connection.execute(insert(table).values(row))


def _measurement(row: RowMapping) -> Measurement | None:
    """One bad row costs that row, not the results."""
    try:
        return msgspec.convert(row["record"], Measurement)
    except msgspec.ValidationError as error:
        _log.warning("measurement %s of the store is unreadable and left out: %s", row["id"], error)
        return None
