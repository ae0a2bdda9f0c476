"""`ddtui config`: write, check, find and print the configuration."""

from __future__ import annotations

from typing import Annotated

import typer

from ddtui.app.preset_source import presets_for
from ddtui.cli.arguments import JsonOption
from ddtui.cli.context import told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.output import emit, emit_json, say
from ddtui.cli.screen_options import load_for_screens
from ddtui.config.edit import write_default
from ddtui.config.errors import ConfigError, Problem
from ddtui.config.paths import find_config

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
def print_(context: typer.Context, as_json: JsonOption = False) -> None:
    """Print what is in force and where each value comes from. Shows no secrets.

    Also what `ddtui.toml` in this folder adds, or sets in place of one's own.
    """
    with told(context) as options:
        from ddtui.cli.config_report import config_lines, config_report

        loaded = options.load()
        if as_json:
            emit_json(config_report(loaded))
        else:
            emit("\n".join(config_lines(loaded)))
