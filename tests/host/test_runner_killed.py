"""A queue on the real host whose runners are killed: right after each step, and at any moment.

DDTUI_RUNNER_KILLS=100 kills at as many random moments; at a few it is done always.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time

import pytest

from tests.host.gpuhost import GpuHost
from tests.host.measured import measured
from tests.host.queueing import (
    Event,
    check,
    check_cells,
    ddtui,
    event,
    host,
    killed_at,
    queue,
    runner,
    starts,
    to_the_end,
)
from tests.host.test_verbs import Ddtui

__all__ = ["ddtui", "host"]
BOUNDARIES = (
    *(("taken up", ""), ("step", "planning"), ("step", "loading")),
    *(("change", each) for each in ("planned", "locked", "written", "reloaded", "stopping")),
    *(("change", each) for each in ("releasing", "starting", "loading", "verifying", "in force")),
    *(("step", "measuring"), ("cell", ""), ("step", "recording"), ("ended", "")),
    ("leaving", ""),
)
"""Events of a run right after which its runner is killed, in the order in which they come."""
MOMENTS = int(os.environ.get("DDTUI_RUNNER_KILLS", "2"))
"""Random moments at which a runner is killed."""
SHARE = min(4, MOMENTS)
"""As many of them in one queue."""


@pytest.mark.timeout(900)
def test_killed_at_every_step(host: GpuHost, ddtui: Ddtui) -> None:
    before, began = starts(host), time.monotonic()
    queue(ddtui)
    # The first one needs no load: the boundaries of one that does are those of the second.
    came, told = killed_at(ddtui, event("ended"))
    assert came
    for boundary in BOUNDARIES:
        came, events = killed_at(ddtui, event(*boundary))
        assert came, (boundary, events)
        told += events
        # What a killed runner has left is freed by the host itself.
    check_cells([*told, *to_the_end(ddtui)])
    check(ddtui, host, before)
    took = time.monotonic() - began
    measured(f"3 measurements, 2 loads, the runner killed at {len(BOUNDARIES)} steps", took)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(-(-MOMENTS // SHARE) if SHARE else 0))
def test_killed_at_any_moment(host: GpuHost, ddtui: Ddtui, seed: int) -> None:
    chance = random.Random(seed)
    before, began = starts(host), time.monotonic()
    queue(ddtui)
    reached, told = [], list[Event]()
    for _ in range(SHARE):
        status, events, said = killed_after(ddtui, chance.uniform(0.0, chance.choice((2, 4, 8))))
        told += events
        if status == 0:
            break  # it was faster
        assert status == -signal.SIGKILL, said
        reached.append(place(events))
    check_cells([*told, *to_the_end(ddtui)])
    check(ddtui, host, before)
    took = time.monotonic() - began
    measured(f"3 measurements, 2 loads, the runner killed at: {'; '.join(reached)}", took)


def killed_after(ddtui: Ddtui, seconds: float) -> tuple[int, list[Event], str]:
    """Kill a runner so long after it has begun: its status, its events, and what it said."""
    process = runner(ddtui)
    seen: list[Event] = []
    alarm = threading.Timer(seconds, process.kill)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if not seen:  # to begin takes long on a busy machine
                alarm.start()
            seen.append(json.loads(line))
        _, said = process.communicate(timeout=150)
        return process.returncode, seen, said
    finally:
        alarm.cancel()
        process.kill()


def place(events: list[Event]) -> str:
    """How far a runner had come, by its last event."""
    last = events[-1]
    words = last.get("step", "") if last["what"] == "step" else last.get("text", "")
    return f"{last['what']} {words.partition(':')[0]}".strip()
