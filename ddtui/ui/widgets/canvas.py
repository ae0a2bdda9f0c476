"""The widget that every panel is: rows in inks, and nothing sent to the terminal that stayed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.theme import Theme
from textual.widget import Widget

from ddtui.ui.ink import Ink, Row, ink_styles
from ddtui.ui.shown import Shown

_LEAST_FRAMED = 3
"""Lines below which a panel has no frame: there would be no room within."""


@dataclass
class Drawing:
    """What a panel looks like: its rows and, for a framed one, what stands in the frame."""

    rows: list[Row] = field(default_factory=list)
    title: Row = field(default_factory=Row)
    note: Row = field(default_factory=Row)
    """At the right of the title: where the figures come from, and their age when they are old."""
    faded: bool = False
    """The figures are out of date."""


class Canvas(Widget):
    """Shows rows.

    Repaints only lines that differ from what is on the screen, and of them only the columns up to
    the last difference.
    """

    can_focus = False
    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Canvas { width: 100%; height: 1; background: $background; }
    """

    framed = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._strips: list[Strip] = []
        self._shown: Shown | None = None
        self._styles: dict[bool, dict[Ink, Style]] = {}
        """Styles of the inks for figures that are fresh (False) and out of date (True)."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        """What to show in `width` x `height` cells (inside the frame, where there is one)."""
        raise NotImplementedError

    def show(self, shown: Shown) -> None:
        """Show a snapshot; does nothing to the screen where nothing looks different."""
        self._shown = shown
        if not self.display:
            return
        before, size = self._strips, self.size
        self._strips = self._render_all(shown, size)
        if len(before) != len(self._strips):
            self.refresh()
            return
        regions = []
        for y, (old, new) in enumerate(zip(before, self._strips, strict=True)):
            if old != new:
                start, end = _difference(old, new)
                regions.append(Region(start, y, end - start, 1))
        if regions:
            self.refresh(*regions)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, self._on_theme)

    def on_resize(self) -> None:
        self._redraw()

    def on_show(self) -> None:
        self._redraw()

    def _on_theme(self, _theme: Theme) -> None:
        self._styles.clear()
        self._redraw()

    def _redraw(self) -> None:
        if self._shown is not None:
            self._strips = self._render_all(self._shown, self.size)
            self.refresh()

    def _render_all(self, shown: Shown, size: Size) -> list[Strip]:
        width, height = size
        if width <= 0 or height <= 0:
            return []
        if not self.framed or height < _LEAST_FRAMED:
            drawing = self.draw(shown, width, height)
            rows = drawing.rows
        else:
            # The floor keeps arithmetic on widths honest in a terminal being dragged to nothing.
            drawing = self.draw(shown, max(8, width - 4), max(0, height - 2))
            rows = framed(drawing, width, height, shown)
        if drawing.faded not in self._styles:
            self._styles[drawing.faded] = ink_styles(self.app.theme_variables, faded=drawing.faded)
        styles = self._styles[drawing.faded]
        plain = shown.glyphs.ascii
        strips = [row.strip(width, styles, ascii_only=plain) for row in rows[:height]]
        blank = Row().strip(width, styles)
        return strips + [blank] * (height - len(strips))

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)


class Panel(Canvas):
    """A canvas with a frame and a title."""

    framed = True


def framed(drawing: Drawing, width: int, height: int, shown: Shown) -> list[Row]:
    """A drawing's rows within a frame; the line is broken around figures that are out of date."""
    left_top, right_top, left_bottom, right_bottom, line, side = shown.glyphs.frame
    if drawing.faded:
        line = shown.glyphs.stale_horizontal
    title = Row().extend(drawing.title).cut(max(0, width - 6))
    note = Row().extend(drawing.note).cut(max(0, width - title.width - 8))
    top = Row(f"{left_top}{line} ", Ink.FRAME).extend(title)
    if title.width:
        top.add(" ", Ink.FRAME)
    fill = width - top.width - (note.width + 4 if note.width else 1)
    top.add(line * max(0, fill), Ink.FRAME)
    if note.width:
        top.add(" ").extend(note).add(" ").add(line, Ink.FRAME)
    top.add(right_top, Ink.FRAME)
    rows = [top]
    for index in range(height - 2):
        row = Row(f"{side} ", Ink.FRAME)
        if index < len(drawing.rows):
            row.extend(drawing.rows[index].cut(width - 4))
        rows.append(row.to(width - 2).add(" ").add(side, Ink.FRAME))
    if height > 1:
        rows.append(Row(left_bottom + line * max(0, width - 2) + right_bottom, Ink.FRAME))
    return rows


def _difference(old: Strip, new: Strip) -> tuple[int, int]:
    """Columns between which two strips of one length differ (cells, end excluded)."""
    cells_old, cells_new = _cells(old), _cells(new)
    if len(cells_old) != len(cells_new):
        return 0, new.cell_length
    changed = [
        index
        for index, (one, other) in enumerate(zip(cells_old, cells_new, strict=True))
        if one != other
    ]
    return (changed[0], changed[-1] + 1) if changed else (0, new.cell_length)


def _cells(strip: Strip) -> list[tuple[str, object]]:
    """One entry a cell; a wide character takes two."""
    cells: list[tuple[str, object]] = []
    for segment in strip:
        if segment.text.isascii():
            cells.extend((char, segment.style) for char in segment.text)
        else:
            for char in segment.text:
                width = Segment(char).cell_length
                cells.extend([(char, segment.style)] * width)
    return cells
