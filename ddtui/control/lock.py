"""The lock of a unit, held on its host for as long as our channel lives."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ddtui.collect.settings import Scope
from ddtui.control.host_actions import ActionFailed
from ddtui.control.unit_programs import LOCK, LOCK_HOLDER
from ddtui.core.text import clean
from ddtui.hosts.base import Host, HostError, LinkDown

ANSWER_LIMIT = 20.0
"""Seconds for the host to say who has the lock."""


class LockHeld(HostError):
    """Another operator, or another ddtui, is changing the unit."""

    def __init__(self, holder: str) -> None:
        super().__init__(
            f"the unit is being changed by {holder}",
            "wait until that is done; the lock is freed when their ddtui ends",
        )
        self.holder = holder


class Lock:
    """A lock that is held; `lost` once its channel has ended."""

    def __init__(self, watch: asyncio.Task[None] | None) -> None:
        self._watch = watch

    def check(self) -> None:
        """Raise LinkDown when it is no longer held."""
        if self._watch is not None and self._watch.done():
            raise LinkDown("the lock on the host was lost")

    async def lost(self) -> None:
        """Return once it is no longer held."""
        if self._watch is not None:
            await asyncio.wait({self._watch})


def lock_key(scope: Scope, unit: str, uid: int) -> str:
    """The lock's name: one a unit, whoever asks; the units of a user's own manager are theirs."""
    name = unit if scope == "system" else f"user-{uid}-{unit}"
    if re.fullmatch(r"[A-Za-z0-9_.@:-]{1,180}", name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return re.sub(r"[^A-Za-z0-9_.@:-]", "_", name)[:160] + "-" + digest


@asynccontextmanager
async def locked(host: Host, key: str, token: str, text: str) -> AsyncIterator[Lock]:
    """Hold the lock within the context. Raises LockHeld, LinkDown, ActionFailed."""
    async with host.stream(LOCK, key, token, clean(text, 300)) as stream:
        lines = stream.lines()
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                said = (await anext(lines, b"")).decode("utf-8", "replace")
        except TimeoutError as error:
            raise ActionFailed("the host does not say who has the unit's lock") from error
        if said.startswith("@held "):
            raise LockHeld(clean(said.removeprefix("@held "), 300))
        if not said.startswith("@locked "):
            why = clean(said.removeprefix("@absent ") or stream.stderr_tail, 300)
            raise ActionFailed(f"the unit cannot be locked on the host: {why}")
        watch = asyncio.create_task(_until_end(lines), name="lock")
        try:
            yield Lock(watch)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)


async def _until_end(lines: AsyncIterator[bytes]) -> None:
    async for _ in lines:
        pass


async def lock_holder(host: Host, key: str) -> str:
    """Who holds the lock; empty for nobody."""
    answer = await host.run(LOCK_HOLDER, key)
    said = answer.stdout.decode("utf-8", "replace").strip()
    return clean(said.removeprefix("@held "), 300) if said.startswith("@held ") else ""
