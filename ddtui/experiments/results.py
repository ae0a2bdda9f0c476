"""The results of a host: one row a configuration, each with its verdict. Pure and cheap.

Everything that shows results (table, CSV, JSON, report, screen) is made from one `ResultsView`.
Several measurements of one configuration under the same work are one row: their repeats are pooled
(`ddtui.experiments.grouping`). An experiment that failed is a row of its own, with its cause, until
its configuration was measured after all: then that row says so. What was not measured is None,
never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ENDED, Experiment, QueueSettings
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.experiments import showable
from ddtui.experiments.choosing import ResultsError, chosen_baseline, in_sweep
from ddtui.experiments.comparison import margin_of
from ddtui.experiments.grouping import Group, grouped
from ddtui.experiments.insights import Note, notes_on
from ddtui.experiments.knob_values import value_of, value_order, varying_knobs
from ddtui.experiments.launch_differences import launch_differences
from ddtui.experiments.row_titles import told_apart
from ddtui.experiments.rows import Circumstances, Row, failed_rows, measured_row

__all__ = ["Note", "ResultsError", "ResultsView", "Row", "results_view"]

_USABLE = frozenset(MeasurementState) - {MeasurementState.FAILED}


class ResultsView(msgspec.Struct, frozen=True, kw_only=True):
    """All results of one host, compared at one concurrency."""

    host: str
    simulated: bool
    concurrency: int
    baseline: str
    """Title of the row that the others are compared with; empty for none."""
    margin: float
    """Share beyond the interval below which a difference is a tie."""
    margins: dict[int, float] = {}
    """The same at every concurrency that something was measured at."""
    rows: tuple[Row, ...]
    """The baseline first, then by knobs; what failed comes last."""
    varying: tuple[str, ...]
    """Knobs that the rows differ in."""
    notes: tuple[Note, ...] = ()
    waiting: int = 0
    """Experiments that have not ended."""
    sweep: str = ""


# What is asked for, by whoever asks.
def results_view(  # noqa: PLR0913
    host: str,
    measurements: Iterable[Measurement],
    experiments: Iterable[Experiment],
    *,
    settings: QueueSettings | None = None,
    baseline: str = "",
    sweep: str = "",
    concurrency: int | None = None,
    simulated: bool = False,
    plans: Mapping[str, BenchPlan] | None = None,
) -> ResultsView:
    """Everything that is known of a host, in rows.

    Args:
        host: The host's name.
        measurements: Of this host, in any order; real and simulated ones never together.
        experiments: Of its queue, whatever became of them.
        settings: Of its queue, for the baseline that it restores.
        baseline: Id or title of what to compare with; chosen where it is empty.
        sweep: Only what belongs to this sweep, and the baseline.
        concurrency: At which to compare; by default the lowest that the baseline was measured at.
        simulated: Whether it is the simulated host; what was measured says so itself.
        plans: Bench plans that can be named; None where that is not known.

    Raises:
        ResultsError: There is no such baseline, sweep or concurrency.
    """
    safe = [showable.measurement(each) for each in measurements]
    queue = [showable.experiment(each) for each in experiments]
    groups, where = grouped(_usable(safe)), _where(host, safe, queue, plans)
    reference = chosen_baseline(groups, queue, settings, named=baseline, sweep=sweep)
    of_host = tuple(groups), tuple(queue)
    queue, groups = in_sweep(sweep, queue, groups, reference)
    margins = _margins(groups, reference, at := _concurrency(groups, reference, concurrency))
    around = msgspec.structs.replace(
        where,
        concurrency=at,
        margins=margins,
        groups=tuple(groups),
        baseline=reference,
        experiments=tuple(queue),
    )
    good = [measured_row(each, around) for each in groups]
    varying = varying_knobs([row.knobs for row in good])
    told = told_apart([*good, *failed_rows(around, _failed(safe, queue, sweep))], varying)
    good, ordered = told[: len(good)], tuple(_ordered(told, varying))
    return ResultsView(
        host=host,
        simulated=simulated or any(x.simulated for x in safe) or any(x.simulated for x in queue),
        concurrency=at,
        baseline=next((row.title for row in ordered if row.is_baseline), ""),
        margin=margins[at],
        margins=margins,
        rows=ordered,
        varying=varying,
        notes=notes_on(ordered, varying, margins[at], at, _all_rows(around, *of_host, good)),
        waiting=sum(each.state not in ENDED for each in queue),
        sweep=sweep,
    )


def _usable(found: Iterable[Measurement]) -> list[Measurement]:
    return [each for each in found if each.state in _USABLE and (each.cells or each.coding)]


def _where(
    host: str,
    found: Sequence[Measurement],
    queue: Sequence[Experiment],
    plans: Mapping[str, BenchPlan] | None,
) -> Circumstances:
    """What is the same whatever is compared, and at which concurrency."""
    gpus = {each.provenance.gpus for each in found if each.provenance.gpus}
    return Circumstances(
        host=host,
        concurrency=1,
        margins={},
        groups=(),
        baseline=None,
        experiments=(),
        several_units=len({each.unit for each in found}) > 1,
        differences=launch_differences(_usable(found), queue),
        gpus=next(iter(gpus)) if len(gpus) == 1 else (),
        plans=plans,
    )


def _all_rows(
    around: Circumstances,
    groups: tuple[Group, ...],
    queue: tuple[Experiment, ...],
    rows: list[Row],
) -> list[Row]:
    """Rows of all the host's groups: what a sweep was matched to is mostly of another one."""
    if len(groups) == len(rows):
        return rows
    everything = msgspec.structs.replace(around, groups=groups, experiments=queue)
    return [measured_row(each, everything) for each in groups]


def _failed(found: list[Measurement], queue: list[Experiment], sweep: str) -> list[Measurement]:
    """Those that failed: of a sweep's experiments, or without one of all."""
    wanted = {each.measurement for each in queue}
    failed = [each for each in found if each.state is MeasurementState.FAILED]
    return [each for each in failed if not sweep or each.id in wanted]


def _margins(groups: Sequence[Group], baseline: Group | None, at: int) -> dict[int, float]:
    levels = {at, *(cell.concurrency for group in groups for cell in group.cells)}
    return {level: margin_of(groups, baseline, level) for level in sorted(levels)}


def _ordered(rows: Iterable[Row], varying: Sequence[str]) -> list[Row]:
    def place(row: Row) -> tuple[object, ...]:
        knobs = tuple(value_order(value_of(row.knobs, name)) for name in varying)
        return (not row.is_baseline, row.state == "failed", row.work, knobs, row.title)

    return sorted(rows, key=place)


def _concurrency(groups: Sequence[Group], baseline: Group | None, asked: int | None) -> int:
    every = sorted({cell.concurrency for group in groups for cell in group.cells})
    if asked is not None:
        if every and asked not in every:
            known = ", ".join(map(str, every))
            raise ResultsError(f"nothing was measured at concurrency {asked}", f"measured: {known}")
        return asked
    own = [cell.concurrency for cell in baseline.cells] if baseline is not None else []
    return min(own or every or [1])
