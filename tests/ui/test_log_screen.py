from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual import events

from ddtui.ui.keymap import read_keymap
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.prompt import Prompt
from tests.ui.log_keys import opened, press, rows, settle, status
from tests.ui.log_world import EARLIER, LogApp, line, many


async def test_twenty_thousand_lines_end_at_the_newest() -> None:
    async with opened(*many(20_000)) as (app, _pilot):
        assert "line 19999 " in rows(app)[-1]
        assert status(app).startswith("FOLLOW")
        assert "20,000 of 20,000 lines" in status(app)
        assert app.engine.labelled == 20_000


async def test_scrolling_up_pauses_and_the_end_follows_again() -> None:
    async with opened(*many(500)) as (app, pilot):
        await press(pilot, "k", "up")
        held = rows(app)
        assert "PAUSED" in status(app)
        app.feed(*many(312, 500))
        await settle(pilot)
        assert rows(app) == held
        assert "PAUSED  312 new lines" in status(app)
        await press(pilot, "G")
        assert "line 811 " in rows(app)[-1]
        assert "FOLLOW" in status(app)
        app.feed(*many(1, 812))
        await settle(pilot)
        assert "line 812 " in rows(app)[-1]
        await press(pilot, "f")
        app.feed(*many(1, 813))
        await settle(pilot)
        assert "line 812 " in rows(app)[-1]
        assert "1 new line" in status(app)
        # Down past the last line is as good as `G`.
        await press(pilot, "end", "k", "j", "j")
        assert app.log_screen.view.following


async def test_lines_out_of_view_repaint_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(*many(20_000)) as (app, pilot):
        view = app.log_screen.view
        await press(pilot, "pageup", "pageup")
        repainted: list[object] = []
        monkeypatch.setattr(view, "refresh", lambda *regions: repainted.extend(regions))
        app.feed(*many(300, 20_000))
        await settle(pilot)
        assert len(repainted) <= 2  # the ends of the scroll bar's thumb
        repainted.clear()
        await press(pilot, "j")
        assert len(repainted) == 2  # where the cursor was, and where it is


async def test_a_click_sets_the_cursor_and_shift_extends_the_selection() -> None:
    async with opened(*many(100)) as (app, pilot):
        view = app.log_screen.view
        first = view.region.y
        await pilot.click(offset=(30, first + 4))
        await settle(pilot)
        assert view.cursor == view.top + 4
        await pilot.click(offset=(30, first + 7), shift=True)
        await settle(pilot)
        assert len(view.selected()) == 4
        await press(pilot, "escape")
        await pilot.click(offset=(119, first))  # the scroll bar's upper end
        await settle(pilot)
        assert view.top == 0
        assert "PAUSED" in status(app)


async def test_what_is_looked_at_stays_while_old_lines_are_forgotten() -> None:
    async with opened(*many(20_000)) as (app, pilot):
        await press(pilot, "pageup", "pageup")
        before = rows(app)
        app.feed(*many(5_000, 20_000))
        await settle(pilot)
        assert rows(app) == before
        await press(pilot, "home")
        assert "line 5000 " in rows(app)[0]
        app.feed(*many(1_000, 25_000))
        await settle(pilot)
        # The lines looked at are gone: the oldest ones kept are shown.
        assert "line 6000 " in rows(app)[0]
        assert not app.log_screen.view.following


async def test_paging_and_the_wheel() -> None:
    async with opened(*many(500), size=(80, 24)) as (app, pilot):
        view = app.log_screen.view
        height = view.size.height
        await press(pilot, "g")
        assert "line 0 " in rows(app)[0]
        await press(pilot, "pagedown", "pagedown")
        assert view.cursor == 2 * (height - 1)
        await press(pilot, "space")
        assert view.cursor == 3 * (height - 1)
        await press(pilot, "pageup", "pageup", "pageup")
        assert view.cursor == 0
        await press(pilot, "G")
        view.post_message(
            events.MouseScrollUp(view, 5, 5, 0, -1, 0, False, False, False, style=None)
        )
        await settle(pilot)
        assert not view.following
        for _ in range(5):
            view.post_message(
                events.MouseScrollDown(view, 5, 5, 0, 1, 0, False, False, False, style=None)
            )
        await settle(pilot)
        assert view.following


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)])
async def test_hostile_lines_stay_text(size: tuple[int, int]) -> None:
    hostile = (
        "[/usr/bin] [b]x[/i] [@click=app.quit]x[/] [red",
        "\x1b[31mred\x1b[0m\x1b]0;title\x07 bell",
        "漢字かな交じり文" * 40,
        "שלום עולם \u202eabc",
        "🚀👩‍👩‍👧‍👦 emoji ❤\ufe0f end",
        "x" * 8_000,
        "",
    )
    async with opened(*map(line, hostile), size=size) as (app, pilot):
        width = app.log_screen.view.size.width
        assert "[@click=app.quit]x[/]"[: width - 43] in rows(app)[0]
        for keys in ((), ("w",), ("t",), ("w",), ("right", "right"), ("slash", *"x", "enter")):
            await press(pilot, *keys, "G")
            for y in range(app.log_screen.view.size.height):
                strip = app.log_screen.view.render_line(y)
                assert cell_len(strip.text) == width
                assert "\x1b" not in strip.text
        await press(pilot, "escape", "g")
        for y in (2, 3, size[1] - 3):
            await pilot.click(offset=(20, y))
        assert app.is_running
        assert app.return_code is None


