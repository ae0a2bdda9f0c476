"""Horizontal bars and large digits, as rows."""

from __future__ import annotations

import math

from textual.renderables.digits import DIGITS, DIGITS3X3_BOLD

from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row

_NOTHING = 0.005
"""Share below which a figure beside the bar says 0 %."""


def bar(fraction: float | None, width: int, ink: Ink, glyphs: Glyphs) -> Row:
    """A bar of `width` cells; without a fraction only its track."""
    if width <= 0:
        return Row()
    if fraction is None or not math.isfinite(fraction):
        return Row(" " * width, Ink.TRACK)
    share = min(1.0, max(0.0, fraction)) * width
    # Nothing (0 %) and something must look different, and so must all and almost all.
    if fraction < _NOTHING:
        share = 0.0
    elif share < 0.5:
        share = 0.5
    whole = int(share)
    half = share - whole >= 0.5 and whole < width
    filled = glyphs.bar * whole
    if half:
        filled += glyphs.half_bar or glyphs.bar
    row = Row(filled, ink)
    return row.add(glyphs.track * (width - row.width), Ink.TRACK)


def big_digits(text: str, ink: Ink, glyphs: Glyphs) -> list[Row]:
    """Digits three lines high. With ASCII only they stay small, on the middle line."""
    if glyphs.ascii:
        return [Row(), Row(text, ink), Row()]
    rows = [Row(), Row(), Row()]
    for char in text:
        if char in DIGITS:
            at = DIGITS.index(char) * 3
            for row, piece in zip(rows, DIGITS3X3_BOLD[at : at + 3], strict=True):
                row.add(piece.ljust(3), ink)
        else:
            for row, piece in zip(rows, (" ", " ", char), strict=True):
                row.add(piece, ink)
    return rows
