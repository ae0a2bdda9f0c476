"""When a screen can be drawn on."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from ddtui.ui.screens.built import built


class Going(Static):
    """Notes, while it is taken away, what its screen says of itself."""

    def on_unmount(self) -> None:
        screen = self.screen
        assert isinstance(screen, Page)
        screen.said = (screen.is_mounted, built(screen))


class Page(Screen[None]):
    """One that is closed."""

    said: tuple[bool, bool] | None = None

    def compose(self) -> ComposeResult:
        assert not built(self)
        yield Going()


async def test_a_screen_that_is_taken_away_is_not_drawn_on() -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        page = Page()
        await app.push_screen(page)
        await pilot.pause()
        assert built(page)
        await app.pop_screen()
        await pilot.pause()
        assert page.said == (True, False)
        assert not built(page)
