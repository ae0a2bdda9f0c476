"""Rows of text in named inks: what every panel draws, before any theme gives the inks their colours.

A row is plain data, so panels are functions that tests can read. Remote text cannot become markup: a span
is a pair of text and ink, and text is cleaned when it is added.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Protocol, Self

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip

from ddtui.ui.format import clean


class Ink(enum.IntEnum):
    """What a piece of text is; the theme decides how it looks."""

    TEXT = 0
    STRONG = enum.auto()
    LABEL = enum.auto()  # names of figures, units, axes
    DIM = enum.auto()  # figures that are out of date, things that do not matter now
    FRAME = enum.auto()
    TITLE = enum.auto()
    GOOD = enum.auto()
    WARN = enum.auto()
    BAD = enum.auto()
    ACCENT = enum.auto()
    TRACK = enum.auto()  # the empty part of a bar
    MEMORY = enum.auto()
    UTILIZATION = enum.auto()
    THROUGHPUT = enum.auto()
    ACCEPTANCE = enum.auto()
    PROGRESS = enum.auto()
    BADGE = enum.auto()  # inverted: SIMULATED, PAUSED
    GOOD_BADGE = enum.auto()
    WARN_BADGE = enum.auto()
    BAD_BADGE = enum.auto()


_KEPT_WHEN_FADED = frozenset(
    {Ink.BADGE, Ink.WARN_BADGE, Ink.BAD_BADGE, Ink.WARN, Ink.BAD, Ink.TITLE, Ink.FRAME}
)
"""What still stands out on a panel whose figures are out of date: warnings and badges, not values."""

THEME_VARIABLES: Mapping[Ink, tuple[str, str]] = {
    Ink.MEMORY: ("bar-memory", "primary"),
    Ink.UTILIZATION: ("graph-utilization", "secondary"),
    Ink.THROUGHPUT: ("graph-throughput", "primary"),
    Ink.ACCEPTANCE: ("graph-acceptance", "accent"),
    Ink.PROGRESS: ("bar-progress", "accent"),
}
"""Theme variables that colour charts and bars, and the theme's colour used where one is not set."""


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
        """This row with another one at the right edge of `width`; the right one has precedence."""
        if right.width >= width:
            return right.cut(width)
        row = self.cut(width - right.width - 1) if right.width else self.cut(width)
        return Row().extend(row).to(width - right.width).extend(right)

    def _append(self, text: str, ink: Ink, width: int) -> None:
        # Blanks take the ink of their left neighbour, as nothing of it shows: fewer escape sequences.
        if self.spans:
            before, last = self.spans[-1]
            if ink is last or (text.isspace() and last not in _BADGES):
                self.spans[-1] = (before + text, last)
                self.width += width
                return
        self.spans.append((text, ink))
        self.width += width

    def strip(self, width: int, styles: Mapping[Ink, Style]) -> Strip:
        """This row as a strip of exactly `width` cells."""
        row = self.cut(width)
        segments = [Segment(text, styles[ink]) for text, ink in row.spans]
        if row.width < width:
            if row.spans and row.spans[-1][1] not in _BADGES:
                text, ink = row.spans[-1]
                segments[-1] = Segment(text + " " * (width - row.width), styles[ink])
            else:
                segments.append(Segment(" " * (width - row.width), styles[Ink.TEXT]))
        return Strip(segments, width)


_BADGES = frozenset({Ink.BADGE, Ink.GOOD_BADGE, Ink.WARN_BADGE, Ink.BAD_BADGE})


def clip(text: str, width: int) -> str:
    """Text in at most `width` cells, with an ellipsis where something was left out."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"


def flow(pieces: Iterable[Row], width: int, gap: int = 3) -> list[Row]:
    """Pieces set one after the other into lines of `width` cells; no piece is broken unless it must be."""
    lines: list[Row] = []
    for piece in pieces:
        if lines and lines[-1].width + gap + piece.width <= width:
            lines[-1].to(lines[-1].width + gap).extend(piece)
        else:
            lines.append(Row().extend(piece.cut(width)))
    return lines


def ink_styles(variables: Mapping[str, str], *, faded: bool) -> dict[Ink, Style]:
    """Styles of all inks in a theme.

    Args:
        variables: the app's theme variables.
        faded: draw values as out of date; warnings and badges keep their colours.
    """
    background = _color(variables, "background", "#000000")
    foreground = _color(variables, "foreground", "#d0d0d0")

    def on(color: Color, **attributes: bool) -> Style:
        return Style(color=color.rich_color, bgcolor=background.rich_color, **attributes)

    def toward(color: Color, factor: float) -> Style:
        """A colour nearer to the background; terminal colours know no between, and use `dim`."""
        if color.ansi is not None or background.ansi is not None:
            return on(color, dim=True)
        return on(color.blend(background, factor, alpha=1.0))

    def badge(name: str) -> Style:
        color = _color(variables, name, "#ffffff")
        if color.ansi is not None:
            return Style(color=color.rich_color, bgcolor=background.rich_color, reverse=True, bold=True)
        return Style(
            color=color.get_contrast_text(1.0).blend(color, 0.0).rich_color,
            bgcolor=color.rich_color,
            bold=True,
        )

    styles = {
        Ink.TEXT: on(foreground),
        Ink.STRONG: on(foreground, bold=True),
        Ink.LABEL: _override(variables, "label", on, toward(foreground, 0.38)),
        Ink.DIM: _override(variables, "dim", on, toward(foreground, 0.5)),
        Ink.FRAME: _override(variables, "frame", on, toward(foreground, 0.75)),
        Ink.TITLE: on(_color(variables, "primary", "#80a0ff"), bold=True),
        Ink.GOOD: on(_color(variables, "success", "#40c060")),
        Ink.WARN: on(_color(variables, "warning", "#e0b040"), bold=True),
        Ink.BAD: on(_color(variables, "error", "#f05050"), bold=True),
        Ink.ACCENT: on(_color(variables, "accent", "#c080ff")),
        Ink.TRACK: _override(variables, "bar-track", on, toward(foreground, 0.8)),
        Ink.BADGE: badge("secondary"),
        Ink.GOOD_BADGE: badge("success"),
        Ink.WARN_BADGE: badge("warning"),
        Ink.BAD_BADGE: badge("error"),
    }
    for ink, (name, instead) in THEME_VARIABLES.items():
        styles[ink] = on(_color(variables, name, variables.get(instead, "#80a0ff")))
    if faded:
        dim = styles[Ink.DIM]
        styles = {
            ink: style if ink in _KEPT_WHEN_FADED else styles[Ink.TRACK] if ink is Ink.TRACK else dim
            for ink, style in styles.items()
        }
    return styles


class _Painter(Protocol):
    def __call__(self, color: Color, /, **attributes: bool) -> Style: ...


def _override(
    variables: Mapping[str, str], name: str, on: _Painter, otherwise: Style
) -> Style:
    return on(_color(variables, name, "#808080")) if name in variables else otherwise


def _color(variables: Mapping[str, str], name: str, otherwise: str) -> Color:
    """A theme's colour, opaque; `otherwise` where the theme has none or one that needs its surroundings."""
    try:
        color = Color.parse(variables.get(name, otherwise))
    except ColorParseError:
        color = Color.parse(otherwise)
    return Color.parse(otherwise) if color.auto else color
