"""Whether a screen can be drawn on: answers that were awaited may come late."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen


def built(screen: Screen[Any]) -> bool:
    """Whether its widgets are there.

    They are not before it is mounted. While it is taken away they go before its workers are
    cancelled (Textual 8.2.8: it stays `is_mounted`, but is not displayed any more).
    """
    return screen.is_mounted and bool(screen.display)
