"""The sweeps that are configured: the user's, the project's, and those of a file by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.load import Loaded, key_lines, placed, read_document, read_text, source_of
from ddtui.config.preset_tables import NAME
from ddtui.config.presets import read_project
from ddtui.config.sweep_tables import read_sweep
from ddtui.core.sweep import Sweep


class NamedSweep(msgspec.Struct, frozen=True):
    """A sweep with where it comes from."""

    sweep: Sweep
    source: str
    """The file and line."""


def load_sweeps(loaded: Loaded, folder: Path | None = None) -> dict[str, NamedSweep]:
    """The sweeps of the configuration, then those of the project's file before them.

    Raises ConfigError with every mistake.
    """
    found = _named(loaded.config.sweeps, loaded.path.file, loaded.lines)
    if (project := read_project(loaded, folder)) is not None:
        found |= _named(project.tables.get("sweeps", {}), project.file, project.lines)
    return found


def read_sweep_file(file: Path, name: str = "") -> NamedSweep:
    """The sweep of a file: its only one, or the one called `name`. Raises ConfigError."""
    try:
        text = read_text(file)
    except FileNotFoundError as error:
        raise ConfigError.of("no such file", file) from error
    document, lines = read_document(text, file), key_lines(text)
    if "sweeps" not in document:
        own = name or _name_of(file)
        lines = {("sweeps", own, *path): line for path, line in lines.items()}
        return _named({own: document}, file, lines)[own]
    others = [key for key in document if key != "sweeps"]
    if others:
        text = "unknown table; a file with [sweeps.NAME] has nothing else"
        raise ConfigError([placed((key,), text, file, lines) for key in others])
    found = _named(document["sweeps"], file, lines)
    if not name and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        known = ", ".join(found) or "none"
        what = f"has no sweep {name!r}" if name else "has several sweeps"
        hint = did_you_mean(name, found) if name else ""
        raise ConfigError.of(f"{what}{hint} (sweeps: {known}); name one as FILE:NAME", file)
    return found[name]


def _name_of(file: Path) -> str:
    return file.stem if NAME.fullmatch(file.stem) else "sweep"


def _named(tables: Any, file: Path, lines: Mapping[tuple[str, ...], int]) -> dict[str, NamedSweep]:
    if not isinstance(tables, dict):
        raise ConfigError(
            [placed(("sweeps",), "must be a table; write [sweeps.NAME]", file, lines)]
        )
    found, problems = {}, []
    for name, table in tables.items():
        sweep, wrong = read_sweep(("sweeps", name), table)
        problems += [placed(where, message, file, lines) for where, message in wrong]
        found[name] = NamedSweep(sweep, source_of(file, lines, ("sweeps", name)))
    if problems:
        raise ConfigError(problems)
    return found
