"""Readiness with the evidence for it, piece by piece."""

from __future__ import annotations

from ddtui.core.snapshot import Evidence, Snapshot, Verdict
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown, loading
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.load import summary_row

_NAME = 13


class ReadinessPanel(Panel):
    """The evidence for the readiness shown, and the last load in one line."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        readiness = shown.snapshot.readiness
        drawing = Drawing(title=Row("Readiness", Ink.TITLE), faded=shown.faded)
        if readiness.summary:
            drawing.title.add(f"  {readiness.summary}", Ink.LABEL)
        drawing.rows = readiness_rows(shown, width)[:height]
        return drawing


def readiness_rows(shown: Shown, width: int) -> list[Row]:
    """One line for each piece of evidence, then how long the load took."""
    shot = shown.snapshot
    rows = [evidence_row(each, shown.glyphs, width) for each in shot.readiness.evidence]
    if not rows:
        rows = [Row("nothing is known yet", Ink.LABEL)]
    if shot.load is not None and has_loaded(shot):
        rows.append(summary_row(shot.load, shown).cut(width))
    return rows


def has_loaded(snapshot: Snapshot) -> bool:
    """Whether there is a load to sum up in a line."""
    return snapshot.load is not None and snapshot.load.finished and not loading(snapshot)


def evidence_row(evidence: Evidence, glyphs: Glyphs, width: int) -> Row:
    """One piece: what it says by symbol, with words where there is room for them."""
    symbol, ink = {
        Verdict.PROVED: (glyphs.ok, Ink.GOOD),
        Verdict.CONSISTENT: (glyphs.maybe, Ink.TEXT),
        Verdict.MISSING: (glyphs.pending, Ink.LABEL),
        Verdict.AGAINST: (glyphs.failed, Ink.BAD),
    }[evidence.verdict]
    row = Row(f"{symbol} ", ink).put(fmt.clean(evidence.name), _NAME, Ink.LABEL).add(" ")
    if width >= 76:
        row.put(str(evidence.verdict), 11, ink)
    detail = Ink.BAD if evidence.verdict is Verdict.AGAINST else Ink.TEXT
    return row.add(fmt.clean(evidence.detail), detail).cut(width)
