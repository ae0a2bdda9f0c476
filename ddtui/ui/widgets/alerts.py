"""The alerts: as many lines as their words need, before anything else gets room."""

from __future__ import annotations

from textwrap import wrap

from ddtui.core.samples import LinkState
from ddtui.core.snapshot import Severity
from ddtui.core.width import clip
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Canvas, Drawing

_RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
_LONGEST = 500
"""Cells of one alert: the log has the whole words of whatever is longer."""
_SAID_ELSEWHERE = frozenset({"link", "skew"})
"""Alerts whose words already stand in the first line here, or in the header."""
_INK = {Severity.CRITICAL: Ink.BAD, Severity.WARNING: Ink.WARN, Severity.INFO: Ink.TEXT}


def link_words(shown: Shown) -> str:
    """Why there is no link and what happens next; empty while there is one."""
    link = shown.link
    if link.state is LinkState.LIVE:
        return ""
    if link.state is LinkState.CONNECTING and not link.detail:
        return ""
    words = [f"{link.state}: {link.detail}" if link.detail else str(link.state)]
    if link.state is LinkState.RETRYING and link.retry_at is not None:
        key = shown.keys.get("app.reconnect", "")
        hint = f" ({key} tries now)" if key else ""
        words.append(f"try {link.attempt + 1} at {fmt.clock(link.retry_at)}{hint}")
    if link.remedy:
        words.append(link.remedy)
    return "; ".join(word.rstrip(".") for word in words)


def alert_rows(shown: Shown, width: int, height: int) -> list[Row]:
    """Every alert in words, the worst first; the last line counts what `height` cannot hold."""
    entries: list[tuple[str, Ink, str]] = []
    if words := link_words(shown):
        entries.append((shown.glyphs.failed, Ink.BAD, words))
    for alert in sorted(shown.snapshot.alerts, key=lambda each: (_RANK[each.severity], each.since)):
        if alert.key in _SAID_ELSEWHERE:
            continue
        symbol = {
            Severity.CRITICAL: shown.glyphs.failed,
            Severity.WARNING: shown.glyphs.warn,
            Severity.INFO: "i",
        }[alert.severity]
        entries.append((symbol, _INK[alert.severity], alert.text))
    rows: list[Row] = []
    for index, (symbol, ink, text) in enumerate(entries):
        lines = wrap(clip(fmt.clean(text), _LONGEST), max(10, width - 4)) or [""]
        left = len(entries) - index
        if len(rows) + len(lines) + (left > 1) > height and rows:
            rows.append(Row(f"   and {left} more in a larger terminal", Ink.WARN))
            break
        if len(lines) > height:  # the first and only one with room: say that it goes on
            lines = [*lines[: height - 1], "... goes on in a larger terminal"]
        rows += [
            Row(f" {symbol if first == 0 else ' '} {line}", ink) for first, line in enumerate(lines)
        ]
    return rows[:height]


class Alerts(Canvas):
    """Sits under the header; takes no room while there is nothing to say."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        return Drawing(rows=alert_rows(shown, width, height))
