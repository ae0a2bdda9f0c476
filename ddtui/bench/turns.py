"""Keeps reads and garbage collection from delaying the time stamps of what comes meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Wakes one waiter in each turn of the event loop, in the order in which they were due.

    The loop reads the sockets once a turn. Streams in step end in the same turn; were all of their
    coroutines woken at once, nothing would be stamped until the last of them has read its answer.
    """

    def __init__(self) -> None:
        self._due: deque[asyncio.Future[None]] = deque()
        self._turning = False

    def wake(self, waiter: asyncio.Future[None]) -> None:
        """It is woken when those before it have been."""
        self._due.append(waiter)
        if not self._turning:
            self._turn()

    def _turn(self) -> None:
        self._turning = False
        while self._due and not self._turning:
            waiter = self._due.popleft()
            if not waiter.done():  # it may have been cancelled meanwhile
                waiter.set_result(None)
                self._turning = True
        if self._turning:
            asyncio.get_running_loop().call_soon(self._turn)
