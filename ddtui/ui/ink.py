"""Rows of text in named inks: what panels draw, before a theme gives the inks their colours.

A row is plain data, so panels are functions that tests can read. Remote text cannot become markup:
a span is a pair of text and ink, and text is cleaned when it is added.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Self

from rich.cells import chop_cells
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.color import Color
from textual.strip import Strip

from ddtui.core.width import cell_len, clip
from ddtui.ui.format import clean


class Ink(enum.IntEnum):
    """What a piece of text is; the theme decides how it looks."""

    TEXT = 0
    STRONG = enum.auto()
    LABEL = enum.auto()  # names of figures, units, axes
    DIM = enum.auto()  # figures that are out of date, things that do not matter now
    FRAME = enum.auto()
    TITLE = enum.auto()
    AXIS = enum.auto()
    GOOD = enum.auto()
    WARN = enum.auto()
    BAD = enum.auto()
    BUSY = enum.auto()
    TRACK = enum.auto()  # the empty part of a bar
    MEMORY = enum.auto()
    UTILIZATION = enum.auto()
    THROUGHPUT = enum.auto()
    ACCEPTANCE = enum.auto()
    PROGRESS = enum.auto()
    BADGE = enum.auto()  # inverted: SIMULATED, PAUSED
    GOOD_BADGE = enum.auto()
    BUSY_BADGE = enum.auto()
    WARN_BADGE = enum.auto()
    BAD_BADGE = enum.auto()
    QUIET_BADGE = enum.auto()
    HEAT_0 = enum.auto()  # fields of a heat map, from the weakest
    HEAT_1 = enum.auto()
    HEAT_2 = enum.auto()
    HEAT_3 = enum.auto()
    HEAT_4 = enum.auto()
    HEAT_5 = enum.auto()


HEATS = (Ink.HEAT_0, Ink.HEAT_1, Ink.HEAT_2, Ink.HEAT_3, Ink.HEAT_4, Ink.HEAT_5)
"""Inks of a heat map's fields, from the weakest to the strongest."""

_BADGES = {
    Ink.BADGE: "accent",
    Ink.GOOD_BADGE: "success",
    Ink.BUSY_BADGE: "primary",
    Ink.WARN_BADGE: "warning",
    Ink.BAD_BADGE: "error",
    Ink.QUIET_BADGE: "secondary",
}
_GROUNDED = frozenset({*_BADGES, *HEATS})
"""Inks with a ground of their own: a blank beside them is not of their ink."""
_PLAIN = {
    Ink.TEXT: "foreground",
    Ink.LABEL: "label",
    Ink.FRAME: "frame",
    Ink.GOOD: "success",
    Ink.BUSY: "primary",
    Ink.TRACK: "bar-track",
    Ink.MEMORY: "bar-memory",
    Ink.UTILIZATION: "graph-utilization",
    Ink.THROUGHPUT: "graph-throughput",
    Ink.ACCEPTANCE: "graph-acceptance",
    Ink.PROGRESS: "bar-progress",
}
_BOLD = {
    Ink.STRONG: "foreground",
    Ink.TITLE: "primary",
    Ink.WARN: "warning",
    Ink.BAD: "error",
}
_KEPT_WHEN_FADED = frozenset({*_GROUNDED, Ink.TITLE, Ink.FRAME, Ink.WARN, Ink.BAD, Ink.TRACK})
"""What still stands out on a panel whose figures are out of date: warnings, badges, no values."""


_MOST_LINES = 200
"""Lines of one text that are ever laid out."""
_ASCII = str.maketrans({"…": "~", "–": "-", "°": " "})
"""What stands for the characters that numbers and cut texts are written with."""


