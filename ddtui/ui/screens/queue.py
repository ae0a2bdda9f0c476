"""The queue of a host: what runs, what waits, what ended; adding, ordering, running."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.timer import Timer
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ddtui.core.experiment import ENDED, Experiment
from ddtui.ui import format as fmt
from ddtui.ui.actions import Scope, bindings, refused_read_only
from ddtui.ui.copying import copy_text
from ddtui.ui.glyphs import UNICODE
from ddtui.ui.ink import Ink, Row, rows_text, wrapped
from ddtui.ui.palette import keymap_of
from ddtui.ui.queue_desk import QueueDesk
from ddtui.ui.queue_detail_rows import QueueDetail, detail_rows
from ddtui.ui.queue_rows import columns_for, content_of, heading, line, places
from ddtui.ui.screens.built import built
from ddtui.ui.screens.live import ListScreen
from ddtui.ui.screens.queue_editing import QueueEditing
from ddtui.ui.screens.reading import ReadingScreen
from ddtui.ui.shown import Shown, plan_facts
from ddtui.ui.source import ControlProblem
from ddtui.ui.widgets.bench_panel import LEAST_CHART, BenchPanel
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.options import UnpagedOptions
from ddtui.ui.widgets.prompt import Prompt
from ddtui.ui.widgets.queue_detail import QueueDetailPanel
from ddtui.ui.widgets.queue_head import QueueHead
from ddtui.ui.widgets.reconfiguration import ReconfigurationPanel, compact_rows
from ddtui.ui.widgets.too_small import LEAST_HEIGHT, LEAST_WIDTH, TooSmall

PAUSE = 0.25
"""Seconds that the highlight must rest before the host is asked what an experiment changes."""
WIDE = 150
"""Columns from which the details stand beside the table, not below it."""


class QueueScreen(QueueEditing, ListScreen):
    """A table of experiments, and the highlighted one in full."""

    BINDINGS = bindings(Scope.QUEUE)
    DEFAULT_CSS = """
    QueueScreen { layout: vertical; overflow: hidden; background: $background; }
    QueueScreen > #queue-change, QueueScreen > #bench { display: none; }
    QueueScreen > #columns { height: 1; padding: 0 1; color: $label; }
    QueueScreen > #nothing { height: 1fr; padding: 1 2; display: none; }
    QueueScreen > #both { height: 1fr; layout: vertical; }
    QueueScreen > #both.-wide { layout: horizontal; }
    QueueScreen OptionList {
        width: 1fr; height: 1fr; background: $background; border: none; padding: 0 1;
        scrollbar-size-vertical: 1;
        &:focus { border: none; background: $background; background-tint: $background 0%; }
    }
    QueueScreen > TooSmall { display: none; height: 1fr; }
    QueueScreen.-small > * { display: none; }
    QueueScreen.-small > TooSmall { display: block; }
    """

    def __init__(self, desk: QueueDesk) -> None:
        """Prepare the screen; `desk` changes the queue, and runs it."""
        super().__init__(id="queue")
        self._desk = desk
        self._shown: Shown | None = None
        self._listed: list[Experiment] = []
        self._lines: list[Content] = []
        self._detail = QueueDetail()
        self._facts: Hashable = None
        self._pause: Timer | None = None
        self._wanted = ""
        """Id of the experiment to highlight as soon as it is listed."""

    def compose(self) -> ComposeResult:
        yield Header()
        yield QueueHead()
        yield ReconfigurationPanel(id="queue-change", hide="queue.close")
        yield BenchPanel(id="bench")
        yield Static(id="columns")
        yield Static(id="nothing")
        with Container(id="both"):
            yield UnpagedOptions(id="list")
            yield QueueDetailPanel(id="detail")
        yield TooSmall(id="queue-too-small")
        yield Prompt()
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self._desk.read_only and refused_read_only(Scope.QUEUE, action):
            return False
        return super().check_action(action, parameters)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_screen_resume(self) -> None:
        self._look()

    @work(group="queue-look", exclusive=True)
    async def _look(self) -> None:
        await self._desk.queue.look()
        self._fill()

    # ---- what arrives -----------------------------------------------------------------------

    def show(self, shown: Shown) -> None:
        self._shown = shown
        if not built(self):
            return
        self._place()
        for canvas in (Header, QueueHead, ReconfigurationPanel, BenchPanel, TooSmall):
            self.query_one(canvas).show(shown)
        self._fill()
        self.query_one(QueueDetailPanel).show(shown)
        idle = "queue.start" if self._desk.view.run.running else "queue.stop"
        paused = {"queue.pause": "Go on"} if self._desk.view.settings.paused else {}
        self.query_one(KeyBar).retitle({idle: "", **paused})
        facts = plan_facts(shown)
        if facts != self._facts:
            self._facts = facts
            self._detail_soon()

    def on_resize(self) -> None:
        self._lines = []
        self._place()
        self._fill()

    def _place(self) -> None:
        """Give each part the lines that it needs."""
        width, height = self.size.width, self.size.height
        self._fold(small=width < LEAST_WIDTH or height < LEAST_HEIGHT)
        shown = self._shown
        if shown is None or self.has_class("-small"):
            return
        used = self._place_change(shown, max(4, height // 3))
        used += self._place_bench(shown, height - 12 - used)
        wide = width >= WIDE
        both = self.query_one("#both")
        both.set_class(wide, "-wide")
        detail = self.query_one(QueueDetailPanel)
        body = height - 6 - used
        detail.display = wide or body >= 12
        detail.styles.width = max(44, width * 2 // 5) if wide else "100%"
        # What the table does not need is the details'.
        spare = min(body - len(self._desk.view.experiments) - 1, body * 3 // 4)
        detail.styles.height = "100%" if wide else max(6, body * 2 // 5, spare)

    def _fold(self, *, small: bool) -> None:
        """Show nothing but that the terminal is too small, or all again."""
        if small == self.has_class("-small"):
            return
        self.set_class(small, "-small")
        for each in self.children:  # what is shown by hand would go before the style
            if small and not isinstance(each, TooSmall):
                each.display = False
            else:
                each.styles.clear_rule("display")
        self._lines = []

    def _place_change(self, shown: Shown, room: int) -> int:
        panel, view = self.query_one(ReconfigurationPanel), shown.reconfiguration
        panel.display = view is not None
        if view is None:
            return 0
        few = len(compact_rows(view, shown, self.size.width - 4)) + 2
        panel.styles.height = lines = max(3, min(few, room))
        return lines

    def _place_bench(self, shown: Shown, room: int) -> int:
        panel = self.query_one(BenchPanel)
        view = shown.queue
        panel.display = view is not None and view.run.progress is not None
        if not panel.display:
            return 0
        wanted = LEAST_CHART + 3 + (2 if room >= 20 else 0)
        lines = wanted if room >= wanted else 3
        panel.styles.height = lines
        return lines

    # ---- the table --------------------------------------------------------------------------

    def _table_width(self) -> int:
        wide = self.size.width >= WIDE
        detail = max(44, self.size.width * 2 // 5) if wide else 0
        return self.size.width - detail - 3

    def _fill(self) -> None:
        """Fill the table, and keep the highlight on its experiment."""
        if not built(self) or not self.size.width or self.has_class("-small"):
            return
        view, width = self._desk.view, self._table_width()
        glyphs = self._shown.glyphs if self._shown is not None else UNICODE
        listed, there = list(view.experiments), places(view.experiments)
        self._tell_nothing(empty=not listed)
        columns = columns_for(view, width)
        self.query_one("#columns", Static).update(Content(heading(columns, width).text))
        rows = [
            line(each, there.get(each.id), view, width, glyphs, columns=columns) for each in listed
        ]
        kept = self.highlighted or (listed[0] if listed else None)
        # The colours of states are not seen on that of the highlight.
        lines = [
            Content(row.text) if kept is not None and each.id == kept.id else content_of(row)
            for each, row in zip(listed, rows, strict=True)
        ]
        options = self.query_one(OptionList)
        if [each.id for each in listed] != [each.id for each in self._listed] or not self._lines:
            self._refill(options, listed, lines)
        else:
            for at, (old, new) in enumerate(zip(self._lines, lines, strict=True)):
                if not old.is_same(new):
                    options.replace_option_prompt_at_index(at, new)
        changed = listed != self._listed
        self._listed, self._lines = listed, lines
        if changed:
            self._highlight(options.highlighted)

    def _refill(self, options: OptionList, listed: list[Experiment], lines: list[Content]) -> None:
        at = options.highlighted
        kept = self._listed[at].id if at is not None and at < len(self._listed) else ""
        ids = [each.id for each in listed]
        if self._wanted in ids:
            kept, self._wanted = self._wanted, ""
        with self.prevent(OptionList.OptionHighlighted):
            options.clear_options()
            options.add_options([Option(each) for each in lines])
            if ids:
                near = min(at or 0, len(ids) - 1)
                options.highlighted = ids.index(kept) if kept in ids else near

    def _tell_nothing(self, *, empty: bool) -> None:
        """What to do where there is nothing."""
        view = self._desk.view
        shown = empty and view.read and not view.problem
        nothing = self.query_one("#nothing", Static)
        nothing.display = shown
        self.query_one("#both").display = not shown
        self.query_one("#columns").display = not shown
        if shown:
            nothing.update(rows_text(self._how_to_begin(), self.app.theme_variables))

    def _how_to_begin(self) -> list[Row]:
        width, keys = max(20, self.size.width - 6), keymap_of(self)
        rows = [Row("Nothing is queued.", Ink.STRONG), Row()]
        if self._desk.read_only:
            return rows + wrapped("With --read-only nothing can be added.", width, Ink.LABEL)
        words = (
            ("queue.add", "adds an experiment: a preset, or values such as budget=16 topk=4"),
            ("queue.grid", "adds a grid: budget=4,8,12 topk=4,6 if topk <= budget"),
            ("queue.start", "runs the queue here, one after the other; asks first"),
        )
        for name, what in words:
            rows.append(Row().put(keys.shown(name), 4, Ink.TITLE).add(what).cut(width))
        host = fmt.clean(self._desk.view.settings.host) or "HOST"
        words_too = (
            f"From a shell: ddtui queue {host} add, ddtui sweep {host} GRID, ddtui run {host}"
        )
        return [*rows, Row(), *wrapped(words_too, width, Ink.LABEL)]

    # ---- the details ------------------------------------------------------------------------

    @property
    def highlighted(self) -> Experiment | None:
        """The experiment that keys mean."""
        at = self.query_one(OptionList).highlighted
        return self._listed[at] if at is not None and at < len(self._listed) else None

    def go_to(self, experiment_id: str) -> None:
        """Highlight an experiment, now or as soon as it is listed."""
        self._wanted = experiment_id
        ids = [each.id for each in self._listed]
        if experiment_id in ids:
            self._wanted = ""
            self.query_one(OptionList).highlighted = ids.index(experiment_id)
        self._fill()

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        self._highlight(event.option_index)
        self._fill()

    def _highlight(self, at: int | None) -> None:
        each = self._listed[at] if at is not None and at < len(self._listed) else None
        before = self._detail.experiment
        if each is None:
            self._detail = QueueDetail()
        elif before is None or before.id != each.id:
            self._detail = QueueDetail(each)
            self._detail_soon()
        elif before != each:
            kept = self._detail if before.request == each.request else QueueDetail(each)
            self._detail = replace(kept, experiment=each)
            self._detail_soon()
        self._tell()

    def _tell(self) -> None:
        if built(self):
            self.query_one(QueueDetailPanel).tell(self._detail)

    def _detail_soon(self) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE, self._detail_now)

    def _detail_now(self) -> None:
        if self.is_current and self._detail.experiment is not None:
            self._work_out(self._detail.experiment)

    @work(group="queue-detail", exclusive=True)
    async def _work_out(self, each: Experiment) -> None:
        """Its log, and what it changes on the host."""
        connected = self._shown is not None and self._shown.connected
        asks = connected and each.state not in ENDED
        self._detail = replace(self._detail, working=asks)
        plan, problem = (self._detail.plan, self._detail.problem)
        try:
            log = await self._desk.queue.log(each.id)
        except ControlProblem as error:
            log, problem = (), error
        try:
            if asks:
                plan, problem = await self._desk.queue.plan(each.id), None
        except ControlProblem as error:
            plan, problem = None, error
        now = self._detail.experiment
        if now is not None and now.id == each.id:
            self._detail = replace(self._detail, plan=plan, problem=problem, log=log, working=False)
            self._tell()

    # ---- looking closer ---------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def _chosen(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Show the highlighted one in full."""
        each = self.highlighted
        if each is None:
            return
        glyphs = self._shown.glyphs if self._shown is not None else UNICODE

        def rows(width: int) -> list[Row]:
            return detail_rows(self._detail, self._desk.view, width, glyphs)

        self.app.push_screen(ReadingScreen(fmt.clean(each.title)[:80], rows))

    def action_copy(self) -> None:
        """Copy what is told of it, each line whole."""
        copy_text(self.app, self.query_one(QueueDetailPanel).text(), "what is told of it")

    def action_reload(self) -> None:
        """Read the queue and plan again."""
        self._detail_soon()
        self._look()

    def action_page_down(self) -> None:
        """Scroll the details."""
        self.query_one(QueueDetailPanel).page(1)

    def action_page_up(self) -> None:
        """Scroll them back."""
        self.query_one(QueueDetailPanel).page(-1)
