"""Beginning, stopping and handing over a run of the queue, by its screen's keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.app import App

from ddtui.core.experiment import QueueSettings
from ddtui.core.launch import Request
from ddtui.ui.queue_source import RunView
from ddtui.ui.screens.queue import QueueScreen
from ddtui.ui.source import ControlProblem
from tests.ui.control_keys import operating, shows, until
from tests.ui.queue_world import FULL, HERE, IDLE, StillQueue, StoredQueue, fill


async def test_a_run_is_begun_by_a_step_and_a_press_where_the_engine_rests() -> None:
    queue = StillQueue(IDLE)
    async with operating("idle", queue=queue) as operator:
        await operator.press("5", "s")
        asked = await operator.until_asked()
        await until(operator, shows(operator, "in the fastest of what this queue"))
        assert asked.words.typed == ""
        await operator.press("enter")
        assert queue.begun == []
        await operator.press("s")
        await operator.confirm()
        await until(operator, lambda: queue.begun == ["start"])


async def test_an_engine_at_work_needs_its_name_typed() -> None:
    queue = StillQueue(IDLE)
    async with operating("live", queue=queue) as operator:
        await operator.press("5", "s")
        asked = await operator.until_asked()
        assert asked.words.typed == "sglang-kimi"
        await operator.confirm()
        assert queue.begun == []
        await operator.press("escape")
        await operator.press("s")
        await operator.confirm("sglang-kimi")
        await until(operator, lambda: queue.begun == ["start"])


async def test_a_queue_that_changed_while_it_was_asked_is_asked_for_anew(
    stored: StoredQueue,
) -> None:
    fill(stored, 12, 16)
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "s")
        first = await operator.until_asked()
        await until(operator, shows(operator, "2 experiments"))
        stored.queue.add([stored.queue.draft(Request(knobs={"budget": 24}))])  # another process
        await operator.confirm()
        await until(operator, lambda: operator.app.screen is not first)
        assert await operator.until_asked() is not first
        await until(operator, shows(operator, "nothing was started"))
        await until(operator, shows(operator, "3 experiments"))
        await until(operator, shows(operator, "budget 24"))
        assert stored.begun == []
        await operator.confirm()
        await until(operator, lambda: stored.begun == ["start"])


async def test_a_note_does_not_make_the_question_another_one(stored: StoredQueue) -> None:
    fill(stored, 12)
    async with operating("idle", queue=stored) as operator:
        await operator.press("5", "s")
        await operator.until_asked()
        stored.queue.annotate(stored.made.experiments[0].id, note="for the morning")
        await operator.confirm()
        await until(operator, lambda: stored.begun == ["start"])


async def test_somebody_elses_run_is_named_and_none_is_begun() -> None:
    queue = StillQueue(IDLE)
    held = queue.prepare_run

    async def prepare():  # type: ignore[no-untyped-def]
        return replace(await held(), holder="jonas@laptop since 12:01")

    queue.prepare_run = prepare  # type: ignore[method-assign]
    async with operating("idle", queue=queue) as operator:
        await operator.press("5", "s")
        asked = await operator.until_asked()
        await until(operator, shows(operator, "jonas@laptop"))
        assert asked.words.action == ""


async def test_stopping_asks_and_what_ended_is_told() -> None:
    queue = StillQueue()
    async with operating("idle", queue=queue) as operator:
        await operator.press("5", "S")
        await operator.confirm()
        await until(operator, lambda: queue.begun == ["stop"])
        queue.made = replace(IDLE, run=RunView(ended="2 done; 1 failed"))
        operator.app._check()
        await until(operator, shows(operator, "The run has ended: 2 done; 1 failed"))
        queue.trouble = ControlProblem("the host refused the login", "unlock the key")
        operator.app._check()
        await until(operator, shows(operator, "unlock the key"))


async def test_the_running_one_is_cancelled_only_once_that_is_confirmed() -> None:
    queue = StillQueue()
    async with operating("live", queue=queue) as operator:
        await operator.press("5", "c")
        await operator.until_asked()
        assert queue.changed == []
        await operator.confirm()
        await until(operator, lambda: queue.changed == [("cancel", "1")])


async def test_what_a_runner_takes_up_at_once_is_asked_for() -> None:
    paused = replace(FULL, settings=QueueSettings(host="ct200", paused=True))
    queue = StillQueue(paused)
    async with operating("live", queue=queue) as operator:
        await operator.press("5", "p")
        await operator.until_asked()
        assert queue.changed == []
        await operator.confirm()
        await until(operator, lambda: queue.changed == [("resume",)])
        await operator.press("end", "t")
        await operator.until_asked()
        await operator.press("escape")
        assert queue.changed == [("resume",)]


async def test_the_unit_is_not_changed_by_hand_while_experiments_run_here() -> None:
    async with operating("idle", queue=StillQueue()) as operator:
        await operator.press("R")
        await until(operator, shows(operator, "experiments of this host are being run here"))
        assert operator.control.begun == []


@pytest.mark.parametrize(("steps", "handed_over"), [(2, True), (1, False)])
async def test_leaving_hands_the_run_over_or_stops_it(
    steps: int, handed_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[object] = []
    monkeypatch.setattr(App, "exit", lambda *_args, **_options: left.append(True))
    queue = StillQueue()
    async with operating("live", queue=queue) as operator:
        await operator.press("q")
        await operator.until_asked()
        await until(operator, shows(operator, "ddtui run ct200 --status"))
        await operator.settle(2.0)
        await operator.press("escape")
        assert (queue.closed, left) == (False, [])
        await operator.press("q")
        await operator.until_asked()
        await operator.settle(2.0)
        await operator.press(*["right"] * steps)
        await operator.press("enter")
        await operator.settle()
        await until(operator, lambda: bool(left))
        desk = operator.app.queue_desk
        assert desk is not None
        assert (queue.closed, desk.handed_over) == (True, handed_over)


async def test_a_simulated_host_is_handed_over_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[object] = []
    monkeypatch.setattr(App, "exit", lambda *_args, **_options: left.append(True))
    queue = StillQueue()
    async with operating("idle", queue=queue) as operator:
        await operator.press("q")
        await operator.until_asked()
        await until(operator, shows(operator, "The simulated host ends with ddtui"))
        await operator.settle(2.0)
        await operator.press("enter")
        assert (queue.closed, left) == (False, [])
        await operator.press("q")
        await operator.confirm()
        await until(operator, lambda: bool(left))
        desk = operator.app.queue_desk
        assert desk is not None
        assert (queue.closed, desk.handed_over) == (True, False)


async def test_leaving_while_another_process_runs_it_does_not_ask() -> None:
    elsewhere = replace(HERE, where="this machine", pid=4711, progress=None)
    queue = StillQueue(replace(FULL, run=elsewhere))
    async with operating("idle", queue=queue) as operator:
        await operator.press("q")
        await operator.pilot.pause()
    assert operator.app.return_code == 0
    assert queue.closed


async def test_read_only_has_none_of_it() -> None:
    queue = StillQueue(IDLE)
    async with operating("live", queue=queue, read_only=True) as operator:
        await operator.press("5", *"agmKJFhcteNnxpLsS")
        assert type(operator.app.screen) is QueueScreen
        assert queue.begun == queue.changed == []
        await operator.press("o")
        assert "Asks for" in operator.text()