class Row:
    """One line being written from left to right, in cells."""

    __slots__ = ("spans", "width")

    def __init__(self, text: str = "", ink: Ink = Ink.TEXT) -> None:
        self.spans: list[tuple[str, Ink]] = []
        self.width = 0
        if text:
            self.add(text, ink)

    def __repr__(self) -> str:
        return f"Row({self.text!r})"

    @property
    def text(self) -> str:
        """The words without their inks."""
        return "".join(text for text, _ in self.spans)

    def add(self, text: str, ink: Ink = Ink.TEXT) -> Self:
        """Append text, cleaned of what could move the cursor or hide."""
        text = clean(text)
        width = cell_len(text)
        if width:
            self._append(text, ink, width)
        return self

    def put(self, text: str, width: int, ink: Ink = Ink.TEXT, *, right: bool = False) -> Self:
        """Append text in a field of `width` cells; what does not fit is cut with an ellipsis."""
        text = clip(clean(text), width)
        blank = " " * (width - cell_len(text))
        return self.add(blank + text if right else text + blank, ink)

    def extend(self, other: Row) -> Self:
        """Append another row."""
        for text, ink in other.spans:
            self._append(text, ink, cell_len(text))
        return self

    def to(self, column: int) -> Self:
        """Fill with blanks up to a column."""
        if column > self.width:
            self._append(" " * (column - self.width), Ink.TEXT, column - self.width)
        return self

    def cut(self, width: int) -> Row:
        """This row in at most `width` cells, with an ellipsis where something was left out."""
        if self.width <= width:
            return self
        row = Row()
        for text, ink in self.spans:
            room = width - row.width
            if cell_len(text) >= room:  # something follows it, or it is too long itself
                row.add(clip(text + "…", room), ink)
                break
            row.add(text, ink)
        return row

    def with_right(self, right: Row, width: int) -> Row:
        """This row, and another one at the right edge of `width`, which has precedence."""
        if right.width >= width:
            return right.cut(width)
        row = self.cut(width - right.width - 1) if right.width else self.cut(width)
        return Row().extend(row).to(width - right.width).extend(right)

    def _append(self, text: str, ink: Ink, width: int) -> None:
        # Blanks take their left neighbour's ink, as nothing of it shows: fewer escape sequences.
        if self.spans:
            before, last = self.spans[-1]
            if ink is last or (text.isspace() and not {ink, last} & _GROUNDED):
                self.spans[-1] = (before + text, last)
                self.width += width
                return
        self.spans.append((text, ink))
        self.width += width

    def strip(self, width: int, styles: Mapping[Ink, Style], *, ascii_only: bool = False) -> Strip:
        """This row as a strip of exactly `width` cells."""
        row = self.cut(width)
        segments = [
            Segment(text.translate(_ASCII) if ascii_only else text, styles[ink])
            for text, ink in row.spans
        ]
        if row.width < width:
            if row.spans and row.spans[-1][1] not in _GROUNDED:
                text, style, _ = segments[-1]
                segments[-1] = Segment(text + " " * (width - row.width), style)
            else:
                segments.append(Segment(" " * (width - row.width), styles[Ink.TEXT]))
        return Strip(segments, width)


def wrapped(text: str, width: int, ink: Ink = Ink.TEXT, *, indent: int = 0) -> list[Row]:
    """Text in lines of at most `width` cells, all moved to the right by `indent`."""
    room = max(4, width - indent)
    lines = [
        piece
        for line in wrap(clean(text), room, break_on_hyphens=False, break_long_words=False) or [""]
        for piece in (chop_cells(line, room) if cell_len(line) > room else [line])
    ]
    return [Row(" " * indent).add(line, ink) for line in lines]


def lines_of(text: str, width: int, ink: Ink = Ink.TEXT, *, indent: int = 0) -> list[Row]:
    """Each line of a text by itself, what does not fit moved to the right below it.

    So a line that is meant for a file or a shell is seen as one.
    """
    rows: list[Row] = []
    for line in text.splitlines()[:_MOST_LINES]:
        first, *rest = wrapped(line, width - indent, ink)
        rows.append(Row(" " * indent).extend(first))
        below = clean(line)[len(first.text) :].strip()
        if rest:
            rows += wrapped(below, width, ink, indent=indent + 4)
    return rows


