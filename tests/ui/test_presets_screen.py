from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.widgets import Input, OptionList

from ddtui.control.rights import sudoers_lines
from ddtui.core.launch import Request
from ddtui.ui.screens.choice import ChoiceScreen
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.source import ControlProblem
from tests.ui.control_keys import Operator, at_rest, keeper, operating, shows, until
from tests.ui.control_world import HOSTILE_PRESETS, PRESETS, UNIT, FakeControl
from tests.ui.scenes import NOW, SCENES


async def type_in(operator: Operator, words: str) -> None:
    operator.app.screen.query_one(Input).value = words
    await operator.press("enter")


async def test_each_preset_is_planned_as_it_is_highlighted() -> None:
    async with operating("idle") as operator:
        await operator.press("4")
        await until(operator, shows(operator, "8 → 16  (budget)"))
        text = operator.text()
        assert "a tree of 16 nodes" in text
        assert "/home/operator/.config/ddtui/config.toml:41" in text
        await operator.press("j")
        await until(operator, shows(operator, "8 → 33  (budget)"))
        text = operator.text()
        assert "not set → true" in text
        assert "WARNING block size 16, but the drafter was trained with 8" in text
        assert "extends budget-16" in text
        assert "replaces one of the same name" in text


async def test_a_plan_is_made_anew_when_what_is_in_force_changes() -> None:
    async with operating("idle") as operator:
        await operator.press("4")
        await until(operator, shows(operator, "8 → 16"))
        before = operator.control.plans
        operator.control.make_plan = lambda request: replace(
            plan := FakeControl().make_plan(request),
            changes=tuple(replace(each, before="60") for each in plan.changes),
        )
        snapshot = operator.app.source.snapshot(0.0)
        assert snapshot.unit is not None
        unit = replace(snapshot.unit, invocation="0" * 32)
        operator.app.source.show(replace(snapshot, unit=unit))  # type: ignore[attr-defined]
        operator.app.paint()
        await until(operator, shows(operator, "60 → 16"))
        assert operator.control.plans > before
        count = operator.control.plans
        operator.app.paint()
        await at_rest(operator.pilot)
        assert operator.control.plans == count


async def test_setting_something_beside_the_preset() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "e")
        await type_in(operator, "budget=12 flag:page-size=32 env:NCCL_DEBUG=none")
        await until(operator, shows(operator, "8 → 12"))
        text = operator.text()
        assert "set here" in text
        assert "--page-size" in text
        assert "taken away" in text
        await operator.press("x")
        await until(operator, shows(operator, "8 → 16"))
        assert "set here" not in operator.text()


@pytest.mark.parametrize(
    ("words", "fault"),
    [("budget", "has no value"), ("bugdet=1", "did you mean budget"), ("'a", "quotation")],
)
async def test_a_mistake_is_told_beside_the_line(words: str, fault: str) -> None:
    async with operating("idle") as operator:
        await operator.press("4", "e")
        await type_in(operator, words)
        await until(operator, shows(operator, fault))
        assert operator.app.screen.query_one(Input).has_focus


async def test_what_was_set_is_applied_with_the_preset() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "e")
        await type_in(operator, "window=4096")
        await operator.press("a")
        await operator.confirm()
        wanted = Request("budget-16", {"budget": 16, "window": 4096})
        assert operator.control.begun == [("apply", wanted)]


async def test_without_a_preset_only_what_is_set_is_asked_for() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "end", "e")
        await type_in(operator, "budget=24")
        await until(operator, shows(operator, "8 → 24"))
        await operator.press("a")
        await operator.confirm()
        assert operator.control.begun == [("apply", Request("", {"budget": 24}))]


async def test_saving_asks_for_a_name_and_a_place() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "e")
        await type_in(operator, "budget=20")
        await operator.press("s")
        await type_in(operator, "no good name")
        await until(operator, shows(operator, "letters, digits"))
        await type_in(operator, "budget-20")
        assert isinstance(operator.app.screen, ChoiceScreen)
        await operator.press("j", "enter")
        await operator.pilot.pause()
        assert operator.control.saved == [
            ("budget-20", Request("budget-16", {"budget": 20}), "project")
        ]


