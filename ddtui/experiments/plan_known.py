"""What is known of a host that bears on a sweep: values in force, measurements, rates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ddtui.core.engine import Engine
from ddtui.core.experiment import Experiment, InForce
from ddtui.core.knobs import KNOBS, BadValue, by_name, knob_text
from ddtui.core.launch import Launch, Limits, Request, Value
from ddtui.core.measurement import Cell, Measurement, MeasurementState
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.experiments.knob_values import TIED
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


def knobs_of(values: Mapping[str, Value]) -> dict[str, Value]:
    """The knobs among settings."""
    return {name: value for name, value in values.items() if name in KNOBS}


def in_force_now(launch: Launch, engine: Engine, snapshot: Snapshot, before: InForce) -> InForce:
    """What experiments are made on, once a queue begins with `launch`.

    What the server chose itself is as it reports it while it is ready, else as it did `before`.
    """
    ready = snapshot.readiness.state is ReadinessState.READY
    values = values_in_force(launch, engine, snapshot if ready else None)
    knobs = knobs_of(values) if ready else {**before.knobs, **knobs_of(values)}
    return InForce(knobs=knobs, limits=before.limits)


def knobs_planned(
    after: Launch, engine: Engine, request: Request, before: Mapping[str, Value]
) -> dict[str, Value]:
    """Knobs of a planned launch, by name.

    What the server chooses itself is as it was `before`, on the launch that the request is made on,
    except for what the request takes away, and what follows a block size that it sets.
    """
    away = {name for name, value in request.knobs.items() if value is None}
    if "block_size" in request.knobs:
        away.update(TIED["block_size"])
    kept = {name: value for name, value in knobs_of(before).items() if name not in away}
    return kept | knobs_of(values_in_force(after, engine))


def knobs_known(
    experiment: Experiment, in_force: InForce, measured: Measurement | None
) -> dict[str, Value]:
    """Knobs of an experiment without its host: as measured, else as planned, else as in force.

    A knob that nothing tells is left out.
    """
    if measured is not None and measured.knobs:
        return _knobs(measured.knobs)
    asked = experiment.request.knobs
    found = {**in_force.knobs, **experiment.knobs, **asked}
    return {name: value for name, value in found.items() if value is not None}


def _knobs(shown: Mapping[str, str]) -> dict[str, Value]:
    """Knobs by their own names, from how an engine names and shows them."""
    found: dict[str, Value] = {}
    for name, text in by_name(shown).items():
        if name in KNOBS:
            try:
                found[name] = knob_text(name, text)
            except BadValue:
                continue  # shown in words that are no value, such as `auto`
    return found


def circumstances(
    values: Mapping[str, Value],
    measurements: Sequence[Measurement],
    reference: str,
    limits: Limits | None = None,
) -> Circumstances:
    """What matching is told: what was measured, how the one to match did, what its host bears.

    `values` are the settings that the one to match has, `reference` is the key of its
    configuration; empty where that is not known.
    """
    limits = limits or Limits()
    complete = [each for each in measurements if each.state is MeasurementState.COMPLETE]
    mine = next((each for each in complete if reference and each.configuration == reference), None)
    cell = None if mine is None else _alone(mine)
    running, window = values.get("max_running", limits.max_running), values.get("window")
    reached = cell.acceptance_length.median if cell and cell.acceptance_length else None
    return Circumstances(
        window=window if isinstance(window, int) else None,
        trained_block=limits.trained_block,
        max_running=running if isinstance(running, int) else None,
        graph_widths=limits.graph_widths,
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
