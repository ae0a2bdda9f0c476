"""The table of results: one row a configuration, with its verdict and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ddtui.core.text import counted
from ddtui.core.width import clip
from ddtui.experiments.columns import Column, columns_of, verdict_word
from ddtui.experiments.comparison import Standing
from ddtui.experiments.fitting import GAP, fitted, width_of
from ddtui.experiments.intervals import Ratio
from ddtui.experiments.results import ResultsView
from ddtui.experiments.results import Row as Result
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, wrapped
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.results_order import Order

VERDICT_INKS = {
    "faster": Ink.GOOD,
    "slower": Ink.BAD,
    "failed": Ink.BAD,
    "unclear": Ink.WARN,
    "tie": Ink.LABEL,
    "baseline": Ink.TITLE,
}
_QUIET = frozenset({"±", "nodes used", "TTFT ms", "95 %", "load s", "work", "why"})
_FORESTS = (33, 21)
"""Columns of the picture of the intervals, the widest that leaves room for all others: odd, so that
it has a middle."""
_FOREST_FROM = 170
"""Width from which there is room for it."""


@dataclass(frozen=True)
class TableData:
    """What the table shows."""

    view: ResultsView | None = None
    """As it is sorted and filtered; None while nothing was read."""
    at: int = 0
    """Index of the highlighted row."""
    order: Order = field(default_factory=Order)
    filters: tuple[str, ...] = ()
    """What hides rows, in words."""
    of: int = 0
    """Rows without the filters."""
    trouble: str = ""
    """Why nothing can be read."""
    hints: tuple[tuple[str, str], ...] = ()
    """Where there is nothing to show: what to do, and what that is good for."""
    lines: tuple[str, ...] = ()
    """Where there is nothing to show: why; before the hints."""


class ResultsTable(Panel):
    """Keeps the highlighted row in sight."""

    class Picked(Message):
        """A row was clicked."""

        def __init__(self, at: int, *, twice: bool) -> None:
            super().__init__()
            self.at = at
            self.twice = twice

    class Scrolled(Message):
        """The wheel moved the highlight by so many rows."""

        def __init__(self, rows: int) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._data = TableData()
        self._top = 0
        self._room = 1
        self._fitted: tuple[object, list[Column], list[str], int] = ((), [], [], 0)

    @property
    def page(self) -> int:
        """Rows that are in sight at once."""
        return self._room

    def tell(self, data: TableData) -> None:
        """Show other rows, or another highlight."""
        self._data = data
        if self._shown is not None:
            self.show(self._shown)

    def on_click(self, event: events.Click) -> None:
        at = self._top + event.y - 2
        view = self._data.view
        if view is not None and event.y >= 2 and 0 <= at < len(view.rows):
            self.post_message(self.Picked(at, twice=event.chain > 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Scrolled(3))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Scrolled(-3))

    # ---- drawing ----------------------------------------------------------------------------

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        data, glyphs = self._data, shown.glyphs
        drawing = Drawing(title=Row("Results", Ink.TITLE))
        view = data.view
        if view is None or not view.rows:
            drawing.rows = _empty_rows(data, glyphs, width)
            drawing.note = _note(data, 1, 0) if data.of else Row()
            return drawing
        forest = _forest_scale(view) if width >= _FOREST_FROM else None
        columns, left_out, wide = self._columns(view, width - 2, forest=forest is not None)
        foot = _foot(left_out, view)
        self._room = room = max(1, height - 1 - bool(foot))
        at = min(data.at, len(view.rows) - 1)
        self._top = max(0, min(self._top, at, len(view.rows) - room))
        self._top = max(self._top, at - room + 1)
        last = min(len(view.rows), self._top + room)
        drawing.note = _note(data, self._top + 1, last)
        drawing.title.extend(_summary(view, width - drawing.note.width - 14))
        best = _best(view)
        rows = [_heading(columns, data.order, forest, wide)]
        for index in range(self._top, last):
            mark = glyphs.running if index == at else " "
            row = Row(f"{mark} ", Ink.TITLE)
            _cells(row, columns, view, index, best=index == best)
            if forest is not None:
                row.add(" " * GAP).extend(_forest(view.rows[index], forest, glyphs, wide))
            rows.append(row)
        rows += [Row()] * (height - len(rows) - 1)
        if foot:
            rows.append(Row(foot, Ink.LABEL).cut(width))
        drawing.rows = rows[:height]
        return drawing

    def _columns(
        self, view: ResultsView, width: int, *, forest: bool
    ) -> tuple[list[Column], list[str], int]:
        """What fits, what does not, and columns of the picture: worked out once for a view."""
        key = (id(view), width, forest)
        if self._fitted[0] != key:
            columns = columns_of(view)
            fits = [
                (*fitted(columns, width - wide - (GAP if wide else 0)), wide)
                for wide in (_FORESTS if forest else (0,))
            ]
            # The widest beside which no less is told than beside the narrowest.
            kept, left_out, wide = next(each for each in fits if each[:2] == fits[-1][:2])
            self._fitted = (key, kept, left_out, wide)
        return self._fitted[1:]

    def _render_all(self, shown: Shown, size: Size) -> list[Strip]:
        strips = super()._render_all(shown, size)
        view = self._data.view
        if view is None or not view.rows:
            return strips
        line = 2 + min(self._data.at, len(view.rows) - 1) - self._top
        if 2 <= line < len(strips) - 1:
            strips[line] = self._lit(strips[line], size.width)
        return strips

    def _lit(self, strip: Strip, width: int) -> Strip:
        """The highlighted row on a ground of its own, between the sides of the frame."""
        color = Color.parse(self.app.theme_variables["log-cursor-background"])
        ground = Style(bgcolor=color.rich_color)
        inner = strip.crop(1, width - 1)
        lit = Strip(
            [segment._replace(style=(segment.style or Style()) + ground) for segment in inner],
            inner.cell_length,
        )
        return Strip.join([strip.crop(0, 1), lit, strip.crop(width - 1, width)])


def _summary(view: ResultsView, width: int) -> Row:
    """At which concurrency and against what, as far as there is room."""
    row = Row("  at concurrency ", Ink.LABEL).add(str(view.concurrency))
    pieces = []
    if view.baseline:
        against = Row("  against ", Ink.LABEL).add(clip(fmt.clean(view.baseline), 36))
        pieces.append(against)
    if view.sweep:
        pieces.append(Row("  sweep ", Ink.LABEL).add(clip(fmt.clean(view.sweep), 30)))
    pieces.append(Row(f"  ties within {view.margin * 100:.1f} %", Ink.LABEL))
    for piece in pieces:
        if row.width + piece.width <= width:
            row.extend(piece)
    return row


def _note(data: TableData, first: int, last: int) -> Row:
    """How many rows there are, which of them are in sight, and what hides others."""
    rows = len(data.view.rows) if data.view is not None else 0
    row = Row()
    for each in data.filters:
        row.add(clip(fmt.clean(each), 30), Ink.WARN).add("  ")
    words = f"{rows} of {data.of}" if rows != data.of else f"{rows}"
    words = f"{first}-{last} of {rows}" if last - first + 1 < rows else words
    return row.add(f"{words} configuration{'s' if data.of != 1 else ''}", Ink.LABEL)


def _empty_rows(data: TableData, glyphs: Glyphs, width: int) -> list[Row]:
    """What to say where there are no rows."""
    if data.trouble:
        return [Row(), *wrapped(data.trouble, width, Ink.BAD)]
    if data.view is None:
        return [Row(f"{glyphs.running} reading the results ...", Ink.LABEL)]
    rows: list[Row] = [Row()]
    for index, each in enumerate(data.lines):
        rows += wrapped(each, width, Ink.LABEL if index else Ink.STRONG)
    if data.hints:
        rows.append(Row())
    names = max((len(name) for name, _ in data.hints), default=0)
    for name, words in data.hints:
        if width >= names + 30:
            first, *rest = wrapped(words, width - names - 2, Ink.LABEL)
            rows.append(Row().put(name, names + 2, Ink.TITLE).extend(first))
            rows += [Row(" " * (names + 2)).extend(each) for each in rest]
        else:
            rows += [Row(name, Ink.TITLE), *wrapped(words, width, Ink.LABEL, indent=2)]
    return rows


def _foot(left_out: Sequence[str], view: ResultsView) -> str:
    parts = []
    if "why" in left_out and any(
        row.comparison.standing is Standing.NOT_COMPARED and row.state != "failed"
        for row in view.rows
    ):
        parts.append(f"{fmt.NOTHING}: not measured as the baseline was")
    if view.waiting:
        parts.append(f"{counted(view.waiting, 'experiment')} not ended yet")
    if left_out:  # the longest, and it matters least
        parts.append(f"no room for {', '.join(left_out)}")
    return "; ".join(parts)


def _heading(columns: Sequence[Column], order: Order, forest: float | None, wide: int) -> Row:
    row = Row("  ")
    for place, column in enumerate(columns):
        chosen = column.title == order.column
        row.put(
            column.title, width_of(column), Ink.TITLE if chosen else Ink.LABEL, right=column.right
        )
        if place < len(columns) - 1:
            row.add(" " * GAP)
    if forest is not None:
        left, right = f"-{forest * 100:g} %", f"+{forest * 100:g} %"
        middle = "baseline".center(wide)
        line = left + middle[len(left) : wide - len(right)] + right
        row.add(" " * GAP).add(line, Ink.AXIS)
    return row


def _cells(row: Row, columns: Sequence[Column], view: ResultsView, at: int, *, best: bool) -> None:
    result = view.rows[at]
    for place, column in enumerate(columns):
        text = column.texts[at]
        ink = _ink(column.title, result, text, best=best)
        row.put(text, width_of(column), ink, right=column.right)
        if place < len(columns) - 1:
            row.add(" " * GAP)


def _ink(column: str, result: Result, text: str, *, best: bool) -> Ink:
    if text == fmt.NOTHING:
        return Ink.DIM
    if column == "flips":
        return Ink.WARN if result.coding is not None and result.coding.lost else Ink.TEXT
    if column == "configuration" and result.state == "failed":
        return Ink.LABEL
    found = result.comparison
    inks = {
        "verdict": VERDICT_INKS.get(verdict_word(result), Ink.TEXT),
        "Δ": VERDICT_INKS.get(verdict_word(result), Ink.TEXT),
        "configuration": Ink.STRONG if best else Ink.TEXT,
        "tok/s/user": Ink.STRONG if best else Ink.TEXT,
        "accept×": factor_ink(found.acceptance),
        "step×": factor_ink(found.step_time, less_is_better=True),
        "marks": Ink.WARN,
    }
    return inks.get(column, Ink.LABEL if column in _QUIET else Ink.TEXT)


def factor_ink(found: Ratio | None, *, less_is_better: bool = False) -> Ink:
    """Good or bad, where a factor's interval leaves 1 out."""
    if found is None or found.low is None or found.high is None:
        return Ink.TEXT
    more, less = found.low > 1.005, found.high < 0.995
    if more or less:
        return Ink.GOOD if more is not less_is_better else Ink.BAD
    return Ink.TEXT


