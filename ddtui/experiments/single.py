"""Measures what is in force now, without an experiment and without changing anything."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

import msgspec

from ddtui.bench.bench import OnProgress
from ddtui.control.differences import differences
from ddtui.control.drop_in import stamp
from ddtui.control.proof import restart_due
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.configuration_key import key_of
from ddtui.core.knobs import by_name
from ddtui.core.launch import Launch
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.core.snapshot import Snapshot
from ddtui.experiments.interrupted import keep_as_ended, this_process
from ddtui.experiments.measuring import Disrupted, Measuring, Unmeasurable
from ddtui.experiments.needs import Around
from ddtui.experiments.one_experiment import cell_words
from ddtui.experiments.presence import sole_runner
from ddtui.experiments.running import MOST_FAILURES, Standing, standing
from ddtui.hosts.base import HostError, LinkDown, LinkRefused, ProgramTimeout

AGAIN_AFTER = 2.0
"""Seconds after which what broke off is looked at again."""
PATIENCE = {
    Standing.COMING: 3600.0,
    Standing.UNSEEN: 900.0,
    Standing.DOWN: 60.0,  # somebody restarts it, which takes it down for a moment
}
"""Seconds for which an engine may stand so after a break; other states are not waited for."""
_TITLE = {"algorithm", "block_size", "budget", "topk", "window"}
"""Knobs that name a configuration for which nobody has given a title."""
_WORDS = {
    Standing.OTHER: "the engine does not run as its unit is configured",
    Standing.COMING: "the engine is not ready yet",
    Standing.DOWN: "the engine is down",
    Standing.LOOPING: "the engine dies at every start",
    Standing.UNSEEN: "nothing certain is known of the engine",
}


class NotProved(HostError):
    """What is in force is not proved: figures would be nobody's."""


def _quiet(_: object) -> None:
    return


async def measure_now(
    around: Around,
    plan: BenchPlan,
    *,
    on_cell: Callable[[str], None] = _quiet,
    on_words: Callable[[str], None] = _quiet,
    on_progress: OnProgress = _quiet,
) -> Measurement:
    """Measure, and keep the measurement; returns it, complete, partial or failed with its cause.

    Cancelled, it keeps the cells that are whole and returns.

    Raises:
        NotProved: The engine is not ready, or not as its unit is configured.
        RunnerHeld: Somebody runs experiments on this host.
        NotPossible, LinkRefused: The unit cannot be read, or the host not reached.
        StoreError: The measurement cannot be kept.
    """
    launch, measurement = await _begun(around, plan)
    measuring = Measuring(
        around,
        measurement,
        launch,
        cancelled=_never,
        on_progress=on_progress,
        on_cell=lambda cell: on_cell(cell_words(cell)),
    )
    text = f"{around.who} since {stamp(measurement.began)}: a bench"
    state, cause = MeasurementState.COMPLETE, ""
    failure: HostError | None = None
    async with sole_runner(around.host, around.runner, text):
        await keep_as_ended(around)
        try:
            cause = await _to_the_end(around, measuring, launch, on_words)
        except asyncio.CancelledError:
            state, cause = MeasurementState.PARTIAL, "ended by the operator"
        except HostError as error:
            failure, cause = error, error.what
        if cause and not measuring.measurement.cells:
            state = MeasurementState.FAILED
        elif cause:
            state = MeasurementState.PARTIAL
        ended = around.watching.clock()
        found = msgspec.structs.replace(
            measuring.measurement, state=state, ended=ended, cause=cause, owner=None
        )
        await asyncio.to_thread(around.measured.put, found)
    if failure is not None:
        raise failure
    return found


