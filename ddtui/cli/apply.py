"""`ddtui apply`, `restart`, `rollback`, `history`: change an engine, and what was changed."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import (
    HostArgument,
    JsonOption,
    UnitOption,
    UserUnitOption,
    from_one_on,
    one_of,
)
from ddtui.cli.context import Options, VerbFailed, failure_of, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import Paint, clean, emit, emit_json, say, terminal_width
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import Reach, find_host, full_unit_name

if TYPE_CHECKING:
    from ddtui.app.live import Watched
    from ddtui.app.reaching import Overrides
    from ddtui.control.controller import Controller, Policy
    from ddtui.core.change_record import ChangeRecord
    from ddtui.core.launch import Finding, Plan, Request


class RollbackPolicy(enum.StrEnum):
    """When a failed change is rolled back."""

    ASK = "ask"
    ALWAYS = "always"
    NEVER = "never"


DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
OrphansOption = Annotated[
    bool,
    typer.Option(
        "--end-orphans",
        help="End processes of the last invocation that stay (--yes alone never does).",
    ),
]
WaitOption = Annotated[
    bool,
    typer.Option("--wait/--no-wait", help="Wait for the proof, or only until the engine starts."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="KNOB=VALUE, flag:NAME=VALUE or env:NAME=VALUE; `none` takes it away."
        " text:NAME=VALUE: a flag with this very text.",
    ),
]
PolicyOption = Annotated[
    RollbackPolicy,
    typer.Option(
        "--rollback",
        metavar="|".join(RollbackPolicy),
        parser=one_of(RollbackPolicy),
        help="Roll back a change that fails.",
    ),
]
_Doing = Callable[["Watched", "Controller"], Awaitable["ChangeRecord | None"]]
_FORBIDDEN = "a check forbids it"
_UNCONFIRMED = "nobody has confirmed it"
_ADD_YES = "add --yes where there is no terminal to confirm on"
_NOTHING_TO_CHANGE = "nothing to change: the unit is configured like this already"


def _not_done(failure: VerbFailed) -> object:
    from ddtui.cli.change_report import not_begun

    return not_begun(failure.why, failure.remedy)


class _NotBegun(Exception):
    """A change that is not begun, all of it told on standard error already."""

    def __init__(
        self, why: str, plan: Plan | None = None, code: ExitCode = ExitCode.BLOCKED
    ) -> None:
        super().__init__(why)
        self.why = why
        self.plan = plan
        self.code = code


# The verb's options are its parameters.
def apply(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    host: HostArgument,
    preset: Annotated[
        str | None, typer.Argument(metavar="PRESET", help="A preset, as `ddtui presets` lists.")
    ] = None,
    assignments: SetOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    end_orphans: OrphansOption = False,
    wait: WaitOption = True,
    rollback: PolicyOption = RollbackPolicy.ASK,
    resume: Annotated[
        bool, typer.Option("--resume", help="Carry on a change that was interrupted.")
    ] = False,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Change the engine's configuration, and prove that it is in force.

    Exit status: 0 in force, 9 rolled back, 1 failed, 7 blocked by a check or not confirmed (nothing
    was touched), 8 somebody else is changing the unit, 10 started (--no-wait), 5 nothing is to be
    changed, and the engine is not ready yet. Ctrl+C and SIGTERM stop nothing on the host:
    --resume carries the change on, and proves it.
    """
    with told(context, acts=True, not_done=_not_done) as options:
        from ddtui.app.reaching import Overrides

        overrides = Overrides(unit, user_unit)
        if resume:
            policed = rollback is not RollbackPolicy.ASK
            _refuse_beside_resume(preset, assignments, dry_run=dry_run, policed=policed)
        request = None if resume else _request(options, host, preset, assignments or [])

        async def work(source: Watched, control: Controller) -> ChangeRecord | None:
            from ddtui.cli.changing import asked_on_terminal, carried, confirmed

            asked = asked_on_terminal(yes, end_orphans)
            if request is None:
                return await carried(lambda heard: control.resume(heard, asked=asked), wait=wait)
            plan = await _plan(source, control, request, dry_run=dry_run, as_json=as_json)
            if plan is None:
                return None
            if not await confirmed(source, "restart" if plan.restart_only else "apply", yes):
                raise _NotBegun(_UNCONFIRMED, plan)
            # Kept with the change, so that whoever resumes it does as was wanted here.
            policy: Policy = "always" if yes and rollback is RollbackPolicy.ASK else rollback.value
            return await carried(
                lambda heard: control.apply(plan, heard, policy=policy, asked=asked), wait=wait
            )

        _run(options, host, overrides, work, as_json=as_json)


