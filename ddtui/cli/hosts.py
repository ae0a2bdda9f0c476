"""`ddtui hosts`: the configured hosts."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from ddtui.cli.context import told
from ddtui.cli.output import emit, emit_json, say, table, terminal_width, wrapped
from ddtui.config.hosts import find_host, known_hosts


class HostLine(msgspec.Struct, frozen=True):
    """One host, as `--json` prints it."""

    name: str
    reach: str
    ssh: str
    unit: str
    user_unit: bool
    engine: str
    configured: bool


def hosts(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the configured hosts and the built-in ones."""
    with told(context) as options:
        config = options.load().config
        lines = []
        for name in known_hosts(config):
            target = find_host(config, name)
            lines.append(
                HostLine(
                    name=name,
                    reach=target.reach.value,
                    ssh=target.ssh,
                    unit=target.unit,
                    user_unit=target.options.user_unit,
                    engine=target.options.engine,
                    configured=target.configured,
                )
            )
        if as_json:
            emit_json(lines)
            return
        rows = [("HOST", "REACHED BY", "UNIT")]
        for line in lines:
            unit = line.unit or "-"
            by = f"ssh {line.ssh}" if line.ssh else _BUILT_IN[line.reach]
            rows.append((line.name, by, f"{unit} (user)" if line.user_unit else unit))
        emit("\n".join(table(rows)))
        if not config.hosts:
            words = (
                "no hosts are configured; `ddtui init HOST` adds one, any SSH alias works as it is"
            )
            say("\n".join(wrapped(words, terminal_width())))


_BUILT_IN = {"local": "this machine", "demo": "simulated"}
