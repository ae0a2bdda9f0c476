"""A cache whose entries expire."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any


class TtlCache:
    """Keeps the entries that were used last, for a limited time."""

    def __init__(self, capacity: int, ttl: int) -> None:
        self.capacity, self.ttl = capacity, ttl
        self.entries: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def _expire(self, now: int) -> None:
        old = [key for key, (_, put) in self.entries.items() if now - put >= self.ttl]
        for key in old:
            del self.entries[key]

    def put(self, key: str, value: Any, now: int) -> None:
        """Store an entry, and drop the one used longest ago when there are too many."""
        self._expire(now)
        self.entries.pop(key, None)
        if self.capacity > 0:
            if len(self.entries) >= self.capacity:
                self.entries.popitem(last=False)
            self.entries[key] = (value, now)

    def get(self, key: str, now: int) -> Any:
        """Look an entry up."""
        self._expire(now)
        if key not in self.entries:
            return None
        self.entries.move_to_end(key)
        return self.entries[key][0]

    def size(self, now: int) -> int:
        """Count the entries that have not expired."""
        self._expire(now)
        return len(self.entries)
