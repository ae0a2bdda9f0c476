"""Keeps Python's garbage collector from halting everything for what stays for good.

A full collection goes through all objects, which takes tens of milliseconds once screens and
modules are there: as long a key, or an event of a stream, would wait. What is set apart is not
looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def set_apart() -> None:
    """Collect all there is once, and have what is left never looked at again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


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
