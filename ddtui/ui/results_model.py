"""What the results screen shows of what was read: which rows, in which order, which chart. Pure."""

from __future__ import annotations

from dataclasses import replace

from ddtui.experiments.results import ResultsView, Row
from ddtui.ui.widgets.results_chart import ChartData, Kind
from ddtui.ui.widgets.results_live import LiveBench
from ddtui.ui.widgets.results_order import Order, arranged
from ddtui.ui.widgets.results_table import TableData


class ResultsModel:
    """Filters, order, highlight and chart; the highlight stays on its row."""

    def __init__(self) -> None:
        self._view: ResultsView | None = None
        self.table = TableData()
        self.charts = ChartData()
        self.work = ""
        """Only this kind of work; empty for all."""
        self.text = ""
        """Only rows with these words."""

    @property
    def view(self) -> ResultsView | None:
        """All that was read."""
        return self._view

    @property
    def shown(self) -> ResultsView | None:
        """What the filters leave of it, sorted."""
        return self.table.view

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return len(self.table.view.rows) if self.table.view is not None else 0

    @property
    def row(self) -> Row | None:
        """The highlighted one."""
        view = self.table.view
        return view.rows[self.table.at] if view is not None and self.rows else None

    def take(self, view: ResultsView | None, trouble: str = "") -> None:
        """Show what was read, or why nothing can be."""
        self._view = view
        self.table = replace(self.table, trouble=trouble if view is None else "")
        self.arrange()

    def arrange(self, order: Order | None = None) -> None:
        """Sort and filter anew."""
        order = order or self.table.order
        before, at, shown = self.row, 0, None
        if self._view is not None:
            shown = arranged(self._view, order, work=self.work, text=self.text)
            keys = [_key(row) for row in shown.rows]
            if before is not None and _key(before) in keys:
                at = keys.index(_key(before))
        of = len(self._view.rows) if self._view is not None else 0
        self.table = replace(
            self.table, view=shown, at=at, order=order, filters=self._filters(), of=of
        )
        self.charts = replace(self.charts, view=shown)

    def move(self, to: int) -> None:
        """Highlight another row."""
        self.table = replace(self.table, at=max(0, min(to, self.rows - 1)))

    def drop_filter(self) -> bool:
        """Drop the words, then the kind of work; whether there was something to drop."""
        if self.text:
            self.text = ""
        elif self.work:
            self.work = ""
        else:
            return False
        self.arrange()
        return True

    def turn(self, step: int) -> None:
        """Another chart."""
        kinds = list(Kind)
        at = kinds.index(self.charts.kind) + step
        self.charts = replace(self.charts, kind=kinds[at % len(kinds)])

    def draw_against(
        self, knob: str | None = None, second: str | None = None, kind: Kind | None = None
    ) -> None:
        """Other knobs, or another chart."""
        charts = self.charts
        self.charts = replace(
            charts,
            knob=charts.knob if knob is None else knob,
            second=charts.second if second is None else second,
            kind=charts.kind if kind is None else kind,
        )

    def run(self, live: LiveBench | None) -> bool:
        """Take the bench that runs now; whether it is another one, or has gone on."""
        if live == self.charts.live:
            return False
        self.charts = replace(self.charts, live=live)
        return True

    def _filters(self) -> tuple[str, ...]:
        found = ["one kind of work"] if self.work else []
        return (*found, f"with {self.text!r}") if self.text else tuple(found)


def _key(row: Row) -> tuple[object, ...]:
    """What stays the same of a row when it is measured again."""
    first = row.measurements[0].id if row.measurements else ""
    return (row.configuration, row.work, first or row.title)
