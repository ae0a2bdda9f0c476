"""Readiness with the evidence for it, piece by piece."""

from __future__ import annotations

from rich.cells import cell_len

from ddtui.core.snapshot import Evidence, Readiness, ReadinessState, Snapshot, Verdict
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, wrapped
from ddtui.ui.shown import Shown, loading
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.load import summary_row

_NAME = 13
_TITLE = 16
"""Cells of the frame's upper line that are not the summary's."""


class ReadinessPanel(Panel):
    """The evidence for the readiness shown, and the last load in one line."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        readiness = shown.snapshot.readiness
        drawing = Drawing(title=Row("Readiness", Ink.TITLE), faded=shown.faded)
        if readiness.summary and not long_summary(readiness, width):
            drawing.title.add(f"  {fmt.clean(readiness.summary)}", Ink.LABEL)
        drawing.rows = readiness_rows(shown, width, height)[:height]
        return drawing


def long_summary(readiness: Readiness, width: int) -> list[Row]:
    """The summary in lines, where a title of `width` has no room for it; else nothing."""
    if cell_len(readiness.summary) <= width - _TITLE:
        return []
    return wrapped(readiness.summary, width, Ink.STRONG)


def readiness_rows(shown: Shown, width: int, height: int) -> list[Row]:
    """The summary where it is long, each piece of evidence, then how long the load took.

    Evidence that is too long for a line gets more of them where there are some to spare.
    """
    shot = shown.snapshot
    evidence = shot.readiness.evidence
    rows = long_summary(shot.readiness, width)
    spare = height - len(rows) - max(1, len(evidence)) - has_loaded(shot)
    for each in evidence:
        lines = evidence_rows(each, shown.glyphs, width, 1 + max(0, spare))
        spare -= len(lines) - 1
        rows += lines
    if not evidence:
        absent = shot.readiness.state is ReadinessState.ABSENT
        words = "there is no unit that could be ready" if absent else "nothing is known yet"
        rows.append(Row(words, Ink.LABEL))
    if shot.load is not None and has_loaded(shot):
        rows.append(summary_row(shot.load, shown).cut(width))
    return rows


_DOWN = frozenset({ReadinessState.STOPPED, ReadinessState.STOPPING, ReadinessState.ABSENT})


def has_loaded(snapshot: Snapshot) -> bool:
    """Whether there is a load to sum up in a line: that of the engine that is up."""
    if snapshot.load is None or snapshot.readiness.state in _DOWN:
        return False
    return snapshot.load.finished and not loading(snapshot)


def evidence_rows(evidence: Evidence, glyphs: Glyphs, width: int, most: int) -> list[Row]:
    """One piece in at most `most` lines: what it says by symbol, with words where they fit."""
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
    words = fmt.clean(evidence.detail)
    if row.width + cell_len(words) <= width or most <= 1:
        return [row.add(words, detail).cut(width)]
    first, *more = wrapped(words, width - row.width, detail)
    rows = [Row().extend(row).extend(first), *(Row().to(row.width).extend(each) for each in more)]
    if len(rows) <= most:
        return rows
    left = " ".join(each.text.strip() for each in rows[most - 1 :])
    begin = row if most == 1 else Row().to(row.width)
    return [*rows[: most - 1], Row().extend(begin).add(left, detail).cut(width)]
