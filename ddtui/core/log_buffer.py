"""The last lines of a journal, in memory, numbered so that a reader can ask for what is new."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ddtui.core.samples import JournalLine

CAPACITY = 20_000
"""Lines kept. Older ones are still in the host's journal."""


class LogBuffer:
    """A ring of journal lines. Line numbers start at 0 and never repeat."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._lines: deque[JournalLine] = deque(maxlen=capacity)
        self._total = 0
        self.suppressed = 0
        """Lines that journald dropped by its rate limit: the journal never had them."""

    def extend(self, lines: Iterable[JournalLine]) -> None:
        """Append lines, oldest first."""
        for line in lines:
            self._lines.append(line)
            self._total += 1

    @property
    def total(self) -> int:
        """Lines ever appended: the number that the next line will have."""
        return self._total

    @property
    def first(self) -> int:
        """Number of the oldest line still kept."""
        return self._total - len(self._lines)

    def since(self, number: int) -> Sequence[JournalLine]:
        """Lines from `number` on, oldest first; those no longer kept are skipped."""
        wanted = self._total - max(number, self.first)
        if wanted <= 0:
            return ()
        tail = []
        for line in reversed(self._lines):
            tail.append(line)
            if len(tail) == wanted:
                break
        tail.reverse()
        return tail

    def tail(self, count: int) -> Sequence[JournalLine]:
        """The last `count` lines, oldest first."""
        return self.since(max(self.first, self._total - count))
