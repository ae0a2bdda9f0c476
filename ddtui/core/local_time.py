"""Moments as the operator's machine tells them."""

from __future__ import annotations

import re
import time
from datetime import datetime

_UTC = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def moment(at: float) -> str:
    """Unix seconds as day and time of this machine: `2026-03-01 14:02:11`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def in_local_time(text: str) -> str:
    """A text in which others have noted moments in UTC (`2026-03-01T14:02:11Z`), in local time."""
    return _UTC.sub(lambda found: _local(found[0]), text)


def _local(utc: str) -> str:
    try:
        return moment(datetime.fromisoformat(utc).timestamp())
    except (ValueError, OverflowError, OSError):
        return utc  # looks like a time, and is none