async def test_wrapped_lines_lose_nothing() -> None:
    text = "".join(f"{number:04d}" for number in range(2_000))
    wide = "漢字かな" * 100
    async with opened(line(text), line(wide), line("end"), size=(80, 24)) as (app, pilot):
        view = app.log_screen.view
        await press(pilot, "w", "g")
        room = view.size.width - 12
        assert view.rows.height == -(-8_000 // room) + -(-800 // (room // 2 * 2)) + 1
        seen = ""
        for y in range(view.rows.height):
            view._place(y)
            view._paint()
            seen += view.render_line(y - view.top).text[11:-1].rstrip()
        assert seen == text + wide + "end"
        await press(pilot, "G", "pageup")
        assert view.cursor < 2
        await press(pilot, *["pagedown"] * 20)
        assert view.following


async def test_long_lines_scroll_sideways() -> None:
    async with opened(line("a" * 60 + "b" * 60 + "c"), size=(80, 24)) as (app, pilot):
        assert rows(app)[0].endswith("b›")
        await press(pilot, *["right"] * 9)
        assert rows(app)[0].endswith("bc")
        assert "‹" in rows(app)[0]
        end = rows(app)[0]
        await press(pilot, "right")
        assert rows(app)[0] == end
        await press(pilot, *["left"] * 9)
        assert "‹" not in rows(app)[0]


async def test_stamps_and_the_engines_own_prefix() -> None:
    text = "[2026-09-21 14:13:12 TP3] Decode batch"
    async with opened(line(text)) as (app, pilot):
        assert rows(app)[0][8:] == " I TP3 Decode batch"
        await press(pilot, "t")
        assert rows(app)[0] == f"I {text}"


async def test_starts_are_separated() -> None:
    old, new = line("old", invocation=EARLIER), line("new")
    async with opened(old, new) as (app, _pilot):
        assert rows(app)[0].endswith("I old")
        assert rows(app)[1].startswith("── start 3f2a9c1e · 2026-09-2")
        assert rows(app)[2].endswith("I new")
        assert "2 of 2 lines" in status(app)


async def test_lines_that_journald_dropped_are_said() -> None:
    async with opened(*many(10)) as (app, pilot):
        app.buffer.suppressed = 1_204
        app.feed()
        await settle(pilot)
        assert "1,204 dropped by journald" in status(app)


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (200, 60)])
async def test_the_footer_always_has_help_and_quit(size: tuple[int, int]) -> None:
    async with opened(*many(10), size=size) as (app, _pilot):
        text = app.log_screen.query_one(KeyBar).render_line(0).text
        assert text.startswith(" f Follow  / Search ")
        assert text.endswith(" ? More  q Quit " if size[0] < 200 else " ? Help  q Quit ")
        assert cell_len(text) == size[0]


async def test_remapped_keys_work_and_the_old_ones_do_not() -> None:
    app = LogApp(*many(100), keymap=read_keymap({"log.follow": "F", "log.search": ["f3"]}))
    async with app.run_test() as pilot:
        await settle(pilot)
        await press(pilot, "f", "slash")
        assert "FOLLOW" in status(app)
        assert not app.log_screen.query_one(Prompt).purpose
        await press(pilot, "F", "f3")
        assert "PAUSED" in status(app)
        assert app.log_screen.query_one(Prompt).purpose == "search"
        await press(pilot, "escape")
        assert " F Follow " in app.log_screen.query_one(KeyBar).render_line(0).text


async def test_an_empty_log_answers_every_key() -> None:
    async with opened() as (app, pilot):
        assert rows(app)[0] == "no line yet"
        await press(
            pilot,
            *"jkgGfnNvyvlibzcwt",
            "pageup",
            "pagedown",
            "left",
            "right",
            "slash",
            "x",
            "enter",
            "n",
        )
        app.feed(line("first"))
        await settle(pilot)
        await press(pilot, "G")
        assert rows(app)[0].endswith("I first")


async def test_resizing_while_wrapped_keeps_the_cursor_in_view() -> None:
    async with opened(*(line("word " * 60 + str(n)) for n in range(200))) as (app, pilot):
        await press(pilot, "w", "g", *["pagedown"] * 3)
        cursor = app.log_screen.view.cursor
        for size in ((60, 16), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert app.log_screen.view.cursor == cursor
            view = app.log_screen.view
            row = view.rows.top_of(cursor) - view.top
            assert 0 <= row < view.size.height