def _refuse_beside_resume(
    preset: str | None, assignments: list[str] | None, *, dry_run: bool, policed: bool
) -> None:
    """What is carried on was asked for already: nothing may be taken for asked, and left out.

    Raises ConfigError.
    """
    given = {"PRESET": preset is not None, "--set": bool(assignments)}
    given |= {"--dry-run": dry_run, "--rollback": policed}
    if names := [name for name, is_given in given.items() if is_given]:
        raise ConfigError.of(
            f"--resume carries on what was asked for already: without {', '.join(names)}"
        )


async def _plan(
    source: Watched, control: Controller, request: Request, *, dry_run: bool, as_json: bool
) -> Plan | None:
    """The plan, shown; None on a dry run. Raises _NotBegun where there is nothing to do."""
    await _refuse_beside_another(control, dry_run=dry_run)
    plan = await control.plan(request, rights=True)
    _show(plan, as_json=as_json and dry_run)
    if dry_run:
        _end_dry(plan, as_json=as_json)
        return None
    if plan.blocked:
        raise _NotBegun(_FORBIDDEN, plan)
    if not plan.changes and not plan.restart_due:
        from ddtui.cli.look import collected
        from ddtui.control.running_now import not_ready

        why, code = _NOTHING_TO_CHANGE, ExitCode.OK
        if stands := not_ready(await collected(source)):
            why, code = f"{why}; {stands}", ExitCode.NOT_READY
        say(clean(why))
        raise _NotBegun(why, plan, code)
    if plan.restart_only:
        say(_start_due(plan))
    return plan


async def _refuse_beside_another(control: Controller, *, dry_run: bool) -> None:
    """Nobody is asked about what somebody else keeps from being done. Raises LockHeld."""
    from ddtui.control.lock import LockHeld

    if not dry_run and (holder := await control.holder()):
        raise LockHeld(holder)


