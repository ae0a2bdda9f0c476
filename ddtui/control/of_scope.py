"""Changes of one service manager's units: a user's own may have a unit of the same name."""

from __future__ import annotations

from ddtui.collect.settings import Scope
from ddtui.control.journal import ChangeStore
from ddtui.core.change_record import ChangeRecord, StepRecord


class OfScope:
    """A store of changes, of which those of the other manager's units are left out.

    Methods block.
    """

    def __init__(self, store: ChangeStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope

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
        return [each for each in found if each.scope == self._scope]

    def unfinished(self, host: str, unit: str, *, simulated: bool = False) -> ChangeRecord | None:
        """See ChangeStore."""
        last = self._store.history(host, simulated=simulated, unit=unit, most=1)
        if not last or last[0].scope == self._scope:
            return self._store.unfinished(host, unit, simulated=simulated)
        own = self.history(host, simulated=simulated, unit=unit)
        return own[0] if own and not own[0].ending else None

    def last_in_force(self, host: str, unit: str, *, simulated: bool = False) -> str | None:
        """See ChangeStore."""
        known = self._store.history(host, simulated=simulated, unit=unit)
        if all(each.scope == self._scope for each in known):
            return self._store.last_in_force(host, unit, simulated=simulated)
        proved = (each for each in known if each.scope == self._scope and each.is_proved)
        found = next(proved, None)
        return None if found is None else found.proved_drop_in
