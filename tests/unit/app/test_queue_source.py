"""The queue as the screens have it, on the simulated host: looked at, changed, and run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from ddtui.app.control_source import ControlOfHost, screen_control
from ddtui.app.live import Watched, watched
from ddtui.app.queue_source import QueueOfHost, screen_queue
from ddtui.app.queue_words import read_line
from ddtui.app.reaching import Overrides
from ddtui.cli.look import collected
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import find_host
from ddtui.config.load import Loaded, load
from ddtui.core.experiment import ExperimentState
from ddtui.core.measurement import MeasurementState
from ddtui.demo.host import DemoHost
from ddtui.experiments.presence import RunnerHeld, holder_of, presence_file, present
from ddtui.store import Store
from ddtui.ui.app import DdtuiApp
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.source import ControlProblem

State = ExperimentState
PLAN = """
[bench.tiny]
concurrency = [1]
output_tokens = 16
repeats = 1
requests = 2
warmup_batches = 1
coding = false
"""


class There:
    """A watched host with what the screens have of it."""

    def __init__(
        self, source: Watched, loaded: Loaded, control: ControlOfHost, queue: QueueOfHost
    ) -> None:
        self.source, self.loaded, self.control, self.queue = source, loaded, control, queue


@pytest.fixture
def loaded(folders: Path) -> Loaded:
    folders.mkdir()
    file = folders / "config.toml"
    file.write_text(PLAN)
    return load(file)


@asynccontextmanager
async def on_demo(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[There]:
    """The simulated host, on which a load takes a second."""
    create = DemoHost.create

    async def quick(**options: Any) -> DemoHost:
        return await create(**options | {"speed": 500.0})

    monkeypatch.setattr(DemoHost, "create", quick)
    source = await watched(find_host(loaded.config, "demo"), Overrides(scenario="idle"))
    await source.start()
    try:
        await collected(source)
        async with (
            screen_control(source, loaded) as control,
            screen_queue(source, control, loaded) as queue,
        ):
            yield There(source, loaded, control, queue)
    finally:
        await source.close()


async def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for what comes by itself."""
    async with asyncio.timeout(seconds):
        # What is shown changes without a word to those who look at it.
        while not what():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


# ---- lines that are typed ------------------------------------------------------------------------


def test_a_line_has_a_preset_values_and_a_plan(loaded: Loaded) -> None:
    typed = read_line(loaded, "demo", "budget=16 flag:page-size=64 plan=tiny")
    assert typed.request.knobs == {"budget": 16}
    assert typed.request.flags == {"page-size": "64"}
    assert typed.plan is not None
    assert typed.plan.name == "tiny"
    typed = read_line(loaded, "demo", "-topk -env:HOME budget=8", without=True)
    assert typed.without == ("topk", "HOME")
    typed = read_line(loaded, "demo", "block_size=16 control", control=True)
    assert typed.control
    assert read_line(loaded, "demo", "").empty


