"""The app as `ddtui connect` runs it, over real SSH, and an operator who reads and presses keys."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ddtui.app.control_source import ControlOfHost, screen_control
from ddtui.app.live import Watched, watched
from ddtui.app.reaching import Overrides
from ddtui.config.hosts import find_host
from ddtui.config.load import load
from ddtui.ui.aftermath import AFTER_A_WORD
from ddtui.ui.app import DdtuiApp
from ddtui.ui.deliberate import REST, SETTLE
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.source import UiSettings
from tests.host.gpuhost import PATIENCE, GpuHost


class Seat:
    """One operator before one screen."""

    def __init__(
        self, app: DdtuiApp, pilot: Pilot[object], source: Watched, control: ControlOfHost
    ) -> None:
        self.app = app
        self.pilot = pilot
        self.source = source
        self.control = control
        self._was_asked = False

    def text(self) -> str:
        """What is on the screen; of a dialog, all that it says."""
        screen = self.app.screen
        strips = screen._compositor.render_strips()
        shown = "\n".join("".join(each.text for each in strip).rstrip() for strip in strips)
        if isinstance(screen, ConfirmScreen) and callable(screen.words.body):
            shown += "\n" + "\n".join(row.text for row in screen.words.body(400))
        return shown

    async def until(
        self, wanted: Callable[[], object], seconds: float = PATIENCE, what: str = ""
    ) -> None:
        """Wait for what comes by itself; fails with the screen's text."""
        end = time.monotonic() + seconds
        while not wanted():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds:g} s: {what}\n{self.text()}")
            await self.pilot.pause(0.05)

    async def until_text(self, *words: str, seconds: float = PATIENCE) -> str:
        """Wait until the screen says all of it; returns what it says."""
        seen = ""

        def says() -> bool:
            nonlocal seen
            seen = self.text()
            return all(each in seen for each in words)

        await self.until(says, seconds, f"{words}")
        return seen

    async def press(self, *keys: str) -> None:
        """Keys, one after another; after a question once they are sure to be none of it."""
        if isinstance(self.app.screen, ConfirmScreen):
            self._was_asked = True
        elif self._was_asked:
            self._was_asked = False
            await asyncio.sleep(AFTER_A_WORD + 0.1)
        await self.pilot.press(*keys)

    async def question(self, title: str, seconds: float = PATIENCE) -> ConfirmScreen:
        """Wait until a question listens."""

        def listens() -> bool:
            screen = self.app.screen
            return (
                isinstance(screen, ConfirmScreen)
                and title in screen.words.title
                and screen.deliberation.listening(time.monotonic())
            )

        await self.until(listens, seconds, title)
        screen = self.app.screen
        assert isinstance(screen, ConfirmScreen)
        return screen

    async def answer(self, steps: int = 1) -> None:
        """Step to a button and press it, as a person does; a word is typed where one is asked."""
        question = self.app.screen
        assert isinstance(question, ConfirmScreen)
        for letter in question.words.typed:
            await self.press(letter)
            await asyncio.sleep(0.08)
        for _ in range(steps):
            await self.press("tab")
            await asyncio.sleep(REST + 0.1)
        await self.press("enter")
        await self.until(
            lambda: self.app.screen is not question, SETTLE + PATIENCE, "the answer counts"
        )


def configured(host: GpuHost, unit: str, folder: Path, presets: str, name: str, user: str) -> Path:
    """A configuration with a host and presets."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.toml"
    file.write_text(
        f'[hosts.{name}]\nssh = "{host.name}{user}"\nssh_config = "{host.ssh_config}"\n'
        f'unit = "{unit}"\n{presets}'
    )
    return file


@contextlib.asynccontextmanager
async def seated(
    host: GpuHost,
    unit: str,
    folder: Path,
    presets: str = "",
    *,
    name: str = "gpu",
    user: str = "",
    who: str = "ada",
    size: tuple[int, int] = (120, 40),
) -> AsyncIterator[Seat]:
    """The app on a host, with a configuration and a store of its own, once the host is live."""
    file = configured(host, unit, folder, presets, name, user)
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("HOME", "DDTUI_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            patch.setenv(variable, str(folder))
        patch.setenv("LOGNAME", who)
        patch.setenv("TERM", "xterm-256color")
        patch.chdir(folder)
        loaded = load(file)
        source = await watched(find_host(loaded.config, name), Overrides())
        async with screen_control(source, loaded) as control:
            app = DdtuiApp(source, settings=UiSettings(paint_interval=0.5), control=control)
            async with app.run_test(size=size) as pilot:
                seat = Seat(app, pilot, source, control)
                await seat.until_text("live")
                await seat.until(lambda: app.desk is not None and app.desk.looked, what="a look")
                yield seat
