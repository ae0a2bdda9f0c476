"""`ddtui status HOST`: what is known of a host now, as text or as JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import HostArgument, JsonOption, UnitOption, UserUnitOption, seconds
from ddtui.cli.context import Options, host_of, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import Paint, emit, emit_json, terminal_width

if TYPE_CHECKING:
    from ddtui.app.reaching import Overrides
    from ddtui.core.snapshot import Snapshot


def status(
    context: typer.Context,
    host: HostArgument,
    as_json: JsonOption = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            parser=seconds,
            help="Wait so long for the engine to become ready.",
        ),
    ] = 0.0,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Look at a host for a few seconds, and print what is known.

    Exit status: 0 ready, 5 not ready, 3 no connection, 4 refused.
    """
    with told(context) as options:
        from ddtui.app.reaching import Overrides

        set_up_log(debug=options.debug)
        snapshot = asyncio.run(_look(options, host, wait, Overrides(unit, user_unit)))
        if as_json:
            from ddtui.cli.status_json import status_report

            emit_json(status_report(snapshot))
        else:
            from ddtui.cli import report

            emit("\n".join(report.lines(snapshot, Paint(), terminal_width())))
        code = exit_code(snapshot)
        if code is not ExitCode.OK:
            raise typer.Exit(code)


def exit_code(snapshot: Snapshot) -> ExitCode:
    """What the exit status says of a snapshot."""
    from ddtui.core.samples import LinkState
    from ddtui.core.snapshot import ReadinessState

    if snapshot.link.state is LinkState.REFUSED:
        return ExitCode.REFUSED
    if snapshot.link.state is not LinkState.LIVE:
        return ExitCode.UNREACHABLE
    return ExitCode.OK if snapshot.readiness.state is ReadinessState.READY else ExitCode.NOT_READY


async def _look(options: Options, name: str, wait: float, overrides: Overrides) -> Snapshot:
    from ddtui.app.live import watched
    from ddtui.cli.look import collected

    source = await watched(host_of(options.load(), name), overrides)
    try:
        await source.start()
        return await collected(source, wait)
    finally:
        await source.close()
