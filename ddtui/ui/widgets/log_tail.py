"""The last lines of the unit's journal."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ddtui.core.samples import Collector, JournalLine
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row
from ddtui.ui.log_filter import is_poll
from ddtui.ui.log_lag import Lag
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel

TAIL = 400
"""Last lines of the journal that are looked through for those to show."""
_ERROR_PRIORITY = 3
_OWN_STAMP = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: ([^\]]{1,24}))?\] ?")
"""A line's own stamp, which repeats the journal's; what follows in it names the rank."""


class LogTail(Panel):
    """As many of the last lines as there is room for, without polls; the Log screen has all."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._lag = Lag()

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        log = shown.snapshot.log if shown.paused_log is None else shown.paused_log
        drawing = Drawing(title=Row("Log", Ink.TITLE), faded=shown.faded)
        if key := shown.keys.get("app.log", ""):
            drawing.note = Row(f"{key} opens the log", Ink.LABEL)
        if trouble := shown.source_trouble(Collector.JOURNAL):
            drawing.note = Row(trouble, Ink.WARN)
        # Bars and polls come many to a line shown, so more lines are asked for than are shown.
        tail = log.tail(max(TAIL, height * 8))
        told = [line for line in tail if not is_poll(line.text)]
        lines = last_lines(told, height)
        if len(told) < len(tail):
            drawing.title.add("  polls hidden", Ink.LABEL)
        if behind := self._lag.words(shown):
            drawing.title.add(f"  {shown.glyphs.warn} {behind}", Ink.WARN)
        drawing.rows = [log_row(line, width) for line in lines]
        if not lines:
            drawing.rows = [Row("no line yet", Ink.LABEL)]
        return drawing


def last_lines(lines: Iterable[JournalLine], height: int) -> list[JournalLine]:
    """The last lines, of each run of progress bar states only the newest."""
    kept: list[JournalLine] = []
    for line in lines:
        if kept and kept[-1].bar and line.bar:
            kept[-1] = line
        else:
            kept.append(line)
    return kept[-height:] if height > 0 else []


def log_row(line: JournalLine, width: int) -> Row:
    """One line, cut at the width; the Log screen wraps it."""
    row = Row(f"{fmt.clock(line.stamp)} ", Ink.AXIS)
    bad = line.priority is not None and line.priority <= _ERROR_PRIORITY
    ink = Ink.BAD if bad else Ink.ACCEPTANCE if line.from_manager else Ink.LABEL
    text = line.text
    if own := _OWN_STAMP.match(text):
        row.add(f"{own[1]} " if own[1] else "", Ink.AXIS)
        text = text[own.end() :]
    return row.add(text, ink).cut(width)
