"""An event loop in which time passes only when nothing else is left to do: hours in a second."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(AssertionError):
    """Everything waits for something that nothing will bring about."""


class _Selector(selectors.SelectSelector):
    """Lets time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """What is ready now."""
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Stuck
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time begins at 0. Work for other threads is done at once, in this one."""

    def __init__(self) -> None:
        self._waiting = _Selector()
        super().__init__(self._waiting)

    def time(self) -> float:
        """Virtual seconds."""
        return self._waiting.now

    def run_in_executor(  # type: ignore[override]
        self, _executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Do it now."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
