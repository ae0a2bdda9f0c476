"""What the app needs of whoever watches a host, and what the operator may set of the screens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ddtui.core.engine import Engine
from ddtui.core.snapshot import Snapshot


class LiveSource(Protocol):
    """A watched host: it collects on its own, and gives the newest snapshot whenever asked."""

    name: str
    engine: Engine
    """Labels the lines of the log."""

    def snapshot(self, now: float) -> Snapshot:
        """What is known at `now` (Unix seconds, operator's clock). Cheap; never waits."""
        ...

    async def start(self) -> None:
        """Begin collecting in the background; returns without waiting for the host."""
        ...

    async def close(self) -> None:
        """End collecting and the connection."""
        ...

    def retry_now(self) -> None:
        """Try to connect at once instead of waiting for the backoff."""
        ...


class UiSettings(msgspec.Struct, frozen=True):
    """The operator's choices for the screens."""

    theme: str = ""
    """Name of a theme; empty for the built-in default."""
    keys: Mapping[str, object] = msgspec.field(default_factory=dict)
    """The `[keys]` table: keys by action id, for those that differ from the defaults."""
    paint_interval: float = 1.0
    """Seconds between two paints of changing figures. Changes of state are painted at once."""
    mouse: bool = True
    ascii: bool = False
    """Draw with ASCII only, for fonts without braille and box characters."""
