"""Changes of simulated hosts: each process has one of its own, which ends with it."""

from __future__ import annotations

import time

from ddtui.core.change_record import ChangeRecord

GONE = "its simulated host is gone"
_LOADED = time.time()
"""Before this process can have changed anything. Unix seconds."""


def is_anothers(record: ChangeRecord) -> bool:
    """Whether its simulated host is that of another process: here it cannot be carried on."""
    return record.simulated and record.began < _LOADED
