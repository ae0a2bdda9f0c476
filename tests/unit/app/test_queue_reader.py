"""The queue as the screens read it: what goes on by itself between two looks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ddtui.app.queue_reader import QueueReader
from ddtui.experiments.eta import Leg, QueueEta
from ddtui.ui.queue_source import RunView


def reader_of(clock: list[float], run: RunView) -> QueueReader:
    """A reader whose times were worked out at second 100."""
    source: Any = SimpleNamespace(clock=lambda: clock[0])
    found = QueueReader(source, cast(Any, None), cast(Any, SimpleNamespace(view=run)))
    leg = Leg(id="a", loads=True, ends=60.0)
    found._eta = QueueEta(legs=(leg,), reloads=1, seconds=60.0, sources=())
    found._eta_at = 100.0
    return found


def test_times_go_by_while_the_queue_is_run() -> None:
    clock = [100.0]
    reader = reader_of(clock, RunView(where="here"))
    clock[0] = 125.0
    eta = reader._eta_now()
    assert eta is not None
    assert (eta.seconds, eta.legs[0].ends) == (35.0, 35.0)
    clock[0] = 90.0  # set back
    assert reader._eta_now() == reader._eta


def test_they_are_from_its_begin_while_nobody_runs_it() -> None:
    clock = [100.0]
    reader = reader_of(clock, RunView())
    clock[0] = 125.0
    assert reader._eta_now() is reader._eta