@pytest.mark.parametrize(
    ("text", "may", "words"),
    [
        ("plan=tiny plan=quick", {}, "two plans"),
        ("one two", {"preset": True}, "two presets"),
        ("'budget=4", {}, "quotation"),
        ("plan=tinny", {}, "did you mean 'tiny'"),
        ("fast", {}, "has no value"),
        ("no-such-preset", {"preset": True}, "there is no preset"),
        ("-topk", {}, "has no value"),
    ],
)
def test_mistakes_in_a_line(loaded: Loaded, text: str, may: dict[str, bool], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_line(loaded, "demo", text, **may)


# ---- looking -------------------------------------------------------------------------------------


async def test_times_loads_and_previews_come_from_the_host(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_demo(loaded, monkeypatch) as there:
        queue = there.queue
        assert not queue.view.read
        for text in ("budget=8 plan=tiny", "budget=12 plan=tiny", "budget=12 topk=4 plan=tiny"):
            await queue.add(text)
        await queue.look()
        view = queue.view
        assert view.checked
        assert view.eta is not None
        # The first one is what is in force already.
        assert [leg.loads for leg in view.eta.legs] == [False, True, True]
        _first, second, third = view.experiments
        plan = await queue.plan(second.id)
        assert [each.after for each in plan.changes if each.knob == "budget"] == ["12"]
        assert [each.what for each in await queue.log(third.id)] == ["added"]
        found = queue.like(second.id, "block_size=16 control")
        assert (found.reference is not None, found.control) == (True, True)
        assert found.choices[0].formula == "ceil(12 x 15 / 7) = 26"
        added = await queue.add_like(second.id, "block_size=16 control", "nodes")
        budgets = [queue.view.find(each) for each in added]
        assert [each.request.knobs["budget"] for each in budgets if each] == [26, 12]
        nodes = next(at for at, each in enumerate(found.choices) if each.policy == "nodes")
        assert [each.title for each in budgets if each] == [found.titles[nodes], found.title]
        assert queue.grid("budget=4,8 topk=").fault
        grid = queue.grid("budget=4,8,16 topk=4,6 if topk <= budget")
        assert grid.expansion is not None
        assert len(grid.expansion.combinations) == 5
        counted: list[tuple[int, int]] = []
        worked = await queue.work_out(
            "budget=4,8,16 topk=4,6 if topk <= budget",
            reuse=False,
            on_done=lambda *done: counted.append(done),
        )
        assert counted[-1] == (5, 5)
        assert worked.checked
        assert len(await queue.add_grid(worked)) == len(worked.arranged.runs)


async def test_what_cannot_be_done_changes_nothing_and_says_why(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_demo(loaded, monkeypatch) as there:
        queue = there.queue
        for text in ("", "bugdet=4", "no-such-preset"):
            with pytest.raises(ControlProblem):
                await queue.add(text)
        with pytest.raises(ControlProblem, match="Nothing waits to be run"):
            await queue.prepare_run()
        with pytest.raises(ControlProblem, match="Nobody runs"):
            await queue.stop_run()
        (one,) = await queue.add("budget=12 plan=tiny")
        with pytest.raises(ControlProblem, match="cannot retry"):
            await queue.retry(one)
        with pytest.raises(ControlProblem, match="gives no budget"):
            await queue.add_like(one, "block_size=16", "measured")
        await queue.look()
        assert len(queue.view.experiments) == 1
        await queue.hold(one)
        with pytest.raises(ControlProblem, match="All that waits is held"):
            await queue.prepare_run()


async def test_a_runner_of_another_process_is_seen_and_asked_to_stop(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_demo(loaded, monkeypatch) as there:
        queue = there.queue
        await queue.add("budget=12 plan=tiny")
        file = presence_file("demo", simulated=True)
        with present(file, "jonas@desk", 1_000.0, log="/tmp/x.log"):
            await queue.look()
            run = queue.view.run
            assert (run.where, run.who, run.since) == ("this machine", "jonas@desk", 1_000.0)
            plan = await queue.prepare_run()
            assert plan.holder == "jonas@desk"
            queue.start_run()
            await until(lambda: queue.view.run.where != "here")
            trouble = queue.take_trouble()
            assert trouble is not None
            assert "jonas@desk" in trouble.what
        await queue.look()
        assert queue.view.run.where == "nobody"
        with pytest.raises(RunnerHeld), present(file, "a", 1.0), present(file, "b", 2.0):
            pass


# ---- running -------------------------------------------------------------------------------------


class Screens:
    """The app over a real host, driven by its keys; asks nothing of a terminal."""

    def __init__(self, there: There) -> None:
        self.app = DdtuiApp(
            there.source, control=there.control, queue=there.queue, key_clock=self.clock
        )
        self.pilot: Pilot[object]
        self._ahead = 0.0

    def clock(self) -> float:
        """The clock of keys: it runs, and can be set ahead."""
        return time.monotonic() + self._ahead

    async def press_late(self, key: str) -> None:
        """One key, a second after all before it."""
        self._ahead += 1.0
        event = events.Key(key, None)
        event.time = self.clock()
        self.app.post_message(event)
        await self.pilot.pause()

    def text(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def shows(self, words: str, seconds: float = 60.0) -> None:
        try:
            await until(lambda: words in self.text(), seconds)
        except TimeoutError:
            raise AssertionError(f"{words!r} is not in\n{self.text()}") from None

    async def type_in(self, words: str) -> None:
        self.app.screen.query_one(Input).value = words
        await self.pilot.pause()
        await self.pilot.press("enter")
        await self.pilot.pause()

    async def confirm(self) -> None:
        """Step to the button, and press it, as deliberately as it wants it."""
        await until(lambda: isinstance(self.app.screen, ConfirmScreen))
        screen = self.app.screen
        assert isinstance(screen, ConfirmScreen)
        assert screen.deliberation.word == ""
        self._ahead += 2.0
        screen._settle()
        for key in ("right", "enter"):
            await self.press_late(key)
        self._ahead += 1.0
        screen._settle()
        await until(lambda: self.app.screen is not screen)


async def test_a_queue_is_run_from_the_screen_and_added_to_meanwhile(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_demo(loaded, monkeypatch) as there:
        screens = Screens(there)
        async with screens.app.run_test(size=(120, 40), notifications=True) as pilot:
            screens.pilot = pilot
            await pilot.press("5")
            for text in ("budget=12 plan=tiny", "budget=16 topk=4 plan=tiny"):
                await pilot.press("a")
                await screens.type_in(text)
            await screens.shows("2 loads")
            await pilot.press("s")
            await screens.confirm()
            await screens.shows("run here")
            seen: set[str] = set()

            def note() -> bool:
                view = there.queue.view
                if view.running is not None:
                    seen.add(view.running.step)
                if there.control.reconfiguration is not None:
                    seen.add("its steps")
                if view.run.progress is not None:
                    seen.add("its bench")
                return len(view.in_state(State.DONE)) >= 1

            await until(note)
            await pilot.press("a")
            await screens.type_in("budget=8 plan=tiny")
            await until(
                lambda: note() and len(there.queue.view.in_state(State.DONE)) == 3, seconds=120
            )
            await until(lambda: there.queue.view.run.where == "nobody")
            await screens.shows("The run has ended: 3 done")
            assert {"loading", "measuring", "its steps", "its bench"} <= seen
        store = Store.open()
        measured = store.measurements.of_host("demo", simulated=True)
        store.close()
        assert len(measured) == 3
        assert {each.state for each in measured} == {MeasurementState.COMPLETE}


async def test_leaving_in_the_middle_gives_back_what_runs(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_demo(loaded, monkeypatch) as there:
        await there.queue.add("budget=8 plan=standard")  # long, and loaded already
        await there.queue.add("budget=12 plan=tiny")
        there.queue.start_run()
        await until(lambda: there.queue.view.run.progress is not None)
        await there.queue.look()
        await there.queue.close()
        assert holder_of(presence_file("demo", simulated=True)) is None
        store = Store.open()
        listed = store.experiments.queue("demo", simulated=True)
        store.close()
        assert [each.state for each in listed] == [State.PENDING, State.PENDING]
