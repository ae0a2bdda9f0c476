"""`ddtui run HOST`: runs a host's queue of experiments, here or detached from the terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ddtui.cli.arguments import HostArgument, UnitOption, UserUnitOption
from ddtui.cli.context import Options, VerbFailed, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import clean, say
from ddtui.config.errors import ConfigError

if TYPE_CHECKING:
    from ddtui.app.reaching import Overrides
    from ddtui.experiments.report import Ending, OnEvent

log = logging.getLogger(__name__)

_Hidden = typer.Option("--report-to", hidden=True)
LimitedOption = Annotated[
    bool,
    typer.Option(
        "--allow-limited-code",
        help="Run the model's code with limits alone where bubblewrap does not work here.",
    ),
]


# The verb's options are its parameters.
def run(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    host: HostArgument,
    once: Annotated[
        bool, typer.Option("--once/--until-empty", help="One experiment, or the whole queue.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run without this terminal, and outlive it.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show who runs them, since when, and what.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Ask the runner to stop cleanly.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what happens as JSON, one line each.")
    ] = False,
    limited: LimitedOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
    report_to: Annotated[int | None, _Hidden] = None,
) -> None:
    """Run a host's experiments, one after the other, until the queue is empty.

    What is queued may be changed meanwhile (`ddtui queue`). Ctrl+C, SIGTERM and a terminal that is
    closed stop cleanly: the cell under way is given up, all that is whole is kept, and the next run
    goes on from there; a second Ctrl+C ends it at once. The engine is then left as it is.

    Exit status: 0 all were done, 1 some failed or the unit could not be left as it should be, 7 the
    unit may not be changed, 8 somebody else runs them, 130 stopped before the end.
    """
    lines = not (detach or status or stop)
    with told(context, acts=not status, lines=lines) as options:
        from ddtui.app.reaching import Overrides

        if sum((detach, status, stop)) > 1:
            raise ConfigError.of("--detach, --status and --stop exclude one another")
        overrides = Overrides(unit, user_unit)
        if status or stop:
            from ddtui.cli.run_others import show_runner, stop_runner

            code = asyncio.run(
                (stop_runner if stop else show_runner)(options, host, as_json=as_json)
            )
        elif detach:
            from ddtui.cli.run_detached import detached

            code = detached(options, host, overrides, once=once, limited=limited, as_json=as_json)
        else:
            set_up_log(debug=options.debug)
            wanted = _Wanted(once, limited, as_json, report_to)
            code = _run(options, host, overrides, wanted)
        if code:
            raise typer.Exit(code)


class _Wanted(msgspec.Struct, frozen=True):
    """How a queue is to be run here."""

    once: bool
    """One experiment alone."""
    limited: bool
    """Whether the model's code may be run with limits alone."""
    as_json: bool
    report_to: int | None
    """Of a runner without a terminal: the descriptor on which its starter waits for the begin."""


def _run(options: Options, host: str, overrides: Overrides, wanted: _Wanted) -> ExitCode:
    from ddtui.cli.run_narration import RunNarration
    from ddtui.cli.run_reported import Reported
    from ddtui.store.errors import Stale

    with Reported(wanted.report_to) as reported:
        narration = RunNarration(as_json=wanted.as_json, also=reported.heard)
        try:
            ending = asyncio.run(
                _running(options, host, overrides, wanted, narration, reported.log_file)
            )
        except Stale as error:
            what = f"another runner has taken over: {error}"
            raise VerbFailed(what, "", ExitCode.LOCKED) from error
    if ending.trouble:
        say(f"error: {clean(ending.trouble)}")
    if ending.stopped:
        words = f"stopped; what is left is carried on by: ddtui run {clean(host)}"
        say(words)
        log.info(words)  # there may be no terminal any more
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if ending.failed or ending.trouble else ExitCode.OK


async def _running(
    options: Options,
    host: str,
    overrides: Overrides,
    wanted: _Wanted,
    on_event: OnEvent,
    log_file: str,
) -> Ending:
    from ddtui.cli.run_world import running_on
    from ddtui.experiments.presence import presence_file
    from ddtui.experiments.runner import Runner

    async with running_on(options, host, overrides, limited_allowed=wanted.limited) as world:
        file = presence_file(world.source.name, simulated=world.source.host.simulated)
        runner = Runner(
            world.around,
            presence=file,
            most=1 if wanted.once else None,
            on_event=on_event,
            log_file=log_file,
        )
        with stopped_by_signals(runner.ask_to_stop):
            return await runner.start()


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """The first SIGINT, SIGTERM or SIGHUP calls `stop`.

    A second SIGINT or SIGTERM ends this process at once. A second SIGHUP does nothing: a terminal
    that is closed and its shell send one each. One that is ignored, as by nohup, stays so.
    """
    loop, asked = asyncio.get_running_loop(), False
    heeded = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heeded.append(signal.SIGHUP)

    def heard(which: signal.Signals) -> None:
        nonlocal asked
        if asked and which is not signal.SIGHUP:
            say("ended at once; what was kept is carried on by the next run")
            os._exit(ExitCode.INTERRUPTED)  # nothing else is waited for: all that counts is kept
        if not asked:
            asked = True
            say("stopping: what is whole is kept, what is under way is given up (again: at once)")
            stop()

    for each in heeded:
        loop.add_signal_handler(each, heard, each)
    try:
        yield
    finally:
        for each in heeded:
            loop.remove_signal_handler(each)
