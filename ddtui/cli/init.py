"""`ddtui init HOST`: find the engine's unit on a host and write the host's section."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ddtui.cli.arguments import HostArgument, UnitOption
from ddtui.cli.context import Options, VerbFailed, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import clean, emit, say, table
from ddtui.config.edit import Value, add_host
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import HostTarget, Reach, find_host, full_unit_name
from ddtui.config.load import Loaded

if TYPE_CHECKING:
    from ddtui.hosts.base import Host


class FoundUnit(msgspec.Struct, frozen=True):
    """A service that starts an engine."""

    name: str
    user_unit: bool
    active: str
    command: str


def init(
    context: typer.Context,
    host: HostArgument,
    unit: UnitOption = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What to call the host here.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Change a section that exists; a .bak is kept.")
    ] = False,
) -> None:
    """Find the engine's unit; write the host's section."""
    with told(context, acts=True) as options:
        set_up_log(debug=options.debug)
        loaded = _loaded(options)
        target = find_host(loaded.config, host)
        section = name or host
        _refuse(loaded, target, section, force=force)
        found = asyncio.run(_find(target))
        chosen = _choose(found, unit, host)
        values: dict[str, Value] = {}
        if target.reach is Reach.SSH and target.ssh != section:
            values["ssh"] = target.ssh
        values["unit"] = chosen.name
        before = loaded.config.hosts.get(section)
        if chosen.user_unit or (chosen.command and before is not None and before.user_unit):
            values["user_unit"] = chosen.user_unit
        beside = _beside(loaded.path.file, section, values)
        kept = add_host(loaded.path.file, section, values, force=force)
        if kept is not None:
            say(f"the older file is kept as {kept}")
        say(f"written to {loaded.path.file}:")
        import tomlkit

        emit(f"[hosts.{tomlkit.key(section).as_string()}]\n{tomlkit.dumps(values).rstrip()}")
        if beside:
            say(f"and as it was before: {', '.join(map(clean, beside))}")


def _beside(file: Path, section: str, values: Mapping[str, Value]) -> list[str]:
    """Options of a section that is there already, which stay as they are."""
    import tomlkit

    if not file.exists():
        return []
    there = tomlkit.parse(file.read_text(encoding="utf-8")).get("hosts", {}).get(section, {})
    return [name for name in there if name not in values]


def _loaded(options: Options) -> Loaded:
    """The configuration; a file that was named and is not there yet will be written."""
    from ddtui.config.model import Config
    from ddtui.config.paths import find_config

    path = find_config(options.config)
    if not path.file.exists():
        return Loaded(Config(), path, exists=False, lines={})
    return options.load()


def _refuse(loaded: Loaded, target: HostTarget, section: str, *, force: bool) -> None:
    """Say at once what would fail only after a login."""
    if target.reach is Reach.DEMO:
        raise ConfigError.of("the host 'demo' is built in and needs no section")
    if target.reach is Reach.LOCAL and section != target.name:
        raise ConfigError.of("the host 'local' cannot have another name")
    find_host(loaded.config, section)
    if section in loaded.config.hosts and not force:
        raise ConfigError.of(
            "stands in the file already; --force changes the values that are found",
            loaded.path.file,
            f"[hosts.{section}]",
        )


async def _find(target: HostTarget) -> list[FoundUnit]:
    from ddtui.app.reaching import host_for
    from ddtui.cli.first_contact import reach
    from ddtui.hosts.base import LinkDown

    host = await host_for(target)
    try:
        await host.start()
        if not await reach(host):
            raise LinkDown(host.link.detail or f"{target.name} cannot be reached", host.link.remedy)
        return await engine_units(host, target)
    finally:
        await host.close()


async def engine_units(host: Host, target: HostTarget) -> list[FoundUnit]:
    """Services of both managers that start the engine, those that run first."""
    from ddtui.app.reaching import engine_for
    from ddtui.collect.unit import NoServiceManager, find_units

    engine = engine_for(target)
    found: list[FoundUnit] = []
    for scope in ("system", "user"):
        try:
            units = await find_units(host, engine, scope)
        except NoServiceManager:
            if scope == "system":
                raise
            continue  # users often have no manager of their own
        found += [
            FoundUnit(each.name, scope == "user", each.active_state, " ".join(each.command_line))
            for each in units
        ]
    return sorted(found, key=lambda each: (each.active != "active", each.user_unit))


def _choose(found: list[FoundUnit], wanted: str | None, host: str) -> FoundUnit:
    """The one unit to write. Raises typer.Exit where the operator must say which."""
    from ddtui.app.reaching import checked_unit

    if wanted is not None:
        full = full_unit_name(checked_unit(wanted))
        matching = [each for each in found if each.name == full]
        if matching:
            return matching[0]
        say(f"{clean(full)} is not known to start an engine; written as you say")
        return FoundUnit(full, user_unit=False, active="", command="")
    if len(found) == 1:
        return found[0]
    if not found:
        raise VerbFailed(
            f"no unit of {host} is known that runs the engine: none has its command in ExecStart",
            f"name it: ddtui init {host} --unit UNIT",
            ExitCode.NOT_READY,
        )
    say(f"{len(found)} services on {clean(host)} start an engine; choose one with --unit:")
    rows = [
        (
            clean(each.name),
            "user" if each.user_unit else "system",
            each.active,
            _short(each.command),
        )
        for each in found
    ]
    emit("\n".join(table(rows)))
    raise typer.Exit(ExitCode.USAGE)


def _short(command: str) -> str:
    text = clean(command)
    return text if len(text) <= 100 else text[:99] + "…"
