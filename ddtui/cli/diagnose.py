"""`ddtui diagnose [HOST | FILE | -]`: why an engine failed, from a saved log or from a host."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import Options, host_of, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import Paint, clean, emit, emit_json, say
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import known_hosts

if TYPE_CHECKING:
    from ddtui.cli.diagnose_sources import Diagnosed
    from ddtui.cli.reaching import Overrides

STDIN = "-"
_LOG_SUFFIXES = {".log", ".txt", ".json", ".jsonl", ".gz", ".journal", ".out", ".err"}


def diagnose(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="[HOST | FILE | -]",
            help="A host, whose last start is looked at; a saved log; or - for standard input.",
            show_default=False,
        ),
    ] = "",
    as_json: JsonOption = False,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
) -> None:
    """Say why an engine failed, from its last start or a saved log.

    Also what the log proves of its phases, configuration and figures.

    Exit status: 0 diagnosed, whether it failed or not; 6 not an engine's log; 1 not readable.
    """
    with told(context) as options:
        from ddtui.cli.reaching import Overrides

        found = _diagnosed(options, source, Overrides(unit, user_unit))
        from ddtui.cli import diagnosis_report

        for note in found.remarks:
            say(clean(note))
        if as_json:
            emit_json(diagnosis_report.as_json(found.diagnosis))
        else:
            emit("\n".join(diagnosis_report.lines(found, Paint())))


def _diagnosed(options: Options, source: str, overrides: Overrides) -> Diagnosed:
    from ddtui.cli import diagnose_sources
    from ddtui.collect.saved_log import NotALog

    unit = overrides.unit or ""
    if source in ("", STDIN):
        if not source and sys.stdin.isatty():
            raise ConfigError.of(
                "name a host or a file, or pipe a log in: `... | ddtui diagnose -`"
            )
        name, path = "standard input", None
    else:
        name, path = source, _file_of(options, source)
        if path is None:
            set_up_log(debug=options.debug)
            host = host_of(options.load(), source)
            return asyncio.run(diagnose_sources.of_host(host, overrides))
    try:
        if path is None:
            return diagnose_sources.of_stream(sys.stdin.buffer, name, time.time(), unit)
        with path.open("rb") as stream:
            return diagnose_sources.of_stream(stream, name, time.time(), unit)
    except NotALog as error:
        say(f"error: {clean(name)}: {clean(error.what)}")
        if error.remedy:
            say(f"       {clean(error.remedy)}")
        raise typer.Exit(ExitCode.NOT_A_LOG) from error
    except OSError as error:
        say(f"error: {clean(name)} cannot be read: {error.strerror or error}")
        raise typer.Exit(ExitCode.FAILED) from error


def _file_of(options: Options, source: str) -> Path | None:
    """The file that is meant, or None where a host is. Says which, if it could be either."""
    path = Path(source).expanduser()
    looks_like_a_path = "/" in source or path.suffix.lower() in _LOG_SUFFIXES
    if not _exists(path):
        if looks_like_a_path and not _is_known(options, source):
            say(f"error: there is no file {clean(source)}")
            raise typer.Exit(ExitCode.FAILED)
        return None
    if looks_like_a_path:
        if _is_known(options, source):
            say(f"{clean(source)} is taken as the file of that name, not as the host")
        return path
    if _is_known(options, source):
        say(f"{clean(source)} is taken as the host; for the file of that name: ./{clean(source)}")
        return None
    say(f"{clean(source)} is taken as the file of that name")
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a name, say
        return False


def _is_known(options: Options, source: str) -> bool:
    try:
        return source in known_hosts(options.load().config)
    except ConfigError:
        return source in known_hosts_without_configuration()


def known_hosts_without_configuration() -> list[str]:
    """The built-in hosts: a broken configuration hinders nobody from reading a file."""
    from ddtui.config.model import Config

    return known_hosts(Config())
