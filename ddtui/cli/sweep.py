"""`ddtui sweep HOST FILE|NAME|GRID...`: work out a sweep on a host, show it, and queue it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ddtui.cli.arguments import HostArgument, JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import Options, VerbFailed, host_of, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import Paint, emit, emit_json, say, terminal_width
from ddtui.cli.queue_options import POLICY_NAMES, PlanOption

if TYPE_CHECKING:
    from ddtui.app.reaching import Overrides
    from ddtui.app.sweep_asked import SweepOptions
    from ddtui.app.sweep_work import Asked
    from ddtui.experiments.worked import Worked


MatchOption = Annotated[
    str | None,
    typer.Option(
        "--match",
        metavar="POLICY[:SIZE]",
        help=f"Match budgets to other block sizes ({POLICY_NAMES}); SIZE is the one that they are"
        " for.",
    ),
]
WordsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|NAME|GRID",
        help="A sweep's file, its name in the configuration, or a grid: budget=4,8 topk=4,6.",
    ),
]


# The verb's options are its parameters.
def sweep(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    host: HostArgument,
    words: WordsArgument,
    plan: PlanOption = None,
    match: MatchOption = None,
    control: Annotated[
        bool, typer.Option("--control", help="With --match: try each budget unchanged too.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure the baseline once more at the end.")
    ] = False,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Use measurements that were made by this plan already.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What the sweep is called.")
    ] = None,
    held: Annotated[bool, typer.Option("--held", help="Queue them held.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be queued, and queue nothing.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not reach the host: nothing is checked there.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Queue without asking.")] = False,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Work out a sweep: its configurations, what blocks some, loads and times; then queue it.

    Each is checked on the host as by `apply --dry-run`; what a check forbids is left out. Nothing
    on the host is changed: `ddtui run` runs what is queued.

    Exit status: 0 queued, or shown with --dry-run; 2 the sweep is wrong; 7 not confirmed, or all
    configurations are blocked.
    """
    with told(context, acts=not dry_run) as options:
        from ddtui.app.reaching import Overrides
        from ddtui.app.sweep_asked import SweepOptions

        set_up_log(debug=options.debug)
        over = SweepOptions(policy=match, control=control, again=again, name=name, plan=plan)
        asked = _asked(options, words, over, reuse=reuse)
        worked = asyncio.run(_worked(options, host, Overrides(unit, user_unit), asked, offline))
        _show(worked, as_json=as_json, dry_run=dry_run)
        if not worked.arranged.runs:
            _refuse("nothing to queue: every configuration is taken out or blocked")
        if not dry_run:
            _queue(worked, held=held, yes=yes, as_json=as_json)


def _refuse(why: str, remedy: str = "") -> NoReturn:
    say(f"{why}; {remedy}" if remedy else why)
    raise VerbFailed(why, remedy, ExitCode.BLOCKED, heard=True)


def _asked(options: Options, words: list[str], over: SweepOptions, *, reuse: bool) -> Asked:
    from ddtui.app.queue_asked import plan_of, prompts_of
    from ddtui.app.sweep_asked import sweep_asked, with_options
    from ddtui.app.sweep_work import Asked

    loaded = options.load()
    wanted = with_options(sweep_asked(loaded, words), over)
    plan = plan_of(loaded, wanted)
    return Asked(loaded=loaded, sweep=wanted, plan=plan, prompts=prompts_of(plan), reuse=reuse)


async def _worked(
    options: Options, host: str, overrides: Overrides, asked: Asked, offline: bool
) -> Worked:
    from ddtui.app.sweep_work import work_out, work_out_offline
    from ddtui.cli.changing import changing

    if offline:
        return await work_out_offline(host_of(asked.loaded, host), asked)
    counter = _Counter()
    async with changing(options, host, overrides) as (source, control):
        try:
            return await work_out(source, control, asked, counter.told)
        finally:
            counter.end()


class _Counter:
    """Tells on a terminal how many configurations are worked out."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()

    def told(self, done: int, total: int) -> None:
        if self._on:
            say(f"\r{done} of {total} configurations are worked out", end="")

    def end(self) -> None:
        if self._on:
            say("\r\x1b[K", end="")


def _show(worked: Worked, *, as_json: bool, dry_run: bool) -> None:
    """The plan. Where JSON of what is queued is wanted, that alone is on standard output."""
    from ddtui.cli.sweep_report import sweep_lines, sweep_report

    if as_json and dry_run:
        emit_json(sweep_report(worked))
        return
    tell = say if as_json else emit
    tell("\n".join(sweep_lines(worked, Paint(), terminal_width())))


def _queue(worked: Worked, *, held: bool, yes: bool, as_json: bool) -> None:
    from ddtui.app.sweep_work import queued
    from ddtui.cli.changing import ask, can_ask
    from ddtui.cli.queue_beside import Beside
    from ddtui.cli.queue_report import experiment_reports
    from ddtui.core.text import counted

    count = len(worked.arranged.runs)
    if not yes:
        if not can_ask():
            _refuse("nothing was queued: there is no terminal to confirm on", "add --yes")
        if not asyncio.run(ask(f"queue {counted(count, 'experiment')}? [y/N] ")):
            _refuse("nothing was queued")
    added, listed = queued(worked, held=held)
    if as_json:
        emit_json(experiment_reports(added, listed, Beside()))
    them = "it" if len(added) == 1 else "them"
    told = counted(len(added), "experiment")
    say(f"queued {told}; `ddtui run {worked.host}` runs {them}")
