"""The scrolling part of the log screen: it follows new lines or stays, and has a cursor."""

from __future__ import annotations

from textual import events
from textual.cache import LRUCache
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ddtui.ui.log_filter import LogLine
from ddtui.ui.log_lines import LogLines
from ddtui.ui.palette import keymap_of
from ddtui.ui.widgets.log_paint import LogLook, LogPainter, rank_column
from ddtui.ui.widgets.log_rows import RowMap

SIDE_STEP = 16
"""Cells that left and right move by."""

WHEEL_STEP = 3
"""Rows that a turn of the wheel moves by."""

_CacheKey = tuple[int, int, LogLook, bool, bool]


class LogView(Widget, can_focus=True):
    """Shows `LogLines`. Whoever lets those work calls `sync`, when it is time to paint.

    It scrolls by itself and repaints only rows that look different: a line that arrives while the
    operator looks at older ones sends nothing but the length of the scroll bar.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "LogView { height: 1fr; background: $background; }"

    class Moved(Message):
        """The cursor moved, or following began or ended."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LogView.Moved)

    def __init__(self, lines: LogLines) -> None:
        super().__init__(id="lines")
        self.lines = lines
        self.following = True
        self.cursor = 0
        """Number of the line under the cursor."""
        self._kept = 0
        """Number of the line that the operator went to: where a filter hides it, it comes back."""
        self.mark: int | None = None
        """Number of the line where a selection began."""
        self.ascii = False
        self._seen = -1
        """Number of the last line shown when following ended."""
        self._wrap = False
        self._stamps = True
        self._left = 0
        self._rows = RowMap()
        self._built: object = None
        self._generation = -1
        self._dropped = 0
        self._top = 0
        """Row of the lines that is the first one in view."""
        self._painted: list[Strip] = []
        self._painter: LogPainter | None = None
        self._cache: LRUCache[_CacheKey, Strip] = LRUCache(2048)

    # ---- what the screen asks ---------------------------------------------------------------

    @property
    def wrap(self) -> bool:
        """Whether long lines are wrapped."""
        return self._wrap

    @property
    def stamps(self) -> bool:
        """Whether the host's time is shown."""
        return self._stamps

    @property
    def top(self) -> int:
        """Which of `height` rows is the first one in view."""
        return self._top

    @property
    def rows(self) -> RowMap:
        """Which row belongs to which line."""
        return self._rows

    @property
    def unseen(self) -> int:
        """Lines shown that came since following ended."""
        return 0 if self.following else self.lines.after(self._seen)

    def selected(self) -> list[LogLine]:
        """Lines of the selection, or the line under the cursor, without separators."""
        shown = self.lines.shown
        if not shown:
            return []
        first, last = sorted((self.cursor, self.cursor if self.mark is None else self.mark))
        begin = self.lines.index_of(first)
        count = len(shown) - self.lines.after(last)
        return [line for line in shown[begin : max(begin + 1, count)] if not line.separator]

    def toggle_wrap(self) -> None:
        """Wrap long lines, or scroll them."""
        self._wrap, self._left = not self._wrap, 0
        self.sync()

    def toggle_stamps(self) -> None:
        """Show or hide the host's time."""
        self._stamps = not self._stamps
        self.sync()

    def toggle_selection(self) -> None:
        """Begin a selection at the cursor, or drop it."""
        if self.mark is None:
            self.follow(False)
            self.mark = self.cursor
        else:
            self.mark = None
        self._repaint()

    def follow(self, wanted: bool) -> None:
        """Follow new lines, or stay."""
        if wanted:
            self.following, self.mark = True, None
            self._to_end()
        elif self.following:
            self.following = False
            self._seen = self.lines.shown[-1].number if self.lines.shown else -1
        self._repaint()

    def move(self, step: int) -> None:
        """Move the cursor by lines. Up stops following; down past the last line starts it."""
        shown = self.lines.shown
        if not shown or (self.following and step > 0):
            return
        self.follow(False)
        index = self.lines.index_of(self.cursor) + step
        if index >= len(shown) and self.mark is None:
            self.follow(True)
            return
        self._put_cursor(min(max(0, index), len(shown) - 1), back=step < 0)

    def page(self, step: int) -> None:
        """Move by pages."""
        if self._wrap:
            row = self._rows.top_of(self.lines.index_of(self.cursor)) + step * self.size.height
            target = self._rows.line_at(max(0, min(row, self._rows.height - 1)))[0]
            lines = target - self.lines.index_of(self.cursor)
            # A line may fill more than a page.
            self.move(lines if lines * step > 0 else step)
        else:
            self.move(step * max(1, self.size.height - 1))

    def go_to(self, number: int) -> None:
        """Put the cursor on a line and bring it into view; stops following."""
        if self.lines.shown:
            self.follow(False)
            self._put_cursor(self.lines.index_of(number))

    def to_top(self) -> None:
        """To the oldest line."""
        if self.lines.shown:
            self.go_to(self.lines.shown[0].number)
            self._place(0)

    def side(self, step: int) -> None:
        """Scroll long lines sideways; does nothing when they are wrapped."""
        if not self._wrap:
            widest = max((line.cells for _, line in self._visible()), default=0)
            most = max(0, widest - self._look().room + 1)
            self._left = max(0, min(self._left + step * SIDE_STEP, max(self._left, most)))
            self._repaint()

    def sync(self) -> None:
        """Show what `lines` found since, or the same lines in another look."""
        offset = self._cursor_offset()
        self.lines.publish()
        look = self._look()
        built = (look.wrap, look.room if look.wrap else 0, look.stamps)
        renewed = self._generation != self.lines.generation
        if renewed or built != self._built:
            self._built, self._generation = built, self.lines.generation
            self._dropped = self.lines.dropped
            self._rows.rebuild(self.lines.shown, look.rows if look.wrap else None)
            if renewed:
                self._cache.clear()
            gone = None
        else:
            gone = self._rows.cut(self.lines.dropped - self._dropped)
            self._dropped = self.lines.dropped
            self._rows.grow()
        if self.following:
            self._to_end()
        elif gone is None:
            # The lines are other ones: keep the line under the cursor where it was on the screen.
            kept, self.cursor = self._kept, self._kept
            self._place(self._rows.top_of(self.lines.index_of(kept)) - offset)
            self._clamp_cursor()
            self._kept = kept
        elif gone:
            self._place(self._top - gone)
            self._clamp_cursor()
        self._paint()

    # ---- placing ----------------------------------------------------------------------------

    def _look(self) -> LogLook:
        return LogLook(
            width=max(1, self.size.width - 1),  # the last column is the scroll bar
            rank_width=rank_column(self.lines.rank_names),
            left=self._left,
            wrap=self._wrap,
            stamps=self._stamps,
            ascii=self.ascii,
            search=self.lines.search,
        )

    def _cursor_offset(self) -> int:
        """Rows between the top of the view and the cursor, before lines change."""
        index = self.lines.index_of(self.cursor)
        if not self.lines.shown:
            return self.size.height // 2
        return max(0, min(self._rows.top_of(index) - self._top, self.size.height - 1))

    def _to_end(self) -> None:
        if self.lines.shown:
            self.cursor = self._kept = self.lines.shown[-1].number
        self._place(self._rows.height)

    def _place(self, row: int) -> None:
        """Let a row be the first one in view, as far as there are rows below it."""
        self._top = max(0, min(row, self._rows.height - self.size.height))

    def scroll_rows(self, step: int) -> None:
        """Scroll by rows with the cursor in view. Up stops following, the end starts it."""
        if not self.lines.shown:
            return
        if step < 0:
            self.follow(False)
        self._place(self._top + step)
        if step > 0 and self._top + self.size.height >= self._rows.height and self.mark is None:
            self.follow(True)
        self._clamp_cursor()
        self._repaint()

    def _put_cursor(self, index: int, *, back: bool = False) -> None:
        shown = self.lines.shown
        if shown[index].separator:
            index = index - 1 if back and index > 0 else min(index + 1, len(shown) - 1)
        self.cursor = self._kept = shown[index].number
        top = self._rows.top_of(index)
        view_top, height = self._top, self.size.height
        if top < view_top:
            self._place(top - (1 if index and shown[index - 1].separator else 0))
        elif top + self._rows.rows_of(index) > view_top + height:
            self._place(min(top, top + self._rows.rows_of(index) - height))
        self._repaint()

    def _visible(self) -> list[tuple[int, LogLine]]:
        """Index and line of what is in view."""
        shown = self.lines.shown
        if not shown or not self._rows.height:
            return []
        top = self._top
        last = min(top + self.size.height, self._rows.height) - 1
        first, _ = self._rows.line_at(min(top, last))
        end, _ = self._rows.line_at(last)
        return list(enumerate(shown[first : end + 1], first))

    def _clamp_cursor(self) -> None:
        """Keep the cursor on a line that is in view."""
        visible = [line.number for _, line in self._visible() if not line.separator]
        if visible:
            self.cursor = self._kept = max(visible[0], min(self.cursor, visible[-1]))

    def _repaint(self) -> None:
        self._paint()
        self.post_message(self.Moved())

    # ---- painting ---------------------------------------------------------------------------

    def _paint(self) -> None:
        """Draw the rows in view, and repaint those that look different."""
        before = self._painted
        self._painted = self._draw()
        if len(before) != len(self._painted):
            self.refresh()
            return
        changed = [y for y, strip in enumerate(self._painted) if strip != before[y]]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _draw(self) -> list[Strip]:
        width, height = self.size
        if width < 2 or height < 1:
            return []
        if self._painter is None:
            self._painter = LogPainter(self.app.theme_variables)
        look = self._look()
        bar = self._painter.scroll_bar(height, self._top, self._rows.height)
        strips = [self._row(self._painter, look, y) for y in range(height)]
        return [Strip([*strip, bar[y]], width) for y, strip in enumerate(strips)]

    def _row(self, painter: LogPainter, look: LogLook, y: int) -> Strip:
        shown = self.lines.shown
        if not shown and y == 0:
            reset = keymap_of(self.screen).shown("log.reset")
            filtered = f"no line passes the filters; {reset} shows all"
            return painter.note(filtered if self.lines.total else "no line yet", look.width)
        row = y + self._top
        if row >= self._rows.height:
            return painter.note("", look.width)
        index, part = self._rows.line_at(row)
        line = shown[index]
        cursor = line.number == self.cursor and not self.following
        selected = self.mark is not None and (
            min(self.mark, self.cursor) <= line.number <= max(self.mark, self.cursor)
        )
        key = (-line.number - 1 if line.separator else line.number, part, look, cursor, selected)
        strip = self._cache.get(key)
        if strip is None:
            strip = painter.strip(line, part, look, cursor=cursor, selected=selected)
            self._cache.set(key, strip)
        return strip

    # ---- Textual ----------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        if y < len(self._painted):
            return self._painted[y]
        return Strip.blank(self.size.width, self.rich_style)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._paint_in_new_colors())

    def _paint_in_new_colors(self) -> None:
        self._painter = None
        self._cache.clear()
        self._paint()

    def on_resize(self) -> None:
        self.sync()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-WHEEL_STEP)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(WHEEL_STEP)

    def on_click(self, event: events.Click) -> None:
        if event.x >= self.size.width - 1:  # the scroll bar
            self.scroll_rows(self._rows.height * event.y // max(1, self.size.height) - self._top)
            return
        row = event.y + self._top
        if row < self._rows.height:
            if event.shift and self.mark is None:
                self.mark = self.cursor
            self.follow(False)
            self._put_cursor(self._rows.line_at(row)[0])