def restart(
    context: typer.Context,
    host: HostArgument,
    yes: YesOption = False,
    end_orphans: OrphansOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Stop the engine, wait until all is released, start it again, and prove that it is ready.

    Exit status: as for `apply`.
    """

    async def work(source: Watched, control: Controller) -> ChangeRecord | None:
        from ddtui.cli.changing import asked_on_terminal, carried, confirmed

        findings = await control.against_restart()
        _refuse_errors(findings)
        _show_findings(findings)
        if not await confirmed(source, "restart", yes):
            raise _NotBegun(_UNCONFIRMED)
        asked = asked_on_terminal(yes, end_orphans)
        return await carried(lambda heard: control.restart(heard, asked=asked), wait=wait)

    with told(context, acts=True, not_done=_not_done) as options:
        from ddtui.app.reaching import Overrides

        _run(options, host, Overrides(unit, user_unit), work, as_json=as_json)


# The verb's options are its parameters.
def rollback(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    host: HostArgument,
    dry_run: DryRunOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also past a unit that was replaced or edited since.")
    ] = False,
    yes: YesOption = False,
    end_orphans: OrphansOption = False,
    wait: WaitOption = True,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Bring back the configuration before the last change made from here, and prove it.

    Nothing is touched where the unit was reinstalled or edited since, unless with --force. Exit
    status: 0 it is in force again; else as for `apply`.
    """

    async def work(source: Watched, control: Controller) -> ChangeRecord | None:
        from ddtui.cli.changing import asked_on_terminal, carried, confirmed

        plan = await control.rollback_plan(force=force)
        _show(plan, as_json=as_json and dry_run)
        if dry_run:
            _end_dry(plan, as_json=as_json)
            return None
        if plan.blocked:
            raise _NotBegun(_FORBIDDEN, plan)
        if not await confirmed(source, "rollback", yes, to=plan.back_to.partition(" (")[0]):
            raise _NotBegun(_UNCONFIRMED, plan)
        asked = asked_on_terminal(yes, end_orphans)
        return await carried(
            lambda heard: control.rollback(heard, asked=asked, force=force, plan=plan), wait=wait
        )

    with told(context, acts=True, not_done=_not_done) as options:
        from ddtui.app.reaching import Overrides

        _run(options, host, Overrides(unit, user_unit), work, as_json=as_json)


def history(
    context: typer.Context,
    host: HostArgument,
    as_json: JsonOption = False,
    most: Annotated[
        int,
        typer.Option("--most", metavar="N", parser=from_one_on, help="Changes to show."),
    ] = 50,
    unit: UnitOption = None,
) -> None:
    """Show the changes made to a host from this machine: who, when, what, and how they ended.

    Exit status: 0 shown, also where none was made yet; 2 no such host is configured or was changed.
    """
    with told(context) as options:
        from ddtui.cli.change_report import history_lines, record_report, simulated_note
        from ddtui.cli.nothing_stored import refuse_unknown
        from ddtui.store import Store

        loaded = options.load()
        target = find_host(loaded.config, host)
        store = Store.open()
        try:
            records = store.reconfigurations.history(
                target.name,
                simulated=target.reach is Reach.DEMO,
                unit="" if unit is None else full_unit_name(unit),
                most=most,
            )
            if not records:
                of_what = f"{unit} on {target.name}" if unit else target.name
                nothing = f"no change of {of_what} was made from here"
                refuse_unknown(nothing, target, loaded.config, store)
                say(clean(nothing))
        finally:
            store.close()
        if as_json:
            emit_json([record_report(each) for each in records])
        elif records:
            emit("\n".join(history_lines(records, terminal_width())))
            if target.reach is Reach.DEMO:
                say(simulated_note(records))


def _request(options: Options, host: str, preset: str | None, assignments: list[str]) -> Request:
    from ddtui.app.preset_source import presets_for
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


def _show_findings(findings: Sequence[Finding]) -> None:
    from ddtui.cli.change_report import finding_lines

    if lines := list(finding_lines(findings, Paint())):
        say("\n".join(lines))


def _refuse_errors(findings: Sequence[Finding]) -> None:
    """Nobody is asked about what cannot be done. Raises NotPossible."""
    from ddtui.control.controller import NotPossible
    from ddtui.core.launch import Level

    for each in findings:
        if each.level is Level.ERROR:
            raise NotPossible(each.text, each.remedy)


def _end_dry(plan: Plan, *, as_json: bool) -> None:
    """Silence would not tell a check that found nothing from none. Exits for a blocked plan."""
    from ddtui.core.launch import Level

    if plan.blocked:
        raise typer.Exit(ExitCode.BLOCKED)
    if not (plan.changes or plan.restart_due or plan.back_to):
        if not as_json:
            say(f"--dry-run: {_NOTHING_TO_CHANGE}")
        return
    warnings = sum(each.level is Level.WARNING for each in plan.findings)
    found = "the checks find nothing wrong"
    if warnings:
        of_these = "1 warning tells" if warnings == 1 else f"{warnings} warnings tell"
        found = f"it would be carried out, and {of_these} what may go wrong"
    elif plan.findings:
        found = "the checks forbid nothing"
    if plan.restart_only:
        found = f"{_start_due(plan)}; {found}"
    if not as_json:
        say(f"--dry-run: nothing was changed; {found}")


def _start_due(plan: Plan) -> str:
    return f"nothing is to be written, and a start is due: {clean(plan.restart_due)}"


def _run(options: Options, host: str, overrides: Overrides, work: _Doing, *, as_json: bool) -> None:
    from ddtui.cli.change_report import not_begun, record_lines, record_report
    from ddtui.cli.changing import StartedOnly, changing, exit_code_of, terminated_as_interrupted

    set_up_log(debug=options.debug)
    under_way: list[Controller] = []

    async def doing() -> ChangeRecord | None:
        with terminated_as_interrupted():
            async with changing(options, host, overrides) as (source, control):
                under_way.append(control)
                return await work(source, control)

    try:
        record = asyncio.run(doing())
    except StartedOnly as started:
        say(f"started; nothing is proved yet: {clean(under_way[0].carry_on)}")
        if as_json:
            emit_json(record_report(started.record))
        raise typer.Exit(ExitCode.STARTED) from None
    except _NotBegun as refused:
        if as_json:
            remedy = _ADD_YES if refused.why == _UNCONFIRMED else ""
            emit_json(not_begun(refused.why, remedy, plan=refused.plan))
        raise typer.Exit(refused.code) from None
    except KeyboardInterrupt:
        _tell_what_is_left(under_way, as_json=as_json)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except typer.Exit:
        raise
    except Exception as error:
        _tell_what_is_left(under_way, as_json=as_json, error=error)
        raise
    if record is None:
        return
    if as_json:
        emit_json(record_report(record))
    else:
        emit("\n".join(record_lines(record, Paint())))
    if code := exit_code_of(record):
        raise typer.Exit(code)


def _tell_what_is_left(
    under_way: list[Controller],
    *,
    as_json: bool,
    error: Exception | None = None,
) -> None:
    """After Ctrl+C or SIGTERM, and where it could not go on: what is done, and how to go on."""
    from ddtui.cli.change_report import not_begun, record_report

    record = under_way[0].running if under_way else None
    if record is not None and not record.ending:
        _tell_how_to_go_on(record, under_way[0].carry_on)
    elif error is None:
        say("interrupted; nothing was changed" if record is None else "interrupted")
    if not as_json:
        return
    failure = failure_of(error or KeyboardInterrupt(), debug=True)
    if record is None:
        emit_json(not_begun(failure.why, failure.remedy))
    else:
        emit_json({**record_report(record), "why": failure.why, "remedy": failure.remedy})


def _tell_how_to_go_on(record: ChangeRecord, command: str) -> None:
    """What was told to the host goes on there."""
    step = record.steps[-1].step if record.steps else "planned"
    say(
        f"interrupted while {clean(record.unit)} was at the step '{step}': it is left as it is now,"
    )
    say(f"and what systemd was told goes on. To carry it on: {clean(command)}")
