"""The charts of the results: one at a time, with what it says beneath."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ddtui.experiments.chart_data import (
    AnyChart,
    HeatMap,
    Metric,
    crosses,
    heat_map,
    knob_chart,
    pareto,
)
from ddtui.experiments.insights import Note
from ddtui.experiments.knob_values import value_of
from ddtui.experiments.results import ResultsView
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, wrapped
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.heat_map import heat_rows
from ddtui.ui.widgets.results_detail import note_rows
from ddtui.ui.widgets.results_live import LiveBench, live_rows
from ddtui.ui.widgets.scatter import chart_rows

_MISSING = 2
"""Lines of what has no place in a chart, at most."""


class Kind(enum.StrEnum):
    """What is drawn, in the order in which the charts follow one another."""

    RATE = "tok/s by knob"
    ACCEPTANCE = "acceptance by knob"
    HEAT = "two knobs"
    PARETO = "per user and total"
    LIVE = "bench now"


@dataclass(frozen=True)
class ChartData:
    """What there is to draw."""

    view: ResultsView | None = None
    kind: Kind = Kind.RATE
    knob: str = ""
    """That is drawn against; empty for the one with most values."""
    second: str = ""
    """Of the heat map."""
    live: LiveBench | None = None


def knobs_of(view: ResultsView) -> list[tuple[str, int]]:
    """Knobs that measured rows differ in, with how many values each has; most values first."""
    rows = [row for row in view.rows if row.rate is not None]
    counts = [(name, len({value_of(row.knobs, name) for row in rows})) for name in view.varying]
    return sorted(((name, n) for name, n in counts if n > 1), key=lambda pair: -pair[1])


def chosen_knobs(data: ChartData) -> tuple[str, str]:
    """The knobs that are drawn: the ones that were chosen, as far as they vary."""
    names = [name for name, _ in knobs_of(data.view)] if data.view is not None else []
    first = data.knob if data.knob in names else next(iter(names), "")
    rest = [name for name in names if name != first]
    if data.view is None or data.second in rest:
        return first, data.second if rest else ""
    crossed = (name for name in rest if crosses(data.view, first, name))
    return first, next(crossed, next(iter(rest), ""))


class ResultsChart(Panel):
    """Draws anew only what changed."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._data = ChartData()
        self._made: tuple[object, list[Row]] = (None, [])

    def tell(self, data: ChartData) -> None:
        """Draw something else."""
        self._data = data
        if self._shown is not None:
            self.show(self._shown)

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        data = self._data
        drawing = Drawing(title=_title(data, width))
        if data.view is not None and data.view.simulated:
            drawing.note = Row("simulated  ", Ink.WARN)
        kinds = list(Kind)
        drawing.note.add(f"{kinds.index(data.kind) + 1} of {len(kinds)}", Ink.LABEL)
        live = data.live if data.kind is Kind.LIVE else None
        key = (id(data.view), data.kind, data.knob, data.second, live, width, height, shown.glyphs)
        if self._made[0] != key:
            self._made = (key, body_rows(data, width, height, shown.glyphs))
        drawing.rows = self._made[1]
        return drawing


def body_rows(data: ChartData, width: int, height: int, glyphs: Glyphs) -> list[Row]:
    """The chart, and what is to be said of it; or why there is none."""
    view = data.view
    if view is None:
        return []
    notes = _notes(data, view, width, glyphs)[: max(0, height // 4)]
    room = height - len(notes) - bool(notes)
    missing, rows = _drawn(data, view, width, room, glyphs)
    if rows:
        return [*rows, *([Row()] if notes else []), *notes]
    words = missing or "There is no room for this chart: enlarge the terminal, or show it alone."
    return [Row(), *wrapped(words, width, Ink.LABEL)][:height]


def _drawn(
    data: ChartData, view: ResultsView, width: int, height: int, glyphs: Glyphs
) -> tuple[str, list[Row]]:
    """Why nothing can be drawn, or the chart."""
    knob, second = chosen_knobs(data)
    if data.kind is Kind.LIVE:
        return live_rows(data.live, view, width, height, glyphs)
    if data.kind is Kind.PARETO:
        chart = pareto(view)
        missing = "This needs a configuration that was measured at two concurrencies or more."
        return missing, [] if chart is None else _with_missing(chart, width, height, glyphs)
    if data.kind is Kind.HEAT:
        found = heat_map(view, knob, second) if second else None
        missing = "This needs two knobs of which each was measured at two values of the other."
        return missing, [] if found is None else _with_missing(found, width, height, glyphs)
    metric: Metric = "user_rate" if data.kind is Kind.RATE else "acceptance_length"
    line = knob_chart(view, knob, metric) if knob else None
    missing = f"This needs two values of {knob or 'a knob'}, everything else being equal."
    return missing, [] if line is None else _with_missing(line, width, height, glyphs)


def _with_missing(chart: AnyChart, width: int, height: int, glyphs: Glyphs) -> list[Row]:
    """The chart, and beneath it which rows have no place in it."""
    told = wrapped(chart.missing, width, Ink.LABEL)[:_MISSING] if chart.missing else []
    rows = _chart(chart, width, height - len(told), glyphs)
    return [*rows, *told] if rows else _chart(chart, width, height, glyphs)


def _chart(chart: AnyChart, width: int, height: int, glyphs: Glyphs) -> list[Row]:
    if isinstance(chart, HeatMap):
        return heat_rows(chart, width, height, glyphs)
    return chart_rows(chart, width, height, glyphs)


def _notes(data: ChartData, view: ResultsView, width: int, glyphs: Glyphs) -> list[Row]:
    """What the rows say of the knob that is drawn."""
    first, second = chosen_knobs(data)
    knobs = (first, second) if data.kind is Kind.HEAT else (first,)
    if data.kind in {Kind.PARETO, Kind.LIVE}:
        return []
    found: list[Note] = [
        note
        for note in view.notes
        if note.kind == "returns"
        and any(knob and note.text.startswith((f"{knob}:", f"{knob} (")) for knob in knobs)
    ]
    if data.kind is Kind.ACCEPTANCE:
        found += [note for note in view.notes if note.kind in {"block", "nodes"}]
    return note_rows(found, width, glyphs)


def _title(data: ChartData, width: int) -> Row:
    """The name of the chart."""
    first, second = chosen_knobs(data)
    words = {
        Kind.RATE: f"tok/s per user by {first or 'knob'}",
        Kind.ACCEPTANCE: f"acceptance length by {first or 'knob'}",
        Kind.HEAT: f"tok/s per user by {first or 'knob'} and {second or 'another'}",
        Kind.PARETO: "tok/s per user and in total",
        Kind.LIVE: "the bench that runs now",
    }[data.kind]
    row = Row(fmt.clean(words), Ink.TITLE)
    if data.view is not None and data.kind not in {Kind.PARETO, Kind.LIVE} and width >= 76:
        row.add(f"  at concurrency {data.view.concurrency}", Ink.LABEL)
    return row