def rows_text(rows: Iterable[Row], variables: Mapping[str, str]) -> Text:
    """Rows for a widget with a background of its own."""
    styles = ink_styles(variables, faded=False)
    text = Text(no_wrap=True, overflow="ellipsis")
    for index, row in enumerate(rows):
        if index:
            text.append("\n")
        for words, ink in row.spans:
            style = styles[ink]
            own = style if ink in _GROUNDED else Style(color=style.color, bold=style.bold)
            text.append(words, own)
    return text


def flow(pieces: Iterable[Row], width: int, gap: int = 3) -> list[Row]:
    """Pieces one after the other in lines of `width` cells; none is broken unless it must be."""
    lines: list[Row] = []
    for piece in pieces:
        if lines and lines[-1].width + gap + piece.width <= width:
            lines[-1].to(lines[-1].width + gap).extend(piece)
        else:
            lines.append(Row().extend(piece.cut(width)))
    return lines


def grid(pieces: Iterable[Row], width: int, columns: int) -> list[Row]:
    """Pieces in columns of equal width, line by line: nothing moves when a figure gets longer."""
    each = width // columns
    lines: list[Row] = []
    for index, piece in enumerate(pieces):
        if index % columns == 0:
            lines.append(Row())
        lines[-1].to(index % columns * each).extend(piece.cut(each - 1))
    return lines


def ink_styles(variables: Mapping[str, str], *, faded: bool) -> dict[Ink, Style]:
    """Styles of all inks in a theme.

    Args:
        variables: the app's theme variables; see `ddtui.ui.themes.VARIABLES`.
        faded: draw values as out of date; warnings and badges keep their colours.
    """
    background = Color.parse(variables["background"])

    def on(color: Color, *, bold: bool | None = None, dim: bool | None = None) -> Style:
        # A style of its own for each attribute would send more: bold and colour go together.
        return Style(color=color.rich_color, bgcolor=background.rich_color, bold=bold, dim=dim)

    def toward_background(name: str, factor: float) -> Style:
        color = Color.parse(variables[name])
        if color.ansi is not None or background.ansi is not None:
            return on(color, dim=True)  # terminal colours know nothing in between
        return on(color.blend(background, factor, alpha=1.0))

    styles = {ink: on(Color.parse(variables[name])) for ink, name in _PLAIN.items()}
    styles |= {ink: on(Color.parse(variables[name]), bold=True) for ink, name in _BOLD.items()}
    styles |= {ink: _badge(Color.parse(variables[name])) for ink, name in _BADGES.items()}
    heat = Color.parse(variables["graph-throughput"])
    styles |= {ink: _heat(heat, background, at / (len(HEATS) - 1)) for at, ink in enumerate(HEATS)}
    styles[Ink.AXIS] = toward_background("label", 0.25)
    styles[Ink.DIM] = toward_background("dim", 0.35)
    if faded:
        dim = styles[Ink.DIM]
        styles = {ink: s if ink in _KEPT_WHEN_FADED else dim for ink, s in styles.items()}
    return styles


def _badge(color: Color) -> Style:
    """Text on the colour: black or white, whichever reads better."""
    if color.ansi is not None:
        return Style(color=color.rich_color, reverse=True, bold=True)
    text = Color(0, 0, 0) if color.brightness > 0.5 else Color(255, 255, 255)
    return Style(color=text.rich_color, bgcolor=color.rich_color, bold=True)


def _heat(color: Color, background: Color, strength: float) -> Style:
    """Text on a ground that is the colour by as much as its strength."""
    if color.ansi is not None or background.ansi is not None:
        # Terminal colours know nothing in between.
        return Style(color=color.rich_color, reverse=strength > 0.5, bold=strength >= 1)
    ground = background.blend(color, 0.10 + 0.80 * strength, alpha=1.0)
    text = Color(0, 0, 0) if ground.brightness > 0.5 else Color(255, 255, 255)
    return Style(color=text.rich_color, bgcolor=ground.rich_color, bold=strength >= 1)
