"""What the charts of the results show, as data: any drawing of them starts here. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Literal

import msgspec

from ddtui.core.measurement import Spread
from ddtui.experiments.insights import Run, runs_of
from ddtui.experiments.intervals import usable
from ddtui.experiments.knob_values import in_words, numeric, others, value_of, value_order
from ddtui.experiments.results import ResultsView, Row
from ddtui.experiments.wording import gpus_in_words

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
    holes: tuple[int, ...] = ()
    """Places of points before which a value is missing here that another line has."""


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
    beside: str = ""
    """The other knobs that vary, equal in all fields, in words."""
    coupled: str = ""
    """Knobs that change whenever one of the two does, and only then."""
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
    labels = [
        "; ".join(filter(None, (run.label, run.work if several_works else ""))) or view.host
        for run, _ in runs
    ]
    series = [
        Series(
            _told_apart(label, run, several=labels.count(label) > 1),
            tuple(
                _point(_place(value_of(row.knobs, knob), categories), figure, row.title)
                for row, figure in found
            ),
            _holes([value_of(row.knobs, knob) for row, _ in found], values),
        )
        for label, (run, found) in zip(labels, runs, strict=True)
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


def _told_apart(label: str, run: Run, *, several: bool) -> str:
    """A line's label; one that another line has too is told by its prompts and GPUs."""
    measured = run.rows[-1].newest
    if not several or measured is None:
        return label
    told = measured.provenance
    prompts = f"prompts {told.prompts_hash}" if told.prompts_hash else ""
    return "; ".join(filter(None, (label, prompts, gpus_in_words(told.gpus))))


def heat_map(view: ResultsView, x: str, y: str) -> HeatMap | None:
    """tok/s per user over two knobs, all others being equal: where most is measured, and the best.

    None where the knobs do not cross: a diagonal says no more than a line over one of them.
    """
    crossing = [each for each in _slices(view, x, y) if _crossed(each)]
    if not crossing:
        return None
    chosen = max(crossing, key=lambda each: (len(each.fields), max(each.rates)))
    columns = sorted({place[0] for place in chosen.fields}, key=value_order)
    rows = sorted({place[1] for place in chosen.fields}, key=value_order)
    elsewhere = [row for each in _slices(view, x, y) for row in each.rows if each != chosen]
    hidden = [row for row in chosen.rows if all(row is not one for one in chosen.fields.values())]
    works = {each.work for each in crossing}
    return HeatMap(
        name=_file_name(f"heat-{x}-{y}"),
        title=f"tok/s per user by {x} and {y} at concurrency {view.concurrency}",
        x_label=x,
        y_label=y,
        unit="tok/s",
        columns=tuple(columns),
        rows=tuple(rows),
        fields=tuple(
            Field(columns.index(place[0]), rows.index(place[1]), _rate(row), row.title)
            for place, row in sorted(chosen.fields.items())
        ),
        beside="; ".join(filter(None, (chosen.label, chosen.work if len(works) > 1 else ""))),
        coupled=", ".join(_coupled(view, x, y)),
        simulated=view.simulated,
        missing=_missing(
            {
                "something else differs": elsewhere,
                "another row of the same knobs is drawn": hidden,
                "it has no figure": [row for row in view.rows if row.user_rate is None],
            }
        ),
    )


def crosses(view: ResultsView, x: str, y: str) -> bool:
    """Whether some value of each knob was measured with two values of the other, else alike."""
    return any(_crossed(each) for each in _slices(view, x, y))


class _Slice(msgspec.Struct):
    """Rows that differ in two knobs only."""

    beside: tuple[tuple[str, str], ...]
    work: str
    rows: list[Row]
    fields: dict[tuple[str, str], Row]
    """The best row of each pair of values."""

    @property
    def label(self) -> str:
        """What is equal, in words."""
        return in_words(self.beside)

    @property
    def rates(self) -> list[float]:
        """Of all fields."""
        return [_rate(row) for row in self.fields.values()]


def _slices(view: ResultsView, x: str, y: str) -> list[_Slice]:
    found: dict[object, _Slice] = {}
    coupled = _coupled(view, x, y)
    free = [name for name in view.varying if name not in coupled]
    for row in view.rows:
        if row.user_rate is None:
            continue
        beside = others(row.knobs, y, [name for name, _ in others(row.knobs, x, free)])
        each = found.setdefault((row.work, row.kind, beside), _Slice(beside, row.work, [], {}))
        each.rows.append(row)
        place = (value_of(row.knobs, x), value_of(row.knobs, y))
        if place not in each.fields or _rate(each.fields[place]) < _rate(row):
            each.fields[place] = row
    return list(found.values())


def _coupled(view: ResultsView, x: str, y: str) -> list[str]:
    """Knobs of which each value goes with one value of `x`, or of `y`, and the other way round."""
    rows = [row.knobs for row in view.rows if row.user_rate is not None]

    def together(one: str, other: str) -> bool:
        pairs = {(value_of(knobs, one), value_of(knobs, other)) for knobs in rows}
        return all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))

    free = [name for name in view.varying if name not in {x, y}]
    return [name for name in free if together(name, x) or together(name, y)]


def _crossed(rows: _Slice) -> bool:
    places = rows.fields
    return all(len({place[side] for place in places}) < len(places) for side in (0, 1))


def _rate(row: Row) -> float:
    return 0.0 if row.user_rate is None else row.user_rate.median


def pareto(view: ResultsView) -> Chart | None:
    """tok/s per user against tok/s in total, a line a configuration over its concurrencies.

    All of one work, that of the baseline: what answers less is no better for being faster.
    """
    series = []
    rows, others_work = _of_one_kind(view)
    for row in rows:
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
        missing=_missing(
            {
                "no figures of both": _without(rows, {each.label for each in series}),
                "of other work, or other GPUs": others_work,
            }
        ),
    )


def _of_one_kind(view: ResultsView) -> tuple[list[Row], list[Row]]:
    """The rows that are of the baseline's kind, or without one of the most frequent; the others."""
    kinds = Counter(row.kind for row in view.rows if row.cells)
    kind = next((row.kind for row in view.rows if row.is_baseline), None)
    if kind is None and kinds:
        kind = kinds.most_common(1)[0][0]
    rows = [row for row in view.rows if not row.cells or row.kind == kind]
    return rows, [row for row in view.rows if row.cells and row.kind != kind]


def _without(rows: Sequence[Row], drawn: Container[str]) -> list[Row]:
    return [row for row in rows if row.title not in drawn]


def _missing_beside(view: ResultsView, knob: str, metric: Metric, drawn: Sequence[Row]) -> str:
    """Which rows a line over a knob has no place for."""

    def place(row: Row) -> tuple[object, ...]:
        value = value_of(row.knobs, knob)
        return (row.work, row.kind, others(row.knobs, knob, view.varying), value)

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


def _holes(own: Sequence[str], values: Sequence[str]) -> tuple[int, ...]:
    """Places of values before which one of all `values` is missing, both in the same order."""
    at = [values.index(value) for value in own]
    return tuple(place for place, (one, other) in enumerate(pairwise(at), 1) if other - one > 1)


def _place(value: str, categories: Sequence[str]) -> float:
    return float(categories.index(value)) if categories else numeric(value) or 0.0


def _point(x: float, figure: Spread, label: str) -> Point:
    return Point(x, figure.median, figure.low, figure.high, label)


def _file_name(text: str) -> str:
    """Nothing that means something in a path or a URL."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())
    return plain.strip("-")[:60] or "chart"
