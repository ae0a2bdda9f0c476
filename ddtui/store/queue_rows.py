"""What the queue's tables have in common: their rows, and the lock that orders who changes them.

Every transaction that changes something of a host begins with `touch`: it counts the change, and on
a database that lets several write at once it makes them wait for one another.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from ddtui.core.experiment import Experiment, ExperimentState, QueueEvent, QueueSettings
from ddtui.store.errors import Stale
from ddtui.store.tables import experiment_events as events
from ddtui.store.tables import experiments as table
from ddtui.store.tables import queues

_COLUMNS = ("id", "host", "simulated", "position", "state", "sweep", "cleared", "created", "ended")
_LONGEST_DETAIL = 2000
_log = logging.getLogger(__name__)


def touch(connection: Connection, host: str, simulated: bool) -> None:
    """Count a change of the host's queue or measurements, and be the only one to make it."""
    this = (queues.c.host == host, queues.c.simulated == simulated)
    count = update(queues).where(*this).values(version=queues.c.version + 1)
    if connection.execute(count).rowcount:
        return
    row = {"host": host, "simulated": simulated, "version": 1, "settings": {}}
    try:
        with connection.begin_nested():
            connection.execute(insert(queues).values(row))
    except IntegrityError:
        # Another process has begun the same queue in this very moment.
        connection.execute(count)


def version_of(connection: Connection, host: str, simulated: bool) -> int:
    """How many changes were counted; 0 for a queue that was never used."""
    this = (queues.c.host == host, queues.c.simulated == simulated)
    return connection.scalar(select(queues.c.version).where(*this)) or 0


def lock(connection: Connection, host: str, simulated: bool) -> None:
    """Be the only one to change the host's queue, without changing it yet."""
    this = (queues.c.host == host, queues.c.simulated == simulated)
    connection.execute(select(queues.c.version).where(*this).with_for_update())


def settings_of(connection: Connection, host: str, simulated: bool) -> QueueSettings:
    """What holds for a queue; the defaults for one that was never used, or cannot be read."""
    stored: Mapping[str, Any] | None = connection.scalar(
        select(queues.c.settings).where(queues.c.host == host, queues.c.simulated == simulated)
    )
    default = QueueSettings(host=host, simulated=simulated)
    try:
        return msgspec.convert({**msgspec.to_builtins(default), **(stored or {})}, QueueSettings)
    except (msgspec.ValidationError, TypeError) as error:
        _log.warning("the settings of the queue of %s are unreadable and left out: %s", host, error)
        return default


def experiment_of(row: RowMapping) -> Experiment | None:
    """One bad row costs that row, not the queue."""
    try:
        found = msgspec.convert(row["record"], Experiment)
    except msgspec.ValidationError as error:
        _log.warning("experiment %s of the store is unreadable and left out: %s", row["id"], error)
        return None
    return msgspec.structs.replace(found, position=row["position"])


def experiments_of(rows: Iterable[RowMapping]) -> list[Experiment]:
    """All that can be read."""
    return [found for row in rows if (found := experiment_of(row)) is not None]


def row_of(experiment: Experiment) -> dict[str, Any]:
    """The row that keeps an experiment."""
    row = {name: getattr(experiment, name) for name in _COLUMNS}
    row["state"] = experiment.state.value
    # The place has its own column only: others' places change without their records.
    return {**row, "record": msgspec.to_builtins(msgspec.structs.replace(experiment, position=0.0))}


def save(connection: Connection, experiment: Experiment) -> None:
    """Write an experiment that is known."""
    connection.execute(update(table).where(table.c.id == experiment.id).values(row_of(experiment)))


def locked(
    connection: Connection,
    experiment_id: str,
    states: Iterable[ExperimentState],
    runner: str | None = None,
) -> Experiment:
    """An experiment that is about to be changed, and that nobody else can change now.

    Args:
        connection: A transaction that writes.
        experiment_id: The experiment's id.
        states: What it must be.
        runner: Who must be running it; None for whoever.

    Raises:
        Stale: It is something else by now, or another runner's.
    """
    queue = connection.execute(
        select(table.c.host, table.c.simulated).where(table.c.id == experiment_id)
    ).first()
    if queue is None:
        raise Stale(experiment_id, None)
    touch(connection, queue.host, queue.simulated)
    row = connection.execute(select(table).where(table.c.id == experiment_id)).mappings().one()
    now = experiment_of(row)
    if now is None:
        raise Stale(experiment_id, None, "cannot be read")
    if now.state not in states:
        raise Stale(experiment_id, now)
    if runner is not None and now.runner != runner:
        raise Stale(experiment_id, now, f"is run by {now.runner}")
    return now


def write_events(connection: Connection, entries: Sequence[QueueEvent]) -> None:
    """Add to experiments' logs."""
    rows = [msgspec.structs.asdict(entry) for entry in entries]
    for row in rows:
        row["detail"] = row["detail"][:_LONGEST_DETAIL]
    if rows:
        connection.execute(insert(events), rows)
