"""All that the store knows of a host: its queue, what was measured, what was loaded and changed."""

from __future__ import annotations

import msgspec

from ddtui.core.change_record import ChangeRecord
from ddtui.core.experiment import ENDED, Experiment, QueueSettings
from ddtui.core.load_history import LoadHistory
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.store import Store

MOST_MEASUREMENTS = 500
MOST_CHANGES = 20


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """As it was read."""

    version: int
    experiments: list[Experiment]
    """With their secrets: to be planned with, and never shown."""
    settings: QueueSettings
    measurements: list[Measurement]
    """The newest first; whole ones, and those that ended early."""
    loads: LoadHistory
    changes: list[ChangeRecord]
    """The newest first."""

    @property
    def going_on(self) -> list[Experiment]:
        """What runs and what waits, in its order."""
        return [each for each in self.experiments if each.state not in ENDED]

    @property
    def complete(self) -> list[Measurement]:
        """Those that are whole."""
        return [each for each in self.measurements if each.state is MeasurementState.COMPLETE]


def read_kept(store: Store, host: str, *, simulated: bool) -> Kept:
    """All of it. Blocks; raises StoreError."""
    queue = store.experiments
    # The version first: what changes in between makes it look old, never new.
    version = queue.version(host, simulated=simulated)
    changes = store.reconfigurations.history(host, simulated=simulated, most=MOST_CHANGES)
    return Kept(
        version=version,
        experiments=queue.queue(host, simulated=simulated),
        settings=queue.settings(host, simulated=simulated),
        measurements=store.measurements.of_host(host, simulated=simulated, most=MOST_MEASUREMENTS),
        loads=store.loads.history(host, simulated=simulated),
        changes=changes,
    )
