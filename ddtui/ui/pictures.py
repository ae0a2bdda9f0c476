"""Pictures of what is on the screen, as SVG files of the operator's own."""

from __future__ import annotations

import re
from pathlib import Path

from ddtui.core.clock import Clock
from ddtui.ui.log_files import open_new, suggest_file

_FROM_AFAR = re.compile(r",\s*url\(\"https?://[^\"]*\"\) format\(\"[a-z0-9]+\"\)")
"""Fonts that whoever looks at the picture would load from somebody else's server."""


def write_picture(svg: str, host: str, clock: Clock) -> Path:
    """Write a picture to a new file, for the owner only: it shows a host's log and names.

    Raises:
        OSError: it cannot be written.
    """
    path = suggest_file(host, "screen", clock, suffix=".svg")
    with open_new(path) as stream:
        stream.write(_FROM_AFAR.sub("", svg))
    return path
