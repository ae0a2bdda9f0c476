"""What the screens are told of changes, from the records of the controller."""

from __future__ import annotations

import asyncio
import fcntl
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ddtui.app.change_view import view_of
from ddtui.app.control_source import ControlOfHost, _Changes
from ddtui.app.preset_source import presets_for
from ddtui.cli.change_report import history_lines
from ddtui.config.load import load
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.launch import Change, ChangeKind, Launch, Plan, Request
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.engines.sglang import SGLANG
from ddtui.experiments.presence import Holder, presence_file
from ddtui.experiments.queue import Queue
from ddtui.hosts.base import LinkRefused
from ddtui.store import Store
from ddtui.ui.source import ControlProblem, ReconfigurationView, StepStatus

BEGAN = 1_790_000_000.0


def record(*steps: str, ending: str = "", began: float = BEGAN) -> ChangeRecord:
    taken = tuple(StepRecord(step, began + at) for at, step in enumerate(steps))
    return ChangeRecord(
        id=f"r{began:.0f}",
        kind="apply",
        host="ct200",
        unit="llm.service",
        who="mara@desk",
        began=began,
        ended=began + len(steps) if ending else None,
        ending=ending,
        steps=taken,
    )


def test_a_running_change_has_its_steps_and_those_to_come() -> None:
    view = view_of(record("planned", "locked", "written"), "words within", None)
    assert view.running
    assert view.here
    states = {each.name: each.status for each in view.steps}
    assert states["locked"] is StepStatus.DONE
    assert states["written"] is StepStatus.RUNNING
    assert states["verifying"] is StepStatus.PENDING
    assert next(each.detail for each in view.steps if each.name == "written") == "words within"


def test_at_its_very_begin_all_steps_are_to_come() -> None:
    view = view_of(record("planned"), "", None)
    assert view.running
    assert {each.status for each in view.steps} == {StepStatus.PENDING}


@pytest.mark.parametrize("holder", ["", "jonas@laptop since then"])
def test_one_that_is_not_carried_on_here_is_interrupted_unless_another_is_at_it(
    holder: str,
) -> None:
    view = view_of(record("planned", "locked"), "", None, elsewhere=holder)
    assert not view.here
    assert view.interrupted is (holder == "")
    assert view.running is bool(holder)


class Controls:
    """As much of a controller as is asked here."""

    def __init__(self, history: list[ChangeRecord], running: ChangeRecord | None = None) -> None:
        self.running = running
        self._history = history

    lock = "jonas@laptop"

    async def holder(self) -> str:
        return self.lock

    async def history(self) -> list[ChangeRecord]:
        return self._history

    async def rollback_plan(self) -> Plan:
        launch = Launch(("python",), {})
        change = Change(ChangeKind.FLAG, "speculative-ddtree-budget", "16", "8")
        return Plan(Request(), launch, launch, (change,), ())


def source(controls: Controls, folder: Path, **known: object) -> ControlOfHost:
    file = folder / "config.toml"
    loaded = load(file) if file.exists() else load(None, {"DDTUI_CONFIG_FILE": str(file)})

    def presets():  # type: ignore[no-untyped-def]
        return presets_for(load(file), "ct200")

    return ControlOfHost(
        controls,  # type: ignore[arg-type]
        presets,
        loaded,
        **{"past": LoadHistory(), "engine": SGLANG, **known},  # type: ignore[arg-type]
    )


async def test_a_load_is_expected_to_take_what_the_queue_says_of_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    loads = [LoadRecord(model="/m", began=at, seconds=at) for at in (100.0, 200.0)]
    loads.append(LoadRecord(model="/m", tp=8, began=1.0, seconds=900.0))
    done = record("planned", "stopping", "loading", "in force", ending="in force")
    control = source(Controls([done]), tmp_path, past=LoadHistory(loads))
    await control.look()
    argv = ("python", "-m", "sglang.launch_server", "--model-path", "/m")
    assert control.expected_load(Launch(argv, {})) == (
        151.0,
        "median of 2 loads of this model, with 1 s to stop and release",
    )
    assert control.expected_load(Launch((*argv[:-1], "/other"), {})) == (None, "")


