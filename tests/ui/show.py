"""Shows one scene in the terminal: `python -m tests.ui.show SCENE [--moving] [--ascii]`.

The scenes `fed` and `fed-idle` come from the real reducer, fed with made-up samples.
"""

from __future__ import annotations

import argparse
import sys

from ddtui.core.clock import system_clock
from ddtui.core.garbage import set_apart
from ddtui.ui.app import DdtuiApp
from ddtui.ui.source import LiveSource, UiSettings
from tests.ui.feed import FeedSource
from tests.ui.scenes import NOW, SCENES, SceneSource


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.show")
    parser.add_argument("scene", choices=[*sorted(SCENES), "fed", "fed-idle"])
    parser.add_argument("--moving", action="store_true", help="let time run and figures change")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--theme", default="")
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of a fed scene")
    parser.add_argument("--hertz", type=float, default=1.0, help="their readings a second")
    parser.add_argument("--lines", type=float, default=2.0, help="log lines a second")
    arguments = parser.parse_args()
    fed = arguments.scene.startswith("fed")
    source: LiveSource
    if fed:
        source = FeedSource(
            gpus=arguments.gpus,
            hertz=arguments.hertz,
            lines=arguments.lines,
            busy=arguments.scene == "fed",
        )
    else:
        source = SceneSource(arguments.scene, frozen=not arguments.moving)
    app = DdtuiApp(
        source,
        settings=UiSettings(theme=arguments.theme, ascii=arguments.ascii),
        clock=system_clock if arguments.moving or fed else lambda: NOW,
    )
    set_apart()  # as `ddtui connect` does
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main())