async def test_filter() -> None:
    async with operating("idle") as operator:
        await operator.press("4", "slash")
        operator.app.screen.query_one(Input).value = "drafter"
        await operator.pilot.pause()
        await operator.press("enter")
        options = operator.app.screen.query_one(OptionList)
        assert [str(each.prompt).split()[0] for each in options.options] == ["block16"]
        await operator.press("escape")
        assert len(options.options) == len(PRESETS) + 1


async def test_a_filter_that_no_preset_passes_says_so() -> None:
    async with operating("live") as operator:
        await operator.press("4", "/", *"zzz")
        await until(operator, shows(operator, "no preset passes the filter"))
        assert "working out" not in operator.text()


async def test_why_there_is_no_plan() -> None:
    control = FakeControl()
    control.problem = ControlProblem("the host does not answer", "try again")
    async with operating("idle", control) as operator:
        await operator.press("4")
        await until(operator, shows(operator, "No plan: the host does not answer"))
        assert "try again" in operator.text()


async def test_without_a_link_nothing_is_planned() -> None:
    async with operating("disconnected") as operator:
        await operator.press("4")
        await at_rest(operator.pilot)
        assert operator.control.plans == 0
        assert "not connected" in operator.text()


@pytest.mark.parametrize("size", [(60, 16), (120, 40)])
async def test_hostile_presets_break_nothing(size: tuple[int, int]) -> None:
    control = FakeControl(HOSTILE_PRESETS)
    async with operating("hostile", control, size=size) as operator:
        await operator.press("4")
        for _ in HOSTILE_PRESETS:
            await operator.pilot.pause()
            await operator.press("J", "K", "a")
            await operator.until_asked()
            text = operator.text()
            assert "\x1b" not in text
            assert "\u202e" not in text
            await operator.settle(2.0)
            await operator.press("escape", "j")
        assert isinstance(operator.app.screen, PresetsScreen)
        assert "[@click=app.quit]" in operator.text()


async def test_a_screen_without_control_does_not_exist() -> None:
    from tests.ui.test_app import app_of

    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        before = app.screen
        await pilot.press("4", "B", "R", "D")
        assert app.screen is before


async def test_a_plan_from_before_the_link_broke_stays_with_its_time() -> None:
    control = FakeControl()
    async with operating("idle", control) as operator:
        await operator.press("4")
        await until(operator, shows(operator, "8 → 16"))
        control.problem = ControlProblem("no answer for 12 s")
        await operator.press("r")
        await until(operator, shows(operator, "No plan: no answer for 12 s"))
        assert "8 → 16" not in operator.text()
        operator.app.source.show(SCENES["disconnected"](NOW))  # type: ignore[attr-defined]
        operator.app.paint()
        await until(operator, shows(operator, "8 → 16"))
        assert "as of 14:13:20, not connected now" in operator.text()


async def test_what_is_told_can_be_copied_with_its_lines_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the screen, and from the dialog that tells why nothing can be done."""
    copied: list[str] = []
    monkeypatch.setattr("ddtui.ui.copying.write_copied", keeper(copied))
    lines = sudoers_lines("mara", UNIT)
    control = FakeControl()
    control.problem = ControlProblem("sudo does not allow it", "\n".join(["add:", *lines]))
    async with operating("idle", control, size=(80, 24)) as operator:
        await operator.press("4")
        await until(operator, shows(operator, "sudo does not allow it"))
        await operator.press("y")
        await operator.press("a")
        await operator.until_asked()
        await operator.settle(3.0)
        assert "y copies this" in operator.text()
        await operator.press("y")
    assert len(copied) == 2
    for text in copied:
        assert set(lines) <= set(text.splitlines())
