"""What comes next for an experiment, what is left at the end, and what a witness sees."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ddtui.bench.progress import Progress
from ddtui.bench.progress import Step as BenchStep
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.launch import Request
from ddtui.core.measurement import Cell, Measurement, MeasurementState, Spread
from ddtui.experiments.leaving import target
from ddtui.experiments.report import time_left
from ddtui.experiments.running import (
    MOST_FAILURES,
    MOST_LOADS,
    Action,
    Facts,
    Standing,
    decide,
)
from ddtui.experiments.witness import CountedPorts, Witness
from tests.support.virtual_time import in_virtual_time

READY = {"planned": True, "standing": Standing.PROVED}


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        ({"unfinished": True, "cancelled": True}, Action.RESUME),
        ({"cancelled": True}, Action.CANCEL),
        ({"reused": True}, Action.RECORD),
        ({"whole": True, "standing": Standing.DOWN}, Action.RECORD),
        ({"change": "failed"}, Action.FAIL),
        ({}, Action.PLAN),
        ({**READY, "blocked": "no such knob"}, Action.FAIL),
        ({**READY, "differs": True}, Action.APPLY),
        ({**READY, "differs": True, "loads": MOST_LOADS}, Action.FAIL),
        (READY, Action.MEASURE),
        ({**READY, "failures": MOST_FAILURES}, Action.FAIL),
        ({**READY, "cells_left": 0, "coding_left": True}, Action.CODE),
        ({**READY, "cells_left": 0}, Action.RECORD),
        ({"planned": True, "standing": Standing.OTHER}, Action.RESTART),
        ({"planned": True, "standing": Standing.DOWN}, Action.RESTART),
        ({"planned": True, "standing": Standing.DOWN, "loads": MOST_LOADS}, Action.FAIL),
        ({"planned": True, "standing": Standing.LOOPING}, Action.FAIL),
        ({"planned": True, "standing": Standing.COMING}, Action.AWAIT),
        ({"planned": True, "standing": Standing.COMING, "waited": 4000.0}, Action.FAIL),
        ({"planned": True, "standing": Standing.UNSEEN, "waited": 4000.0}, Action.FAIL),
    ],
)
def test_what_comes_next(facts: dict[str, Any], action: Action) -> None:
    assert decide(Facts(**facts)).action is action


def test_all_that_fails_says_why() -> None:
    for standing in Standing:
        facts = Facts(planned=True, standing=standing, loads=MOST_LOADS, waited=1e9)
        decision = decide(facts)
        assert (decision.action is Action.FAIL) == bool(decision.why)


# ---- what is left --------------------------------------------------------------------------------


def done(number: int, rate: float | None = None, length: float = 1.0, **to: Any) -> Any:
    request = Request(knobs={"budget": number})
    experiment = Experiment(
        id=str(number), host="h", title=f"budget {number}", request=request,
        state=ExperimentState.DONE, ended=float(number), measurement=f"m{number}",
    )  # fmt: skip
    cells: tuple[Cell, ...] = ()
    if rate is not None:
        user, accepted = Spread(rate, rate, rate), Spread(length, length, length)
        cells = (
            Cell(concurrency=4, requests=1, user_rate=Spread(9e9 - rate, 0, 0)),
            Cell(concurrency=1, requests=1, user_rate=user, acceptance_length=accepted),
        )
    measurement = Measurement(
        id=f"m{number}", host="h", simulated=False, unit="u", configuration=str(number),
        plan=BenchPlan(), began=0.0, state=MeasurementState.COMPLETE, cells=cells,
    )  # fmt: skip
    return msgspec.structs.replace(experiment, **to), measurement


def left(leave: Any, *pairs: Any) -> Any:
    found = target(leave, [each for each, _ in pairs], [each for _, each in pairs])
    return found.request.knobs.get("budget")


def test_which_configuration_is_left() -> None:
    pairs = [done(1, 100.0), done(2, 120.0), done(3, 110.0)]
    assert left("baseline", *pairs) is None
    assert left("best", *pairs) == 2
    assert left("last", *pairs) == 3
    assert left("last", *pairs, done(4, 90.0, reused=True)) == 3
    assert left("best", *pairs, done(4, 130.0, reused=True)) == 4
    assert left("best", *pairs, done(4, 130.0, state=ExperimentState.FAILED)) == 2


def test_equal_ones_are_told_apart() -> None:
    assert left("best", done(1, 100.0, 3.0), done(2, 100.0, 4.0), done(3, 100.0, 4.0)) == 2


def test_without_a_measurement_it_is_the_baseline() -> None:
    assert left("best", done(1)) is None
    assert left("last") is None
    assert "nothing was measured" in target("best", [], []).words


# ---- what is seen --------------------------------------------------------------------------------


def test_a_machine_that_slept_is_noticed() -> None:
    async def work() -> None:
        asleep = 0.0
        loop = asyncio.get_running_loop()
        witness = Witness(1, lambda: 1.8e9 + loop.time() + asleep)
        await asyncio.sleep(100)
        assert witness.slept() == 0.0
        asleep = 600.0
        assert witness.slept() == pytest.approx(600.0)
        assert witness.slept() == 0.0

    in_virtual_time(work())


def test_requests_are_told_from_those_of_others() -> None:
    async def work() -> None:
        witness = Witness(4, asyncio.get_running_loop().time)
        assert witness.foreign(10.0, 25.0, 15) == 0
        assert witness.foreign(10.0, 25.0, 12) == 3
        assert witness.foreign(10.0, 25.0, 20) == 0  # given up before they were finished
        assert witness.foreign(None, 25.0, 20) == 0
        witness.beside = 2
        assert witness.foreign(10.0, 25.0, 15) == 2

    in_virtual_time(work())


async def test_only_what_generates_is_counted() -> None:
    written: list[bytes] = []

    class Port:
        def write(self, data: bytes) -> None:
            written.append(data)

        async def drain(self) -> None: ...
        def pause(self) -> None: ...
        def resume(self) -> None: ...
        def close(self) -> None: ...

    class Opens:
        async def open_port(self, _address: str, _port: int, _receiver: Any) -> Port:
            return Port()

    ports = CountedPorts(Opens())
    port = await ports.open_port("127.0.0.1", 1, None)  # type: ignore[arg-type]
    heads = (b"POST /generate HTTP/1.1", b"GET /metrics HTTP/1.1", b"POST /flush_cache HTTP/1.1",
             b"POST /v1/chat/completions HTTP/1.1", b"GET /v1/models HTTP/1.1")  # fmt: skip
    for each in heads:
        port.write(each)
    assert ports.sent == 2
    assert tuple(written) == heads


def test_the_time_that_is_left() -> None:
    half = Progress(step=BenchStep.MEASURING, cell=2, cells=2, batch=1, batches=3, requests=4,
                    elapsed=60.0)  # fmt: skip
    assert time_left(half) == pytest.approx(60.0)
    assert time_left(None) is None
    assert time_left(Progress(step=BenchStep.PREPARING)) is None
