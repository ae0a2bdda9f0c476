"""What the charts of the results show, as data: any drawing of them starts here. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from ddtui.core.measurement import Spread
from ddtui.experiments.insights import runs_of
from ddtui.experiments.intervals import usable
from ddtui.experiments.knob_values import numeric, others, value_of, value_order
from ddtui.experiments.results import ResultsView, Row

MOST_KNOBS = 4
"""Knobs that get charts of their own, those with most values first."""
MOST_SERIES = 8
"""Lines of one chart, those with most points first; more cannot be told apart."""
_NAMED = 3
"""Rows without a place in a chart that are named for each reason."""

Metric = Literal["user_rate", "acceptance_length"]
METRICS: dict[Metric, tuple[str, str]] = {
    "user_rate": ("tok/s per user", "tok/s"),
    "acceptance_length": ("acceptance length", "tokens/pass"),
}
"""Label and unit of each."""


class Point(msgspec.Struct, frozen=True):
    """One point, with its interval where there is one."""

    x: float
    y: float
    low: float
    high: float
    label: str
    """What it is: the knob's value, or the concurrency."""


class Series(msgspec.Struct, frozen=True):
    """Points that belong together."""

    label: str
    points: tuple[Point, ...]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over an axis."""

    name: str
    """For a file's name: letters, digits and dashes."""
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    categories: tuple[str, ...] = ()
    """Labels of x = 0, 1, 2, ... where x is no number."""
    simulated: bool = False
    left_out: int = 0
    """Series beyond the most that are shown."""
    reference: float | None = None
    """The baseline's y."""
    front: tuple[Point, ...] = ()
    """Points that no other one beats on both axes, by x."""
    missing: str = ""
    """Which rows are not drawn, and why; empty where all are."""


class Field(msgspec.Struct, frozen=True):
    """One field of a heat map."""

    column: int
    row: int
    value: float
    label: str


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """A figure over two knobs."""

    name: str
    title: str
    x_label: str
    y_label: str
    unit: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    fields: tuple[Field, ...]
    """Only what was measured."""
    best_of_others: bool = False
    """Whether other knobs vary too, so that a field is the best of several rows."""
    simulated: bool = False
    missing: str = ""
    """Which rows are in no field, and why; empty where all are."""


AnyChart = Chart | HeatMap


def charts_of(view: ResultsView) -> list[AnyChart]:
    """Every chart that the rows have something for."""
    measured = [row for row in view.rows if row.rate is not None]
    knobs = sorted(
        view.varying,
        key=lambda name: -len({value_of(row.knobs, name) for row in measured}),
    )[:MOST_KNOBS]
    lines = (knob_chart(view, knob, metric) for knob in knobs for metric in METRICS)
    crossed = next((pair for pair in combinations(knobs, 2) if crosses(view, *pair)), None)
    found = [*lines, heat_map(view, *crossed) if crossed else None, pareto(view)]
    return [each for each in found if each is not None]


def knob_chart(view: ResultsView, knob: str, metric: Metric) -> Chart | None:
    """A figure against a knob, a line for each setting of the other knobs."""
    runs = [
        (run, [(row, figure) for row in run.rows if (figure := _figure(row, metric)) is not None])
        for run in runs_of(view.rows, view.varying, knob)
    ]
    runs = [(run, found) for run, found in runs if len(found) > 1]
    if not runs:
        return None
    values = sorted(
        {value_of(row.knobs, knob) for _, found in runs for row, _ in found}, key=value_order
    )
    numbers = [numeric(value) for value in values]
    categories = () if all(each is not None for each in numbers) else tuple(values)
    several_works = len({run.work for run, _ in runs}) > 1
    series = [
        Series(
            "; ".join(filter(None, (run.label, run.work if several_works else ""))) or view.host,
            tuple(
                _point(_place(value_of(row.knobs, knob), categories), figure, row.title)
                for row, figure in found
            ),
        )
        for run, found in runs
    ]
    shown = _most_first(series)
    label, unit = METRICS[metric]
    baseline = next((_figure(row, metric) for row in view.rows if row.is_baseline), None)
    return Chart(
        name=_file_name(f"{metric}-{knob}"),
        title=f"{label} against {knob} at concurrency {view.concurrency}",
        x_label=knob,
        y_label=f"{label} [{unit}]",
        series=tuple(shown),
        categories=categories,
        reference=baseline.median if baseline is not None else None,
        simulated=view.simulated,
        left_out=len(series) - len(shown),
        missing=_missing_beside(view, knob, metric, [row for _, found in runs for row, _ in found]),
    )


