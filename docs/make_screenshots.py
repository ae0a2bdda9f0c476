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
from pathlib import Path

from ddtui.ui.app import DdtuiApp
from ddtui.ui.source import UiSettings
from tests.ui.scenes import NOW, SceneSource

FOLDER = Path(__file__).parent / "screenshots"

SHOTS = {
    "monitor": ("live", (120, 40), "", ()),
    "monitor-large": ("live", (200, 60), "", ()),
    "monitor-small": ("live", (80, 24), "", ()),
    "monitor-loading": ("loading", (120, 40), "", ()),
    "monitor-failed": ("failed", (120, 40), "", ()),
    "monitor-disconnected": ("disconnected", (120, 40), "", ()),
    "monitor-trouble": ("lost-gpu", (120, 40), "", ()),
    "monitor-light": ("live", (120, 40), "ddtui-light", ()),
    "monitor-contrast": ("live", (120, 40), "ddtui-contrast", ()),
    "log": ("live", (120, 40), "", ("2",)),
    "help": ("live", (120, 40), "", ("question_mark",)),
}
"""File name: scene, terminal size, theme, keys pressed."""


async def picture(name: str) -> str:
    """One screenshot as SVG."""
    scene, size, theme, keys = SHOTS[name]
    app = DdtuiApp(SceneSource(scene), settings=UiSettings(theme=theme), clock=lambda: NOW)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.3)
        return without_web_fonts(app.export_screenshot(title="ddtui"))


def without_web_fonts(svg: str) -> str:
    """The picture without the fonts that it would load from the web: it must stand alone."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    os.environ["TZ"] = "UTC"
    time.tzset()
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHOTS:
        path = folder / f"{name}.svg"
        path.write_text(asyncio.run(picture(name)) + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
