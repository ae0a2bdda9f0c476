"""Changes of simulated hosts: each process has one of its own, which ends with it."""

from __future__ import annotations

import time
import uuid

from ddtui.control.journal import ChangeStore
from ddtui.core.change_record import ChangeRecord, StepRecord

GONE = "its simulated host is gone"
NOTHING_CHANGED = (
    "nothing was changed on this simulated host; it lives as long as the command that starts it"
)
PROCESS = uuid.uuid4().hex
"""Kept with each change of a simulated host: which one it was."""
_LOADED = time.time()
"""Before this process can have changed anything. Unix seconds."""


def is_anothers(record: ChangeRecord) -> bool:
    """Whether its simulated host is that of another process: here it cannot be carried on."""
    if not record.simulated:
        return False
    made = record.state.process
    return record.began < _LOADED if made is None else made != PROCESS


class OfThisHost:
    """A store of changes, of which those of other simulated hosts are left out. Methods block."""

    def __init__(self, store: ChangeStore) -> None:
        self._store = store

    def put(self, record: ChangeRecord) -> None:
        """See ChangeStore."""
        self._store.put(record)

    def step(self, record: ChangeRecord, step: StepRecord) -> None:
        """See ChangeStore."""
        self._store.step(record, step)

    def history(
        self, host: str, *, simulated: bool = False, unit: str = "", most: int = 100
    ) -> list[ChangeRecord]:
        """See ChangeStore."""
        found = self._store.history(host, simulated=simulated, unit=unit, most=most)
        return [each for each in found if not is_anothers(each)]

    def unfinished(self, host: str, unit: str, *, simulated: bool = False) -> ChangeRecord | None:
        """See ChangeStore."""
        found = self._store.unfinished(host, unit, simulated=simulated)
        return None if found is None or is_anothers(found) else found

    def last_in_force(self, host: str, unit: str, *, simulated: bool = False) -> str | None:
        """See ChangeStore."""
        if not simulated:
            return self._store.last_in_force(host, unit)
        for record in self.history(host, simulated=True, unit=unit):
            if record.is_proved:
                return record.proved_drop_in
        return None
