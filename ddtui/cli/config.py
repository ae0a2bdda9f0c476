"""`ddtui config`: write, check, find and print the configuration."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from ddtui.app.preset_source import presets_for
from ddtui.cli.context import told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.output import emit, emit_json, say
from ddtui.cli.screen_options import load_for_screens
from ddtui.config.edit import write_default
from ddtui.config.errors import ConfigError, Problem
from ddtui.config.load import Loaded
from ddtui.config.model import HostOptions, UiOptions, option_fields
from ddtui.config.paths import find_config
from ddtui.core.redact import redact_mapping

app = typer.Typer(
    help="Write, check, find and print the configuration.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def path(context: typer.Context) -> None:
    """Print where the configuration lies."""
    with told(context) as options:
        found = find_config(options.config)
        emit(str(found.file))
        say(f"{found.origin}; {'exists' if found.file.is_file() else 'there is no such file'}")


@app.command(short_help="Write a first file, with every option as a comment.")
def init(
    context: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing file; it is kept as .bak.")
    ] = False,
) -> None:
    """Write a first file with every option, its meaning and its default, as comments."""
    with told(context, acts=True) as options:
        file = find_config(options.config).file
        kept = write_default(file, force=force)
        if kept is not None:
            say(f"the older file is kept as {kept}")
        say("written:")
        emit(str(file))


@app.command(short_help="Check the file, and tell each mistake with its place.")
def validate(context: typer.Context) -> None:
    """Check the file; exit status 1 when it has mistakes, each told with its place."""
    with told(context) as options:
        problems: list[Problem] = []
        for check in (load_for_screens, lambda options: presets_for(options.load())):
            try:
                check(options)
            except ConfigError as error:
                problems += [each for each in error.problems if each not in problems]
        for problem in problems:
            emit(str(problem))
        if problems:
            say(f"{len(problems)} {'mistake' if len(problems) == 1 else 'mistakes'}")
            raise typer.Exit(ExitCode.FAILED)
        file = find_config(options.config).file
        if file.exists():
            emit(f"{file}: no mistakes")
        else:
            emit(f"{file}: there is no such file; the defaults are in force")


@app.command("print")
def print_(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what is in force and where each value comes from. Shows no secrets."""
    with told(context) as options:
        loaded = options.load()
        if as_json:
            emit_json(_as_json(loaded))
        else:
            emit("\n".join(_as_toml(loaded)))


def _shown(name: str, value: Any) -> Any:
    """A value without secrets: a program's arguments may hold one."""
    if name == "api_key_command" and value:
        return [value[0], *(["..."] if len(value) > 1 else [])]
    return list(value) if isinstance(value, tuple) else value


def _as_json(loaded: Loaded) -> dict[str, Any]:
    def table(options: msgspec.Struct) -> dict[str, Any]:
        return {name: _shown(name, getattr(options, name)) for name in option_fields(type(options))}

    config = loaded.config
    return {
        "file": str(loaded.path.file),
        "origin": loaded.path.origin,
        "exists": loaded.exists,
        "ui": table(config.ui),
        "keys": {action: list(keys) for action, keys in config.key_map().items()},
        "hosts": {name: table(options) for name, options in config.hosts.items()},
        "presets": redact_mapping(config.presets),
        "sweeps": redact_mapping(config.sweeps),
    }


def _inline(value: Any) -> str:
    """A value as it stands on one line of TOML."""
    import tomlkit

    if not isinstance(value, dict):
        return str(tomlkit.item(value).as_string())
    inline = tomlkit.inline_table()
    inline.update(value)
    return str(inline.as_string())


def _as_toml(loaded: Loaded) -> list[str]:
    import tomlkit

    def origin(*where: str) -> str:
        line = loaded.lines.get(where)
        return "file" if line is None else f"line {line}"

    def table(where: tuple[str, ...], options: UiOptions | HostOptions) -> list[tuple[str, str]]:
        rows = []
        for name, field in option_fields(type(options)).items():
            value = getattr(options, name)
            if value is None:
                continue
            source = "default" if value == field.default and not set_here(*where, name) else ""
            text = _inline(_shown(name, value))
            rows.append((f"{name} = {text}", source or origin(*where, name)))
        return rows

    def set_here(*where: str) -> bool:
        return where in loaded.lines

    config = loaded.config
    state = "" if loaded.exists else " (there is no such file: defaults)"
    lines = [f"# {loaded.path.file}{state}, chosen by: {loaded.path.origin}"]
    blocks: list[tuple[str, list[tuple[str, str]]]] = [("[ui]", table(("ui",), config.ui))]
    if config.keys:
        rows = [
            (
                f"{tomlkit.key(action).as_string()} = {tomlkit.item(list(keys)).as_string()}",
                origin("keys", action),
            )
            for action, keys in config.key_map().items()
        ]
        blocks.append(("[keys]", rows))
    for name, options in config.hosts.items():
        header = f"[hosts.{tomlkit.key(name).as_string()}]"
        blocks.append((header, table(("hosts", name), options)))
    for kind, tables in (("presets", config.presets), ("sweeps", config.sweeps)):
        for name, inner in redact_mapping(tables).items():
            pairs = inner.items() if isinstance(inner, dict) else ()
            rows = [
                (f"{tomlkit.key(key).as_string()} = {_inline(value)}", origin(kind, name, key))
                for key, value in pairs
            ]
            blocks.append((f"[{kind}.{tomlkit.key(name).as_string()}]", rows))
    width = max(len(text) for _, rows in blocks for text, _ in rows)
    for header, rows in blocks:
        lines += [
            "",
            header,
            *(f"{text.ljust(min(width, 60))}  # {source}" for text, source in rows),
        ]
    return lines
