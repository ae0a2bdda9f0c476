"""The command line as a whole: the options before the verb, and all verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ddtui
from ddtui.cli import (
    apply,
    bench,
    config,
    connect,
    diagnose,
    doctor,
    hosts,
    init,
    knobs,
    plans,
    presets,
    queue,
    results,
    run,
    status,
    sweep,
)
from ddtui.cli.context import Options
from ddtui.cli.output import emit
from ddtui.cli.usage import Verbs

app = typer.Typer(
    cls=Verbs,
    name="ddtui",
    help="Terminal UI for live operation of GPU inference hosts over SSH.",
    epilog="HOST is a configured host, an SSH alias, user@host, `local` or `demo`.",
    no_args_is_help=True,
    # Plain help is quick and works everywhere; a traceback with local values would show secrets.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        emit(f"ddtui {ddtui.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Configuration file to use."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; log in more detail.")
    ] = False,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options before the verb."""
    context.obj = Options(config, debug)


app.command()(connect.connect)
app.command()(status.status)
app.command()(diagnose.diagnose)
app.command()(doctor.doctor)
app.command()(init.init)
app.command()(hosts.hosts)
app.command()(presets.presets)
app.command()(knobs.knobs)
app.command(short_help="Change the engine's configuration, and prove it.")(apply.apply)
app.command(short_help="Bring back the configuration before the last change.")(apply.rollback)
app.command(short_help="Stop the engine, start it again, and prove it is ready.")(apply.restart)
app.command(short_help="Show what was changed on a host from this machine.")(apply.history)
app.add_typer(queue.app, name="queue")
app.command(short_help="Run a host's queue of experiments, here or detached.")(run.run)
app.command(short_help="List the bench plans, or show one with its options.")(plans.plans)
app.command(short_help="Measure what is in force now, and keep the measurement.")(bench.bench)
app.command(short_help="Work out a grid of configurations on a host, and queue it.")(sweep.sweep)
app.command(short_help="Show what was measured on a host, compared with a baseline.")(
    results.results
)
app.add_typer(config.app, name="config")