def heat_map(view: ResultsView, x: str, y: str) -> HeatMap | None:
    """tok/s per user over two knobs: of several rows in one field, the best.

    None where the knobs do not cross: a diagonal says no more than a line over one of them.
    """
    if not crosses(view, x, y):
        return None
    best: dict[tuple[str, str], tuple[float, str]] = {}
    for row in view.rows:
        figure = _figure(row, "user_rate")
        if figure is not None:
            place = (value_of(row.knobs, x), value_of(row.knobs, y))
            best[place] = max(best.get(place, (0.0, "")), (figure.median, row.title))
    columns = sorted({place[0] for place in best}, key=value_order)
    rows = sorted({place[1] for place in best}, key=value_order)
    return HeatMap(
        name=_file_name(f"heat-{x}-{y}"),
        title=f"tok/s per user by {x} and {y} at concurrency {view.concurrency}",
        x_label=x,
        y_label=y,
        unit="tok/s",
        columns=tuple(columns),
        rows=tuple(rows),
        fields=tuple(
            Field(columns.index(place[0]), rows.index(place[1]), value, title)
            for place, (value, title) in sorted(best.items())
        ),
        best_of_others=len(view.varying) > 2,
        simulated=view.simulated,
        missing=_missing(
            {"it has no figure": [row for row in view.rows if _figure(row, "user_rate") is None]}
        ),
    )


def crosses(view: ResultsView, x: str, y: str) -> bool:
    """Whether some value of each knob was measured with two values of the other."""
    places = {
        (value_of(row.knobs, x), value_of(row.knobs, y))
        for row in view.rows
        if _figure(row, "user_rate") is not None
    }
    return all(len({place[side] for place in places}) < len(places) for side in (0, 1))


def pareto(view: ResultsView) -> Chart | None:
    """tok/s per user against tok/s in total, a line a configuration over its concurrencies."""
    series = []
    for row in view.rows:
        points = []
        for cell in row.cells:
            user, total = usable(cell.user_rate), usable(cell.total_rate)
            if user is not None and total is not None:
                label = f"{row.title}, concurrency {cell.concurrency}"
                points.append(Point(total.median, user.median, user.low, user.high, label))
        if points:
            series.append(Series(row.title, tuple(points)))
    # With a single concurrency each, one axis says what the other says.
    if not any(len(each.points) > 1 for each in series):
        return None
    front = pareto_front(point for each in series for point in each.points)
    shown = _most_first(series, front)
    return Chart(
        name="pareto",
        title="tok/s per user against tok/s in total, over concurrencies",
        x_label="all users together [tok/s]",
        y_label="tok/s per user [tok/s]",
        series=tuple(shown),
        simulated=view.simulated,
        left_out=len(series) - len(shown),
        front=front,
        missing=_missing({"no figures of both": _without(view, {each.label for each in series})}),
    )


def _without(view: ResultsView, drawn: Container[str]) -> list[Row]:
    return [row for row in view.rows if row.title not in drawn]


def _missing_beside(view: ResultsView, knob: str, metric: Metric, drawn: Sequence[Row]) -> str:
    """Which rows a line over a knob has no place for."""

    def place(row: Row) -> tuple[object, ...]:
        value = value_of(row.knobs, knob)
        return (row.work, others(row.knobs, knob, view.varying), value)

    inside, places = {id(row) for row in drawn}, {place(row) for row in drawn}
    rows = [row for row in view.rows if id(row) not in inside]
    known = [row for row in rows if _figure(row, metric) is not None]
    return _missing(
        {
            f"nothing else differs from it in {knob} alone": [
                row for row in known if place(row) not in places
            ],
            "another row of the same knobs is drawn": [
                row for row in known if place(row) in places
            ],
            "it has no figure": [row for row in rows if _figure(row, metric) is None],
        }
    )


def _missing(by_reason: Mapping[str, Sequence[Row]]) -> str:
    """`not drawn: budget 8, budget 12 and 3 more (it has no figure)`."""
    parts = []
    for reason, rows in by_reason.items():
        named = ", ".join(row.title for row in rows[:_NAMED])
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        parts += [f"{named}{more} ({reason})"] if rows else []
    return f"not drawn: {'; '.join(parts)}" if parts else ""


def pareto_front(points: Iterable[Point]) -> tuple[Point, ...]:
    """The points that no other one beats on both axes, by x."""
    front: list[Point] = []
    highest = float("-inf")
    for point in sorted(points, key=lambda point: (-point.x, -point.y)):
        if point.y > highest:
            highest = point.y
            front.append(point)
    return tuple(reversed(front))


def _most_first(series: Sequence[Series], front: Sequence[Point] = ()) -> list[Series]:
    """As many as can be told apart, those that matter and have most points; in their order."""
    best = set(front)
    ranked = sorted(series, key=lambda each: (-len(best & {*each.points}), -len(each.points)))
    kept = ranked[:MOST_SERIES]
    return [each for each in series if any(each is one for one in kept)]


def _figure(row: Row, metric: Metric) -> Spread | None:
    return row.user_rate if metric == "user_rate" else row.acceptance_length


def _place(value: str, categories: Sequence[str]) -> float:
    return float(categories.index(value)) if categories else numeric(value) or 0.0


def _point(x: float, figure: Spread, label: str) -> Point:
    return Point(x, figure.median, figure.low, figure.high, label)


def _file_name(text: str) -> str:
    """Nothing that means something in a path or a URL."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())
    return plain.strip("-")[:60] or "chart"