async def _begun(around: Around, plan: BenchPlan) -> tuple[Launch, Measurement]:
    """The configuration that is in force, and its measurement. Raises NotProved, HostError."""
    watching = around.watching
    launch = (await around.control.command()).launch
    snapshot = watching.snapshot()
    stands = standing(snapshot, launch, watching.engine)
    if stands is not Standing.PROVED:
        raise _not_proved(stands, snapshot, restart_due(launch, snapshot, watching.engine))
    return launch, Measurement(
        id=uuid.uuid4().hex,
        host=around.host.name,
        simulated=around.host.simulated,
        unit=around.unit(),
        configuration=key_of(launch),
        title=_title(snapshot),
        plan=plan,
        began=watching.clock(),
        owner=this_process(),
    )


def _not_proved(stands: Standing, snapshot: Snapshot, due: str) -> NotProved:
    why = snapshot.readiness.summary
    if stands is Standing.OTHER and due:
        return NotProved(
            f"{_WORDS[stands]}: {due}",
            "restart it (ddtui restart), or bring a configuration into force with ddtui apply",
        )
    return NotProved(
        f"{_WORDS[stands]}: {why}" if why else _WORDS[stands],
        "wait until it is ready (ddtui status HOST --wait 900), or bring a configuration into"
        " force with ddtui apply",
    )


def _title(snapshot: Snapshot) -> str:
    """The configuration in short, by its knobs."""
    knobs = by_name(snapshot.engine.knobs).items()
    return " ".join(f"{name} {value}" for name, value in knobs if name in _TITLE)


async def _to_the_end(
    around: Around, measuring: Measuring, launch: Launch, on_words: Callable[[str], None]
) -> str:
    """Measure all that is left; returns why that could not be, empty where all is whole."""
    failures = 0
    while measuring.left or measuring.coding_left:
        cells = len(measuring.measurement.cells)
        try:
            if measuring.left:
                await measuring.cells()
            if measuring.coding_left:
                on_words("the coding tasks")
                await measuring.coding()
        except Unmeasurable as error:
            return str(error)
        except Disrupted as error:
            failures = 1 if len(measuring.measurement.cells) > cells else failures + 1
            if failures >= MOST_FAILURES:
                return f"broken off {failures} times: {error}"
            on_words(f"broken off: {error}; tried again")
            await asyncio.sleep(AGAIN_AFTER)
            if why := await _otherwise_by_now(around, launch, on_words):
                return f"broken off: {error}; {why}"
    return ""


async def _otherwise_by_now(around: Around, launch: Launch, on_words: Callable[[str], None]) -> str:
    """After a break, why what runs is not what was measured; empty once it is proved again.

    Raises LinkRefused.
    """
    watching = around.watching
    since, stood, said = asyncio.get_running_loop().time(), Standing.PROVED, ""
    while True:
        await around.host.wait_live()
        try:
            now = (await around.control.command()).launch
        except (LinkDown, ProgramTimeout):
            await asyncio.sleep(AGAIN_AFTER)
            continue
        except LinkRefused:
            raise
        except HostError as error:
            return error.what
        if now != launch:
            return f"the unit is configured otherwise by now: {_differing(launch, now, around)}"
        snapshot = watching.snapshot()
        stands = standing(snapshot, launch, watching.engine)
        if stands is Standing.PROVED:
            return ""
        if stands is not stood:
            since, stood = asyncio.get_running_loop().time(), stands
        waited = asyncio.get_running_loop().time() - since
        if waited >= PATIENCE.get(stands, 0.0):
            due = restart_due(launch, snapshot, watching.engine)
            return _WORDS[stands] + (f": {due}" if due else "")
        if (words := _WORDS[stands]) != said:
            said = words
            on_words(f"waiting: {words}")
        await asyncio.sleep(AGAIN_AFTER)


def _differing(before: Launch, now: Launch, around: Around) -> str:
    found = differences(before, now, around.watching.engine.flags)
    words = [f"{each.name} {each.before or 'not set'} > {each.after or 'not set'}"
             for each in found[:3]]  # fmt: skip
    return ", ".join(words) or "its command is another one"


async def _never() -> bool:
    return False
