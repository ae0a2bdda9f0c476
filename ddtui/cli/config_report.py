"""The configuration that is in force, with where each part comes from, as TOML and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from ddtui.config.bench_plan_tables import BUILT_IN, DEFAULT
from ddtui.config.load import Loaded, source_of
from ddtui.config.model import HostOptions, UiOptions, option_fields
from ddtui.config.presets import Project, load_presets, read_project
from ddtui.core.redact import redact_mapping
from ddtui.demo.presets import DEMO_PRESETS

DEFAULT_SOURCE = "default"
_KINDS = ("presets", "sweeps", "bench")
"""Tables that a project's file may have too: its own go before the user's of the same name."""
_WIDEST = 60
"""Columns before what is said of where a value comes from, at most."""


class Part(msgspec.Struct, frozen=True):
    """One table."""

    path: tuple[str, ...]
    values: Mapping[str, Any]
    """Without secrets."""
    sources: Mapping[str, str]
    """Of each value: the file and line, or DEFAULT_SOURCE."""


def parts_in_force(loaded: Loaded) -> list[Part]:
    """Every table that is in force. Raises ConfigError for mistakes of the project's file."""
    project = read_project(loaded)
    load_presets(loaded)  # what they extend, too, must be there
    config, file = loaded.config, loaded.path.file
    parts = [_options(("ui",), config.ui, loaded)]
    if config.keys:
        keys = {action: list(given) for action, given in config.key_map().items()}
        parts.append(_written(("keys",), keys, file, loaded.lines))
    parts += [_options(("hosts", name), each, loaded) for name, each in config.hosts.items()]
    for kind in _KINDS:
        parts += _named(kind, loaded, project)
    if project is not None and (knobs := project.tables.get("knobs")):
        parts.append(_written(("knobs",), knobs, project.file, project.lines))
    return parts


def _named(kind: str, loaded: Loaded, project: Project | None) -> Iterator[Part]:
    own = getattr(loaded.config, kind)
    theirs = {} if project is None else project.tables.get(kind, {})
    for name in dict.fromkeys([*own, *theirs]):
        if project is not None and name in theirs:
            yield _written((kind, name), theirs[name], project.file, project.lines)
        else:
            yield _written((kind, name), own[name], loaded.path.file, loaded.lines)


def _written(
    path: tuple[str, ...],
    values: Mapping[str, Any],
    file: Path,
    lines: Mapping[tuple[str, ...], int],
) -> Part:
    """A table as it stands in a file."""
    sources = {name: source_of(file, lines, (*path, name)) for name in values}
    return Part(path, redact_mapping(values), sources)


def _options(path: tuple[str, ...], options: UiOptions | HostOptions, loaded: Loaded) -> Part:
    """A table with the defaults of what the file does not set."""
    values, sources = {}, {}
    for name, field in option_fields(type(options)).items():
        value, where = getattr(options, name), (*path, name)
        values[name] = _shown(name, value)
        is_default = value == field.default and where not in loaded.lines
        sources[name] = (
            DEFAULT_SOURCE if is_default else source_of(loaded.path.file, loaded.lines, where)
        )
    return Part(path, values, sources)


def _shown(name: str, value: Any) -> Any:
    """A value without secrets: a program's arguments may hold one."""
    if name == "api_key_command" and value:
        return [value[0], *(["..."] if len(value) > 1 else [])]
    return list(value) if isinstance(value, tuple) else value


# ---- JSON ----------------------------------------------------------------------------------------


def config_report(loaded: Loaded) -> dict[str, Any]:
    """All of it, and in `sources` the same tables with where each value comes from."""
    parts, project = parts_in_force(loaded), read_project(loaded)
    names = ("ui", "keys", "hosts", *_KINDS, "knobs")
    values: dict[str, Any] = {name: {} for name in names}
    sources: dict[str, Any] = {name: {} for name in names}
    for part in parts:
        kind, *rest = part.path
        for into, told in ((values, part.values), (sources, part.sources)):
            if rest:
                into[kind][rest[0]] = dict(told)
            else:
                into[kind] = dict(told)
    return {
        "file": str(loaded.path.file),
        "origin": loaded.path.origin,
        "exists": loaded.exists,
        "project_file": None if project is None else str(project.file),
        **values,
        "sources": sources,
    }


# ---- TOML ----------------------------------------------------------------------------------------


def config_lines(loaded: Loaded) -> Iterator[str]:
    """All of it as TOML; where each value comes from is a comment."""
    parts, project = parts_in_force(loaded), read_project(loaded)
    own = str(loaded.path.file)
    state = "" if loaded.exists else " (there is no such file: defaults)"
    yield f"# {own}{state}, chosen by: {loaded.path.origin}"
    if project is not None:
        yield f"# {project.file}: the project's, before one's own of the same name"
    demo = tomlkit.parse(DEMO_PRESETS).get("presets", {})
    yield f"# built in: bench plans {', '.join([DEFAULT, *BUILT_IN])}; see `ddtui plans`"
    yield f"# built in, for demo: presets {', '.join(demo)}; see `ddtui presets`"
    rows = {part.path: list(_rows(part, own)) for part in parts}
    width = max(len(text) for each in rows.values() for text, _ in each)
    for path, each in rows.items():
        yield ""
        yield f"[{'.'.join(tomlkit.key(name).as_string() for name in path)}]"
        yield from (f"{text.ljust(min(width, _WIDEST))}  # {source}" for text, source in each)


def _rows(part: Part, own: str) -> Iterator[tuple[str, str]]:
    """Each option with its source; of one's own file the line alone is said."""
    for name, value in part.values.items():
        if value is not None:
            text = f"{tomlkit.key(name).as_string()} = {_inline(value)}"
            source = part.sources[name]
            line = source.removeprefix(f"{own}:")
            yield text, "file" if source == own else f"line {line}" if line != source else source


def _inline(value: Any) -> str:
    """A value as it stands on one line of TOML."""
    if not isinstance(value, dict):
        return str(tomlkit.item(value).as_string())
    inline = tomlkit.inline_table()
    inline.update(value)
    return str(inline.as_string())
