"""The results as pictures, with a frozen clock: table, details and charts at each size."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from ddtui.ui.app import DdtuiApp
from ddtui.ui.screens.results import ResultsScreen
from tests.ui.results_world import campaign, hostile, results_app, stored
from tests.ui.test_pictures import LARGE, MIDDLE, SMALL, SnapCompare

SIZES = (SMALL, MIDDLE, LARGE)


def by_size(size: object) -> str:
    return f"{size[0]}x{size[1]}" if isinstance(size, tuple) else str(size)


def prepared(*keys: str) -> Callable[[Pilot[object]], Awaitable[None]]:
    """Open the results, wait until they are read, press keys."""

    async def run(pilot: Pilot[object]) -> None:
        app = pilot.app
        assert isinstance(app, DdtuiApp)
        await pilot.press("6")
        screen = app.screen
        assert isinstance(screen, ResultsScreen)
        for _ in range(500):
            await pilot.pause()
            if screen.model.view is not None:
                break
            await asyncio.sleep(0.01)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.mark.parametrize("size", [(60, 16), *SIZES], ids=by_size)
def test_overview(size: tuple[int, int], file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file))
    assert snap_compare(app, terminal_size=size, run_before=prepared("j", "j", "j", "j"))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
@pytest.mark.parametrize("turns", range(4), ids=["rate", "acceptance", "heat", "pareto"])
def test_charts(size: tuple[int, int], turns: int, file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file))
    keys = ("v", *"c" * turns)
    assert snap_compare(app, terminal_size=size, run_before=prepared(*keys))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=by_size)
def test_the_table_alone(size: tuple[int, int], file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file))
    assert snap_compare(app, terminal_size=size, run_before=prepared("v", "v", "G"))


@pytest.mark.parametrize("theme", ["ddtui-light", "ddtui-contrast"])
@pytest.mark.parametrize("turns", [0, 2], ids=["rate", "heat"])
def test_themes(theme: str, turns: int, file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file), theme=theme)
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared(*"c" * turns))


@pytest.mark.parametrize("turns", [0, 2, 3], ids=["rate", "heat", "pareto"])
def test_ascii(turns: int, file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file), ascii=True)
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared(*"c" * turns))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
def test_hostile(size: tuple[int, int], file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file, hostile()))
    assert snap_compare(app, terminal_size=size, run_before=prepared("j"))


@pytest.mark.parametrize("size", SIZES, ids=by_size)
def test_empty(size: tuple[int, int], file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file, ([], [])))
    assert snap_compare(app, terminal_size=size, run_before=prepared())


def test_in_full(file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file))
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared("G", "k", "o"))


@pytest.mark.parametrize("key", ["s", "e", "w", "p"], ids=["sort", "export", "sweep", "work"])
def test_choices(key: str, file: Path, snap_compare: SnapCompare) -> None:
    app = results_app(stored(file))
    assert snap_compare(app, terminal_size=SMALL, run_before=prepared(key))


def test_many_configurations(file: Path, snap_compare: SnapCompare) -> None:
    """Sixty of them: budgets by top-k, more than a small heat map holds."""
    measurements, _ = campaign()
    many = [
        replace(
            measurements[0],
            id=f"m{budget}-{topk}",
            configuration=f"c{budget}-{topk}",
            title=f"budget {budget} topk {topk}",
            experiment="",
            knobs={"budget": str(budget), "topk": str(topk)},
            cells=tuple(
                replace(
                    cell,
                    user_rate=None
                    if cell.user_rate is None
                    else replace(cell.user_rate, median=cell.user_rate.median + topk - budget / 8),
                )
                for cell in measurements[0].cells
            ),
        )
        for budget in range(4, 64, 4)
        for topk in (2, 4, 6, 8)
    ]
    app = results_app(stored(file, (many, [])))
    assert snap_compare(app, terminal_size=MIDDLE, run_before=prepared("c", "c", "G"))
