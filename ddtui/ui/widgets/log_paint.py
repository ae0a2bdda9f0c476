"""Draws lines of the log: labels in fixed columns, then the text, with matches marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.cells import chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip

from ddtui.ui.format import clock
from ddtui.ui.log_filter import Level, LogLine

_MARKS_PER_LINE = 200
_LONGEST_RANK = 12


@dataclass(frozen=True)
class LogLook:
    """How lines are drawn. A strip drawn with one look is not valid for another."""

    width: int
    rank_width: int = 0
    """Cells of the rank column; 0 leaves it out."""
    left: int = 0
    """Cells of the text scrolled out at the left, when lines are not wrapped."""
    wrap: bool = False
    stamps: bool = True
    """The host's time in front, instead of the engine's own stamp; else lines as written."""
    ascii: bool = False
    search: re.Pattern[str] | None = None

    @property
    def prefix(self) -> int:
        """Cells in front of the text."""
        if not self.stamps:
            return 2
        return 11 + (self.rank_width + 1 if self.rank_width else 0)

    @property
    def room(self) -> int:
        """Cells for the text."""
        return max(1, self.width - self.prefix)

    def text(self, line: LogLine) -> str:
        """The words of a line as they are drawn."""
        return line.text[line.cut :] if self.stamps else line.text

    def rows(self, line: LogLine) -> int:
        """Rows that a line takes when wrapped."""
        cells = line.cells - (line.cut if self.stamps else 0)
        if cells <= self.room or line.separator:
            return 1
        if line.cells == len(line.text):
            return -(-cells // self.room)
        return len(chop_cells(self.text(line), self.room))


def rank_column(ranks: Iterable[str]) -> int:
    """Width of the rank column for the ranks that occur."""
    return min(_LONGEST_RANK, max(map(len, ranks), default=0))


class LogPainter:
    """Draws lines in the colours of a theme."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._background = _opaque(variables["background"])

        def ink(name: str, *, bold: bool = False) -> Style:
            return Style(color=_opaque(variables[name]).rich_color, bold=bold or None)

        def ground(name: str) -> Style:
            return Style(bgcolor=_opaque(variables[f"{name}-background"]).rich_color)

        self._levels = {
            Level.ERROR: ink("log-error"),
            Level.WARNING: ink("log-warning"),
            Level.INFO: ink("log-info"),
            Level.DEBUG: ink("log-debug"),
        }
        self._letters = {
            Level.ERROR: ink("log-error", bold=True),
            Level.WARNING: ink("log-warning", bold=True),
            Level.INFO: ink("log-debug"),
            Level.DEBUG: ink("log-debug"),
        }
        self._stamp = ink("log-stamp")
        self._rank = ink("log-rank")
        self._manager = ink("log-manager")
        self._separator = ink("log-separator", bold=True)
        self._thumb = Style(bgcolor=_opaque(variables["scrollbar"]).rich_color)
        self._track = Style(bgcolor=_opaque(variables["scrollbar-background"]).rich_color)
        self._plain = Style(bgcolor=self._background.rich_color)
        self._cursor = ground("log-cursor")
        self._selection = ground("log-selection")
        self._match = ink("log-match-foreground") + ground("log-match")
        self._current = ink("log-current-foreground", bold=True) + ground("log-current")

    def note(self, words: str, width: int) -> Strip:
        """A row without a line."""
        return self._finish([Segment(words, self._stamp)], width, self._plain)

    def scroll_bar(self, height: int, top: int, rows: int) -> list[Segment]:
        """The cells of a scroll bar beside `height` of `rows` rows, from `top` on."""
        if rows <= height:
            return [Segment(" ", self._plain)] * height
        thumb = max(1, height * height // rows)
        begin = round((height - thumb) * top / (rows - height))
        return [
            Segment(" ", self._thumb if begin <= y < begin + thumb else self._track)
            for y in range(height)
        ]

    def strip(
        self, line: LogLine, row: int, look: LogLook, *, cursor: bool, selected: bool
    ) -> Strip:
        """One row of a line, exactly as wide as the look says."""
        if line.separator:
            rule = "-" if look.ascii else "─"
            text = f"{rule * 2} {line.separator} "
            return self._finish(
                [Segment(text + rule * max(0, look.width - len(text)), self._separator)],
                look.width,
                self._plain,
            )
        ground = self._selection if selected else self._cursor if cursor else self._plain
        segments = self._prefix(line, look) if row == 0 else [Segment(" " * look.prefix)]
        segments += self._text(line, row, look, cursor=cursor)
        return self._finish(segments, look.width, ground)

    def _finish(self, segments: list[Segment], width: int, ground: Style) -> Strip:
        based = [Segment(text, ground + style if style else ground) for text, style, _ in segments]
        strip = Strip(based)
        blank = " " * (width - strip.cell_length)
        if blank and segments and not (segments[-1].style and segments[-1].style.bgcolor):
            # Blanks in the last word's colours look the same and send fewer escape sequences.
            based[-1] = Segment(based[-1].text + blank, based[-1].style)
            return Strip(based, width)
        return strip.adjust_cell_length(width, ground)

    def _prefix(self, line: LogLine, look: LogLook) -> list[Segment]:
        letter = Segment(f"{line.level.letter} ", self._letters[line.level])
        if not look.stamps:
            return [letter]
        segments = [Segment(f"{clock(line.line.stamp):8} ", self._stamp), letter]
        if look.rank_width:
            rank = line.rank[: look.rank_width].ljust(look.rank_width)
            segments.append(Segment(f"{rank} ", self._rank))
        return segments

    def _text(self, line: LogLine, row: int, look: LogLook, *, cursor: bool) -> list[Segment]:
        text = look.text(line)
        style = self._manager if line.line.from_manager else self._levels[line.level]
        if look.wrap:
            text, start = _chunk(text, row, look.room)
            spans = _spans(look, line, start, len(text))
            return self._marked(text, spans, style, cursor=cursor)
        whole = Strip(self._marked(text, _spans(look, line, 0, len(text)), style, cursor=cursor))
        shown = list(whole.crop(look.left, look.left + look.room))
        if look.left and text:
            less = Segment("<" if look.ascii else "‹", self._stamp)
            shown = [less, *Strip(shown).crop(1, look.room)]
        if whole.cell_length > look.left + look.room:
            more = Segment(">" if look.ascii else "›", self._stamp)
            shown = [*Strip(shown).crop(0, look.room - 1), more]
        return shown

    def _marked(
        self, text: str, spans: list[tuple[int, int]], style: Style, *, cursor: bool
    ) -> list[Segment]:
        segments, at = [], 0
        for start, end in spans:
            if start > at:
                segments.append(Segment(text[at:start], style))
            segments.append(Segment(text[start:end], self._current if cursor else self._match))
            at = end
        if at < len(text):
            segments.append(Segment(text[at:], style))
        return segments


def _chunk(text: str, row: int, room: int) -> tuple[str, int]:
    """The part of a wrapped text that a row shows, and its place in the text."""
    if text.isascii():
        return text[row * room : (row + 1) * room], row * room
    chunks = chop_cells(text, room)
    return (chunks[row], sum(map(len, chunks[:row]))) if row < len(chunks) else ("", len(text))


def _spans(look: LogLook, line: LogLine, start: int, length: int) -> list[tuple[int, int]]:
    """Matches of the search within a piece of the drawn text."""
    if look.search is None:
        return []
    offset = start + (line.cut if look.stamps else 0)
    spans: list[tuple[int, int]] = []
    for match in look.search.finditer(line.text):
        begin, end = max(0, match.start() - offset), min(length, match.end() - offset)
        if end > begin:
            spans.append((begin, end))
        if len(spans) >= _MARKS_PER_LINE or match.start() - offset >= length:
            break
    return spans


def _opaque(value: str) -> Color:
    return Color.parse(value).blend(Color(0, 0, 0), 0.0, alpha=1.0)
