"""Presets: named configurations, from the user's file, the project's, and those built in.

The project's file is `ddtui.toml` in the working folder, for a repository that several operators
share: its presets go before the user's of the same name. Presets extend one another in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli

from ddtui.config.errors import ConfigError, Problem, did_you_mean
from ddtui.config.load import SHARED_CHECKS, Loaded, key_lines, placed, read_document, read_text
from ddtui.config.preset_tables import (
    Found,
    PresetTable,
    mapping_problems,
    read_mapping,
    read_preset,
)
from ddtui.core.launch import Request

PROJECT_FILE = "ddtui.toml"
_PROJECT_TABLES = (*SHARED_CHECKS, "knobs")


class Project(msgspec.Struct, frozen=True):
    """The project's file."""

    file: Path
    tables: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]


class Preset(msgspec.Struct, frozen=True):
    """One preset with where it comes from."""

    name: str
    table: PresetTable
    source: str
    """The file and line, or `built in`."""
    note: str = ""


class Presets(msgspec.Struct, frozen=True):
    """All presets by name, and the project's own mapping of knobs."""

    by_name: Mapping[str, Preset]
    knobs: Mapping[str, str] = {}
    """Of the project's file: knob to flag or `env:NAME`, for all hosts."""

    def find(self, name: str) -> Preset:
        """The preset of this name. Raises ConfigError, which names the nearest."""
        if name not in self.by_name:
            known = ", ".join(self.by_name) or "none is configured"
            raise ConfigError.of(
                f"there is no preset {name[:80]!r}{did_you_mean(name, self.by_name)}"
                f" (presets: {known})"
            )
        return self.by_name[name]

    def chain(self, name: str) -> tuple[Preset, ...]:
        """The preset after all that it extends, the farthest first."""
        found = [self.find(name)]
        while found[0].table.extends:
            found.insert(0, self.by_name[found[0].table.extends])
        return tuple(found)

    def request(self, name: str) -> Request:
        """What a preset asks for, with all that it extends. Raises ConfigError."""
        result = Request()
        for preset in self.chain(name):
            result = merged(result, preset.table.request)
        return msgspec.structs.replace(result, preset=name)

    def mapping(self, host: Mapping[str, str] | None) -> dict[str, str]:
        """Knobs that are mapped by hand: the project's, then the host's own before them."""
        return {**self.knobs, **read_mapping(host)}


def merged(base: Request, over: Request) -> Request:
    """One request with another one on top of it."""
    return Request(
        over.preset or base.preset,
        {**base.knobs, **over.knobs},
        {**base.flags, **over.flags},
        {**base.environment, **over.environment},
    )


def load_presets(
    loaded: Loaded, folder: Path | None = None, built_in: Mapping[str, str] | None = None
) -> Presets:
    """All presets: those of the configuration, then the project's in `folder` before them.

    `built_in` are texts of TOML by the name to show for their source; both files go before them.
    Raises ConfigError with every mistake.
    """
    found: dict[str, Preset] = {}
    for source, text in (built_in or {}).items():
        _add(found, tomli.loads(text).get("presets", {}), source, {})
    _add(found, loaded.config.presets, str(loaded.path.file), loaded.lines)
    knobs: dict[str, str] = {}
    if (project := read_project(loaded, folder)) is not None:
        _add(found, project.tables.get("presets", {}), str(project.file), project.lines)
        knobs = read_mapping(project.tables.get("knobs"))
    _check_extends(found)
    return Presets(found, knobs)


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)


def _add(
    found: dict[str, Preset],
    tables: Mapping[str, Any],
    source: str,
    lines: Mapping[tuple[str, ...], int],
) -> None:
    for name, table in tables.items():
        line = lines.get(("presets", name))
        earlier = found.get(name)
        found[name] = Preset(
            name,
            read_preset(name, table),
            source if line is None else f"{source}:{line}",
            "" if earlier is None else f"replaces one of the same name ({earlier.source})",
        )


def read_project(loaded: Loaded, folder: Path | None = None) -> Project | None:
    """`ddtui.toml` in `folder`, or in the working folder; None where there is none.

    The configuration itself is not one of its own. Raises ConfigError with every mistake.
    """
    file = (Path.cwd() if folder is None else folder) / PROJECT_FILE
    if not file.is_file() or _same(file, loaded.path.file):
        return None
    text = read_text(file)
    document = read_document(text, file)
    lines = key_lines(text)
    problems = list(_project_problems(document))
    if problems:
        raise ConfigError([placed(where, message, file, lines) for where, message in problems])
    return Project(file, document, lines)


def _project_problems(document: dict[str, Any]) -> list[Found]:
    problems: list[Found] = []
    for name, table in document.items():
        if name == "knobs":
            problems += mapping_problems((name,), table)
        elif name not in SHARED_CHECKS:
            hint = did_you_mean(name, _PROJECT_TABLES)
            known = "[presets.NAME], [sweeps.NAME], [bench.NAME] and [knobs]"
            text = f"unknown table{hint}; a project's file has only {known}"
            problems.append(((name,), f"{text}, the rest belongs in your own configuration"))
        elif not isinstance(table, dict):
            problems.append(((name,), f"must be a table; write [{name}.NAME]"))
        else:
            for each, inner in table.items():
                problems += SHARED_CHECKS[name]((name, each), inner)
    return problems


def _check_extends(found: Mapping[str, Preset]) -> None:
    """Raise ConfigError for presets that extend nothing known, or themselves."""
    problems = []
    for name, preset in found.items():
        where = f"{preset.source}: [presets.{name}] extends"
        base = preset.table.extends
        if base and base not in found:
            hint = did_you_mean(base, found)
            problems.append(Problem(f"there is no preset {base!r}{hint}", where))
            continue
        path = [name]
        while base and base in found and base not in path:
            path.append(base)
            base = found[base].table.extends
        if base == name:
            text = " extends ".join([*path, base])
            problems.append(Problem(f"goes in a circle: {text}", where))
    if problems:
        raise ConfigError(problems)
