"""Loads that became ready, by host."""

from __future__ import annotations

import logging

import msgspec
from sqlalchemy import Engine, and_, insert, select, update

from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.store.database import failures, writing
from ddtui.store.tables import loads

SIMULATED_HOST = "demo"
KEPT = 200
"""As many loads of a host are read: more teach nothing."""

_log = logging.getLogger(__name__)


class Loads:
    """The table of loads. Simulated and real ones never mix, whatever their host is called."""

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
        self._where = where

    def add(
        self, host_name: str, unit: str, record: LoadRecord, *, simulated: bool | None = None
    ) -> None:
        """Keep a load. One that is already kept is replaced, unless more was seen of it then.

        Raises:
            StoreError: It could not be written.
        """
        row = {
            "host": host_name,
            "simulated": _simulated(host_name, simulated),
            "unit": unit,
            "invocation": record.invocation or f"began {record.began:.3f}",
            "model": record.model,
            "tp": record.tp,
            "flags_signature": record.signature,
            "began": record.began,
            "seconds": record.seconds,
            "record": msgspec.to_builtins(record),
        }
        same = and_(
            *(loads.c[name] == row[name] for name in ("host", "simulated", "unit", "invocation"))
        )
        what = f"cannot keep the load of {record.model} in {self._where}"
        with failures(what), writing(self._engine) as connection:
            before = connection.execute(select(loads.c.id, loads.c.record).where(same)).first()
            if before is None:
                connection.execute(insert(loads).values(row))
            elif record.curve or not before.record.get("curve"):
                connection.execute(update(loads).where(loads.c.id == before.id).values(row))

    def history(self, host_name: str, *, simulated: bool | None = None) -> LoadHistory:
        """The latest loads on a host.

        Raises:
            StoreError: They could not be read.
        """
        query = (
            select(loads.c.id, loads.c.record)
            .where(loads.c.host == host_name, loads.c.simulated == _simulated(host_name, simulated))
            .order_by(loads.c.began.desc(), loads.c.id.desc())
            .limit(KEPT)
        )
        with (
            failures(f"cannot read earlier loads from {self._where}"),
            self._engine.connect() as connection,
        ):
            rows = connection.execute(query).all()
        return LoadHistory(
            record for row in rows if (record := _record(row.id, row.record)) is not None
        )


def _simulated(host_name: str, simulated: bool | None) -> bool:
    return host_name == SIMULATED_HOST if simulated is None else simulated


def _record(number: int, stored: object) -> LoadRecord | None:
    """One bad row costs that row, not the history."""
    try:
        return msgspec.convert(stored, LoadRecord)
    except msgspec.ValidationError as error:
        _log.warning("load %s of the store is unreadable and left out: %s", number, error)
        return None
