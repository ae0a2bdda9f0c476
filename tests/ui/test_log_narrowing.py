from __future__ import annotations

from textual.widgets import OptionList, Static

from ddtui.ui.log_filter import Bars, Level, Starts
from ddtui.ui.screens.choice import ChoiceScreen
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.prompt import Prompt
from tests.ui.log_keys import opened, press, rows, status
from tests.ui.log_world import line, many


async def test_search_counts_goes_round_and_is_marked() -> None:
    async with opened(*many(2_050)) as (app, pilot):
        await press(pilot, "slash", *"out of")
        assert "/out of 2 matches" in status(app)
        await press(pilot, "enter")
        assert app.log_screen.view.cursor == 1_999
        assert "2 of 2" in status(app)
        await press(pilot, "n")
        assert app.log_screen.view.cursor == 999
        await press(pilot, "N", "N")
        assert app.log_screen.view.cursor == 999
        assert "1 of 2" in status(app)
        strip = app.log_screen.view.render_line(
            app.log_screen.view.rows.top_of(999) - app.log_screen.view.top
        )
        marked = [each.text for each in strip if each.style and each.style.bold]
        assert "out of" in marked
        await press(pilot, "escape")
        assert "out of" not in status(app)


async def test_what_is_typed_takes_the_place_of_the_last_search() -> None:
    async with opened(*many(100)) as (app, pilot):
        await press(pilot, "slash", *"line 1", "enter", "slash")
        assert app.log_screen.query_one(Prompt).value == "line 1"
        await press(pilot, *"line 2", "enter")
        assert app.log_screen.lines.search is not None
        assert app.log_screen.lines.search.pattern == r"line\ 2"
        await press(pilot, "slash", "end", *"0", "enter")  # or it goes on from it
        assert app.log_screen.lines.search.pattern == r"line\ 20"


async def test_a_bad_pattern_is_told_in_place_and_changes_nothing() -> None:
    async with opened(*many(100)) as (app, pilot):
        await press(pilot, "slash", *"line 1", "ctrl+g", "(")
        fault = app.log_screen.query_one("#fault", Static)
        assert "regex: missing ), unterminated subpattern at 7" in str(fault.content)
        assert app.log_screen.lines.search is not None
        assert app.log_screen.lines.search.pattern == "line 1"
        await press(pilot, "enter")
        assert app.log_screen.query_one(Prompt).purpose == "search"
        await press(pilot, "backspace", *"[0-2] ", "enter")
        assert len(app.log_screen.lines.matches) == 3
        assert app.log_screen.query_one(Prompt).purpose == ""
        assert app.focused is app.log_screen.view


async def test_filters_by_key() -> None:
    async with opened(*many(2_000)) as (app, pilot):
        lines = app.log_screen.lines
        await press(pilot, "l", "l")
        assert lines.filter.least is Level.WARNING
        assert "20 of 2,000 lines  warning+" in status(app)
        await press(pilot, "l")
        assert lines.count == 2
        await press(pilot, "l")
        await press(pilot, "ampersand", *"!decode")
        assert lines.count == 0
        assert rows(app)[0] == "no line passes the filters; c shows all"
        await press(pilot, "backspace", *"e loop", "escape", "i", "b", "z")
        assert lines.filter.starts is Starts.THIS
        assert lines.filter.bars is Bars.ALL
        await press(pilot, "c")
        assert lines.count == 2_000
        assert app.engine.labelled == 2_000


async def test_a_rank_is_chosen_from_a_list() -> None:
    async with opened(*many(160), line("no rank")) as (app, pilot):
        await press(pilot, "r")
        assert isinstance(app.screen, ChoiceScreen)
        words = [str(each.prompt) for each in app.screen.query_one(OptionList).options]
        assert [each.split()[0] for each in words[2:]] == [f"TP{n}" for n in range(8)]
        await press(pilot, "j", "j", "j", "enter")
        assert app.log_screen.lines.filter.rank == "TP1"
        assert "20 of 161 lines  rank TP1" in status(app)
        await press(pilot, "r", "escape")
        assert app.log_screen.lines.filter.rank == "TP1"


async def test_a_phase_is_chosen_from_a_list() -> None:
    texts = ["boot", "begin loading target", "shard", "fired up"]
    async with opened(*map(line, texts)) as (app, pilot):
        await press(pilot, "p", "j", "j", "enter")
        assert [each.text for each in app.log_screen.lines.shown] == texts[1:3]


async def test_filtering_keeps_the_line_under_the_cursor_in_place() -> None:
    async with opened(*many(2_000)) as (app, pilot):
        view = app.log_screen.view
        await press(pilot, "slash", *"line 999 ", "enter", "escape")
        assert view.cursor == 999
        await press(pilot, "l", "l", "l")
        row = view.rows.top_of(app.log_screen.lines.index_of(999)) - view.top
        assert "line 999 " in rows(app)[row]
        await press(pilot, "c")
        assert view.cursor == 999
        assert any("line 999 " in each for each in rows(app))


async def test_keys_move_the_log_while_a_prompt_is_open() -> None:
    async with opened(*many(100)) as (app, pilot):
        await press(pilot, "slash", "q", "up", "up")
        assert app.log_screen.query_one(Prompt).value == "q"
        assert app.log_screen.view.cursor == 97
        assert "close" in app.log_screen.query_one(KeyBar).render_line(0).text
        await press(pilot, "escape")
        assert "Follow" in app.log_screen.query_one(KeyBar).render_line(0).text


async def test_a_filter_that_matches_nothing_loses_neither_place_nor_following() -> None:
    async with opened(*many(3_000)) as (app, pilot):
        view = app.log_screen.view
        await press(pilot, "ampersand", *"zz", "enter")
        assert rows(app)[0].strip() == "no line passes the filters; c shows all"
        view.scroll_rows(-3)
        await press(pilot, "up", "pageup", "g", "c")
        assert view.following
        assert view.cursor == 2_999
        await press(pilot, "pageup", "pageup", "pageup")
        place, top = view.cursor, view.top
        await press(pilot, "ampersand", *"2999", "enter")  # one line passes, which is elsewhere
        assert view.cursor == 2_999
        await press(pilot, "ampersand", *"zz", "enter", "c")
        assert (view.cursor, view.following) == (place, False)
        assert abs(view.top - top) < view.size.height
