"""Makes the screenshots of the documentation: `python -m docs.make_screenshots [FOLDER]`.

Each is an SVG of the app, run without a terminal on a snapshot made up in tests/ui/scenes.py with a
frozen clock, so that the same code gives the same picture.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from textual.widgets import Input

from ddtui.ui.app import DdtuiApp
from ddtui.ui.queue_source import QueueView, RunView
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.source import ReconfigurationView, UiSettings
from tests.ui.control_world import ROLLBACK, FakeControl, failed, history, in_force, running
from tests.ui.queue_world import FULL, StillQueue
from tests.ui.results_world import GivenResults
from tests.ui.scenes import NOW, SceneSource

FOLDER = Path(__file__).parent / "screenshots"
SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)


@dataclass(frozen=True)
class Shot:
    """One picture: a scene, what is pressed on it, and a change that goes on or has ended."""

    scene: str = "live"
    size: tuple[int, int] = MIDDLE
    theme: str = ""
    keys: tuple[str, ...] = ()
    change: ReconfigurationView | None = None
    queue: QueueView | None = None
    text: str = ""
    """What is typed at the end."""


SHOTS = {
    "monitor": Shot(),
    "monitor-large": Shot(size=LARGE),
    "monitor-small": Shot(size=SMALL),
    "monitor-loading": Shot("loading"),
    "monitor-failed": Shot("failed"),
    "monitor-disconnected": Shot("disconnected"),
    "monitor-trouble": Shot("lost-gpu"),
    "monitor-light": Shot(theme="ddtui-light"),
    "monitor-contrast": Shot(theme="ddtui-contrast"),
    "log": Shot(keys=("2",)),
    "help": Shot(keys=("question_mark",)),
    "presets": Shot(keys=("4", "j")),
    "presets-small": Shot(size=SMALL, keys=("4", "j")),
    "presets-apply": Shot(keys=("4", "j", "a")),
    "presets-blocked": Shot(keys=("4", "j", "j")),
    "presets-changing": Shot("loading", keys=("4",), change=running("loading", "loading target")),
    "presets-in-force": Shot(keys=("4",), change=in_force()),
    "presets-failed": Shot(
        "failed", keys=("4",), change=replace(failed(), ending="", ended=None, question=ROLLBACK)
    ),
    "results": Shot("idle", keys=("6", "j", "j", "j", "j")),
    "results-large": Shot("idle", size=LARGE, keys=("6", "j", "j", "j", "j")),
    "results-light": Shot("idle", theme="ddtui-light", keys=("6", "c", "c")),
    "results-pareto": Shot("idle", keys=("6", "v", "c", "c", "c")),
    "queue": Shot(keys=("5",), queue=FULL),
    "queue-grid": Shot(keys=("5", "g"), queue=FULL, text="budget=4,8,16 block_size=8,16 match"),
    "queue-start": Shot(keys=("5", "s"), queue=replace(FULL, run=RunView())),
    "monitor-queue": Shot(queue=FULL),
    "history": Shot(keys=("H",)),
    "history-details": Shot(keys=("H", "j", "j", "enter")),
}
"""By file name."""


async def picture(shot: Shot) -> str:
    """One screenshot as SVG."""
    control = FakeControl()
    control.history = history()
    control.reconfiguration = shot.change
    app = DdtuiApp(
        SceneSource(shot.scene),
        settings=UiSettings(theme=shot.theme),
        clock=lambda: NOW,
        control=control,
        results=GivenResults(),
        queue=None if shot.queue is None else StillQueue(shot.queue),
        key_clock=lambda: 0.0,
    )
    async with app.run_test(size=shot.size) as pilot:
        await pilot.pause()
        for key in shot.keys:
            await pilot.press(key)
            await pilot.pause(0.4)
        if shot.text:
            app.screen.query_one(Input).value = shot.text
            await pilot.pause(1.2)  # the line must rest before the host is asked
        await pilot.pause(0.4)
        if isinstance(app.screen, ConfirmScreen):
            app.screen._clock = lambda: 1_000.0  # it has been open for long
            app.screen._look()
            await pilot.pause()
        return without_web_fonts(app.export_screenshot(title="ddtui"))


def without_web_fonts(svg: str) -> str:
    """The picture without the fonts that it would load from the web: it must stand alone."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    os.environ["TZ"] = "UTC"
    time.tzset()
    folder.mkdir(parents=True, exist_ok=True)
    for name, shot in SHOTS.items():
        path = folder / f"{name}.svg"
        path.write_text(asyncio.run(picture(shot)) + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
