"""`ddtui knobs HOST`: which flag each knob is on the host's server, what is set, and in force."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ddtui.cli.arguments import HostArgument, JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import Options, VerbFailed, host_of, no_unit, told
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import (
    Paint,
    clean,
    emit,
    emit_json,
    folded,
    narrowed,
    say,
    table,
    terminal_width,
    wrapped,
)

if TYPE_CHECKING:
    from ddtui.app.reaching import Overrides
    from ddtui.core.samples import UnitStatus
    from ddtui.core.snapshot import Snapshot
    from ddtui.engines.sglang.server_flags import ServerFlags
    from ddtui.hosts.base import Host


UNKNOWN = "unknown"
"""In place of flags, where the server's help cannot be had."""
_GIVE = ((2, 12), (1, 30), (3, 12), (2, 9), (1, 16))
"""How the columns give way where there is no room: what is asked for, then flag and value."""


class KnobLine(msgspec.Struct, frozen=True):
    """One knob on the host's server."""

    knob: str
    meaning: str
    flags: list[str]
    """What it sets; empty where this server has nothing for it."""
    requested: str | None
    """As the unit's command line or environment has it."""
    in_force: str | None
    """As `in_force_source` says."""
    missing: str
    """Which servers have it, where this one does not; UNKNOWN where the server did not say."""


class KnobsReport(msgspec.Struct, frozen=True):
    """What `ddtui knobs --json` prints."""

    host: str
    simulated: bool
    dialect: str
    version: str
    flags_source: str
    in_force_source: str
    knobs: list[KnobLine]


def knobs(
    context: typer.Context,
    host: HostArgument,
    as_json: JsonOption = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the server for its flags again.")
    ] = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Show each knob's flag on this server, and its values.

    The flags are asked of the server that is installed there (`--help`), which takes some seconds
    the first time. Where it does not answer, what the command line does not tell is `unknown`.

    Exit status: 0 shown, unknown flags or not; 1 the unit's command is not the engine's own; 3 no
    connection; 4 refused; 5 no unit is known.
    """
    with told(context) as options:
        from ddtui.app.reaching import Overrides

        set_up_log(debug=options.debug)
        report = asyncio.run(_look(options, host, Overrides(unit, user_unit), refresh))
        if as_json:
            emit_json(report)
        else:
            emit("\n".join(_lines(report, Paint())))


async def _look(options: Options, name: str, overrides: Overrides, refresh: bool) -> KnobsReport:
    from ddtui.app.preset_source import presets_for
    from ddtui.cli.look import live_host

    loaded = options.load()
    target = host_of(loaded, name)
    mapping = presets_for(loaded, name).mapping(target.options.knobs)
    async with live_host(target, overrides) as (source, snapshot):
        if snapshot.unit is None or not snapshot.unit.command_line:
            raise no_unit(source.name, snapshot.unit)
        server = await server_flags(source.host, snapshot.unit, refresh=refresh)
    return knobs_report(snapshot, snapshot.unit, server, mapping)


async def server_flags(host: Host, unit: UnitStatus, *, refresh: bool) -> ServerFlags | None:
    """The flags of the unit's server, from those kept or from itself; None if it does not say."""
    from ddtui.config.paths import cache_folder
    from ddtui.control.server_help import HelpUnavailable, learn_server_flags

    try:
        return await learn_server_flags(
            host,
            (unit.program or unit.command_line[0], *unit.command_line[1:]),
            working_directory=unit.working_directory,
            environment=unit.variables,
            cache=None if host.simulated else cache_folder(),
            refresh=refresh,
        )
    except HelpUnavailable as error:
        say(f"the server's flags are not known: {error.what}")
        if error.remedy:
            say(f"       {error.remedy}")
        return None


def knobs_report(
    snapshot: Snapshot, unit: UnitStatus, server: ServerFlags | None, mapping: dict[str, str]
) -> KnobsReport:
    """Every knob of the host. Raises VerbFailed where the unit's command is not the engine's."""
    from ddtui.core.knobs import KNOBS, knob_name
    from ddtui.engines.sglang.command import CommandLine, NotEditable
    from ddtui.engines.sglang.dialects import detect, knob_flags
    from ddtui.engines.sglang.server_flags import from_values

    environment = unit.variables
    try:
        known = server or from_values(CommandLine(unit.command_line).values())
        line = CommandLine(unit.command_line, known)
    except NotEditable as error:
        raise VerbFailed(str(error)) from error
    in_force = {knob_name(label) or label: text for label, text in snapshot.engine.knobs.items()}
    lines = [
        KnobLine(
            each.knob,
            KNOBS[each.knob].meaning,
            list(each.targets),
            each.requested,
            in_force.get(each.knob),
            each.missing if known.complete or not each.missing else UNKNOWN,
        )
        for each in knob_flags(line, environment, known, mapping)
    ]
    return KnobsReport(
        snapshot.host,
        snapshot.simulated,
        detect(known, environment).title,
        known.version or snapshot.engine.version,
        known.source,
        snapshot.engine.knobs_source,
        lines,
    )


def _lines(report: KnobsReport, paint: Paint) -> list[str]:
    simulated = " (simulated)" if report.simulated else ""
    title = paint(f"{clean(report.host)}{simulated}: {report.dialect}", "bold")
    version = f" {clean(report.version)}" if report.version else ""
    source = report.in_force_source or "nothing"
    asked_itself = not any(each.missing == UNKNOWN for each in report.knobs)
    flags = f"flags from {report.flags_source} of the server{version}"
    if not asked_itself:
        flags = (
            f"flags from the unit's {report.flags_source} alone: those it does not have are unknown"
        )
    rows = [("KNOB", "SETS", "REQUESTED", "IN FORCE")]
    for each in report.knobs:
        if each.flags or each.missing == UNKNOWN:
            asked, so = clean(each.requested or "-"), clean(each.in_force or "-")
            rows.append((each.knob, ", ".join(each.flags) or UNKNOWN, asked, so))
    missing = [each for each in report.knobs if not each.flags and each.missing != UNKNOWN]
    lines = [
        *folded(title, terminal_width(), 2),
        *wrapped(f"{flags}; in force by {clean(source)}", terminal_width()),
        "",
        *table(narrowed(rows, terminal_width(), _GIVE)),
    ]
    if missing:
        lines += ["", "This server has nothing for:"]
        for each in missing:
            words = each.missing.removeprefix(f"{each.knob} is ")
            lines += wrapped(f"  {each.knob}: {words}", terminal_width(), "      ")
    return lines
