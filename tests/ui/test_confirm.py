from __future__ import annotations

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, Input

from ddtui.ui.screens.confirm import OPENING, QUIET, ConfirmScreen
from ddtui.ui.themes import install_themes, variable_defaults


class Asking(App[object]):
    """Asks once, by a clock that the test moves."""

    def __init__(self, typed: str = "") -> None:
        super().__init__()
        self.now = 100.0
        self.answers: list[bool | None] = []
        self.question = ConfirmScreen(
            "Restart llm.service on ct200",
            "[b]Running requests[/] are lost: [@click=app.quit]12[/]",
            "Restart",
            typed=typed,
            clock=lambda: self.now,
        )

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def on_mount(self) -> None:
        install_themes(self)
        self.push_screen(self.question, self.answers.append)


async def listen(pilot: Pilot[object]) -> None:
    """Let the time of opening pass."""
    app = pilot.app
    assert isinstance(app, Asking)
    app.now += OPENING + QUIET + 1
    app.question._listen()
    await pilot.pause()


async def test_cancel_has_the_focus_and_enter_cancels() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await listen(pilot)
        assert app.focused is app.question.query_one("#cancel", Button)
        await pilot.press("enter")
        assert app.answers == [False]


@pytest.mark.parametrize("keys", [("right", "enter"), ("tab", "enter"), ("left", "space")])
async def test_the_action_needs_a_step_of_its_own(keys: tuple[str, ...]) -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await listen(pilot)
        await pilot.press(*keys[:1])
        assert app.answers == []
        await pilot.press("enter")
        assert app.answers == [True]


async def test_a_burst_typed_before_does_nothing() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await pilot.press("tab", "enter", "right", "enter", "y", "escape", "q", "ctrl+j")
        assert app.answers == []
        assert app.focused is None
        # A burst that goes on holds the question closed for as long as it lasts.
        app.now += OPENING - 0.01
        await pilot.press("enter")
        app.now += QUIET - 0.01
        app.question._listen()
        assert app.focused is None
        await pilot.press("enter")
        assert app.answers == []
        await listen(pilot)
        assert app.focused is app.question.query_one("#cancel", Button)


async def test_escape_cancels() -> None:
    app = Asking()
    async with app.run_test() as pilot:
        await listen(pilot)
        await pilot.press("escape")
        assert app.answers == [False]


async def test_a_typed_word_opens_the_button_and_does_not_press_it() -> None:
    app = Asking(typed="ct200")
    async with app.run_test() as pilot:
        await listen(pilot)
        do = app.question.query_one("#do", Button)
        assert do.disabled
        await pilot.press("right")
        assert app.focused is app.question.query_one("#cancel", Button)
        app.question.query_one(Input).focus()
        await pilot.pause()
        await pilot.press(*"ct20", "enter")
        assert do.disabled
        await pilot.press("0", "enter")
        assert app.answers == []
        assert app.focused is do
        await pilot.press("enter")
        assert app.answers == [True]


async def test_words_are_no_markup() -> None:
    app = Asking()
    async with app.run_test(size=(60, 16)) as pilot:
        await listen(pilot)
        strips = app.screen._compositor.render_strips()
        text = "\n".join("".join(segment.text for segment in strip) for strip in strips)
        assert "[@click=app.quit]12[/]" in text
        assert "Restart llm.service on ct200" in text
