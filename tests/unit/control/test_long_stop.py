"""A stop that takes long is told of, each time that there is one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ddtui.control.carrying_out import CarryingOut, Failure
from ddtui.control.host_actions import Facts
from ddtui.control.reconfiguration import Limits
from tests.support.virtual_time import in_virtual_time


class Left:
    """What is left of a unit that does not stop."""

    text = "python (pid 7)"


class Said:
    """A journal that is only told something."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, words: str) -> None:
        self.words.append(words)


@pytest.mark.parametrize(
    ("timeout", "limit", "told"),
    [
        (0.0, 120, "systemd has no limit for it (TimeoutStopSec), or none is known"),
        (90.0, 195, "systemd kills what is left of it after 90 s (TimeoutStopSec)"),
    ],
)
def test_the_stop_of_a_rollback_is_told_of_as_the_first(
    monkeypatch: pytest.MonkeyPatch, timeout: float, limit: int, told: str
) -> None:
    async def remaining(_work: CarryingOut, _facts: Facts) -> Left:
        return Left()

    monkeypatch.setattr(CarryingOut, "_remaining", remaining)

    async def stop(work: CarryingOut) -> None:
        while True:
            await work._await_stop(Facts(active="deactivating", stop_timeout=timeout))

    async def work() -> None:
        said = Said()
        carrying = CarryingOut(*cast(Any, (None, None, said, None, Limits(), None)))
        failure = f"not stopped within {limit} s"
        with pytest.raises(Failure, match=failure):
            await stop(carrying)
        first, said.words = said.words, []
        with pytest.raises(Failure, match=failure):
            await stop(carrying)
        assert first[0].partition("; ")[2] == told
        assert said.words == first

    in_virtual_time(work())
