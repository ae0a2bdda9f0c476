"""The characters that pictures are drawn with: box and braille characters, or plain ASCII.

None is an emoji, and none needs two cells.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Glyphs:
    """One set of drawing characters."""

    ascii: bool
    bar: str
    half_bar: str
    track: str
    ok: str
    running: str
    pending: str
    failed: str
    skipped: str
    chosen: tuple[str, str]
    """Left and right of the button that is chosen."""
    frame: tuple[str, str, str, str, str, str]
    """Top left, top right, bottom left, bottom right, horizontal, vertical."""
    stale_horizontal: str
    """Horizontal line of a frame around figures that are out of date."""
    axis: str
    axis_tick: str
    arrow: str
    """From what it was to what it becomes."""
    maybe: str = "~"
    warn: str = "!"


UNICODE = Glyphs(
    ascii=False,
    bar="━",
    half_bar="╸",
    track="─",
    ok="✓",
    running="▸",
    pending="·",
    failed="✗",
    skipped="–",
    chosen=("▸", "◂"),
    frame=("╭", "╮", "╰", "╯", "─", "│"),
    stale_horizontal="╌",
    axis="│",
    axis_tick="┤",
    arrow="→",
)

ASCII = Glyphs(
    ascii=True,
    bar="#",
    half_bar="",
    track="-",
    ok="+",
    running=">",
    pending=".",
    failed="x",
    skipped="-",
    chosen=("[", "]"),
    frame=("+", "+", "+", "+", "-", "|"),
    stale_horizontal=".",
    axis="|",
    axis_tick="|",
    arrow="->",
)


def glyphs_of(app: object) -> Glyphs:
    """The set that an app's settings ask for."""
    settings = getattr(app, "settings", None)
    return ASCII if settings is not None and settings.ascii else UNICODE
