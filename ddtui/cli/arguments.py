"""Arguments and options that several verbs take."""

from __future__ import annotations

from typing import Annotated

import typer

from ddtui.config.errors import ConfigError
from ddtui.config.hosts import known_hosts
from ddtui.config.load import load


def _complete_host(incomplete: str) -> list[str]:
    """Host names for the shell's completion; a broken configuration completes nothing."""
    try:
        names = known_hosts(load().config)
    except ConfigError:
        return []
    return [name for name in names if name.startswith(incomplete)]


HostArgument = Annotated[
    str,
    typer.Argument(
        metavar="HOST",
        help="A configured host, an SSH alias, user@host, `local` or `demo`.",
        autocompletion=_complete_host,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UnitOption = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="The engine's systemd unit, if not as configured."),
]
UserUnitOption = Annotated[
    bool | None,
    typer.Option(
        "--user-unit/--system-unit", help="Which service manager has the unit.", show_default=False
    ),
]
