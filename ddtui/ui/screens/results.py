"""Results: one row a configuration, compared with a baseline; why, and as charts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from ddtui.core.clock import Clock, system_clock
from ddtui.experiments.results import Row
from ddtui.experiments.results_files import Form
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.copying import copy_text
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.palette import keymap_of
from ddtui.ui.results_source import Asked, Found, Live, ResultsProblem, ResultsSource, nothing_runs
from ddtui.ui.screens.choice import ChoiceScreen
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.live import LiveScreen
from ddtui.ui.screens.reading import ReadingScreen
from ddtui.ui.screens.results_words import (
    ALL,
    concurrency_choices,
    empty_words,
    file_for,
    form_choices,
    hints_for,
    knob_choices,
    replace_words,
    sort_choices,
    sweep_choices,
    work_choices,
)
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.prompt import Prompt
from ddtui.ui.widgets.results_chart import ChartData, Kind, ResultsChart, chosen_knobs
from ddtui.ui.widgets.results_detail import ResultsDetail, detail_rows
from ddtui.ui.widgets.results_order import AS_MEASURED, Order, arranged
from ddtui.ui.widgets.results_table import ResultsTable, TableData

LOOK_INTERVAL = 1.0
"""Seconds between two looks whether something was measured."""
REST = 4.0
"""Times that reading took last, which passes before it is read again: a queue that moves fast must
not keep a core busy."""
_BESIDE_FROM = 110
"""Width from which details and chart stand side by side."""
_VIEWS = ("all", "chart", "table")


class ResultsScreen(LiveScreen):
    """A table above; details of the highlighted row, and a chart, beneath."""

    BINDINGS = [
        ("up", "screen.up", "Up"),
        ("down", "screen.down", "Down"),
        ("home", "screen.first", "First"),
        ("end", "screen.last", "Last"),
        ("enter", "screen.open", "Details"),
        *bindings(Scope.RESULTS),
    ]
    DEFAULT_CSS = """
    ResultsScreen { layout: vertical; overflow: hidden; background: $background; }
    ResultsScreen > #body { height: 1fr; }
    ResultsScreen ResultsTable { height: auto; min-height: 3; }
    ResultsScreen #beneath { height: 1fr; }
    ResultsScreen ResultsDetail { width: 1fr; height: 100%; }
    ResultsScreen ResultsChart { width: 1fr; height: 100%; display: none; }
    ResultsScreen.-beside ResultsChart { display: block; }
    ResultsScreen.-chart ResultsTable { display: none; }
    ResultsScreen.-chart ResultsDetail { display: none; }
    ResultsScreen.-chart ResultsChart { display: block; }
    ResultsScreen.-table #beneath { display: none; }
    ResultsScreen.-table ResultsTable { height: 1fr; }
    """

    def __init__(
        self,
        source: ResultsSource,
        *,
        live: Live = nothing_runs,
        clock: Clock = system_clock,
        key_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the screen.

        Args:
            source: Reads measurements.
            live: Gives the bench that runs in this ddtui.
            clock: The operator's clock.
            key_clock: The clock that key events carry.
        """
        super().__init__(id="results")
        self._source = source
        self._live = live
        self._clock = clock
        self._key_clock = key_clock
        self._shown: Shown | None = None
        self._found: Found | None = None
        self._asked = Asked()
        self._version: int | None = None
        self._not_before = 0.0
        self._trouble = ""
        self._table = TableData()
        self._charts = ChartData()
        self._work = ""
        self._filter = ""
        self._view = 0
        self._form = Form.CSV

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
        self._shown = shown
        if not self.is_mounted:
            return
        live = self._live()
        if live != self._charts.live:
            self._charts = replace(self._charts, live=live)
            self.query_one(ResultsChart).tell(self._charts)
        self.query_one(Header).show(shown)
        for panel in (ResultsTable, ResultsDetail, ResultsChart):
            self.query_one(panel).show(shown)

    # ---- reading ----------------------------------------------------------------------------

    @work(group="look", exclusive=False)
    async def _look(self) -> None:
        """Read when something has changed, and not too often."""
        if not self.is_current or self._reading or time.monotonic() < self._not_before:
            return
        self._reading = True
        try:
            version = await self._source.version()
            if version != self._version or self._trouble:
                await self._read(self._asked, version)
        except ResultsProblem as problem:
            self._fail(problem)
        finally:
            self._reading = False

    _reading = False

    @work(group="ask", exclusive=True)
    async def _ask_for(self, asked: Asked) -> None:
        """Read otherwise; what was there stays where that cannot be."""
        try:
            await self._read(asked, self._version)
        except ResultsProblem as problem:
            words = f"{problem.what}. {problem.remedy}" if problem.remedy else problem.what
            self.notify(words, severity="warning", markup=False)

    async def _read(self, asked: Asked, version: int | None) -> None:
        began = time.monotonic()
        try:
            found = await self._source.read(asked)
        except ResultsProblem:
            if asked == Asked() or asked != self._asked:
                raise
            # What it was compared with is gone: results without it are better than none.
            asked = Asked()
            found = await self._source.read(asked)
        took = time.monotonic() - began
        self._not_before = time.monotonic() + REST * took
        self._found, self._asked, self._version, self._trouble = found, asked, version, ""
        self._arrange()

    def _fail(self, problem: ResultsProblem) -> None:
        words = f"{problem.what}. {problem.remedy}".strip()
        if words != self._trouble and self._found is not None:
            self.notify(words, severity="error", markup=False, timeout=15)
        self._trouble = words
        self._arrange()

    # ---- what is shown ----------------------------------------------------------------------

    @property
    def _row(self) -> Row | None:
        """The highlighted one."""
        view = self._table.view
        rows = view.rows if view is not None else ()
        return rows[self._table.at] if self._table.at < len(rows) else None

    def _arrange(self, order: Order | None = None) -> None:
        """Sort and filter what was read, and keep the highlight on its row."""
        order = order or self._table.order
        before = self._row
        view = self._found.view if self._found is not None else None
        host = self._source_name()
        shown = None
        at = 0
        if view is not None:
            shown = arranged(view, order, work=self._work, text=self._filter)
            if before is not None:
                keys = [_key(row) for row in shown.rows]
                at = keys.index(_key(before)) if _key(before) in keys else 0
        of = len(view.rows) if view is not None else 0
        self._table = TableData(
            view=shown,
            at=at,
            order=order,
            filters=self._filters(),
            of=of,
            trouble="" if self._found is not None else self._trouble,
            lines=empty_words(host, of, waiting=view.waiting if view is not None else 0),
            hints=hints_for(host, of, keymap_of(self)) if self.is_mounted else (),
        )
        self._charts = replace(self._charts, view=shown)
        self._tell()

    def _source_name(self) -> str:
        return self._found.view.host if self._found is not None else ""

    def _filters(self) -> tuple[str, ...]:
        found = []
        if self._work:
            found.append("one kind of work")
        if self._filter:
            found.append(f"with {self._filter!r}")
        return tuple(found)

    def _tell(self) -> None:
        if not self.is_mounted:
            return
        self.query_one(ResultsTable).tell(self._table)
        self.query_one(ResultsDetail).tell(self._table.view, self._row)
        self.query_one(ResultsChart).tell(self._charts)
        self._place()

    def _place(self) -> None:
        """Give each part the room that it needs."""
        view = _VIEWS[self._view]
        rows = len(self._table.view.rows) if self._table.view is not None else 0
        self.set_class(view == "chart" and rows > 0, "-chart")
        self.set_class(view == "table" or rows == 0, "-table")
        self.set_class(self.size.width >= _BESIDE_FROM, "-beside")
        table = self.query_one(ResultsTable)
        if view == "table" or rows == 0:
            table.styles.height = "1fr"
        else:
            room = max(5, (self.size.height - 3) * 2 // 5)
            table.styles.height = min(rows + 4, room)

    # ---- moving -----------------------------------------------------------------------------

    def _move(self, to: int) -> None:
        rows = len(self._table.view.rows) if self._table.view is not None else 0
        self._table = replace(self._table, at=max(0, min(to, rows - 1)))
        self.query_one(ResultsTable).tell(self._table)
        self.query_one(ResultsDetail).tell(self._table.view, self._row)

    def action_down(self) -> None:
        """One row down."""
        self._move(self._table.at + 1)

    def action_up(self) -> None:
        """One row up."""
        self._move(self._table.at - 1)

    def action_first(self) -> None:
        """To the first row."""
        self._move(0)

    def action_last(self) -> None:
        """To the last row."""
        self._move(len(self._table.view.rows) if self._table.view is not None else 0)

    def action_page_down(self) -> None:
        """Scroll the details, or the table where it is alone."""
        self._page(1)

    def action_page_up(self) -> None:
        """Scroll them back."""
        self._page(-1)

    def _page(self, step: int) -> None:
        if _VIEWS[self._view] == "table":
            self._move(self._table.at + step * self.query_one(ResultsTable).page)
        else:
            self.query_one(ResultsDetail).page(step)

    @on(ResultsTable.Picked)
    def _picked(self, event: ResultsTable.Picked) -> None:
        self._move(event.at)
        if event.twice:
            self.action_open()

    @on(ResultsTable.Scrolled)
    def _scrolled(self, event: ResultsTable.Scrolled) -> None:
        self._move(self._table.at + event.rows)

    # ---- looking ----------------------------------------------------------------------------

    def action_view(self) -> None:
        """Everything, the chart alone, the table alone."""
        self._view = (self._view + 1) % len(_VIEWS)
        self._place()
        self.call_after_refresh(self._tell)

    def action_chart(self) -> None:
        """The next chart."""
        self._turn(1)

    def action_chart_back(self) -> None:
        """The chart before."""
        self._turn(-1)

    def _turn(self, step: int) -> None:
        if not self.query_one(ResultsChart).display:
            self._view = _VIEWS.index("chart")
            self._place()
        else:
            kinds = list(Kind)
            kind = kinds[(kinds.index(self._charts.kind) + step) % len(kinds)]
            self._charts = replace(self._charts, kind=kind)
        self.call_after_refresh(self._tell)

    def action_knob(self) -> None:
        """Choose the knob that charts are drawn against."""

        def chosen(knob: str | None) -> None:
            if knob is not None:
                self._charts = replace(self._charts, knob=knob)
                self._tell()

        self._choose("Charts against", knob_choices(self._charts), self._knobs()[0], chosen)

    def action_second_knob(self) -> None:
        """Choose the other knob of the heat map."""

        def chosen(knob: str | None) -> None:
            if knob is not None:
                self._charts = replace(self._charts, second=knob, kind=Kind.HEAT)
                self._tell()

        first, second = self._knobs()
        choices = [each for each in knob_choices(self._charts) if each.id != first]
        self._choose(f"Heat map of {first} and", choices, second, chosen)

    def _knobs(self) -> tuple[str, str]:
        return chosen_knobs(self._charts)

    def action_sort(self) -> None:
        """Choose the column to sort by."""

        def chosen(column: str | None) -> None:
            if column is not None:
                name = AS_MEASURED if column == ALL else column
                self._arrange(Order(name))

        view = self._found.view if self._found is not None else None
        now = self._table.order.column or ALL
        self._choose("Sort by", sort_choices(view), now, chosen)

    def action_reverse(self) -> None:
        """Sort the other way round."""
        order = self._table.order
        self._arrange(replace(order, reverse=not order.reverse))

    def action_open(self) -> None:
        """Show the highlighted row in full."""
        view, row = self._table.view, self._row
        if view is not None and row is not None:
            glyphs = glyphs_of(self.app)
            title = row.title[:60]
            self.app.push_screen(
                ReadingScreen(title, lambda width: detail_rows(view, row, width, glyphs))
            )

    def action_reload(self) -> None:
        """Read the results again."""
        self._ask_for(self._asked)

    # ---- comparing --------------------------------------------------------------------------

    def action_baseline(self) -> None:
        """Compare with the highlighted row; with the usual one again where it is that already."""
        row = self._row
        if row is None:
            return
        if row.is_baseline and self._asked.baseline:
            self._ask_for(msgspec.structs.replace(self._asked, baseline=""))
        elif row.cell is None:
            self.notify("It has no figures to compare with", severity="warning")
        elif not row.is_baseline:
            newest = row.newest or row.measurements[-1]
            self._ask_for(msgspec.structs.replace(self._asked, baseline=newest.id))

    def action_concurrency(self) -> None:
        """Choose the concurrency at which rows are compared."""
        view = self._found.view if self._found is not None else None

        def chosen(level: str | None) -> None:
            if level is not None:
                self._ask_for(msgspec.structs.replace(self._asked, concurrency=int(level)))

        now = str(view.concurrency) if view is not None else ""
        self._choose("Compare at concurrency", concurrency_choices(view), now, chosen)

    def action_sweep(self) -> None:
        """Choose a sweep, or all results."""
        found = self._found

        def chosen(sweep: str | None) -> None:
            if sweep is not None:
                # Which concurrencies a sweep has is known once it is read.
                self._ask_for(Asked(baseline=self._asked.baseline, sweep=sweep.removeprefix("=")))

        choices = sweep_choices(found.sweeps if found is not None else ())
        self._choose("Show", choices, f"={self._asked.sweep}", chosen)

    def action_plan(self) -> None:
        """Choose one kind of work, or all."""
        view = self._found.view if self._found is not None else None

        def chosen(work: str | None) -> None:
            if work is not None:
                self._work = work.removeprefix("=")
                self._arrange()

        self._choose("Measured with", work_choices(view), f"={self._work}", chosen)

    def _choose(
        self,
        title: str,
        choices: list,  # type: ignore[type-arg]
        now: str,
        chosen: Callable[[str | None], None],
    ) -> None:
        if choices:
            self.app.push_screen(ChoiceScreen(title, choices, now), chosen)
        else:
            self.notify("There is nothing to choose from yet", severity="warning")

    # ---- taking away ------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy the commands that give the highlighted row again."""
        row = self._row
        if row is None or not row.reproduce:
            self.notify("There is no command to copy", severity="warning")
            return
        copy_text(self.app, row.reproduce, "the commands that measure it again")
        if row.left_out:
            words = f"Secrets are left out: {', '.join(row.left_out)}"
            self.notify(words, severity="warning", markup=False)

    def action_export(self) -> None:
        """Choose a format, then ask for the file."""
        view = self._table.view
        if view is None or not view.rows:
            self.notify("There is nothing to export yet", severity="warning")
            return

        def chosen(form: str | None) -> None:
            if form is not None:
                self._form = Form(form)
                path = file_for(view, self._form, self._clock)
                many = len(view.rows)
                label = f"Write {many} configuration{'s' if many != 1 else ''} to:"
                self._ask("export", label, str(path))

        self._choose("Export as", form_choices(), self._form, chosen)

    @work(group="export", exclusive=True)
    async def _export(self, file: Path) -> None:
        view, form = self._table.view, self._form
        prompt = self.query_one(Prompt)
        if view is None:
            return
        try:
            there = await self._source.there_already(view, form, file)
            if there:
                words = replace_words(there)
                question = ConfirmScreen(words, clock=self._key_clock)
                if not await self.app.push_screen_wait(question):
                    prompt.fault("nothing was written: it exists")
                    return
            written = await self._source.export(view, form, file)
        except ResultsProblem as problem:
            prompt.fault(problem.what)
            return
        self._close_prompt()
        beside = f" and {len(written) - 1} charts beside it" if len(written) > 1 else ""
        self.notify(f"Written: {written[0]}{beside}", markup=False)

    # ---- typing -----------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for words that rows must have."""
        self._ask("filter", "Configurations with:", self._filter)

    def action_cancel(self) -> None:
        """Close the line, or drop a filter."""
        if self.query_one(Prompt).purpose:
            self._close_prompt()
        elif self._filter or self._work:
            self._filter, self._work = "", "" if not self._filter else self._work
            self._arrange()

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
        self.query_one(Prompt).fault("")
        if event.purpose == "filter":
            self._filter = event.value.strip()
            self._arrange()

    @on(Prompt.Entered)
    def _entered(self, event: Prompt.Entered) -> None:
        if event.purpose == "filter":
            self._close_prompt()
        elif not event.value.strip():
            self.query_one(Prompt).fault("name a file")
        else:
            self._export(Path(event.value.strip()).expanduser())


def _key(row: Row) -> tuple[object, ...]:
    """What stays the same of a row when it is measured again."""
    first = row.measurements[0].id if row.measurements else ""
    return (row.configuration, row.work, first or row.title)
