"""What stands on the screens while a change goes on, after it, and when an engine is down."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ddtui.core.launch import Request
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import Evidence, ReadinessState, Snapshot, Verdict
from ddtui.ui.in_force import in_force as has_in_force
from ddtui.ui.queue_source import RunView
from ddtui.ui.source import PresetView
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.reconfiguration import ENDED_WHOLE
from tests.ui.control_keys import Operator, operating, shows, until
from tests.ui.control_world import BEFORE, FakeControl, failed, in_force, running
from tests.ui.queue_world import FULL, StillQueue
from tests.ui.scenes import NOW, SCENES


def _in_state(snapshot: Snapshot, state: ReadinessState) -> Snapshot:
    unit = Evidence("unit", Verdict.AGAINST, "inactive (dead)")
    return replace(snapshot, readiness=replace(snapshot.readiness, state=state, evidence=(unit,)))


def _show(operator: Operator, state: ReadinessState) -> None:
    snapshot = operator.app.source.snapshot(NOW)
    operator.app.source.show(_in_state(snapshot, state))  # type: ignore[attr-defined]
    operator.app._check()


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_an_engine_that_a_change_has_stopped_is_no_failure(size: tuple[int, int]) -> None:
    control = FakeControl()
    async with operating("live", control, size=size) as operator:
        _show(operator, ReadinessState.STOPPED)
        await until(operator, shows(operator, "STOPPED"))
        assert "against: unit" in operator.text()
        control.reconfiguration = running("releasing")
        operator.app._check()
        await until(operator, shows(operator, "stopped for apply budget-16"))
        head = "\n".join(operator.text().splitlines()[:2])
        assert "RELEASING" in head
        assert "STOPPED" not in head
        assert "against" not in head


async def test_a_preset_that_is_being_applied_is_not_said_to_need_a_restart() -> None:
    control = FakeControl()
    made = control.make_plan
    control.make_plan = lambda request: replace(
        made(request), before=BEFORE, changes=(), restart_due="the process is older"
    )
    async with operating("live", control) as operator:
        await operator.press("4")
        await until(operator, shows(operator, "a restart is needed"))
        control.reconfiguration = running("releasing")
        operator.app._check()
        await until(operator, shows(operator, "this is what apply budget-16 brings into force"))
        assert "a restart is needed" not in operator.text()


@pytest.mark.parametrize("screen", ["1", "4", "5"])
async def test_a_change_that_has_ended_can_be_put_away_on_every_screen(screen: str) -> None:
    control = FakeControl()
    control.reconfiguration = in_force()
    async with operating("live", control, queue=StillQueue()) as operator:
        await operator.press(screen)
        await until(operator, shows(operator, "esc hides this"))
        await operator.press("escape")
        await until(operator, lambda: "IN FORCE" not in operator.text())


@pytest.mark.parametrize("screen", ["1", "4", "5"])
async def test_one_that_ended_well_soon_takes_one_line(screen: str) -> None:
    control = FakeControl()
    control.reconfiguration = replace(in_force(), ended=NOW - ENDED_WHOLE - 1)
    async with operating("live", control, queue=StillQueue()) as operator:
        await operator.press(screen)
        await until(operator, shows(operator, "IN FORCE"))
        assert "speculative-ddtree-budget 16" in operator.text()
        assert "releasing" not in operator.text()
        control.reconfiguration = replace(failed(), ended=NOW - 3_600)
        operator.app._check()
        await until(operator, shows(operator, "lower mem_fraction"))


async def test_the_footer_names_what_brings_a_failed_engine_back() -> None:
    def named(operator: Operator) -> list[str]:
        return [key for key, _, _ in operator.app.screen.query_one(KeyBar).hints().own]

    queue = StillQueue(replace(FULL, run=RunView()))
    async with operating("live", size=(80, 24), queue=queue) as operator:
        for screen in ("1", "4", "5"):
            await operator.press(screen)
            assert not {"R", "B"} & {*named(operator)}
        _show(operator, ReadinessState.FAILED)
        for screen in ("1", "4"):
            await operator.press(screen)
            await until(operator, shows(operator, "R Restart  B Roll back"))
        queue.made = FULL  # its runner has the engine in its hands
        assert not {"R", "B"} & {*named(operator)}
        queue.made = replace(FULL, run=RunView())
        operator.control.reconfiguration = running()
        assert not {"R", "B"} & {*named(operator)}


async def test_with_read_only_no_such_key_is_named() -> None:
    async with operating("live", read_only=True) as operator:
        _show(operator, ReadinessState.FAILED)
        await until(operator, shows(operator, "FAILED"))
        assert "Restart" not in operator.text()


# ---- the preset that is in force ----------------------------------------------------------------


def test_all_that_a_preset_asks_for_must_be_in_force() -> None:
    shot = SCENES["live"](NOW)  # block size 8, budget 60, top-k 8, window 4096
    assert has_in_force(Request(knobs={"budget": 60, "topk": "8", "sink": None}), shot)
    assert not has_in_force(Request(knobs={"budget": 60, "topk": 4}), shot)
    assert not has_in_force(Request(knobs={"budget": 60, "window": None}), shot)
    assert not has_in_force(Request(), shot)
    assert not has_in_force(Request(knobs={"budget": 60}, environment={"A": "1"}), shot)
    assert not has_in_force(Request(knobs={"budget": 60}, flags={"page-size": 16}), shot)
    cut = replace(shot, link=replace(shot.link, state=LinkState.RETRYING))
    assert not has_in_force(Request(knobs={"budget": 60}), cut)
    down = _in_state(shot, ReadinessState.STOPPED)
    assert not has_in_force(Request(knobs={"budget": 60}), down)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_preset_in_force_is_marked_in_the_list(size: tuple[int, int]) -> None:
    presets = tuple(
        PresetView(f"budget-{each}", "", "built in", Request(f"budget-{each}", {"budget": each}))
        for each in (16, 60)
    )
    async with operating("live", FakeControl(presets), size=size) as operator:
        await operator.press("4")
        await until(operator, shows(operator, "budget-60 ✓"))
        legend = "✓ in force" if size[0] > 80 else "✓ now"
        assert legend in operator.text().splitlines()[2]
        assert "budget-16 ✓" not in operator.text()
