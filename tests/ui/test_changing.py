"""From a key to a change of the host: always through a question, never for what cannot work."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ddtui.core.launch import Finding, Level, Plan, Request
from ddtui.core.snapshot import Figure
from ddtui.ui.palette import actions_of
from ddtui.ui.questions import at_work
from ddtui.ui.queue_source import RunView, Where
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.source import ControlProblem
from tests.ui.control_keys import operating, shows, until
from tests.ui.control_world import (
    HELD,
    ORPHANS,
    PRESETS,
    ROLLBACK,
    UNIT,
    FakeControl,
    failed,
    in_force,
    plan_of,
    running,
)
from tests.ui.queue_world import FULL, StillQueue
from tests.ui.scenes import NOW, SCENES

WORD = UNIT.removesuffix(".service")


async def test_an_idle_engine_needs_a_step_and_a_press() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "a")
        question = await operator.until_asked()
        assert question.words.typed == ""
        await operator.confirm()
        assert operator.control.begun == [("apply", PRESETS[0].request)]
        assert isinstance(operator.app.screen, PresetsScreen)


async def test_an_engine_at_work_needs_its_name_typed() -> None:
    async with operating("live") as operator:
        await operator.press("4", "j", "a")
        question = await operator.until_asked()
        assert question.words.typed == WORD
        text = operator.text()
        assert "--speculative-ddtree-budget" in text
        assert "SGLANG_DDTREE_MAX_TOPK" in text
        assert "12 requests running and 3 waiting" in text
        assert "about 9 m 11 s before (3 loads of this model)" in text
        await operator.confirm()  # without the word, the key that would be Apply is Cancel
        assert operator.control.begun == []
        await operator.press("a")
        await operator.confirm(WORD)
        assert operator.control.begun == [("apply", PRESETS[1].request)]


async def test_enter_on_a_preset_asks_too_and_enter_again_cancels() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "enter")
        await operator.until_asked()
        await operator.settle(2.0)
        await operator.press("enter")
        assert isinstance(operator.app.screen, PresetsScreen)
        assert operator.control.begun == []


async def test_a_blocked_plan_cannot_be_confirmed() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "j", "j", "a")
        question = await operator.until_asked()
        assert question.words.action == ""
        text = operator.text()
        assert "BLOCKED" in text
        assert "ERROR budget 4 is not above block size - 1 = 7" in text
        assert "set budget=8 or more" in text
        await operator.confirm()
        assert operator.control.begun == []


async def test_a_plan_that_changes_nothing_is_not_applied() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "j", "j", "j", "a")
        assert (await operator.until_asked()).words.action == ""
        assert "nothing to change" in operator.text()


async def test_a_plan_that_only_restarts_an_older_process_says_so() -> None:
    control = FakeControl()
    control.make_plan = lambda request: replace(
        plan_of(request), changes=(), restart_due="the process runs with older variables"
    )
    async with operating("idle", control) as operator:
        await operator.press("4", "a")
        assert (await operator.until_asked()).words.action == "Restart"
        assert "nothing to write: a restart is needed" in operator.text()


async def test_a_lock_held_by_another_is_named_and_nothing_can_be_begun() -> None:
    control = FakeControl()
    control.holder = "jonas@laptop since 2026-09-21 14:01:22: apply block16"
    async with operating("idle", control) as operator:
        for keys in (("4", "a"), ("1", "B"), ("R",)):
            await operator.press(*keys)
            question = await operator.until_asked()
            assert question.words.action == ""
            assert "jonas@laptop since 2026-09-21 14:01:22" in operator.text()
            await operator.settle(2.0)
            await operator.press("escape")
        assert control.begun == []


@pytest.mark.parametrize(("key", "begun"), [("B", "rollback"), ("R", "restart")])
async def test_rollback_and_restart_ask_first(key: str, begun: str) -> None:
    async with operating("live") as operator:
        await operator.press(key)
        await operator.confirm(WORD)
        assert operator.control.begun == [begun]


@pytest.mark.parametrize(("scene", "words"), [("failed", "starts"), ("idle", "stops")])
async def test_what_is_down_only_starts(scene: str, words: str) -> None:
    async with operating(scene) as operator:
        await operator.press("R")
        await operator.until_asked()
        await until(operator, shows(operator, f"The engine {words}: "))


async def test_a_restart_for_which_a_right_is_missing_cannot_be_begun() -> None:
    control = FakeControl()
    line = "ops ALL=(root) NOPASSWD: /usr/bin/systemctl stop llm.service"
    control.no_restart = (
        Finding(Level.ERROR, "right-missing", "sudo does not allow it", "no password", line),
    )
    async with operating("idle", control) as operator:
        await operator.press("R")
        question = await operator.until_asked()
        assert (question.words.action, question.words.cancel) == ("", "Close")
        assert "sudo does not allow it" in operator.text()
        assert "NOPASSWD" in operator.text()
        await operator.settle(2.0)
        await operator.press("escape")
        assert control.begun == []


async def test_a_rollback_names_the_change_that_it_goes_back_to() -> None:
    control = FakeControl()
    control.back_to, control.undoes = "change 04f2ab00 (apply wide)", "change caf91824 (apply)"
    async with operating("idle", control) as operator:
        await operator.press("B")
        await operator.until_asked()
        assert "Back to change 04f2ab00 (apply wide)." in operator.text()
        assert "Undoes change caf91824 (apply)." in operator.text()


async def test_what_speaks_against_a_rollback_is_shown_and_may_forbid_it() -> None:
    control = FakeControl()
    warning = Finding(Level.WARNING, "unit-replaced", "llm.service was edited since")
    control.against_rollback = (warning,)
    async with operating("idle", control) as operator:
        await operator.press("B")
        question = await operator.until_asked()
        await operator.settle(2.0)
        assert "WARNING llm.service was edited since" in operator.text()
        assert question.words.action == "Roll back"
        await operator.press("escape")
        error = Finding(Level.ERROR, "unit-replaced", "it is another unit", "", "add --force")
        control.against_rollback = (error,)
        await operator.press("B")
        question = await operator.until_asked()
        await operator.settle(2.0)
        assert question.words.action == ""
        for words in ("BLOCKED", "ERROR it is another unit", "do: add --force"):
            assert words in operator.text()
        assert control.begun == []


async def test_requests_that_came_up_meanwhile_must_be_confirmed_by_word() -> None:
    async with operating("idle") as operator:
        await operator.press("R")
        assert (await operator.until_asked()).words.typed == ""
        operator.app.source.show(SCENES["live"](NOW))  # type: ignore[attr-defined]
        await operator.confirm()
        assert operator.control.begun == []
        assert (await operator.until_asked()).words.typed == WORD
        text = " ".join(operator.text().split())
        assert "This question has changed, nothing was done: requests have begun" in text
        assert f"type {WORD} first" in text or "one moment" in text
        await operator.confirm(WORD)
        assert operator.control.begun == ["restart"]


async def test_why_nothing_can_be_planned_is_told_with_the_way_out() -> None:
    control = FakeControl()
    control.problem = ControlProblem(
        "sudo does not allow what changing the unit takes",
        "with `sudo visudo -f /etc/sudoers.d/ddtui`, add:\nmara ALL=(root) NOPASSWD: x",
    )
    async with operating("idle", control) as operator:
        await operator.press("B")
        await operator.until_asked()
        assert "mara ALL=(root) NOPASSWD: x" in operator.text()
        assert control.begun == []


async def test_what_came_to_nothing_is_told() -> None:
    control = FakeControl()
    async with operating("idle", control) as operator:
        control.trouble = ControlProblem("the unit has changed since the plan was made", "again")
        operator.app._check()
        await operator.until_asked()
        await until(operator, shows(operator, "the unit has changed since the plan was made"))


async def test_one_change_at_a_time() -> None:
    control = FakeControl()
    control.reconfiguration = running("loading")
    async with operating("loading", control) as operator:
        await operator.press("4", "a")
        assert "is under way" in (await operator.until_asked()).words.body(60)[0].text  # type: ignore[operator]
        assert control.begun == []


# ---- a reconfiguration that goes on -----------------------------------------------------------


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (200, 60)])
async def test_a_running_one_is_shown_on_both_screens(size: tuple[int, int]) -> None:
    control = FakeControl()
    control.reconfiguration = running("releasing", HELD)
    async with operating("live", control, size=size) as operator:
        for key in ("1", "4", "2", "1"):
            await operator.press(key)
            if key != "2":
                await until(operator, shows(operator, "releasing"))
                await until(operator, shows(operator, "still held"))


async def test_one_made_for_an_experiment_is_called_by_it() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running(), preset="")
    at_it = replace(FULL.experiments[0], change=control.reconfiguration.id)
    queue = StillQueue(replace(FULL, experiments=(at_it, *FULL.experiments[1:])))
    async with operating("loading", control, queue=queue) as operator:
        assert "Experiment budget 12 topk 4" in operator.text()
        queue.made = FULL  # another one runs
        operator.app.paint()
        await until(operator, lambda: "Experiment budget 12 topk 4" not in operator.text())


async def test_the_eta_of_the_load_is_shown() -> None:
    control = FakeControl()
    control.reconfiguration = running("loading")
    async with operating("loading", control) as operator:
        assert "44 s, ready in 3 m 14 s by 3 loads of this model" in operator.text()


async def test_an_end_in_force_is_proved_and_one_that_failed_has_cause_and_remedy() -> None:
    control = FakeControl()
    control.reconfiguration = in_force()
    async with operating("live", control) as operator:
        assert "IN FORCE" in operator.text()
        assert "--speculative-ddtree-budget 16" in operator.text()
        control.reconfiguration = replace(failed(), id="r2")
        operator.app._check()
        await operator.pilot.pause()
        text = operator.text()
        assert "FAILED" in text
        assert "CUDA out of memory while the KV cache was allocated" in text
        assert "do: lower mem_fraction" in text
        await operator.press("escape")
        assert "lower mem_fraction" not in operator.text()


async def test_the_rollback_question_comes_up_and_never_answers_itself() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("loading"), question=ROLLBACK)
    async with operating("failed", control) as operator:
        operator.app._check()
        question = await operator.until_asked()
        await operator.settle(3_600.0)
        assert operator.app.screen is question
        assert control.begun == []
        await operator.press("enter")  # Later
        assert isinstance(operator.app.screen, MonitorScreen)
        operator.app._check()
        await operator.pilot.pause()
        assert isinstance(operator.app.screen, MonitorScreen)  # it does not nag
        assert "D decides" in operator.text()
        assert control.begun == []
        await operator.press("D")
        await operator.until_asked()
        await operator.settle(2.0)
        await operator.press("right", "right", "enter")
        await operator.settle()
        assert control.begun == [("rollback", True)]


async def test_leaving_it_failed_is_an_answer_too() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("loading"), question=ROLLBACK)
    async with operating("failed", control) as operator:
        await operator.press("D")
        await operator.confirm()
        assert control.begun == [("rollback", False)]


async def test_a_question_that_is_no_longer_asked_goes() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("releasing"), question=ORPHANS)
    async with operating("live", control) as operator:
        operator.app._check()
        await operator.until_asked()
        control.reconfiguration = running("starting")
        operator.app._check()
        await operator.pilot.pause()
        assert isinstance(operator.app.screen, MonitorScreen)
        assert control.begun == []


async def test_processes_are_ended_by_a_typed_word_only() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("releasing"), question=ORPHANS)
    async with operating("live", control) as operator:
        operator.app._check()
        await operator.until_asked()
        assert "4711" in operator.text()
        await operator.settle(3.0)
        await operator.press(*"end", each=0.2)
        await operator.press("right", "right", "enter")
        await operator.settle()
        assert control.begun == [("orphans", True)]


async def test_an_interrupted_one_is_shown_and_carried_on_when_confirmed() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("stopping"), interrupted=True, here=False)
    async with operating("failed", control) as operator:
        assert "INTERRUPTED" in operator.text()
        await operator.press("D")
        await operator.confirm()
        assert control.begun == ["resume"]


async def test_leaving_in_the_middle_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    control = FakeControl()
    control.reconfiguration = running("loading")
    async with operating("loading", control) as operator:
        await operator.press("q")
        await operator.until_asked()
        await operator.settle(2.0)
        await operator.press("enter")
        assert isinstance(operator.app.screen, MonitorScreen)
        assert operator.app.return_code is None
        await operator.press("q")
        await operator.confirm()
    assert operator.app.return_code == 0


async def test_leaving_while_another_ddtui_carries_it_on_does_not_ask() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("loading"), here=False)
    async with operating("loading", control) as operator:
        await operator.press("q")
    assert operator.app.return_code == 0


# ---- read-only --------------------------------------------------------------------------------


async def test_read_only_has_none_of_it() -> None:
    control = FakeControl()
    control.reconfiguration = replace(running("loading"), question=ROLLBACK)
    async with operating("idle", control, read_only=True) as operator:
        operator.app._check()
        for key in ("B", "R", "D", "4", "a", "enter", "B", "R", "D"):
            await operator.press(key)
            assert not isinstance(operator.app.screen, ConfirmScreen)
            offered = {each.id for each in actions_of(operator.app.screen)}
            assert not offered & {"app.rollback", "app.restart", "app.decide", "presets.apply"}
        assert isinstance(operator.app.screen, PresetsScreen)
        assert "READ-ONLY" in operator.text().splitlines()[0]
        assert "Apply" not in operator.text().splitlines()[-1]
        await operator.press("question_mark")
        await operator.pilot.pause()
        assert "asks first" not in operator.text()
        assert control.begun == []


# ---- whether requests run ---------------------------------------------------------------------


def test_what_is_not_known_counts_as_running() -> None:
    live = SCENES["live"](NOW)
    assert at_work(live, NOW) == (True, "12 requests running and 3 waiting: cut off when it stops.")
    unknown = replace(live, engine=replace(live.engine, running=None))
    assert at_work(unknown, NOW)[0]
    old = Figure(0.0, "/metrics", NOW - 60, 5.0)
    assert at_work(replace(live, engine=replace(live.engine, running=old)), NOW)[0]
    assert not at_work(SCENES["idle"](NOW), NOW)[0]
    assert not at_work(SCENES["failed"](NOW), NOW)[0]


def test_a_fake_plan_is_blocked_by_its_errors() -> None:
    plan: Plan = plan_of(Request("", {"budget": 4}))
    assert plan.blocked


@pytest.mark.parametrize("verb", ["apply", "rollback", "restart"])
@pytest.mark.parametrize("where", ["this machine", "elsewhere", "nobody"])
async def test_who_runs_experiments_elsewhere_is_told_before_a_change(
    verb: str, where: Where
) -> None:
    """A runner keeps nobody out while it measures, and measures anew what was changed."""
    queue = StillQueue(replace(FULL, run=RunView(where=where, who="jonas@laptop")))
    async with operating("idle", queue=queue) as operator:
        desk = operator.app.desk
        assert desk is not None
        if verb == "apply":
            await operator.press("4", "a")
        else:
            getattr(desk, verb)()
        question = await operator.until_asked()
        text = " ".join(operator.text().split())
        told = "Experiments are being run on this host by jonas@laptop." in text
        assert told is (where != "nobody")
        assert question.words.action
