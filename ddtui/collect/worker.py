"""One thread for calls that block. One that never returns does not keep the program from ending."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

T = TypeVar("T")
_Job = tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]


class Worker:
    """Runs calls one after another in a daemon thread."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"ddtui {name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.put(None)

    async def call(self, function: Callable[[], T]) -> T:
        """What `function` gives or raises; waits for earlier calls."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((function, future, loop))
        return await future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future, loop = job
            if future.cancelled():
                continue
            try:
                result, error = function(), None
            except Exception as exc:  # handed to the caller
                result, error = None, exc
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():  # nobody waits any more
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
