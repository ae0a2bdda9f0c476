"""The line under the log: following or paused, what is shown of how much, and why not all."""

from __future__ import annotations

from collections.abc import Mapping

from textual.geometry import Size

from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row, flow
from ddtui.ui.log_lag import Lag
from ddtui.ui.log_lines import LogLines
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Canvas, Drawing
from ddtui.ui.widgets.log_view import LogView

_ENOUGH_LINES = 20
"""Lines of a terminal from which two may be spent on the status."""


class LogStatus(Canvas):
    """Says what the log view does not show by itself."""

    DEFAULT_CSS = "LogStatus { height: 1; }"

    def __init__(self, lines: LogLines, view: LogView) -> None:
        super().__init__(id="status")
        self._lines = lines
        self._view = view
        self.search_words = ""
        self.text_words = ""
        self.hints: Mapping[str, str] = {}
        """Keys by action id."""
        self._lag = Lag()

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        return Drawing(rows=flow(self._pieces(shown), width - 1, gap=2)[:height])

    def lines_needed(self, shown: Shown, terminal: Size) -> int:
        """Lines to give it in a terminal of this size: a second one only where there is room."""
        most = 2 if terminal.height >= _ENOUGH_LINES else 1
        return min(most, len(flow(self._pieces(shown), terminal.width - 1, gap=2)))

    def _pieces(self, shown: Shown) -> list[Row]:
        lines, view = self._lines, self._view
        pieces = [Row(" ").extend(_mode(view))]
        if lines.unread > 1_000:
            done = 1 - lines.unread / max(1, lines.total + lines.unread)
            pieces.append(Row(f"reading the log, {done:.0%}", Ink.WARN))
        if behind := self._lag.words(shown):
            pieces.append(Row(f"{shown.glyphs.warn} {behind}", Ink.WARN))
        kept = f"{lines.count:,} of {lines.total:,} lines"
        pieces.append(Row(kept, Ink.TEXT if lines.count == lines.total else Ink.STRONG))
        if lines.search is not None:
            pieces.append(self._search())
        words = lines.filter.words()
        if lines.filter.text is not None:
            words[-1] = f"{words[-1]} {fmt.clean(self.text_words)[:24]}"
        pieces += [Row(word, Ink.TITLE) for word in words]
        if lines.polls and not lines.filter.noise:
            key = self.hints.get("log.noise", "")
            hidden = f"{lines.polls:,} poll{'' if lines.polls == 1 else 's'} hidden"
            pieces.append(Row(f"{hidden} ({key})" if key else hidden, Ink.LABEL))
        if view.mark is not None:
            pieces.append(Row(f"{len(view.selected()):,} selected", Ink.STRONG))
        if lines.suppressed:
            dropped = f"{lines.suppressed:,} dropped by journald"
            pieces.append(Row(f"{shown.glyphs.warn} {dropped}", Ink.WARN))
        if view.wrap:
            pieces.append(Row("wrap", Ink.LABEL))
        return pieces

    def _search(self) -> Row:
        lines = self._lines
        row = Row(f"/{fmt.clean(self.search_words)[:24]} ", Ink.TITLE)
        found = len(lines.matches)
        if not found:
            return row.add("searching" if lines.searching else "no match", Ink.WARN)
        at = lines.match_position(self._view.cursor)
        more = "+" if lines.searching else ""
        return row.add(f"{at:,} of {found:,}{more}" if at else f"{found:,}{more} matches", Ink.TEXT)


def _mode(view: LogView) -> Row:
    if view.following:
        return Row(" FOLLOW ", Ink.GOOD_BADGE)
    row = Row(" PAUSED ", Ink.WARN_BADGE)
    if unseen := view.unseen:
        row.add(f" {unseen:,} new line{'' if unseen == 1 else 's'}", Ink.WARN)
    return row
