"""`ddtui diagnose [HOST | FILE | -]`: why an engine failed, from a saved log or from a host."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import JsonOption, UnitOption, UserUnitOption
from ddtui.cli.context import Options, VerbFailed, host_of, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import Paint, clean, emit, emit_json, say
from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.hosts import known_hosts

if TYPE_CHECKING:
    from ddtui.app.reaching import Overrides
    from ddtui.cli.diagnose_sources import Diagnosed

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

    Exit status: 0 diagnosed, whether it failed or not; 6 not an engine's log; 1 not readable; 5 no
    unit of the host is known.
    """
    with told(context) as options:
        from ddtui.app.reaching import Overrides

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
        raise VerbFailed(f"{name}: {error.what}", error.remedy, ExitCode.NOT_A_LOG) from error
    except OSError as error:
        what = f"{name} cannot be read: {error.strerror or error}"
        raise VerbFailed(what, _way_to_read(error, name)) from error


def _file_of(options: Options, source: str) -> Path | None:
    """The file that is meant, or None where a host is. Says which, if it could be either."""
    path = Path(source).expanduser()
    looks_like_a_path = "/" in source or path.suffix.lower() in _LOG_SUFFIXES
    if not _exists(path):
        if looks_like_a_path and not _is_known(options, source):
            raise VerbFailed(f"there is no file {source}", _where_it_may_be(options, source, path))
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


def _way_to_read(error: OSError, name: str) -> str:
    """What to do about a file that is there and cannot be read."""
    match error:
        case IsADirectoryError():
            return "it is a folder: name a log in it, or pipe several: `cat ... | ddtui diagnose -`"
        case PermissionError():
            return f"read it as one who may: sudo cat {clean(shlex.quote(name))} | ddtui diagnose -"
        case _:
            return "copy it to another disk, or pipe it in: `... | ddtui diagnose -`"


def _where_it_may_be(options: Options, source: str, path: Path) -> str:
    """What may have been meant by a file that is not there."""
    folder = path.parent
    if not _exists(folder):
        return f"there is no folder {clean(str(folder))} either: look at its path"
    with suppress(OSError):
        near = did_you_mean(path.name, (each.name for each in folder.iterdir()))
        if near:
            return f"in {clean(str(folder.absolute()))}{clean(near)}"
    if "/" in source:
        return f"look at what is there: ls {clean(shlex.quote(str(folder)))}"
    hosts = ", ".join(_hosts(options))
    return f"it was looked for in {clean(str(Path.cwd()))}; a host is named as one of: {hosts}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a name, say
        return False


def _is_known(options: Options, source: str) -> bool:
    return source in _hosts(options)


def _hosts(options: Options) -> list[str]:
    """The known hosts; the built-in ones where the configuration is broken.

    That hinders nobody from reading a file.
    """
    from ddtui.config.model import Config

    try:
        return known_hosts(options.load().config)
    except ConfigError:
        return known_hosts(Config())
