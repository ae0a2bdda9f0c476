"""Earlier loads of a host, for the ETA of the next one: read from the store, and added to it.

Opening the database is slow beside a first figure on the screen, so it happens in the background.
Without a usable database everything else goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ddtui.core.host_state import HostState
from ddtui.core.load_history import LoadHistory
from ddtui.store import Store, StoreError

OPEN_AFTER = 1.0
"""Seconds before the store is opened: loading what it needs would hold up the first figures."""
LOOK_EVERY = 2.0
"""Seconds between two looks for a load that has become ready."""

log = logging.getLogger(__name__)


class PastLoads:
    """The loads of one host. `history` is filled once the store is open."""

    def __init__(self, host: str, *, simulated: bool) -> None:
        self.history = LoadHistory()
        self._host = host
        self._simulated = simulated

    async def keep(self, state: HostState, unit: Callable[[], str]) -> None:
        """Fill the history, then store each load of `state` that becomes ready, until cancelled.

        `unit` gives the name of the unit that is watched.
        """
        await asyncio.sleep(OPEN_AFTER)
        try:
            store = await asyncio.to_thread(Store.open)
        except StoreError as error:
            log.warning("going on without earlier loads: %s", error)
            return
        try:
            earlier = await asyncio.to_thread(
                store.loads.history, self._host, simulated=self._simulated
            )
            for record in earlier.records:
                self.history.add(record)
            while True:
                await asyncio.sleep(LOOK_EVERY)
                await self._store_finished(store, state, unit)
        except StoreError as error:
            log.warning("loads are no longer kept: %s", error)
        finally:
            store.close()

    async def _store_finished(
        self, store: Store, state: HostState, unit: Callable[[], str]
    ) -> None:
        for record in state.finished_loads():
            await asyncio.to_thread(
                store.loads.add, self._host, unit(), record, simulated=self._simulated
            )
            self.history.add(record)
            log.info("load of %s took %.0f s", record.model, record.seconds)
