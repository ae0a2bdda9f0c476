"""What is known of a host that bears on a sweep: values in force, measurements, rates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ddtui.core.engine import Engine
from ddtui.core.knobs import BadValue, knob_name, knob_text
from ddtui.core.launch import Launch, Value
from ddtui.core.measurement import Cell, Measurement, MeasurementState
from ddtui.core.snapshot import Snapshot
from ddtui.experiments.matching import Circumstances, Point


def values_in_force(
    base: Launch, engine: Engine, snapshot: Snapshot | None = None
) -> dict[str, Value]:
    """Settings that a launch has.

    With the `snapshot` of an engine that runs with it, also those that the server chose itself.
    """
    flags = engine.flags(base.argv)
    found: dict[str, Value] = {}
    if snapshot is not None:
        found |= _knobs(snapshot.engine.knobs)
    found |= _knobs(
        engine.knobs(
            {name.replace("-", "_"): value for name, value in flags.items()}, base.environment
        )
    )
    found |= {f"flag:{name}": True if value == "true" else value for name, value in flags.items()}
    found |= {f"env:{name}": value for name, value in base.environment.items()}
    return found


def _knobs(shown: Mapping[str, str]) -> dict[str, Value]:
    """Knobs by their own names, from how an engine names and shows them."""
    found: dict[str, Value] = {}
    for label, text in shown.items():
        if (name := knob_name(label)) is not None:
            try:
                found[name] = knob_text(name, text)
            except BadValue:
                continue  # shown in words that are no value, such as `auto`
    return found


def circumstances(
    values: Mapping[str, Value], measurements: Sequence[Measurement], base_key: str
) -> Circumstances:
    """What matching is told: what was measured, and how the configuration in force did."""
    complete = [each for each in measurements if each.state is MeasurementState.COMPLETE]
    mine = next((each for each in complete if base_key and each.configuration == base_key), None)
    cell = None if mine is None else _alone(mine)
    running = values.get("max_running")
    reached = cell.acceptance_length.median if cell and cell.acceptance_length else None
    return Circumstances(
        max_running=running if isinstance(running, int) else None,
        acceptance=reached,
        positions=cell.positions if cell is not None else (),
        points=tuple(_points(complete, values)),
    )


def _alone(measured: Measurement) -> Cell | None:
    """The cell with one request at a time."""
    return next((each for each in measured.cells if each.concurrency == 1), None)


def _points(measurements: Iterable[Measurement], values: Mapping[str, Value]) -> Iterable[Point]:
    """Of each block size and budget the latest, where the model and drafter are those in force."""
    seen = set()
    drafter = values.get("draft_model")
    for each in measurements:
        cell, knobs = _alone(each), _knobs(each.knobs)
        block, budget = knobs.get("block_size"), knobs.get("budget")
        if cell is None or cell.acceptance_length is None or cell.step_time is None:
            continue
        if not isinstance(block, int) or not isinstance(budget, int) or (block, budget) in seen:
            continue
        if drafter is not None and knobs.get("draft_model", drafter) != drafter:
            continue
        seen.add((block, budget))
        yield Point(
            block_size=block,
            budget=budget,
            acceptance=cell.acceptance_length.median,
            step_seconds=cell.step_time.median,
        )


def rate_of(measurements: Sequence[Measurement], snapshot: Snapshot | None) -> float | None:
    """Tokens per second that one request gets: as measured last, else as the engine serves now."""
    rates = [
        cell.user_rate.median
        for each in measurements[:5]
        if (cell := _alone(each)) is not None and cell.user_rate is not None
    ]
    if rates:
        return median(rates)
    view = None if snapshot is None else snapshot.engine
    if view is None or view.throughput is None or view.running is None:
        return None
    if view.throughput.value <= 0 or view.running.value <= 0:
        return None
    return view.throughput.value / view.running.value


def usable_again(
    found: Sequence[Measurement], version: str, prompts_hash: str = ""
) -> Measurement | None:
    """The newest one that was not disturbed, of the engine's version that runs now."""
    for each in found:
        told = each.provenance
        other = version and told.engine_version and told.engine_version != version
        prompts = prompts_hash and told.prompts_hash and told.prompts_hash != prompts_hash
        if not (other or prompts or each.disturbed):
            return each
    return None
