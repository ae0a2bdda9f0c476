"""Adds a grid: it expands while it is typed, and the host checks it before it is queued."""

from __future__ import annotations

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from ddtui.experiments.worked import Worked
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.ink import Ink, Row, lines_of, rows_text, wrapped
from ddtui.ui.queue_source import GridView, QueueSource
from ddtui.ui.screens.built import built
from ddtui.ui.screens.modal import Modal
from ddtui.ui.source import ControlProblem
from ddtui.ui.sweep_rows import expansion_rows, worked_rows

REST = 0.7
"""Seconds that the line must rest before the host is asked by itself."""
BY_ITSELF = 40
"""Configurations up to which the host is asked by itself; for more enter asks it."""
_SIDES = 6
_EXAMPLE = "budget=4,8,12 topk=4,6 window=2048,none if topk <= budget"
_HINTS = (
    "budget=4,8 topk=4,6        every combination",
    "window=2048,none           none takes the flag away",
    "budget~block_size=8:16,16:35   settings that change together",
    "block_size=8,16 match      budgets matched to the block size; match=ratio; control",
    "if topk <= budget          only what holds; stands last",
    "baseline=in-force again    what is compared with; once more at the end",
    "repeats=5 plan=quick       how it is measured; or the name of a sweep, or its file",
)


class GridScreen(Modal[Worked | None]):
    """Gives the grid that the host has checked. Enter adds what is shown, and nothing else."""

    AUTO_FOCUS = "Input"
    BINDINGS = [
        Binding("escape", "back", show=False),
        Binding("down", "scroll(1)", show=False, priority=True),
        Binding("up", "scroll(-1)", show=False, priority=True),
        Binding("pagedown", "scroll(10)", show=False, priority=True),
        Binding("pageup", "scroll(-10)", show=False, priority=True),
        Binding("ctrl+r", "reuse", show=False, priority=True),
        Binding("tab,shift+tab", "stay", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    GridScreen { align: center middle; }
    GridScreen > Vertical {
        width: 130; max-width: 96%; height: auto; max-height: 96%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    GridScreen Input { border: none; height: 1; padding: 0; background: $panel; }
    GridScreen #status { height: 1; color: $label; }
    GridScreen VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
    """

    def __init__(self, queue: QueueSource, text: str = "") -> None:
        """`text` is what to begin with."""
        super().__init__()
        self._queue = queue
        self._begin = text
        self._view = GridView()
        self._worked: Worked | None = None
        self._worked_of = ("", False)
        self._reuse = False
        self._working = False
        self._hurried = False
        """Whether enter was pressed while it was being checked."""
        self._problem: ControlProblem | None = None
        self._done = (0, 0)
        self._pause: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(" Add a grid ")
            box.border_subtitle = Content(" ⏎ checks it, then adds it  ↑↓ scroll  esc closes ")
            yield Input(self._begin, compact=True, select_on_focus=False, placeholder=_EXAMPLE)
            yield Static(id="status")
            with VerticalScroll(can_focus=False):
                yield Static(id="body")

    def on_mount(self) -> None:
        self._preview()

    def on_resize(self) -> None:
        self._fill()

    def action_back(self) -> None:
        """Add nothing."""
        self.dismiss(None)

    def action_stay(self) -> None:
        """Keep the focus in the line."""

    def action_scroll(self, lines: int) -> None:
        """Scroll what it would be."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_reuse(self) -> None:
        """Take over what was measured already, or measure it again."""
        self._reuse = not self._reuse
        self._preview()

    @property
    def _text(self) -> str:
        return self.query_one(Input).value.strip()

    @on(Input.Changed)
    def _changed(self) -> None:
        self._preview()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self._worked is not None and self._worked_of == (self._text, self._reuse):
            if self._worked.arranged.runs:
                self.dismiss(self._worked)
        elif self._working:
            self._hurried = True
            self._fill()
        elif not self._view.fault:
            self._ask_host()

    def _preview(self) -> None:
        """Expand it here; ask the host once the line rests."""
        self._worked, self._problem, self._hurried = None, None, False
        self._view = self._queue.grid(self._text) if self._text else GridView()
        if self._pause is not None:
            self._pause.stop()
        found = self._view.expansion
        if found is not None and 0 < len(found.combinations) <= BY_ITSELF:
            self._pause = self.set_timer(REST, self._ask_host)
        self._fill()

    def _ask_host(self) -> None:
        if self._text:
            self._work_out(self._text, self._reuse)

    @work(group="grid", exclusive=True)
    async def _work_out(self, text: str, reuse: bool) -> None:
        self._working, self._done = True, (0, 0)
        self._fill()
        worked, problem = None, None
        try:
            worked = await self._queue.work_out(text, reuse=reuse, on_done=self._counted)
        except ControlProblem as error:
            problem = error
        finally:
            self._working = False
        if (text, reuse) == (self._text, self._reuse):
            self._worked, self._problem = worked, problem
            self._worked_of = (text, reuse)
            self._fill()

    def _counted(self, done: int, total: int) -> None:
        self._done = (done, total)
        self._fill()

    def _fill(self) -> None:
        if not built(self):
            return
        width = max(20, min(130, int(self.size.width * 0.96)) - _SIDES)
        room = max(3, int(self.size.height * 0.96) - 5)
        self.query_one(VerticalScroll).styles.max_height = room
        colors = self.app.theme_variables
        self.query_one("#status", Static).update(rows_text([self._status().cut(width)], colors))
        self.query_one("#body", Static).update(rows_text(self._rows(width), colors))

    def _status(self) -> Row:
        if self._working:
            done, total = self._done
            words = f" {done} of {total}" if total else ""
            row = Row(f"{glyphs_of(self.app).running} the host checks it ...{words}", Ink.BUSY)
            if self._hurried:
                row.add("  nothing is added yet: look at it, then ⏎ again", Ink.WARN)
            return row
        if self._worked is not None:
            if not self._worked.arranged.runs:
                return Row("nothing of it can be run", Ink.BAD)
            count = len(self._worked.arranged.runs)
            words = f"⏎ adds {count} experiment{'' if count == 1 else 's'}"
            return Row(words, Ink.GOOD).add("  reuses measurements" if self._reuse else "")
        known = self._view.expansion is not None or self._view.note
        if known and self._problem is None:
            return Row("not checked on the host yet; ⏎ asks it", Ink.LABEL)
        return Row()

    def _rows(self, width: int) -> list[Row]:
        glyphs = glyphs_of(self.app)
        if self._problem is not None:
            rows = [
                row
                for line in self._problem.what.splitlines()
                for row in wrapped(line, width, Ink.BAD)
            ]
            return rows + lines_of(self._problem.remedy, width)
        if self._worked is not None:
            return worked_rows(self._worked, width, glyphs)
        if self._view.expansion is not None:
            return expansion_rows(self._view.expansion, width, glyphs)
        if self._view.note:
            return wrapped(self._view.note, width)
        if self._view.fault:
            return fault_rows(self._view.fault, width)
        return [Row(line, Ink.LABEL).cut(width) for line in _HINTS]


def fault_rows(fault: str, width: int) -> list[Row]:
    """What is wrong with a grid; the lines with the place and its caret are not wrapped."""
    rows: list[Row] = []
    for each in fault.splitlines():
        indented = each.startswith(" ")
        rows += [Row(each, Ink.STRONG).cut(width)] if indented else wrapped(each, width, Ink.BAD)
    return rows
