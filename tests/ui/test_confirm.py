from __future__ import annotations

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button

from ddtui.ui.deliberate import BURST_QUIET, GAP, OPENING, QUIET, REST, SETTLE
from ddtui.ui.screens.confirm import ConfirmScreen, Words
from ddtui.ui.themes import install_themes, variable_defaults


class Asking(App[object]):
    """Asks once, by a clock that the test moves."""

    def __init__(
        self,
        typed: str = "",
        *,
        refuse: str = "",
        unasked: bool = False,
        action: str = "Restart",
    ) -> None:
        super().__init__()
        self.now = 100.0
        self.answers: list[bool | None] = []
        words = Words(
            "Restart llm.service on ct200",
            "[b]Running requests[/] are lost: [@click=app.quit]12[/]",
            action,
            typed=typed,
            refuse=refuse,
        )
        self.question = ConfirmScreen(words, unasked=unasked, clock=lambda: self.now)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def on_mount(self) -> None:
        install_themes(self)
        self.push_screen(self.question, self.answers.append)

    def chosen(self) -> str | None:
        found = [each.id for each in self.question.query(Button) if each.has_class("-chosen")]
        return found[0] if found else None

    def listens(self) -> bool:
        return self.question.deliberation.listening(self.now)

    def disabled(self, button: str) -> bool:
        return self.question.query_one(button, Button).disabled


async def send(pilot: Pilot[object], *keys: str, each: float = 1.0) -> None:
    """Keys with a time of their own: `each` seconds between two."""
    app = pilot.app
    assert isinstance(app, Asking)
    for key in keys:
        app.now += each
        event = events.Key(key, key if len(key) == 1 else None)
        event.time = app.now
        app.post_message(event)
    await pilot.pause()


async def later(pilot: Pilot[object], seconds: float = SETTLE + 0.01) -> None:
    """Let time pass."""
    app = pilot.app
    assert isinstance(app, Asking)
    app.now += seconds
    if not app.answers:
        app.question._settle()
    await pilot.pause()


async def test_cancel_is_chosen_and_enter_cancels() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        assert (app.chosen(), app.listens()) == ("cancel", False)
        await later(pilot, OPENING + 0.01)
        assert app.chosen() == "cancel"
        await send(pilot, "enter")
        assert app.answers == [False]


@pytest.mark.parametrize("keys", [("right", "enter"), ("tab", "enter"), ("left", "space")])
async def test_a_step_and_a_press_each_alone_are_deliberate(keys: tuple[str, str]) -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await send(pilot, keys[0])
        assert app.chosen() == "do"
        await send(pilot, keys[1], each=REST + 0.01)
        assert app.answers == []  # something might still follow
        await later(pilot, SETTLE - 0.02)
        assert app.answers == []
        await later(pilot, 0.03)
        assert app.answers == [True]


async def test_the_real_clock_lets_a_person_through() -> None:
    app = Asking()
    app.question = ConfirmScreen(app.question.words)
    async with app.run_test() as pilot:
        await pilot.pause(OPENING + 0.1)
        await pilot.press("right")
        await pilot.pause(REST + 0.1)
        await pilot.press("enter")
        await pilot.pause(SETTLE + 0.3)
        assert app.answers == [True]


async def test_keys_that_follow_the_press_take_it_back() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await send(pilot, "right", "enter")
        await send(pilot, "x", each=SETTLE - 0.01)
        await later(pilot, 5.0)
        assert app.answers == []
        assert app.chosen() == "cancel"


async def test_a_press_too_soon_after_the_step_does_nothing_and_says_so() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await send(pilot, "right")
        await send(pilot, "enter", each=REST - 0.01)
        await later(pilot, SETTLE + 0.01)
        assert app.answers == []
        assert "again" in app.question.deliberation.note
        await send(pilot, "enter")
        await later(pilot)
        assert app.answers == [True]


async def test_a_burst_typed_before_it_came_up_does_nothing() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        burst = ("tab", "enter", "right", "enter", "y", "escape", "q", "ctrl+j")
        await send(pilot, *burst, each=0.01)
        assert app.answers == []
        # A burst that goes on holds the question closed for as long as it lasts.
        await send(pilot, "right", each=BURST_QUIET - 0.01)
        await later(pilot, BURST_QUIET - 0.01)
        assert (app.chosen(), app.listens()) == ("cancel", False)
        await later(pilot, 0.02)
        assert app.chosen() == "cancel"
        assert app.answers == []


