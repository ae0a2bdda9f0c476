"""`ddtui doctor HOST`: every prerequisite, on this machine and on the host, with its remedy."""

from __future__ import annotations

import asyncio

import typer

from ddtui.cli.arguments import HostArgument, JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log


def doctor(
    context: typer.Context,
    host: HostArgument,
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Check all that ddtui needs, and say what to do.

    Looks at this machine and the host, and changes nothing. Exit status 1 when there is a FAIL.
    """
    with told(context) as options:
        from ddtui.app.reaching import Overrides
        from ddtui.cli.doctor.examination import examine
        from ddtui.cli.doctor.printing import Printer

        set_up_log(debug=options.debug)
        printer = Printer(host, as_json=as_json)
        asyncio.run(examine(options, host, Overrides(unit, user_unit), printer))
        printer.finish()
        if printer.failed:
            raise typer.Exit(ExitCode.FAILED)