async def test_a_newer_change_elsewhere_is_shown_before_one_that_ended_here(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    mine = record("planned", "in force", ending="in force")
    other = record("planned", "locked", began=BEGAN + 60)
    control = source(Controls([other, mine], running=mine), tmp_path)
    before = control.reconfiguration
    assert before is not None
    assert before.ending == "in force"
    await control.look()
    after = control.reconfiguration
    assert after is not None
    assert after.id == other.id
    assert after.running
    assert not after.here
    assert control.holder == "jonas@laptop"


async def test_a_clock_that_was_set_back_hides_no_newer_change(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    mine = record("planned", "in force", ending="in force")
    other = record("planned", "locked", began=BEGAN - 3600)
    control = source(Controls([other, mine], running=mine), tmp_path)
    await control.look()
    shown = control.reconfiguration
    assert shown is not None
    assert (shown.id, shown.here) == (other.id, False)


async def test_a_change_that_ended_here_gives_way_to_one_that_ended_elsewhere_since(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.toml").write_text("")
    mine = record("planned", "in force", ending="in force")
    other = record("planned", "in force", began=BEGAN + 60, ending="rolled back")
    control = source(Controls([mine], running=mine), tmp_path)
    await control.look()
    assert control.reconfiguration is not None
    assert control.reconfiguration.id == mine.id
    control._control._history = [other, mine]  # type: ignore[attr-defined]
    await control.look()
    assert control.reconfiguration.id == other.id
    assert control.reconfiguration.ending == "rolled back"


async def test_one_that_was_left_here_and_ended_elsewhere_has_ended(tmp_path: Path) -> None:
    """Its connection was refused; another ddtui has carried it on since."""
    (tmp_path / "config.toml").write_text("")
    left = record("planned", "locked")
    controls = Controls([left], running=left)
    controls.lock = ""
    control = source(controls, tmp_path)
    shown = control.reconfiguration
    assert shown is not None
    assert shown.interrupted
    controls._history = [replace(left, ending="in force", ended=BEGAN + 9)]
    await control.look()
    shown = control.reconfiguration
    assert shown is not None
    assert (shown.ending, shown.interrupted) == ("in force", False)


async def test_the_rollback_that_was_shown_is_the_one_that_is_done(tmp_path: Path) -> None:
    asked: list[object] = []

    class Rolling(Controls):
        async def rollback(self, *_: object, plan: object, **__: object) -> ChangeRecord:
            asked.append(plan)
            return record("planned", ending="failed")

    (tmp_path / "config.toml").write_text("")
    control = source(Rolling([]), tmp_path)
    shown = await control.rollback_plan()
    control.rollback()
    await asyncio.sleep(0)
    await control.close()
    (plan,) = asked
    assert isinstance(plan, Plan)
    assert (plan.before, plan.after) == (shown.before, shown.after)


async def test_one_that_ended_here_unfinished_is_left_though_the_host_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host lets nobody in any more: the change that ran here is not carried on by anybody."""

    async def refused(_control: Controls) -> str:
        raise LinkRefused("Permission denied")

    (tmp_path / "config.toml").write_text("")
    mine = record("planned", "locked")
    control = source(Controls([mine], running=mine), tmp_path)
    monkeypatch.setattr(Controls, "holder", refused)
    with pytest.raises(ControlProblem, match="Permission denied"):
        await control.look()
    left = control.reconfiguration
    assert left is not None
    assert left.interrupted


async def test_changes_name_their_knobs_and_the_experiment_that_they_were_made_for(
    tmp_path: Path,
) -> None:
    flag = {"kind": "flag", "name": "speculative-ddtree-budget", "before": "16", "after": "8"}
    tokens = {**flag, "name": "speculative-num-draft-tokens"}
    back = replace(record("planned", ending="rolled back"), kind="rollback", changes=[flag, tokens])
    asked = replace(
        record("planned", ending="in force", began=BEGAN - 60), changes=[{**flag, "knob": "budget"}]
    )
    (tmp_path / "config.toml").write_text("")
    made = [(asked.id, "budget 16 topk 4")]
    control = source(Controls([back, asked]), tmp_path, titles=lambda: dict(made))
    await control.look()
    first, second = control.history
    # A flag that is one knob is called by it; one that may be several keeps its own name.
    assert [each.knob for each in first.changes] == ["budget", ""]
    assert [each.knob for each in second.changes] == ["budget"]
    assert (first.title, second.title) == ("rollback", "experiment budget 16 topk 4")
    (change,) = (await control.rollback_plan()).changes
    assert change.knob == "budget"
    lines = list(history_lines([back, asked]))
    assert "budget 16 → 8" in lines[1]
    assert "budget 16 → 8" in lines[2]


def test_titles_of_experiments_are_told_by_their_change(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s.db")
    queue = Queue(store, "ct200", False, "mara@desk", clock=lambda: BEGAN)
    (added,) = queue.add([queue.draft(Request(knobs={"budget": 16}))])
    changes = _Changes()
    changes._store = store
    assert changes.titles("ct200", simulated=False) == {}
    store.experiments.change(added.id, [added.state], change="r1", cleared=True)
    assert changes.titles("ct200", simulated=False) == {"r1": "budget 16"}
    assert changes.titles("ct200", simulated=True) == {}
    changes.close()


def test_a_saved_preset_is_listed_and_a_broken_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\n")
    control = source(Controls([]), tmp_path)
    assert control.presets() == []
    control.save_preset("mine", "a tree", Request("x", {"budget": 20}), "user")
    (preset,) = control.presets()
    assert (preset.name, preset.description, preset.request.knobs) == (
        "mine",
        "a tree",
        {"budget": 20},
    )
    assert "# mine" in file.read_text()
    with pytest.raises(ControlProblem, match="already"):
        control.save_preset("mine", "", Request("x", {"budget": 20}), "user")
    file.write_text("[presets.a]\nbudget = 'many'\n")
    with pytest.raises(ControlProblem, match="budget"):
        control.presets()


async def test_a_change_that_another_process_makes_of_its_own_simulated_host_is_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path))
    file = presence_file("demo", simulated=True)
    file.parent.mkdir()
    begun = replace(record("planned", "locked", began=time.time()), host="demo", simulated=True)
    controls = Controls([begun])
    controls.lock = ""
    (tmp_path / "config.toml").touch()
    control = source(controls, tmp_path)

    async def seen() -> ReconfigurationView:
        await control.look()
        assert control.holder == ""  # nobody keeps this host from being changed
        assert control.reconfiguration is not None
        return control.reconfiguration

    with file.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(msgspec.json.encode(Holder(pid=1, started=1.0, who="mara", since=1.0)))
        held.flush()
        assert not (await seen()).interrupted
    assert (await seen()).interrupted


async def test_a_change_whose_simulated_host_is_gone_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path))
    (tmp_path / "config.toml").touch()
    before = replace(record("planned", "locked"), host="demo", simulated=True)
    control = source(Controls([before]), tmp_path)
    await control.look()
    assert control.reconfiguration is None
    (shown,) = control.history
    assert shown.cause == "its simulated host is gone"
