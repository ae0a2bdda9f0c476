"""Shown instead of the panels in a terminal that is too small for them."""

from __future__ import annotations

from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.alerts import link_words
from ddtui.ui.widgets.canvas import Canvas, Drawing
from ddtui.ui.widgets.header import link_row, readiness_row

LEAST_WIDTH, LEAST_HEIGHT = 60, 16
"""The smallest terminal in which the panels are drawn."""


class TooSmall(Canvas):
    """Says what is needed, and still the one thing that matters: how the host stands."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        stale = shown.faded
        shot, has = shown.snapshot, self.app.size
        host = Row(fmt.clean(shot.host)[:40], Ink.STRONG)
        if shot.simulated:
            host = Row(" SIMULATED ", Ink.BADGE).add(" ").extend(host)
        rows = [
            Row(f"{shown.glyphs.warn} terminal too small", Ink.WARN),
            host,
            Row(f"needs {LEAST_WIDTH}x{LEAST_HEIGHT}, has {has.width}x{has.height}"),
            link_row(shown),
            readiness_row(shot.readiness, shown.now, shown.glyphs, stale=stale),
        ]
        if words := link_words(shown):
            rows.append(Row(words, Ink.BAD))
        return Drawing(rows=[Row(" ").extend(row).cut(width) for row in rows][:height])