async def test_a_burst_while_it_listens_starts_it_anew() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await send(pilot, "right")
        await send(pilot, "[", "C", "enter", each=GAP - 0.01)
        assert app.answers == []
        assert (app.chosen(), app.listens()) == ("cancel", False)
        await send(pilot, "enter", each=0.3)  # the torn-off end of the burst
        await later(pilot, 2.0)
        assert app.answers == []
        assert app.chosen() == "cancel"


async def test_holding_an_arrow_to_read_a_long_text_is_no_burst() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await later(pilot, 1.0)
        await send(pilot, *["down"] * 30, each=0.03)
        assert app.chosen() == "cancel"
        await send(pilot, "right", "enter")
        await later(pilot)
        assert app.answers == [True]


async def test_escape_cancels() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await send(pilot, "escape")
        assert app.answers == [False]


@pytest.mark.parametrize("pace", [0.03, 0.08, 0.4])
async def test_a_typed_word_opens_the_button_and_does_not_press_it(pace: float) -> None:
    app = Asking(typed="ct200")
    async with app.run_test() as pilot:
        await later(pilot, 1.0)
        await send(pilot, "right")
        assert app.disabled("#do")
        assert app.chosen() == "cancel"
        await send(pilot, *"ct200", each=pace)
        assert not app.disabled("#do")
        assert app.chosen() == "cancel"
        await send(pilot, "right", "enter")
        await later(pilot)
        assert app.answers == [True]


async def test_the_word_alone_and_enter_cancel() -> None:
    app = Asking(typed="ct200")
    async with app.run_test() as pilot:
        await later(pilot, 1.0)
        await send(pilot, *"ct200", "enter", each=0.2)
        assert app.answers == [False]


@pytest.mark.parametrize("split", [2, 4])
async def test_a_pasted_word_does_not_count(split: int) -> None:
    app = Asking(typed="sglang-kimi")
    async with app.run_test() as pilot:
        await later(pilot, 1.0)
        await send(pilot, *"sglang-kimi"[:split], each=0.001)
        await later(pilot, 2.0)  # a slow link tears the paste apart
        await send(pilot, *"sglang-kimi"[split:], each=0.001)
        assert app.question.deliberation.typed == ""
        assert "Pasted" in app.question.deliberation.note
        paste = events.Paste("sglang-kimi")
        paste.time = app.now
        app.post_message(paste)
        await pilot.pause()
        assert app.question.query_one("#do", Button).disabled
        await later(pilot, 5.0)
        await send(pilot, "right", "enter")
        assert app.answers == [False]  # Cancel is still the only one


async def test_a_wrong_word_can_be_mended() -> None:
    app = Asking(typed="ct200")
    async with app.run_test() as pilot:
        await later(pilot, 1.0)
        await send(pilot, *"ct20", "1", "backspace", "0", "right", "enter", each=0.6)
        await later(pilot)
        assert app.answers == [True]


async def test_a_question_that_comes_by_itself_waits_until_nobody_types() -> None:
    app = Asking(refuse="Leave it", unasked=True)
    async with app.run_test() as pilot:
        await send(pilot, *"typing on", "enter", "enter", "escape", each=0.3)
        assert app.answers == []
        await later(pilot, 1.01)
        assert app.chosen() == "cancel"
        await send(pilot, "enter")
        assert app.answers == [None]  # put off, not answered


async def test_no_for_good_is_deliberate_too() -> None:
    app = Asking(refuse="Leave it")
    async with app.run_test() as pilot:
        await send(pilot, "right", "enter")
        await later(pilot)
        assert app.answers == [False]


async def test_a_click_counts_once_it_has_been_open_for_a_moment() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await pilot.click("#do")
        assert app.answers == []
        await later(pilot, OPENING + QUIET + 1)
        await pilot.click("#do")
        await pilot.pause()
        assert app.answers == [True]


async def test_words_are_no_markup() -> None:
    app = Asking()
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        text = "\n".join("".join(segment.text for segment in strip) for strip in strips)
        assert "[@click=app.quit]12[/]" in text
        assert "Restart llm.service on ct200" in text


async def test_what_only_tells_something_closes_at_once() -> None:
    app = Asking(action="")
    async with app.run_test() as pilot:
        await send(pilot, "escape", each=0.0)  # as it comes up
        assert app.answers == [False]


async def test_a_question_does_not_close_as_it_comes_up() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await send(pilot, "escape", each=0.0)
        assert app.answers == []
