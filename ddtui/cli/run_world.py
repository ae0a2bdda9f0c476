"""Puts together what runs and measures experiments: a watched host, its stores, bench and judge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from ddtui.app.live import Watched
from ddtui.app.reaching import Overrides
from ddtui.app.run_tools import around_for, patient_store
from ddtui.cli.context import Options, host_of
from ddtui.cli.look import live_host
from ddtui.config.hosts import Reach
from ddtui.core.snapshot import Snapshot
from ddtui.experiments.needs import Around
from ddtui.store import Store

if TYPE_CHECKING:
    from ddtui.control.reconfiguration import Limits

QUIET_DEMO = "idle"
"""What the simulated host does while it is measured, where no scenario is named: nothing else."""


class RunWorld(msgspec.Struct, frozen=True):
    """What a runner needs, and what verbs ask beside it."""

    source: Watched
    store: Store
    around: Around
    snapshot: Snapshot
    """The first one with enough in it."""


@asynccontextmanager
async def running_on(
    options: Options,
    name: str,
    overrides: Overrides,
    *,
    limits: Limits | None = None,
    limited_allowed: bool = False,
) -> AsyncIterator[RunWorld]:
    """A watched host of which enough is known, to run or to measure on.

    Raises ConfigError, HostError, StoreError.
    """
    loaded = options.load()
    target = host_of(loaded, name)
    if target.reach is Reach.DEMO and overrides.scenario is None:
        overrides = msgspec.structs.replace(overrides, scenario=QUIET_DEMO)
    store = await asyncio.to_thread(patient_store)
    try:
        async with live_host(target, overrides) as (source, snapshot):
            past = await asyncio.to_thread(
                store.loads.history, source.name, simulated=source.host.simulated
            )
            around = around_for(
                source, loaded, store, past, limits=limits, limited_allowed=limited_allowed
            )
            yield RunWorld(source, store, around, snapshot)
    finally:
        await asyncio.to_thread(store.close)