def _best(view: ResultsView) -> int | None:
    """Index of the row with the highest rate."""
    rates = [row.rate.median if row.rate is not None else 0.0 for row in view.rows]
    return rates.index(max(rates)) if any(rates) else None


# ---- the picture of the intervals ----------------------------------------------------------


def _decides(result: Result) -> Ratio | None:
    found = result.comparison
    return found.user_rate if found.by == "user" else found.total_rate


def _forest_scale(view: ResultsView) -> float | None:
    """Share at both ends of the picture, a round figure; None where nothing is compared."""
    far = [abs(found.value - 1) for row in view.rows if (found := _decides(row)) is not None]
    if not far:
        return None
    return next((each for each in (0.02, 0.05, 0.1, 0.2, 0.5) if max(far) <= each), 1.0)


def _forest(result: Result, scale: float, glyphs: Glyphs, wide: int) -> Row:
    """Where a ratio and its interval lie, the baseline in the middle."""
    middle = wide // 2
    line: list[tuple[str, Ink]] = [(" ", Ink.AXIS)] * wide
    line[middle] = (glyphs.axis, Ink.AXIS)

    def place(value: float) -> int:
        share = max(-1.0, min(1.0, (value - 1) / scale))
        return round(middle + share * middle)

    found = _decides(result)
    if found is not None and result.comparison.standing is not Standing.BASELINE:
        ink = VERDICT_INKS.get(verdict_word(result), Ink.TEXT)
        if found.low is not None and found.high is not None:
            for each in range(place(found.low), place(found.high) + 1):
                line[each] = (glyphs.bar, ink)
        line[place(found.value)] = ("o" if glyphs.ascii else "●", ink)
    row = Row()
    for character, ink in line:
        row.add(character, ink)
    return row
