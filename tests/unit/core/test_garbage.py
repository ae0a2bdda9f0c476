"""When Python's garbage collector goes through everything, and when it does not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ddtui.core.garbage import all_set_apart, collect_if_due, leave_to_quiet_moments, set_apart


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.set_threshold(*threshold)
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


def middle_collections(number: int) -> None:
    for _ in range(number):
        gc.collect(1)


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


def test_a_full_collection_waits_for_a_quiet_moment_and_until_it_is_due() -> None:
    gc.collect()
    leave_to_quiet_moments()
    garbage = old_garbage()
    collect_if_due()
    assert garbage() is not None
    middle_collections(12)
    made = [[] for _ in range(20_000)]  # type: ignore[var-annotated]  # Python makes none by itself
    assert garbage() is not None
    collect_if_due()
    assert garbage() is None
    assert made


def test_where_it_is_python_s_own_nothing_is_collected_by_hand() -> None:
    gc.collect()
    garbage = old_garbage()
    middle_collections(12)
    collect_if_due()
    assert garbage() is not None
