"""One row of the results: a configuration under one kind of work, or a failure with its cause."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, Match
from ddtui.core.measurement import Cell, CodingResult, Measurement, MeasurementState, Spread
from ddtui.experiments.choosing import experiments_of
from ddtui.experiments.comparison import (
    SMALLEST_DIFFERENCE,
    CodingView,
    Comparison,
    Standing,
    coding_view,
    compared,
    divided,
    rate_of,
    step_time,
)
from ddtui.experiments.grouping import Group, cell_at, that_count, work_in_words, work_of
from ddtui.experiments.intervals import usable
from ddtui.experiments.knob_values import in_words, numeric
from ddtui.experiments.launch_differences import LaunchDifferences
from ddtui.experiments.naming import value_text
from ddtui.experiments.reproducing import commands_of
from ddtui.experiments.wording import gpus_in_words


class Mark(enum.StrEnum):
    """What flags begin with that tables show in a word or two."""

    PARTIAL = "partial"
    RUNNING = "running"
    DISTURBED = "disturbed"
    THROTTLED = "GPUs throttled"
    NOT_STEADY = "not steady"
    FAILED_TOO = "another try failed"


RowState = Literal["measured", "partial", "running", "failed"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration under one kind of work. Times in seconds, rates in tokens per second."""

    title: str
    state: RowState
    """`partial`: cells of its plan are missing; those that are there are whole."""
    simulated: bool = False
    knobs: dict[str, str] = {}
    work: str = ""
    """What it was asked to do, in words."""
    kind: tuple[object, ...] = ()
    """Of the work, to the last prompt, and of the GPUs: where it differs nothing is compared."""
    cells: tuple[Cell, ...] = ()
    """All concurrencies, the repeats of all that counts pooled."""
    cell: Cell | None = None
    """The concurrency that the view is for."""
    step_time: Spread | None = None
    node_use: float | None = None
    """(acceptance length - 1) / budget."""
    comparison: Comparison
    """At the concurrency that the view is for."""
    comparisons: dict[int, Comparison] = {}
    """At every concurrency that it was measured at, each by the margin of its own."""
    coding: CodingView | None = None
    load_seconds: float | None = None
    flags: tuple[str, ...] = ()
    """What to know before trusting it, in words: partial, disturbed, ..."""
    cause: str = ""
    """Why it failed or ended early."""
    remedy: str = ""
    hypotheses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Of its experiments."""
    sweeps: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    """How a value was computed to match another configuration, with policy and formula."""
    matched: tuple[Match, ...] = ()
    """The same, to look up what it matches."""
    reproduce: str = ""
    """Command lines for a shell that apply this configuration and measure it; no secret in them."""
    left_out: tuple[str, ...] = ()
    """Names of what is secret, and so missing from `reproduce`."""
    configuration: str = ""
    measurements: tuple[Measurement, ...] = ()
    """Oldest first; those that do not count too."""
    counted: tuple[str, ...] = ()
    """Ids of the measurements whose figures are in."""
    experiments: tuple[str, ...] = ()
    """Ids."""

    @property
    def is_baseline(self) -> bool:
        """Whether the others are compared with this one."""
        return self.comparison.standing is Standing.BASELINE

    @property
    def user_rate(self) -> Spread | None:
        """Tokens per second that one user sees."""
        return usable(self.cell.user_rate) if self.cell is not None else None

    @property
    def total_rate(self) -> Spread | None:
        """Tokens per second of all users."""
        return usable(self.cell.total_rate) if self.cell is not None else None

    @property
    def acceptance_length(self) -> Spread | None:
        """Tokens emitted in one pass of the target."""
        return usable(self.cell.acceptance_length) if self.cell is not None else None

    @property
    def ttft(self) -> Spread | None:
        """Seconds until the first token."""
        return usable(self.cell.ttft) if self.cell is not None else None

    @property
    def rate(self) -> Spread | None:
        """What the verdict goes by: the rate of one user, else of all."""
        return None if self.cell is None else rate_of(self.cell)[1]

    @property
    def newest(self) -> Measurement | None:
        """The last measurement that counts."""
        inside = [each for each in self.measurements if each.id in self.counted]
        return inside[-1] if inside else None


class Circumstances(msgspec.Struct, frozen=True):
    """What all rows of one view share."""

    host: str
    concurrency: int
    margins: dict[int, float]
    """By concurrency."""
    groups: tuple[Group, ...]
    baseline: Group | None
    experiments: tuple[Experiment, ...]
    several_units: bool = False
    """Whether commands have to name the unit."""
    differences: dict[str, LaunchDifferences] = {}
    """By unit: in what the launches differ that were measured on it."""
    gpus: tuple[str, ...] = ()
    """Those that all was measured on, as far as that is known; empty where there were several."""
    plans: Mapping[str, BenchPlan] | None = None
    """Bench plans that a command can name; None where that is not known."""


def measured_row(group: Group, around: Circumstances) -> Row:
    """The row of what was measured."""
    newest = group.newest
    owners = sorted(experiments_of(group, around.experiments), key=lambda each: each.created)
    reference = reference_for(group, around)
    at = around.concurrency
    cell = cell_at(group.cells, at)
    unit = newest.unit if around.several_units else ""
    asked, among = (
        owners[-1] if owners else None,
        around.differences.get(newest.unit, LaunchDifferences()),
    )
    command, left_out = commands_of(
        around.host, asked, newest, unit=unit, among=among, plans=around.plans
    )
    coding, comparison = _coding_of(group), _comparison(at, group, reference, around)
    split = divided(comparison, around.margins.get(at, SMALLEST_DIFFERENCE))
    return Row(
        title=_title(group, owners),
        state=_state(group),
        simulated=newest.simulated,
        knobs=newest.knobs,
        work=work_in_words(newest.plan),
        kind=(*work_of(newest), newest.provenance.gpus or around.gpus),
        cells=group.cells,
        cell=cell,
        step_time=None if cell is None else step_time(cell),
        node_use=None if cell is None else node_use(cell, newest.knobs),
        comparison=comparison,
        comparisons={
            each.concurrency: _comparison(each.concurrency, group, reference, around)
            for each in group.cells
        },
        coding=coding_view(coding, _coding_of(reference) if reference is not group else None),
        load_seconds=_load_seconds(group),
        flags=(
            *_flags(group, cell, reference),
            *filter(None, (split,)),
            *_failures(group, around),
        ),
        cause=_cause(group, owners),
        hypotheses=_said(each.hypothesis for each in owners),
        notes=_said(each.note for each in owners),
        sweeps=_said(each.sweep for each in owners),
        matches=_said(
            f"{each.match.knob} {each.match.value} by {each.match.policy}, to match "
            f"{each.match.reference}: {each.match.formula}"
            for each in owners
            if each.match is not None
        ),
        matched=tuple(dict.fromkeys(each.match for each in owners if each.match is not None)),
        reproduce=command,
        left_out=left_out,
        configuration=newest.configuration,
        measurements=group.members,
        counted=group.counted,
        experiments=tuple(each.id for each in owners),
    )


def failed_rows(around: Circumstances, failed: Sequence[Measurement]) -> Iterator[Row]:
    """Rows of experiments, and of benches by hand, that gave nothing; the newest of several.

    One whose configuration was measured after all is no row: `measured_row` flags it.
    """
    known = {each.first.configuration for each in around.groups} - {""}
    queue = around.experiments
    used = {each.id for group in around.groups for each in experiments_of(group, queue)}
    latest: dict[str, Experiment] = {}
    for each in sorted(queue, key=lambda each: (each.ended_as, each.ended or each.created)):
        measured_after_all = each.id in used or each.configuration in known
        if each.state is ExperimentState.FAILED and not measured_after_all:
            latest[each.configuration or each.title] = each
    by_id = {each.id: each for each in failed}
    for each in latest.values():
        yield _failed_experiment(each, by_id.pop(each.measurement, None), around)
    told = {each.measurement for each in around.experiments}
    for measured in by_id.values():
        if measured.id not in told and measured.configuration not in known:
            yield _failed_bench(measured, around)


def reference_for(group: Group, around: Circumstances) -> Group | None:
    """The baseline's group of the same work: measured under the same circumstances if there is one.

    Else of the same engine version; else the latest.
    """
    if around.baseline is None:
        return None
    configuration, work = around.baseline.first.configuration, work_of(group.first)
    same = [
        each
        for each in around.groups
        if each.first.configuration == configuration and work_of(each.first) == work
    ]
    if any(each is group for each in same):
        return group
    own = group.first.provenance

    def alike(each: Group) -> tuple[bool, bool, bool, bool]:
        its = each.first.provenance
        return (
            its.gpus == own.gpus,
            its.engine_version == own.engine_version,
            its.driver == own.driver,
            each.first.unit == group.first.unit,
        )

    return max(reversed(same), key=alike, default=None)


def _failed_experiment(
    experiment: Experiment, measured: Measurement | None, around: Circumstances
) -> Row:
    command, left_out = commands_of(around.host, experiment, measured, plans=around.plans)
    cause = experiment.cause or {}
    planned = {**experiment.knobs, **experiment.request.knobs}
    knobs = {name: value_text(value) for name, value in planned.items() if value is not None}
    title = str(cause.get("title") or (measured.cause if measured else "") or "cause not recorded")
    return Row(
        title=experiment.title or in_words(knobs.items()),
        state="failed",
        simulated=experiment.simulated,
        knobs=measured.knobs if measured is not None and measured.knobs else knobs,
        work=work_in_words(experiment.plan),
        comparison=Comparison(standing=Standing.NOT_COMPARED, reason=title),
        flags=(f"tried {experiment.attempts} times",) if experiment.attempts > 1 else (),
        cause=title,
        remedy=str(cause.get("remedy") or ""),
        hypotheses=_said([experiment.hypothesis]),
        notes=_said([experiment.note]),
        sweeps=_said([experiment.sweep]),
        reproduce=command,
        left_out=left_out,
        configuration=experiment.configuration,
        measurements=(measured,) if measured is not None else (),
        experiments=(experiment.id,),
    )


def _failed_bench(measured: Measurement, around: Circumstances) -> Row:
    command, left_out = commands_of(around.host, None, measured, plans=around.plans)
    cause = measured.cause or "cause not recorded"
    return Row(
        title=measured.title or in_words(measured.knobs.items()) or measured.configuration,
        state="failed",
        simulated=measured.simulated,
        knobs=measured.knobs,
        work=work_in_words(measured.plan),
        comparison=Comparison(standing=Standing.NOT_COMPARED, reason=cause),
        cause=cause,
        reproduce=command,
        left_out=left_out,
        configuration=measured.configuration,
        measurements=(measured,),
    )


def _title(group: Group, owners: Sequence[Experiment]) -> str:
    newest = group.newest
    asked = [each.title for each in owners]
    # What an experiment asked for says more than what a bench by hand found in force.
    own = [newest.title, *asked] if newest.experiment else [*asked, newest.title]
    titles = (*own, in_words(newest.knobs.items()))
    return next((each for each in titles if each), "") or newest.configuration or "(no title)"


def _cause(group: Group, owners: Sequence[Experiment]) -> str:
    """Why the newest of its measurements ended early."""
    last = group.members[-1]
    if last.cause or last.state is MeasurementState.COMPLETE:
        return last.cause
    own = next((each for each in owners if each.measurement == last.id and each.cause), None)
    return str((own.cause or {}).get("title", "")) if own is not None else ""


def _load_seconds(group: Group) -> float | None:
    """How long its load took that was seen last."""
    seen = (each.provenance.load_seconds for each in reversed(group.members))
    return next((each for each in seen if each is not None), None)


def _state(group: Group) -> RowState:
    counted = [each for each in group.members if each.id in group.counted] or list(group.members)
    if all(each.state is MeasurementState.RUNNING for each in counted):
        return "running"
    planned = {level for each in counted for level in each.plan.concurrency}
    have = {cell.concurrency for cell in group.cells}
    complete = any(each.state is MeasurementState.COMPLETE for each in counted)
    # An external bench has the levels that it has.
    external = bool(group.newest.plan.command)
    return "measured" if complete and (external or planned <= have) else "partial"


def _comparison(
    concurrency: int, group: Group, reference: Group | None, around: Circumstances
) -> Comparison:
    if reference is group:
        return Comparison(standing=Standing.BASELINE)
    if reference is not None and (gpus := _other_gpus(group, reference)):
        return Comparison(standing=Standing.NOT_COMPARED, reason=f"other GPUs: {gpus}")
    other = None if reference is None else cell_at(reference.cells, concurrency)
    margin = around.margins.get(concurrency, SMALLEST_DIFFERENCE)
    return compared(cell_at(group.cells, concurrency), other, margin)


def _other_gpus(group: Group, reference: Group) -> str:
    """The GPUs that it was measured on, where the baseline was measured on others."""
    own, its = group.newest.provenance.gpus, reference.newest.provenance.gpus
    return gpus_in_words(own) if own and its and own != its else ""


def _coding_of(group: Group | None) -> CodingResult | None:
    """The newest judged answers; None where there are none."""
    members = () if group is None else group.members
    judged = (each.coding for each in reversed(members) if each.coding is not None)
    return next((each for each in judged if each.total), None)


def node_use(cell: Cell, knobs: Mapping[str, str]) -> float | None:
    """(Acceptance length - 1) / budget; as the bench said it, where one is not known."""
    length, budget = usable(cell.acceptance_length), numeric(knobs.get("budget", ""))
    if length is None or budget is None or budget < 1:
        return cell.node_use
    return (length.median - 1) / budget


def _flags(group: Group, cell: Cell | None, reference: Group | None) -> Iterator[str]:
    if (state := _state(group)) != "measured":
        yield state
    yield from _disturbances(group, cell)
    counted = [each for each in group.members if each.id in group.counted]
    throttled = dict.fromkeys(why for each in counted for why in each.provenance.throttled)
    if throttled:
        yield f"{Mark.THROTTLED}: {', '.join(throttled)}"
    for doubt in dict.fromkeys(why for each in counted for why in each.provenance.doubts):
        yield f"not known whether the process ran as its unit is: {doubt}"
    if cell is not None:
        yield from _cell_flags(cell)
    if reference is not None and reference is not group:
        yield from _circumstances(group.newest, reference.newest)


def _circumstances(measured: Measurement, reference: Measurement) -> Iterator[str]:
    """In what they differ beside their configurations."""
    own, its = measured.provenance, reference.provenance
    if own.engine_version != its.engine_version:
        yield f"other engine version than the baseline: {own.engine_version or 'unknown'}"
    if own.driver != its.driver:
        yield f"other driver than the baseline: {own.driver or 'unknown'}"
    if own.gpus != its.gpus and not (own.gpus and its.gpus):
        yield "not known whether it was measured on the GPUs of the baseline"
    if measured.unit != reference.unit:
        yield f"of another unit than the baseline: {measured.unit}"


def _disturbances(group: Group, shown: Cell | None) -> Iterator[str]:
    """Why a cell may not be of this configuration alone, first of the one that is shown."""
    inside, told = set[str](), dict[str, list[int | None]]()
    for cell in sorted(group.cells, key=lambda each: each is not shown):
        disturbed = [each for each, _ in that_count(group.members, cell.concurrency)]
        inside.update(each.id for each in disturbed)
        for why in dict.fromkeys(why for each in disturbed for why in each.disturbed):
            told.setdefault(why, []).append(None if cell is shown else cell.concurrency)
    for why, levels in told.items():
        elsewhere = "" if None in levels else f"at concurrency {', '.join(map(str, levels))} "
        yield f"{elsewhere}{Mark.DISTURBED}: {why}"
    aside = sum(bool(each.disturbed) and each.id not in inside for each in group.members)
    if aside:
        yield f"{aside} disturbed measurement{'s' if aside > 1 else ''} left out"


def _failures(group: Group, around: Circumstances) -> Iterator[str]:
    """Experiments of the same configuration that failed before or after."""
    inside, configuration = {each.id for each in group.members}, group.first.configuration
    for each in around.experiments:
        if not configuration or each.configuration != configuration:
            continue
        if each.state is ExperimentState.FAILED and each.measurement not in inside:
            yield f"{Mark.FAILED_TOO}: {(each.cause or {}).get('title') or 'cause not recorded'}"


def _cell_flags(cell: Cell) -> Iterator[str]:
    if cell.failed:
        yield f"{cell.failed} of {cell.failed + cell.requests} requests failed"
    if cell.stalled:
        yield f"{cell.stalled} stream{'s' if cell.stalled > 1 else ''} stalled"
    if not cell.steady:
        yield f"{Mark.NOT_STEADY} after its warm-up"
    yield from cell.notes


def _said(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts once each, without the empty ones."""
    return tuple(dict.fromkeys(each for each in texts if each))
