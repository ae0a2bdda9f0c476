"""`ddtui bench HOST`: measures the configuration that is in force now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import HostArgument, JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import Options, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import clean, emit, emit_json, say
from ddtui.cli.queue_options import PlanOption
from ddtui.cli.run import LimitedOption

if TYPE_CHECKING:
    from ddtui.app.reaching import Overrides
    from ddtui.core.bench_plan import BenchPlan
    from ddtui.core.measurement import Measurement


# The verb's options are its parameters.
def bench(
    context: typer.Context,
    host: HostArgument,
    plan: PlanOption = None,
    coding: Annotated[
        bool | None,
        typer.Option("--coding/--no-coding", help="Ask for the coding tasks too, or not."),
    ] = None,
    as_json: JsonOption = False,
    limited: LimitedOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Measure what is in force now, and keep the measurement. The unit is not changed.

    The engine serves the bench's requests beside all others, and its prefix cache is emptied before
    each batch, unless the plan says flush_cache = false. A plan's `command` runs on the host.

    Ctrl+C ends it; the cells that are whole are kept.

    Exit status: 0 measured, 1 it could not be measured, 5 the engine is not ready and proved, 8
    somebody runs experiments on this host, 130 ended early.
    """
    with told(context, acts=True) as options:
        from ddtui.app.reaching import Overrides

        set_up_log(debug=options.debug)
        wanted = _plan(options, plan, coding)
        measured = asyncio.run(
            _measured(options, host, Overrides(unit, user_unit), wanted, limited)
        )
        _show(measured, as_json=as_json)
        if code := _code_of(measured):
            raise typer.Exit(code)


def _plan(options: Options, name: str | None, coding: bool | None) -> BenchPlan:
    """The plan that was asked for. Raises ConfigError."""
    import msgspec

    from ddtui.app.queue_asked import plan_named, prompts_of
    from ddtui.core.bench_plan import BenchPlan

    found = plan_named(options.load(), name) or BenchPlan()
    prompts_of(found)
    return found if coding is None else msgspec.structs.replace(found, coding=coding)


async def _measured(
    options: Options, host: str, overrides: Overrides, plan: BenchPlan, limited: bool
) -> Measurement:
    from ddtui.cli.run import stopped_by_signals
    from ddtui.cli.run_world import running_on
    from ddtui.experiments.presence import presence_file, present
    from ddtui.experiments.report import database_words
    from ddtui.experiments.single import measure_now

    async with running_on(options, host, overrides, limited_allowed=limited) as world:
        file = presence_file(world.source.name, simulated=world.source.host.simulated)
        who, now = f"{world.around.who} (bench)", world.around.watching.clock()
        with (
            present(file, who, now, host=world.source.name),
            world.around.wait.heard_by(lambda held: say(database_words(held))),
        ):
            work = asyncio.ensure_future(
                measure_now(world.around, plan, on_cell=say, on_words=lambda text: say(clean(text)))
            )
            with stopped_by_signals(work.cancel):
                return await work


def _show(measured: Measurement, *, as_json: bool) -> None:
    from ddtui.cli.bench_report import measurement_lines

    if as_json:
        emit_json(measured)
    else:
        emit("\n".join(clean(line) for line in measurement_lines(measured)))


def _code_of(measured: Measurement) -> ExitCode:
    from ddtui.core.measurement import MeasurementState

    return {
        MeasurementState.COMPLETE: ExitCode.OK,
        MeasurementState.PARTIAL: ExitCode.INTERRUPTED,
    }.get(measured.state, ExitCode.FAILED)
