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
    maybe: str
    warn: str
    frame: tuple[str, str, str, str, str, str]
    """Top left, top right, bottom left, bottom right, horizontal, vertical."""
    stale_horizontal: str
    """Horizontal line of a frame around figures that are out of date."""
    axis: str
    axis_tick: str
    separator: str
    arrow: str
    """From what it was to what it becomes."""


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
    maybe="~",
    warn="!",
    frame=("╭", "╮", "╰", "╯", "─", "│"),
    stale_horizontal="╌",
    axis="│",
    axis_tick="┤",
    separator="·",
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
    maybe="~",
    warn="!",
    frame=("+", "+", "+", "+", "-", "|"),
    stale_horizontal=".",
    axis="|",
    axis_tick="|",
    separator="|",
    arrow="->",
)
