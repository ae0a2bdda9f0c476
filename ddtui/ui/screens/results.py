"""Results: one row a configuration, compared with a baseline; why, and as charts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical

from ddtui.core.clock import Clock, system_clock
from ddtui.experiments.results_files import Form
from ddtui.ui import format as fmt
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.copying import copy_text
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.palette import keymap_of
from ddtui.ui.results_source import Asked, ResultsSource
from ddtui.ui.screens import results_words as words
from ddtui.ui.screens.built import built
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.reading import ReadingScreen
from ddtui.ui.screens.results_choosing import ResultsChoosing
from ddtui.ui.shown import Shown
from ddtui.ui.source import ControlProblem
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.prompt import Prompt
from ddtui.ui.widgets.results_chart import ResultsChart
from ddtui.ui.widgets.results_detail import ResultsDetail, detail_rows
from ddtui.ui.widgets.results_live import live_of
from ddtui.ui.widgets.results_table import ResultsTable

LOOK_INTERVAL = 1.0
"""Seconds between two looks whether something was measured."""
_BESIDE_FROM = 110
"""Width from which details and chart stand side by side."""
_VIEWS = ("all", "chart", "table")


class ResultsScreen(ResultsChoosing):
    """A table above; details of the highlighted row, and a chart, beneath."""

    BINDINGS = [
        Binding("up", "screen.up", show=False),
        Binding("down", "screen.down", show=False),
        Binding("home", "screen.first", show=False),
        Binding("end", "screen.last", show=False),
        Binding("enter", "screen.open", show=False),
        *bindings(Scope.RESULTS),
    ]
    AUTO_FOCUS = ""  # all keys are the screen's own, but for the line that is typed into
    DEFAULT_CSS = """
    ResultsScreen { layout: vertical; overflow: hidden; background: $background; }
    ResultsScreen > #body { height: 1fr; }
    ResultsScreen ResultsTable { min-height: 3; }
    ResultsScreen #beneath { height: 1fr; }
    ResultsScreen ResultsDetail { width: 1fr; height: 100%; }
    ResultsScreen ResultsChart { width: 1fr; height: 100%; display: none; }
    ResultsScreen.-beside ResultsChart { display: block; }
    ResultsScreen.-chart ResultsTable { display: none; }
    ResultsScreen.-chart ResultsDetail { display: none; }
    ResultsScreen.-chart ResultsChart { display: block; }
    ResultsScreen.-table #beneath { display: none; }
    """

    def __init__(
        self,
        source: ResultsSource,
        *,
        clock: Clock = system_clock,
        key_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the screen.

        Args:
            source: Reads measurements.
            clock: The operator's clock.
            key_clock: The clock that key events carry.
        """
        super().__init__(source)
        self._source = source
        self._clock = clock
        self._key_clock = key_clock
        self._view = 0
        self._form = Form.CSV
        self._judged = ""
        """The text that a fault is told of; word of a change may come after it was entered."""

    def compose(self) -> ComposeResult:
        yield Header()
        with Vertical(id="body"):
            yield ResultsTable(id="table")
            with Horizontal(id="beneath"):
                yield ResultsDetail(id="detail")
                yield ResultsChart(id="chart")
        yield Prompt()
        yield KeyBar()

    def on_mount(self) -> None:
        self.set_interval(LOOK_INTERVAL, self._look)
        self._place()

    def on_screen_resume(self) -> None:
        self._look()

    def on_resize(self) -> None:
        self._place()

    def show(self, shown: Shown) -> None:
        if not built(self):
            return
        if self.model.run(live_of(shown.queue)):
            self.query_one(ResultsChart).tell(self.model.charts)
        self.query_one(Header).show(shown)
        for panel in (ResultsTable, ResultsDetail, ResultsChart):
            self.query_one(panel).show(shown)

    # ---- what is read and shown -------------------------------------------------------------

    @work(group="look")
    async def _look(self) -> None:
        if not self.is_current:
            return
        before = self._reader.found
        if await self._reader.look():
            if before is not None and self._reader.trouble:
                self.notify(self._reader.trouble, severity="error", markup=False, timeout=15)
            self._take()

    @work(group="ask", exclusive=True)
    async def _ask_for(self, asked: Asked) -> None:
        """Read otherwise; what is there stays where that cannot be."""
        try:
            await self._reader.ask(asked)
        except ControlProblem as problem:
            text = f"{problem.what}. {problem.remedy}" if problem.remedy else problem.what
            self.notify(text, severity="warning", markup=False)
        else:
            self._take()

    def _take(self) -> None:
        found = self._reader.found
        self.model.take(found.view if found is not None else None, self._reader.trouble)
        self._tell()

    def _tell(self) -> None:
        if not built(self):
            return
        self._place()
        model = self.model
        table = model.table
        if not model.rows and model.view is not None:
            table = replace(
                table,
                lines=words.empty_words(model.view, table.of),
                hints=words.hints_for(model.view, table.of, keymap_of(self)),
            )
        self.query_one(ResultsTable).tell(table)
        self.query_one(ResultsDetail).tell(model.shown, model.row)
        self.query_one(ResultsChart).tell(model.charts)

    def _place(self) -> None:
        """Give each part the room that it needs."""
        view = _VIEWS[self._view]
        alone = view == "table" or not self.model.rows
        self.set_class(view == "chart" and not alone, "-chart")
        self.set_class(alone, "-table")
        self.set_class(self.size.width >= _BESIDE_FROM, "-beside")
        height = self.size.height - 3
        room = max(5, height // 2 if height < 30 else height * 2 // 5)
        table = self.query_one(ResultsTable)
        table.styles.height = "1fr" if alone else min(self.model.rows + 4, room)

    # ---- moving -----------------------------------------------------------------------------

    def _move(self, to: int) -> None:
        self.model.move(to)
        self._tell()

    def action_down(self) -> None:
        """One row down."""
        self._move(self.model.table.at + 1)

    def action_up(self) -> None:
        """One row up."""
        self._move(self.model.table.at - 1)

    def action_first(self) -> None:
        """To the first row."""
        self._move(0)

    def action_last(self) -> None:
        """To the last row."""
        self._move(self.model.rows)

    def action_page_down(self) -> None:
        """Scroll the details, or the table where it is alone."""
        self._page(1)

    def action_page_up(self) -> None:
        """Scroll them back."""
        self._page(-1)

    def _page(self, step: int) -> None:
        if _VIEWS[self._view] == "table":
            self._move(self.model.table.at + step * self.query_one(ResultsTable).page)
        else:
            self.query_one(ResultsDetail).page(step)

    @on(ResultsTable.Picked)
    def _picked(self, event: ResultsTable.Picked) -> None:
        self._move(event.at)
        if event.twice:
            self.action_open()

    @on(ResultsTable.Scrolled)
    def _scrolled(self, event: ResultsTable.Scrolled) -> None:
        self._move(self.model.table.at + event.rows)

    # ---- looking ----------------------------------------------------------------------------

    def action_view(self) -> None:
        """Everything, the chart alone, the table alone."""
        self._view = (self._view + 1) % len(_VIEWS)
        self._tell()

    def action_chart(self) -> None:
        """The next chart."""
        self._turn(1)

    def action_chart_back(self) -> None:
        """The chart before."""
        self._turn(-1)

    def _turn(self, step: int) -> None:
        """Another chart; the first time where there was none, the one that it is."""
        if self.query_one(ResultsChart).display and not self.has_class("-table"):
            self.model.turn(step)
        else:
            self._view = _VIEWS.index("chart")
        self._tell()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        order = self.model.table.order
        self.model.arrange(replace(order, reverse=not order.reverse))
        self._tell()

    def action_open(self) -> None:
        """Show the highlighted row in full."""
        view, row = self.model.shown, self.model.row
        if view is not None and row is not None:
            glyphs = glyphs_of(self.app)
            title = fmt.clean(row.title)[:60]
            self.app.push_screen(
                ReadingScreen(title, lambda width: detail_rows(view, row, width, glyphs))
            )

    def action_reload(self) -> None:
        """Read the results again."""
        self._ask_for(self._reader.asked)

    # ---- comparing --------------------------------------------------------------------------

    def action_baseline(self) -> None:
        """Compare with the highlighted row; with the usual one again where it is that already."""
        row, asked = self.model.row, self._reader.asked
        if row is None:
            return
        if row.cell is None:
            self.notify("It has no figures to compare with", severity="warning")
        elif not row.is_baseline:
            newest = row.newest or row.measurements[-1]
            self._ask_for(msgspec.structs.replace(asked, baseline=newest.id))
        elif asked.baseline:
            self._ask_for(msgspec.structs.replace(asked, baseline=""))
        else:
            self.notify("This is the baseline already", markup=False)

    # ---- taking away ------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy the commands that give the highlighted row again."""
        row = self.model.row
        if row is None or not row.reproduce:
            self.notify("There is no command to copy", severity="warning")
            return
        copy_text(self.app, row.reproduce, "the commands that measure it again")
        if row.left_out:
            text = f"Secrets are left out: {', '.join(row.left_out)}"
            self.notify(text, severity="warning", markup=False)

    def action_export(self) -> None:
        """Choose a format, then ask for the file."""
        view = self.model.shown
        if view is None or not view.rows:
            self.notify("There is nothing to export yet", severity="warning")
            return

        def chosen(form: str) -> None:
            self._form = Form(form)
            many = f"{len(view.rows)} configuration{'s' if len(view.rows) != 1 else ''}"
            file = words.file_for(view, self._form, self._clock)
            self._ask("export", f"Write {many} to:", str(file))

        self._choose("Export as", words.form_choices(), self._form, chosen)

    @work(group="export", exclusive=True)
    async def _export(self, file: Path) -> None:
        view, form = self.model.shown, self._form
        prompt = self.query_one(Prompt)
        if view is None:
            return
        try:
            there = await self._source.there_already(view, form, file)
            if there and not await self._may_replace(there):
                prompt.fault("nothing was written: it exists")
                return
            written = await self._source.export(view, form, file)
        except ControlProblem as problem:
            prompt.fault(problem.what)
            return
        self._close_prompt()
        beside = f", and {len(written) - 1} charts beside it" if len(written) > 1 else ""
        self.notify(f"Written: {written[0]}{beside}", markup=False)

    async def _may_replace(self, files: Sequence[Path]) -> bool:
        question = ConfirmScreen(words.replace_words(files), clock=self._key_clock)
        answer: bool | None = await self.app.push_screen_wait(question)
        return bool(answer)

    # ---- typing -----------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for words that rows must have."""
        self._ask("filter", "Configurations with:", self.model.text)

    def action_cancel(self) -> None:
        """Close the line, or drop a filter."""
        if self.query_one(Prompt).purpose:
            self._close_prompt()
        elif self.model.drop_filter():
            self._tell()

    def _ask(self, purpose: str, label: str, value: str) -> None:
        self.query_one(Prompt).ask(purpose, label, value)
        close = keymap_of(self).shown("results.cancel")
        self.query_one(KeyBar).instead([("⏎", purpose, ""), (close, "close", "screen.cancel")])

    def _close_prompt(self) -> None:
        self.query_one(Prompt).close()
        self.query_one(KeyBar).instead(())
        self.set_focus(None)

    @on(Prompt.Changed)
    def _typed(self, event: Prompt.Changed) -> None:
        if event.value != self._judged:
            self.query_one(Prompt).fault("")
        if event.purpose == "filter":
            self.model.text = event.value.strip()
            self.model.arrange()
            self._tell()

    @on(Prompt.Entered)
    def _entered(self, event: Prompt.Entered) -> None:
        self._judged = event.value
        name = event.value.strip()
        if event.purpose == "filter":
            self._close_prompt()
        elif name:
            self._export(Path(name).expanduser())
        else:
            self.query_one(Prompt).fault("name a file")
