"""What `ddtui diagnose HOST` reads from a unit that never falls quiet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from ddtui.cli.diagnose_sources import LISTENED, _recent
from ddtui.hosts.base import Host
from tests.support.virtual_time import in_virtual_time


class Talking:
    """A host whose unit dies and is started again, and says so each second."""

    stderr_tail = ""
    status = None

    @asynccontextmanager
    async def stream(self, *_: object) -> AsyncIterator[Talking]:
        """See Host."""
        yield self

    async def lines(self) -> AsyncIterator[bytes]:
        """See ProgramStream."""
        while True:
            yield b"{}"
            await asyncio.sleep(1.0)


def test_a_unit_that_is_restarted_again_and_again_is_diagnosed_all_the_same() -> None:
    async def work() -> None:
        async with asyncio.timeout(10 * LISTENED):
            assert await _recent(cast(Host, Talking()), "system", "llm.service", 100)

    in_virtual_time(work())
