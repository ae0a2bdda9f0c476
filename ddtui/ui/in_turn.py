"""Keys one after another: each is handled in full before the next one is looked at.

Textual (8.2.8) hands a key to whatever has the focus when the key comes out of the app's queue, and
runs its binding several queues later. What is typed right after a key that opens a prompt, a list
or the palette would go to the screen below it: as actions, not as text. So keys and pastes wait
here until the one before them has done all that it does, the new focus included.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from textual import events
from textual.app import App
from textual.message_pump import MessagePump

PATIENCE = 0.5
"""Seconds after which a key is no longer waited for: keys never go deaf."""
_MOST_LAPS = 12
"""Rounds through the queues after which one that is never empty is no longer waited for."""

Typed = events.Key | events.Paste


class InTurn:
    """Passes on what is typed, one after another.

    To know when a key is done, a mark follows its way through the queues: from the focus up to the
    app, again and again until it has found nothing before it, and the same focus as before.
    """

    def __init__(self, app: App[Any], pass_on: Callable[[Typed], Awaitable[None]]) -> None:
        """`pass_on` does with one event what Textual does with it."""
        self._app = app
        self._pass_on = pass_on
        self._waiting: deque[Typed] = deque()
        self._turn = 0
        self._patience: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether something that was typed is not done yet."""
        return bool(self._waiting)

    async def take(self, event: Typed) -> None:
        """Pass an event on now, or when those before it are done."""
        self._waiting.append(event)
        if len(self._waiting) == 1:
            await self._begin()

    async def _begin(self) -> None:
        self._turn += 1
        start, turn = self._at, self._turn
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(PATIENCE, self._app.call_later, self._end, turn)
        await self._pass_on(self._waiting[0])
        self._follow(start, _Lap(turn, start))

    async def _end(self, turn: int) -> None:
        if turn != self._turn or not self._waiting:
            return  # it ended before its patience did
        if self._patience is not None:
            self._patience.cancel()
        self._waiting.popleft()
        if self._waiting:
            await self._begin()

    @property
    def _at(self) -> MessagePump:
        """Where a key would go now."""
        stack = self._app.screen_stack
        return self._app.focused or (stack[-1] if stack else self._app)

    # ---- the mark ---------------------------------------------------------------------------

    def _follow(self, pump: MessagePump, lap: _Lap) -> None:
        """Queue the mark with a pump, or with the next one that still takes anything."""
        if pump is self._app:
            self._app.call_later(self._around, lap)
        elif not pump.call_later(self._pass_by, pump, lap):
            self._follow(pump._parent or self._app, lap)

    def _pass_by(self, pump: MessagePump, lap: _Lap) -> None:
        lap.quiet = lap.quiet and not pump.message_queue_size
        self._follow(pump._parent or self._app, lap)

    async def _around(self, lap: _Lap) -> None:
        if lap.turn != self._turn:
            return
        quiet = lap.quiet and not self._app.message_queue_size and self._at is lap.start
        if (quiet and lap.number) or lap.number >= _MOST_LAPS:
            await self._end(lap.turn)
        else:
            start = self._at
            self._follow(start, _Lap(lap.turn, start, lap.number + 1))


class _Lap:
    """One round of the mark from the focus to the app."""

    def __init__(self, turn: int, start: MessagePump, number: int = 0) -> None:
        self.turn = turn
        self.start = start
        self.number = number
        self.quiet = True
        """Whether nothing else was found in the queues."""
