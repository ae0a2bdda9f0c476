"""Reconfigurations and their steps, by host: the audit, and where an interrupted one goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
from sqlalchemy import Connection, Engine, RowMapping, Select, func, insert, select, update

from ddtui.core.change_record import PROVED_ENDINGS, ChangeRecord, StepRecord
from ddtui.store.database import failures, writing
from ddtui.store.tables import reconfiguration_steps as steps
from ddtui.store.tables import reconfigurations as table

_COLUMNS = (
    *("id", "kind", "host", "simulated", "unit", "who", "preset", "began", "ended", "ending"),
    *("drop_in", "drop_in_hash"),
)

# Steps are numbered as they are kept. Times only tell what has none: clocks can be set back.
_FIRST, _LAST = (
    func.coalesce(
        select(which(steps.c.id)).where(steps.c.reconfiguration == table.c.id).scalar_subquery(), 0
    )
    for which in (func.min, func.max)
)

_log = logging.getLogger(__name__)


class Reconfigurations:
    """The table of reconfigurations. Methods block, and raise StoreError."""

    def __init__(self, engine: Engine, where: str) -> None:
        self._engine = engine
        self._where = where

    def put(self, record: ChangeRecord) -> None:
        """Keep a record, new or changed; its steps are added by `step`."""
        with self._failures("keep a change"), writing(self._engine) as connection:
            _put(connection, record)

    def step(self, record: ChangeRecord, step: StepRecord) -> None:
        """Keep a step that is about to be taken, and the record as it then is: both or neither."""
        row = {"reconfiguration": record.id, **msgspec.structs.asdict(step)}
        with self._failures("keep a step"), writing(self._engine) as connection:
            _put(connection, record)
            connection.execute(insert(steps).values(row))

    def history(
        self, host: str, *, simulated: bool = False, unit: str = "", most: int = 100
    ) -> list[ChangeRecord]:
        """The latest changes of a host, the newest first, with their steps."""
        query = select(table).where(table.c.host == host, table.c.simulated == simulated)
        if unit:
            query = query.where(table.c.unit == unit)
        return self._records(query.order_by(_FIRST.desc(), table.c.began.desc()).limit(most))

    def unfinished(self, host: str, unit: str, *, simulated: bool = False) -> ChangeRecord | None:
        """The last change of a unit, if it has not ended."""
        found = self.history(host, simulated=simulated, unit=unit, most=1)
        return found[0] if found and not found[0].ending else None

    def last_in_force(self, host: str, unit: str, *, simulated: bool = False) -> str | None:
        """The drop-in of the unit that was proved last; None when none is known."""
        query = (
            select(table.c.record, table.c.drop_in)
            .where(
                table.c.host == host,
                table.c.simulated == simulated,
                table.c.unit == unit,
                table.c.ending.in_(PROVED_ENDINGS),
            )
            .order_by(_LAST.desc(), table.c.ended.desc())
            .limit(1)
        )
        with self._failures("read earlier changes"), self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        proved = row.record.get("state", {}).get("proved")
        return str(proved) if proved is not None else str(row.drop_in)

    def _records(self, query: Select[tuple[object, ...]]) -> list[ChangeRecord]:
        with self._failures("read earlier changes"), self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
            ids = [row["id"] for row in rows]
            taken = connection.execute(
                select(steps).where(steps.c.reconfiguration.in_(ids)).order_by(steps.c.id)
            ).mappings()
            by_id: dict[str, list[StepRecord]] = {}
            for row in taken:
                by_id.setdefault(row["reconfiguration"], []).append(
                    StepRecord(row["step"], row["at"], row["detail"])
                )
        found = (_record(row, by_id.get(row["id"], ())) for row in rows)
        return [record for record in found if record is not None]

    def _failures(self, what: str) -> AbstractContextManager[None]:
        return failures(f"cannot {what} in {self._where}")


def _put(connection: Connection, record: ChangeRecord) -> None:
    row = {name: getattr(record, name) for name in _COLUMNS}
    row["record"] = msgspec.to_builtins(msgspec.structs.replace(record, steps=()))
    this = table.c.id == record.id
    if connection.execute(update(table).where(this).values(row)).rowcount == 0:
        connection.execute(insert(table).values(row))


def _record(row: RowMapping, taken: Sequence[StepRecord]) -> ChangeRecord | None:
    """One bad row costs that row, not the history."""
    try:
        record = msgspec.convert(row["record"], ChangeRecord)
    except msgspec.ValidationError as error:
        _log.warning("change %s of the store is unreadable and left out: %s", row["id"], error)
        return None
    return msgspec.structs.replace(record, steps=tuple(taken))
