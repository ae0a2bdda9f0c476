"""Watching a host just long enough to report on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from ddtui.app.live import Watched, watched
from ddtui.app.reaching import Overrides
from ddtui.cli.first_contact import how_to_accept
from ddtui.cli.output import clean, say
from ddtui.config.hosts import HostTarget
from ddtui.core.samples import Collector, LinkState, SourceStatus
from ddtui.core.snapshot import ReadinessState, Snapshot, Verdict
from ddtui.hosts.base import HostKeyUnknown, LinkDown, LinkRefused

LOOK_FOR = 5.0
"""Seconds after which a report is made of what there is."""
SETTLE = 2.0
"""Seconds for what the sources say together, once each has said something, while not ready."""

_AWAITED = (
    Collector.UNIT,
    Collector.JOURNAL,
    Collector.ENGINE,
    Collector.SYSTEM,
    Collector.GPU,
    Collector.GPU_PROCESSES,
)


@asynccontextmanager
async def live_host(
    target: HostTarget, overrides: Overrides
) -> AsyncIterator[tuple[Watched, Snapshot]]:
    """A host that answers, watched within the context, and what is known of it so far.

    Raises ConfigError, LinkRefused, LinkDown.
    """
    source = await watched(target, overrides)
    try:
        await source.start()
        snapshot = await collected(source)
        link = snapshot.link
        if link.state is not LinkState.LIVE:
            kind = LinkRefused if link.state is LinkState.REFUSED else LinkDown
            raise kind(link.detail or f"{target.name} cannot be reached", link.remedy)
        yield source, snapshot
    finally:
        await source.close()


async def collected(source: Watched, wait: float = 0.0) -> Snapshot:
    """The snapshot once there is enough of it, or time is up."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    spoken_at: float | None = None
    told_before = ""
    while True:
        snapshot = source.snapshot_now()
        passed = loop.time() - began
        ready = snapshot.readiness.state is ReadinessState.READY
        if snapshot.link.state is LinkState.REFUSED:
            return await _with_remedy(source, snapshot)
        if snapshot.link.state is LinkState.RETRYING and passed >= wait:
            return snapshot
        if spoken_at is None and has_spoken(snapshot):
            spoken_at = passed
        complete = spoken_at is not None and (
            _has_proof(snapshot) if ready else passed - spoken_at >= SETTLE
        )
        out_of_time = passed >= LOOK_FOR
        if (complete or out_of_time) and (ready or passed >= wait):
            return snapshot
        if wait and (complete or out_of_time) and snapshot.readiness.summary != told_before:
            told_before = snapshot.readiness.summary
            say(f"{passed:4.0f} s  {clean(told_before)}")
        await asyncio.sleep(0.1)


async def _with_remedy(source: Watched, snapshot: Snapshot) -> Snapshot:
    """With how an unknown host key is accepted: nobody is asked here."""
    try:
        await source.host.wait_live()
    except HostKeyUnknown:
        link = replace(snapshot.link, remedy=how_to_accept(source.host))
        return replace(snapshot, link=link)
    except LinkRefused:  # the snapshot tells why
        return snapshot
    return source.snapshot_now()


def has_spoken(snapshot: Snapshot) -> bool:
    """Whether every source has said something: figures, or that it has none."""
    return snapshot.link.state is LinkState.LIVE and all(
        source is not None and source.status is not SourceStatus.STARTING
        for source in map(snapshot.sources.get, _AWAITED)
    )


def _has_proof(snapshot: Snapshot) -> bool:
    """Whether readiness and figures are as complete as they become."""
    evidence = snapshot.readiness.evidence
    known = all(each.verdict is not Verdict.MISSING for each in evidence)
    return known and (snapshot.engine.idle or snapshot.engine.throughput is not None)
