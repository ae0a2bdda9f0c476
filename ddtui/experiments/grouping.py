"""Which measurements are of the same thing, and what they give together. Pure.

Same means: same server configuration, same work (prompts, endpoint, lengths, temperature, ...),
same unit, engine version, driver and GPUs. The repeats of all measurements of a group are pooled,
cell by cell. A disturbed measurement counts only for a cell that no undisturbed one has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Cell, Measurement, MeasurementState
from ddtui.experiments.pooling import pooled

Key = tuple[object, ...]

SAME_WORK = (
    *("prompts", "endpoint", "output_tokens", "temperature", "requests", "thinking"),
    *("flush_cache", "seed", "command"),
)
"""Fields of a plan that decide what is measured; the others only decide how well."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one configuration under one kind of work."""

    key: Key
    members: tuple[Measurement, ...]
    """Oldest first; failed ones too."""
    cells: tuple[Cell, ...]
    """One a concurrency, repeats pooled; lowest concurrency first."""
    counted: tuple[str, ...]
    """Ids of the measurements of which a cell is in; `that_count` says which are at one level."""

    @property
    def first(self) -> Measurement:
        """The oldest of its measurements: enough for what all of them share."""
        return self.members[0]

    @property
    def newest(self) -> Measurement:
        """The last measurement that counts; where none does, the last one."""
        inside = [each for each in self.members if each.id in self.counted]
        return (inside or list(self.members))[-1]


def work_of(measured: Measurement) -> Key:
    """What was measured: equal for measurements whose figures can be compared."""
    plan = tuple(getattr(measured.plan, field) for field in SAME_WORK)
    return (*plan, measured.provenance.prompts_hash)


def work_in_words(plan: BenchPlan) -> str:
    """A plan's work in a line."""
    if plan.command:
        return f"external bench: {' '.join(plan.command)}"
    thinking = {None: "", True: ", thinking", False: ", no thinking"}[plan.thinking]
    return (
        f"{plan.prompts} prompts, {plan.endpoint}, {plan.output_tokens} tokens at most, "
        f"temperature {plan.temperature:g}{thinking}"
    )


def grouped(measurements: Iterable[Measurement]) -> list[Group]:
    """Groups, by when their first measurement began."""
    by_key: dict[Key, list[Measurement]] = {}
    for each in sorted(measurements, key=lambda each: (each.began, each.id)):
        by_key.setdefault(_key(each), []).append(each)
    return [_group(key, members) for key, members in by_key.items()]


def cell_at(cells: Sequence[Cell], concurrency: int) -> Cell | None:
    """The cell of a concurrency; None if it was not measured."""
    return next((each for each in cells if each.concurrency == concurrency), None)


def that_count(members: Iterable[Measurement], concurrency: int) -> list[tuple[Measurement, Cell]]:
    """What counts at a concurrency: of whole measurements the undisturbed, else the disturbed."""
    found = [
        (member, cell)
        for member in members
        if member.state is not MeasurementState.FAILED
        and (cell := cell_at(member.cells, concurrency)) is not None
    ]
    return [pair for pair in found if not pair[0].disturbed] or found


def _key(measured: Measurement) -> Key:
    told = measured.provenance
    return (
        measured.unit,
        measured.configuration,
        work_of(measured),
        told.engine,
        told.engine_version,
        told.driver,
        told.gpus,
    )


def _group(key: Key, members: Sequence[Measurement]) -> Group:
    cells: list[Cell] = []
    counted: set[str] = set()
    for concurrency in sorted({cell.concurrency for each in members for cell in each.cells}):
        if not (kept := that_count(members, concurrency)):
            continue
        cells.append(pooled([cell for _, cell in kept]))
        counted.update(member.id for member, _ in kept)
    return Group(
        key=key,
        members=tuple(members),
        cells=tuple(cells),
        counted=tuple(each.id for each in members if each.id in counted),
    )
