from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.widgets import OptionList

from ddtui.ui.glyphs import UNICODE
from ddtui.ui.history_rows import heading, line, record_rows, widths
from ddtui.ui.screens.history import HistoryScreen
from ddtui.ui.screens.reading import ReadingScreen
from ddtui.ui.source import ControlProblem
from tests.ui.control_keys import keeper, operating, shows, until
from tests.ui.control_world import (
    HOSTILE_PRESETS,
    FakeControl,
    failed,
    history,
    plan_of,
    rolled_back,
)
from tests.ui.scenes import HOSTILE, NOW


def with_history() -> FakeControl:
    control = FakeControl()
    control.history = history()
    return control


async def test_every_change_is_a_line_and_each_is_told_in_full() -> None:
    async with operating("live", with_history()) as operator:
        await operator.press("H")
        assert isinstance(operator.app.screen, HistoryScreen)
        await until(operator, shows(operator, "mara@desk"))
        listed = [each for each in operator.text().splitlines() if "2026-09-" in each]
        assert [each.split()[3:5] for each in listed[:2]] == [["not", "ended"], ["in", "force"]]
        assert "budget 8 → 16" in listed[1]
        await operator.press("j", "j", "enter")
        assert isinstance(operator.app.screen, ReadingScreen)
        text = operator.text()
        assert "rolled back  after 20 m 43 s" in text
        assert "CUDA out of memory while the KV cache was allocated" in text
        assert "do: lower mem_fraction" in text
        assert "not set → true" in text
        assert "rolling back" in text
        assert "9 m 01 s  ready (proved)" in text
        await operator.press("enter", "o")
        assert isinstance(operator.app.screen, ReadingScreen)
        await operator.press("q")
        assert isinstance(operator.app.screen, HistoryScreen)


async def test_the_highlight_stays_on_its_change_when_another_one_comes() -> None:
    control = with_history()
    async with operating("live", control) as operator:
        await operator.press("H", "j", "j")
        options = operator.app.screen.query_one(OptionList)
        assert options.highlighted == 2
        control.history = (replace(failed(), id="r9"), *control.history)
        operator.app.paint()
        await operator.pilot.pause()
        assert options.highlighted == 3
        assert options.option_count == 6


async def test_no_history_and_one_that_cannot_be_read_anew() -> None:
    control = FakeControl()
    async with operating("live", control) as operator:
        await operator.press("H")
        await until(operator, shows(operator, "No change of this unit was made from here."))
        await operator.press("enter", "o", "j")
        assert isinstance(operator.app.screen, HistoryScreen)

        async def fails() -> None:
            raise ControlProblem("the host does not answer")

        control.history = history()
        control.look = fails  # type: ignore[method-assign]
        await operator.press("r")
        await until(operator, shows(operator, "As far as is known here: the host does not answer"))
        await until(operator, shows(operator, "mara@desk"))


async def test_a_change_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr("ddtui.ui.copying.write_copied", keeper(copied))
    async with operating("live", with_history(), size=(80, 24)) as operator:
        await operator.press("H", "j", "j", "j", "enter", "y")
        (text,) = copied
        assert operator.app.clipboard + "\n" == text
        assert (
            "| [2026-09-21 14:12:40 TP3] torch.OutOfMemoryError: CUDA out of memory. Tried" in text
        )


@pytest.mark.parametrize("width", [34, 54, 74, 114, 194])
def test_a_line_fills_its_width_and_says_how_it_ended(width: int) -> None:
    for view in history():
        words = line(view, width, UNICODE)
        assert len(words) <= width
        assert (view.ending or "not ended") in words
        if width >= 74:
            assert view.title in words


@pytest.mark.parametrize("width", [76, 194])
def test_changes_of_one_minute_are_told_apart_by_their_seconds(width: int) -> None:
    one = replace(rolled_back(), began=NOW - 7)
    other = replace(one, began=NOW - 19)
    assert line(one, width, UNICODE).split("  ")[0] != line(other, width, UNICODE).split("  ")[0]


@pytest.mark.parametrize("width", [74, 114])
def test_what_tells_one_change_from_others_is_in_its_line(width: int) -> None:
    bare = replace(rolled_back(), preset="")
    assert "block_size" in line(bare, width, UNICODE)
    named = replace(bare, experiment="budget 16")
    assert "experiment budget 16" in line(named, width, UNICODE)
    assert any("experiment budget 16" in row.text for row in record_rows(named, width, UNICODE))


def test_columns_take_what_stands_in_them_and_give_the_rest_away() -> None:
    listed = [replace(each, who="m@d", preset="", experiment="budget 8") for each in history()]
    columns = widths(listed, 76)
    assert "experiment budget 8  m@d" in line(listed[2], 76, UNICODE, columns)
    assert [
        each.split()[-1] for each in (heading(76, columns), heading(50, widths(listed, 50)))
    ] == [
        "who",
        "what",
    ]
    assert heading(116, widths(listed, 116)).index("changes") < 74


def test_hostile_records_stay_text() -> None:
    plan = plan_of(HOSTILE_PRESETS[0].request)
    for text in HOSTILE:
        view = replace(
            rolled_back(),
            preset=text,
            experiment=text,
            who=text,
            unit=text,
            cause=text,
            evidence=(text,) * 3,
            remedy=text,
            changes=plan.changes,
        )
        rows = [row.text for row in record_rows(view, 60, UNICODE)]
        assert all(len(each) <= 60 for each in rows if each.isascii())
        assert not any("\x1b" in each or "\u202e" in each for each in rows)
        assert "\x1b" not in line(view, 120, UNICODE)
