"""The results screen, driven by keys over a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ddtui.app.results_source import StoredResults
from ddtui.experiments.results_files import Form, text_of
from ddtui.store import Store
from ddtui.ui.app import DdtuiApp
from ddtui.ui.results_source import ResultsSource
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.reading import ReadingScreen
from ddtui.ui.screens.results import ResultsScreen
from ddtui.ui.source import ControlProblem
from ddtui.ui.widgets.prompt import Prompt
from ddtui.ui.widgets.results_chart import Kind
from tests.ui.control_keys import Operator, shows, until
from tests.ui.control_world import FakeControl
from tests.ui.results_world import (
    HOST,
    LONG,
    GivenResults,
    campaign,
    cell,
    hostile,
    measured,
    results_app,
    stored,
)
from tests.ui.scenes import HOSTILE, NOW


class Reader(Operator):
    """Somebody who reads results."""

    def __init__(self, source: ResultsSource, **settings: Any) -> None:
        super().__init__("idle", FakeControl())
        self.app: DdtuiApp = results_app(source, key_clock=lambda: self.now, **settings)

    @property
    def screen(self) -> ResultsScreen:
        return next(each for each in self.app.screen_stack if isinstance(each, ResultsScreen))

    @property
    def titles(self) -> list[str]:
        view = self.screen.model.shown
        return [] if view is None else [row.title for row in view.rows]

    @property
    def title(self) -> str:
        row = self.screen.model.row
        return "" if row is None else row.title

    async def choose(self, key: str, words: str) -> None:
        """Open a list, and choose the entry with these words."""
        await self.press(key)
        options = self.app.screen.query_one("OptionList")
        at = next(
            index
            for index, each in enumerate(options.options)  # type: ignore[attr-defined]
            if str(each.prompt).lstrip("* ").startswith(words)
        )
        options.highlighted = at  # type: ignore[attr-defined]
        await self.press("enter")
        await self.read()

    async def read(self) -> None:
        """Wait until what is asked for is read."""
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def type_over(self, text: str) -> None:
        """Type into the line, in place of what is there."""
        await self.press("ctrl+u")
        self.screen.query_one("Input").value = ""  # type: ignore[attr-defined]
        await self.press(*text, each=0.15)


@asynccontextmanager
async def reading(
    source: ResultsSource, *, size: tuple[int, int] = (120, 40), **settings: Any
) -> AsyncIterator[Reader]:
    """The app on its results."""
    reader = Reader(source, **settings)
    async with reader.app.run_test(size=size, notifications=True) as pilot:
        reader.pilot = pilot
        await pilot.pause()
        await reader.press("6")
        await until(
            reader, lambda: bool(reader.screen._reader.found or reader.screen._reader.trouble)
        )
        await reader.read()
        yield reader
    if isinstance(source, StoredResults):
        await source.close()


def in_folder(folder: Path, suffix: str) -> list[Path]:
    """Its files with a suffix."""
    return [each for each in folder.iterdir() if each.suffix == suffix]


def no_database(file: Path) -> None:
    """Make a file that is no database."""
    file.write_bytes(b"no database at all, but long enough to look like one" * 100)


def gone(file: Path) -> None:
    """Take a file away."""
    file.unlink()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


async def test_every_configuration_is_a_row_with_its_verdict_and_why(file: Path) -> None:
    async with reading(stored(file)) as reader:
        text = reader.text()
        assert "9 configurations" in text
        assert "against budget 8 topk 4" in text
        row = next(line for line in text.splitlines() if "budget 12 topk 4" in line)
        assert [word for word in row.split() if word[0] in "-×s"] == [
            *("-12.4", "slower", "×1.12", "×1.28", "-0"),
        ]
        assert "failed" in text
        await reader.press("j", "j", "j", "j")
        assert reader.title == "budget 12 topk 4"
        assert "a pass costs more than it brings" in reader.text()
        assert "tok/s per user by budget" in reader.text()


async def test_one_in_full_says_how_to_get_it_again(file: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.press("end", "k", "enter")
        assert isinstance(reader.app.screen, ReadingScreen)
        assert "the link broke" in reader.text()
        await reader.press("escape", "k", "o")
        assert "ddtui queue ct200 add --first --set budget=16 --set topk=4" in reader.text()
        assert "try again with the new kernels" in reader.text()
        assert "by ratio, to match block size 8, budget 8" in reader.text()
        await reader.press("end")
        assert "temperature 0" in reader.text()


async def test_rows_are_sorted_and_the_highlight_stays_on_its_row(file: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.press("j")
        assert reader.title == "budget 4 topk 4"
        await reader.choose("s", "accept ")
        assert reader.titles[:2] == ["budget 16 topk 6", "budget 16 topk 4"]
        assert reader.titles[-1] == "budget 64 topk 4"
        assert reader.title == "budget 4 topk 4"
        await reader.press("S")
        assert reader.titles[0] == "budget 4 topk 4"
        assert reader.titles[-1] == "budget 64 topk 4"
        await reader.choose("s", "as usual")
        assert reader.titles[0] == "budget 8 topk 4"


async def test_any_row_can_be_the_baseline_and_be_let_go(file: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.press("j", "b")
        await reader.read()
        assert "against budget 4 topk 4" in reader.text()
        assert reader.title == "budget 4 topk 4"
        assert reader.titles[0] == "budget 4 topk 4"
        await reader.press("b")
        await reader.read()
        assert "against budget 8 topk 4" in reader.text()
        await reader.press("home", "b")
        await until(reader, shows(reader, "This is the baseline already"))
        await reader.press("end", "b")
        await until(reader, shows(reader, "It has no figures to compare with"))


async def test_concurrency_sweep_and_work_are_chosen(file: Path) -> None:
    measurements, experiments = campaign()
    long = measured(
        8, 4, id="m-long", experiment="e-long", plan=LONG, cells=(cell(96.0, 3.2),), coding=None
    )
    other = msgspec.structs.replace(
        experiments[0], id="e-long", sweep="contexts", measurement="m-long", plan=LONG
    )
    async with reading(stored(file, ([*measurements, long], [*experiments, other]))) as reader:
        await reader.choose("n", "16")
        assert "at concurrency 16" in reader.text()
        await reader.choose("p", "long prompts")
        assert reader.titles == ["budget 8 topk 4 (long prompts, 1024 tokens at most)"]
        assert "1 of 10 configurations" in reader.text()
        assert "one kind of work" in reader.text()
        await reader.press("escape")
        assert len(reader.titles) == 10
        await reader.choose("w", "contexts")
        assert reader.titles == ["budget 8 topk 4"]
        assert "sweep contexts" in reader.text()
        await reader.choose("w", "all results")
        assert len(reader.titles) == 10


async def test_words_filter_rows_as_they_are_typed_and_escape_drops_them(file: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.press("/", *"topk 6", each=0.15)
        await until(reader, lambda: {title[-6:] for title in reader.titles} == {"topk 6"})
        await reader.press("enter")
        assert "4 of 9 configurations" in reader.text()
        await reader.press("/", *" nothing", each=0.15)
        await until(reader, lambda: reader.titles == [])
        assert "No configuration is left by the filters" in reader.text()
        await reader.press("escape", "escape")
        assert len(reader.titles) == 9


async def test_charts_follow_one_another_and_knobs_are_chosen(file: Path) -> None:
    async with reading(stored(file)) as reader:
        for kind, words in [
            (Kind.ACCEPTANCE, "acceptance length by budget"),
            (Kind.HEAT, "tok/s per user by budget and topk"),
            (Kind.PARETO, "not beaten on both axes"),
            (Kind.LIVE, "No bench runs in this ddtui now"),
        ]:
            await reader.press("c")
            assert reader.screen.model.charts.kind is kind
            assert words in reader.text()
        await reader.press("C", "C", "C")
        await reader.choose("x", "topk")
        assert "acceptance length by topk" in reader.text()
        await reader.choose("X", "budget")
        assert "tok/s per user by topk and budget" in reader.text()


async def test_a_narrow_terminal_shows_charts_alone(file: Path) -> None:
    async with reading(stored(file), size=(80, 24)) as reader:
        assert "no room for" in reader.text()
        assert "Figures" in reader.text()
        await reader.press("c")
        assert "tok/s per user by budget" in reader.text()
        assert "Figures" not in reader.text()
        await reader.press("v")
        assert "budget 64 topk 4" in reader.text()
        await reader.press("v")
        assert "Figures" in reader.text()


async def test_the_command_is_copied(file: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.press("j", "y")
        expected = "ddtui queue ct200 add --first --set budget=4 --set topk=4 --plan usual"
        assert reader.app.clipboard == f"{expected} && ddtui run ct200 --once"
        assert "measure it again" in reader.text()


@pytest.mark.parametrize("form", Form)
async def test_what_is_shown_is_exported(form: Form, file: Path, own_folders: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.press("/", *"topk 4", "enter", each=0.15)
        await until(reader, lambda: len(reader.titles) == 5)
        names = {Form.CSV: "CSV", Form.JSON: "JSON", Form.MD: "Markdown", Form.SVG: "SVG"}
        await reader.choose("e", names[form])
        assert "Write 5 configurations to:" in reader.text()
        await reader.press("enter")
        await reader.read()
        (written,) = in_folder(own_folders, f".{form.value}")
        view = reader.screen.model.shown
        assert view is not None
        if form is Form.MD:
            text = written.read_text()
            assert text.count("![") == len(in_folder(own_folders, ".svg")) > 0
        else:
            assert written.read_bytes().decode() == text_of(view, form, NOW)
        assert "Written:" in reader.text()
        assert reader.screen.query_one(Prompt).purpose == ""


async def test_nothing_is_replaced_unless_that_is_confirmed(file: Path, own_folders: Path) -> None:
    there = own_folders / "mine.csv"
    there.write_text("precious")
    async with reading(stored(file)) as reader:
        await reader.choose("e", "CSV")
        await reader.type_over("mine.csv")
        await reader.press("enter")
        question = await reader.until_asked()
        assert "mine.csv" in reader.text()
        await reader.settle(2.0)
        await reader.press("escape")
        await until(reader, lambda: not isinstance(reader.app.screen, ConfirmScreen))
        await reader.read()
        assert there.read_text() == "precious"
        assert "nothing was written" in reader.text()
        await reader.press("enter")
        assert await reader.until_asked() is not question
        await reader.confirm()
        await until(reader, lambda: there.read_text() != "precious")
        await reader.read()
        assert there.read_text().startswith("host,simulated,title")


async def test_what_cannot_be_written_keeps_the_line_open(file: Path, tmp_path: Path) -> None:
    async with reading(stored(file)) as reader:
        await reader.choose("e", "JSON")
        for name, why in [
            (str(tmp_path), "it is a folder"),
            (str(tmp_path / "none" / "x.json"), "No such file"),
            ("", "name a file"),
        ]:
            await reader.type_over(name)
            await reader.press("enter")
            await reader.read()
            await until(reader, shows(reader, why))
            assert reader.screen.query_one(Prompt).purpose == "export"


async def test_what_is_measured_meanwhile_appears(file: Path) -> None:
    source = stored(file)
    async with reading(source) as reader:
        await reader.press("j", "j")
        before = reader.title
        store = Store.open(file)
        more = measured(8, 4, id="m-new", configuration="new", title="budget 9", experiment="")
        store.measurements.put(more)
        store.close()
        await until(reader, lambda: "budget 9" in reader.titles)
        assert reader.title == before


def looked(reader: Reader, source: GivenResults, times: int) -> Callable[[], bool]:
    """Whether the screen has looked again so often, to be asked with `until`."""
    most = source.looks + times

    def done() -> bool:
        reader.screen._reader._not_before = 0.0
        reader.screen._look()
        return source.looks >= most

    return done


async def test_results_are_read_only_when_something_changed() -> None:
    source = GivenResults()
    async with reading(source) as reader:
        await until(reader, looked(reader, source, 3))
        assert len(source.reads) == 1
        source.now = 2
        await until(reader, looked(reader, source, 2))
        assert len(source.reads) == 2


async def test_keys_answer_while_results_are_being_read() -> None:
    source = GivenResults()
    source.go.clear()
    reader = Reader(source)
    async with reader.app.run_test(size=(120, 40)) as pilot:
        reader.pilot = pilot
        await reader.press("6")
        assert "reading the results" in reader.text()
        await reader.press("j", "v", "c", "o", "b", "y", "1")
        assert isinstance(reader.app.screen, MonitorScreen)
        await reader.press("6")
        source.go.set()
        await until(reader, lambda: len(reader.titles) == 9)


async def test_trouble_is_told_and_what_was_read_stays() -> None:
    source = GivenResults()
    async with reading(source) as reader:
        source.problem = ControlProblem("the database is locked", "Wait for the other process.")
        await until(reader, looked(reader, source, 1))
        await until(reader, shows(reader, "the database is locked. Wait for the other process."))
        assert len(reader.titles) == 9
        source.problem = None
        await until(reader, looked(reader, source, 1))
        await until(reader, lambda: reader.screen._reader.trouble == "")


async def test_a_store_that_cannot_be_opened_says_what_to_do(file: Path) -> None:
    no_database(file)
    source = StoredResults(HOST, simulated=True, open_store=lambda: Store.open(file))
    async with reading(source) as reader:
        await until(reader, shows(reader, "cannot open the database"))
        assert not reader.titles
        gone(file)
        reader.screen._look()
        await until(reader, shows(reader, "Nothing was measured on ct200 yet"))


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
async def test_without_results_it_says_how_to_get_some(size: tuple[int, int], file: Path) -> None:
    async with reading(stored(file, ([], [])), size=size) as reader:
        assert "Nothing was measured on ct200 yet" in reader.text()
        assert "ddtui bench ct200" in reader.text()
        for key in "jkgGJKvcCxXsSobnwpyer":
            await reader.press(key)
        assert reader.app.is_running


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (200, 60)])
async def test_hostile_text_is_nothing_but_text(size: tuple[int, int], file: Path) -> None:
    async with reading(stored(file, hostile()), size=size) as reader:
        assert len(reader.titles) == len(HOSTILE)
        for _ in HOSTILE:
            await reader.press("o")
            assert "\x1b" not in reader.text()
            await reader.press("escape", "c", "j")
        await reader.press("s", "escape", "p", "escape", "x", "escape", "v", "v")
        assert reader.app.is_running


async def test_read_only_leaves_all_of_it(file: Path) -> None:
    source = stored(file)
    app = DdtuiApp(results_app(source).source, clock=lambda: NOW, results=source, read_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("6")
        await app.workers.wait_for_complete()
        await pilot.press("j", "y")
        assert app.clipboard.startswith("ddtui queue ct200 add")
    await source.close()


async def test_without_a_source_there_is_no_screen() -> None:
    app = DdtuiApp(results_app(GivenResults()).source, clock=lambda: NOW)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("6")
        assert isinstance(app.screen, MonitorScreen)
