"""When Python's garbage collector goes through everything, and when it does not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ddtui.core.garbage import all_set_apart, set_apart


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


class Loop:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


def old_garbage() -> weakref.ref[Loop]:
    """Garbage that has outlived the smaller collections."""
    loop = Loop()
    gc.collect(1)
    gc.collect(1)
    return weakref.ref(loop)


@pytest.mark.parametrize("before", [False, True])
def test_what_exists_is_set_apart_and_put_back_as_it_was(before: bool) -> None:
    if before:
        set_apart()

    def broken() -> None:
        with all_set_apart():
            assert gc.get_freeze_count() > 1000
            raise LookupError

    with pytest.raises(LookupError):
        broken()
    assert bool(gc.get_freeze_count()) is before


def test_garbage_is_collected_before_the_rest_is_set_apart() -> None:
    garbage = old_garbage()
    set_apart()
    assert garbage() is None
