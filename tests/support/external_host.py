"""A host on which an external bench says its lines by a schedule, until its link breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from ddtui.hosts.base import LinkDown, Program

Said = Sequence[tuple[float, bytes]]
"""(Seconds to wait, a line); an empty line stands for the end of the link."""


class ExternalHost:
    """Streams one schedule a run, the last one over and over."""

    def __init__(self, *runs: Said, live: Callable[[], bool] = lambda: True) -> None:
        self._runs = list(runs)
        self._live = live
        self.begun = 0

    @asynccontextmanager
    async def stream(self, _program: Program, *_args: str) -> AsyncIterator[Any]:
        """See Host."""
        said = self._runs.pop(0) if len(self._runs) > 1 else self._runs[0]
        self.begun += 1

        async def lines() -> AsyncIterator[bytes]:
            for seconds, line in said:
                await asyncio.sleep(seconds)
                if not line or not self._live():
                    raise LinkDown("the connection was lost")
                yield line

        yield SimpleNamespace(lines=lines, status=0, stderr_tail="")


def result(rate: float, concurrency: int = 4) -> bytes:
    """A line of results."""
    told = {"max_concurrency": concurrency, "completed": 9, "output_throughput": rate}
    return json.dumps({**told, "mean_tpot_ms": 10}).encode()
