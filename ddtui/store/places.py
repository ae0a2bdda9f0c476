"""Places in a queue: numbers of which only the order counts, so that a move writes one row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import Connection, select, update

from ddtui.core.experiment import WAITING, Place
from ddtui.store.errors import Stale
from ddtui.store.queue_rows import experiment_of
from ddtui.store.tables import experiments as table

ORDER = (table.c.position, table.c.created, table.c.id)
"""Total, also where two have one place."""


def between(low: float | None, high: float | None, count: int) -> list[float] | None:
    """`count` places between two others (None: there is no other); None where there is no room."""
    if low is None:
        low = 0.0 if high is None else high - count - 1.0
    if high is None:
        high = low + count + 1.0
    places = [low + (high - low) * n / (count + 1) for n in range(1, count + 1)]
    return places if all(a < b for a, b in pairwise([low, *places, high])) else None


def places_for(
    connection: Connection,
    host: str,
    simulated: bool,
    place: Place,
    *,
    count: int = 1,
    without: str = "",
) -> list[float]:
    """Numbers for `count` experiments at a place of the queue, which must be locked (`touch`).

    Where there is no room between two numbers, those that wait are numbered anew.

    Args:
        connection: A transaction that writes.
        host: The queue's host.
        simulated: Whether that is the simulated one.
        place: Where.
        count: How many.
        without: Id of an experiment that leaves its place for it.

    Raises:
        Stale: What it is to be before or after does not wait.
    """
    rows = connection.execute(
        select(table.c.id, table.c.position)
        .where(
            table.c.host == host,
            table.c.simulated == simulated,
            table.c.state.in_([each.value for each in WAITING]),
            table.c.id != without,
        )
        .order_by(*ORDER)
    ).all()
    ids = [row.id for row in rows]
    at = _index(connection, ids, place)
    low = rows[at - 1].position if at else None
    high = rows[at].position if at < len(rows) else None
    if (found := between(low, high, count)) is not None:
        return found
    for number, each in enumerate(ids, 1):
        new = float(number if number <= at else number + count)
        connection.execute(update(table).where(table.c.id == each).values(position=new))
    return [float(at + n) for n in range(1, count + 1)]


def _index(connection: Connection, ids: Sequence[str], place: Place) -> int:
    if place.where in {"first", "last"}:
        return 0 if place.where == "first" else len(ids)
    if place.of not in ids:
        row = connection.execute(select(table).where(table.c.id == place.of)).mappings().first()
        raise Stale(place.of, None if row is None else experiment_of(row))
    return ids.index(place.of) + (place.where == "after")
