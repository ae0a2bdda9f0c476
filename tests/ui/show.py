"""Shows one scene in the terminal: `python -m tests.ui.show SCENE [--moving] [--ascii]`."""

from __future__ import annotations

import argparse
import sys

from ddtui.core.clock import system_clock
from ddtui.ui.app import DdtuiApp
from ddtui.ui.source import UiSettings
from tests.ui.scenes import NOW, SCENES, SceneSource


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.show")
    parser.add_argument("scene", choices=sorted(SCENES))
    parser.add_argument("--moving", action="store_true", help="let time run and figures change")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--theme", default="")
    arguments = parser.parse_args()
    app = DdtuiApp(
        SceneSource(arguments.scene, frozen=not arguments.moving),
        settings=UiSettings(theme=arguments.theme, ascii=arguments.ascii),
        clock=system_clock if arguments.moving else lambda: NOW,
    )
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main())
