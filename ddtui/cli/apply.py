"""`ddtui apply`, `restart`, `rollback`, `history`: change an engine, and what was changed."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import HostArgument, JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import Options, host_of, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import Paint, clean, emit, emit_json, say
from ddtui.config.errors import ConfigError

if TYPE_CHECKING:
    from ddtui.cli.live import Watched
    from ddtui.cli.reaching import Overrides
    from ddtui.control.controller import Controller
    from ddtui.core.change_record import ChangeRecord
    from ddtui.core.launch import Plan, Request


class RollbackPolicy(enum.StrEnum):
    """When a failed change is rolled back."""

    ASK = "ask"
    ALWAYS = "always"
    NEVER = "never"


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
_Doing = Callable[["Watched", "Controller"], Awaitable["ChangeRecord | None"]]


# The verb's options are its parameters.
def apply(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    host: HostArgument,
    preset: Annotated[
        str | None, typer.Argument(metavar="PRESET", help="A preset, as `ddtui presets` lists.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="KNOB=VALUE, flag:NAME=VALUE or env:NAME=VALUE; `none` takes it away.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    yes: YesOption = False,
    rollback: Annotated[
        RollbackPolicy, typer.Option("--rollback", help="Roll back a change that fails.")
    ] = RollbackPolicy.ASK,
    resume: Annotated[
        bool, typer.Option("--resume", help="Carry on a change that was interrupted.")
    ] = False,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Change the engine's configuration, and prove that it is in force.

    Exit status: 0 in force, 9 rolled back, 1 failed, 7 blocked by a check or not confirmed (nothing
    was touched), 8 somebody else is changing the unit.
    """
    with told(context) as options:
        from ddtui.cli.reaching import Overrides

        overrides = Overrides(unit, user_unit)
        request = None if resume else _request(options, host, preset, assignments or [])

        async def work(source: Watched, control: Controller) -> ChangeRecord | None:
            from ddtui.cli.changing import Narration, asked_on_terminal, confirmed

            asked = asked_on_terminal(yes)
            if request is None:
                return await control.resume(Narration(), asked=asked)
            plan = await control.plan(request)
            _show(plan, as_json=as_json and dry_run)
            if plan.blocked:
                raise typer.Exit(ExitCode.BLOCKED)
            if dry_run:
                return None
            if not plan.changes:
                say("nothing to change: the unit is configured like this already")
                return None
            if not await confirmed(source, "apply", yes):
                raise typer.Exit(ExitCode.BLOCKED)
            return await control.apply(plan, Narration(), policy=rollback.value, asked=asked)

        _run(options, host, overrides, work, as_json=as_json)


def restart(
    context: typer.Context,
    host: HostArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Stop the engine, wait until all is released, start it again, and prove that it is ready.

    Exit status: as for `apply`.
    """

    async def work(source: Watched, control: Controller) -> ChangeRecord | None:
        from ddtui.cli.changing import Narration, asked_on_terminal, confirmed

        if not await confirmed(source, "restart", yes):
            raise typer.Exit(ExitCode.BLOCKED)
        return await control.restart(Narration(), asked=asked_on_terminal(yes))

    with told(context) as options:
        from ddtui.cli.reaching import Overrides

        _run(options, host, Overrides(unit, user_unit), work, as_json=as_json)


def rollback(
    context: typer.Context,
    host: HostArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Bring back the configuration before the last change made from here, and prove it.

    Exit status: 0 it is in force again; else as for `apply`.
    """

    async def work(source: Watched, control: Controller) -> ChangeRecord | None:
        from ddtui.cli.changing import Narration, asked_on_terminal, confirmed

        if not await confirmed(source, "rollback", yes):
            raise typer.Exit(ExitCode.BLOCKED)
        return await control.rollback(Narration(), asked=asked_on_terminal(yes))

    with told(context) as options:
        from ddtui.cli.reaching import Overrides

        _run(options, host, Overrides(unit, user_unit), work, as_json=as_json)


def history(
    context: typer.Context,
    host: HostArgument,
    as_json: JsonOption = False,
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="Changes to show.")] = 50,
    unit: UnitOption = None,
) -> None:
    """Show the changes made to a host from this machine: who, when, what, and how they ended."""
    with told(context) as options:
        from ddtui.cli.change_report import history_lines, record_report
        from ddtui.config.hosts import Reach, full_unit_name
        from ddtui.store import Store

        target = host_of(options.load(), host)
        store = Store.open()
        try:
            records = store.reconfigurations.history(
                target.name,
                simulated=target.reach is Reach.DEMO,
                unit="" if unit is None else full_unit_name(unit),
                most=most,
            )
        finally:
            store.close()
        if as_json:
            emit_json([record_report(each) for each in records])
        elif records:
            emit("\n".join(history_lines(records)))
        else:
            say(f"no change of {clean(target.name)} was made from here")


def _request(options: Options, host: str, preset: str | None, assignments: list[str]) -> Request:
    from ddtui.cli.preset_source import presets_for
    from ddtui.config.assignments import parse_assignments
    from ddtui.config.presets import merged

    if preset is None and not assignments:
        raise ConfigError.of("name a preset, or what to --set (`ddtui presets` lists them)")
    over = parse_assignments(assignments)
    if preset is None:
        return over
    return merged(presets_for(options.load(), host).request(preset), over)


def _show(plan: Plan, *, as_json: bool) -> None:
    from ddtui.cli.change_report import plan_lines, plan_report

    if as_json:
        emit_json(plan_report(plan))
    else:
        say("\n".join(plan_lines(plan, Paint())))


def _run(options: Options, host: str, overrides: Overrides, work: _Doing, *, as_json: bool) -> None:
    from ddtui.cli.change_report import record_lines, record_report
    from ddtui.cli.changing import changing, exit_code_of

    set_up_log(debug=options.debug)

    async def doing() -> ChangeRecord | None:
        async with changing(options, host, overrides) as (source, control):
            return await work(source, control)

    record = asyncio.run(doing())
    if record is None:
        return
    if as_json:
        emit_json(record_report(record))
    else:
        emit("\n".join(record_lines(record, Paint())))
    if code := exit_code_of(record):
        raise typer.Exit(code)
