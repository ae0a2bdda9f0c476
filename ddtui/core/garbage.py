"""Keeps Python's garbage collector from halting everything at a bad moment.

A full collection goes through all objects, which takes tens of milliseconds once screens and
modules are there: as long a key, or an event of a stream, would wait. What stays for good is set
apart, and not looked at any more; the rest is collected when nobody waits.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_DUE = 10
"""Middle collections after which a full one is due: Python's own measure."""
_OVERDUE = 60
"""After so many Python makes a full one by itself, whatever goes on."""


def set_apart() -> None:
    """Collect all there is once, and have what is left never looked at again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def leave_to_quiet_moments() -> None:
    """Leave full collections to `collect_if_due`."""
    gc.set_threshold(*gc.get_threshold()[:2], _OVERDUE)


def collect_if_due() -> None:
    """Make a full collection where they are left to this, and one is due: nobody waits now."""
    if gc.get_threshold()[2] == _OVERDUE and gc.get_count()[2] >= _DUE:
        gc.collect()


@contextmanager
def all_set_apart() -> Iterator[None]:
    """Set everything apart while this is open, garbage too; what was before stays so."""
    before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if before:
            set_apart()
        else:
            gc.unfreeze()
