"""Writes presets into a configuration or project file, keeping everything else as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomlkit

from ddtui.config.edit import replace_file
from ddtui.config.errors import ConfigError, Problem
from ddtui.config.load import read_text
from ddtui.config.preset_tables import preset_problems
from ddtui.core.knobs import NONE
from ddtui.core.launch import Request


def preset_table(description: str, request: Request) -> dict[str, Any]:
    """A request as a preset's table."""
    table: dict[str, Any] = {"description": description} if description else {}
    table |= {name: NONE if value is None else value for name, value in request.knobs.items()}
    flags = {name: value for name, value in request.flags.items() if value is not None}
    unset = [name for name, value in request.flags.items() if value is None]
    set_here = {name: text for name, text in request.environment.items() if text is not None}
    unset_here = [name for name, text in request.environment.items() if text is None]
    for key, value in (
        ("flags", flags),
        ("unset", unset),
        ("environment", set_here),
        ("unset_environment", unset_here),
    ):
        if value:
            table[key] = value
    return table


def save_preset(file: Path, name: str, description: str, request: Request) -> Path | None:
    """Add `[presets.NAME]` to a file, which is made where there is none.

    Returns where the older file was kept. Raises ConfigError, also where the name is taken.
    """
    table = preset_table(description, request)
    problems = [
        Problem(what, ".".join(where), None, file)
        for where, what in preset_problems(("presets", name), table)
    ]
    if problems:
        raise ConfigError(problems)
    try:
        document = tomlkit.parse(read_text(file))
    except FileNotFoundError:
        document = tomlkit.document()
    presets: Any = document.get("presets")
    if presets is None:
        presets = document["presets"] = tomlkit.table(is_super_table=True)
    if name in presets:
        raise ConfigError.of(
            "is in the file already: choose another name", file, f"[presets.{name}]"
        )
    presets[name] = table
    return replace_file(file, tomlkit.dumps(document))
