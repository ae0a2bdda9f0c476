"""Strict reading of the configuration: all mistakes at once, each with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli

from ddtui.config.bench_plan_tables import plan_problems
from ddtui.config.errors import ConfigError, Problem, did_you_mean
from ddtui.config.model import (
    DEMO,
    LOCAL,
    Config,
    HostOptions,
    Keys,
    UiOptions,
    description,
    is_host_name,
    option_fields,
)
from ddtui.config.paths import ConfigPath, find_config
from ddtui.config.preset_tables import Found, mapping_problems, preset_problems
from ddtui.config.sweep_tables import sweep_problems
from ddtui.config.toml_words import limit_fault, line_of_digits, toml_fault, too_large

MAX_BYTES = 1_000_000
TABLES = ("ui", "keys", "hosts", "presets", "sweeps", "bench")

_NAMED = ("hosts", "presets", "sweeps", "bench")
"""Tables that hold one table a name."""

_LITERAL_KEY = (
    "an API key must not stand in this file, where backups and screen shares would show it;"
    " name a variable with api_key_env, or a program that prints it with api_key_command"
)
_SSH_OF_LOCAL = "the host 'local' is this machine and is not reached by ssh; remove this"


class Loaded(msgspec.Struct, frozen=True):
    """A configuration and where it came from."""

    config: Config
    path: ConfigPath
    exists: bool
    lines: Mapping[tuple[str, ...], int]
    """Line of each key that the file sets, by table and key, as far as known."""


def load(option: Path | None = None, env: Mapping[str, str] = os.environ) -> Loaded:
    """Read the configuration in use; the defaults where there is no file.

    Raises ConfigError with every mistake found, and for a file that was named and is not there.
    """
    path = find_config(option, env)
    try:
        text = read_text(path.file)
    except FileNotFoundError as error:
        if path.required:
            raise ConfigError.of(
                f"no such file (named by {path.origin}); write one with `ddtui config init`",
                path.file,
            ) from error
        return Loaded(Config(), path, exists=False, lines={})
    config = parse(text, path.file)
    return Loaded(config, path, exists=True, lines=key_lines(text))


def read_text(file: Path) -> str:
    """The text of a configuration file. Raises FileNotFoundError, or ConfigError if unreadable."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError.of(f"cannot be read: {error.strerror}", file) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError.of(
            f"is larger than {MAX_BYTES} bytes: not a configuration of ddtui", file
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            [Problem("is not UTF-8 text; save it as UTF-8", "", line, file)]
        ) from error


def parse(text: str, file: Path) -> Config:
    """A configuration from its text. Raises ConfigError with every mistake found."""
    document = read_document(text, file)
    problems = list(_document_problems(document))
    if problems:
        lines = key_lines(text)
        found = [placed(where, message, file, lines) for where, message in problems]
        raise ConfigError(sorted(found, key=lambda problem: problem.line or 0))
    document["keys"] = dict(_flat(document.get("keys", {})))
    return msgspec.convert(document, Config, strict=True)


def read_document(text: str, file: Path) -> dict[str, Any]:
    """The tables of a TOML file as they are. Raises ConfigError for what is no TOML."""
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        message = toml_fault(error)
        if error.msg == "Cannot overwrite a value" and (name := _last_key(text, error.lineno)):
            message = f"{name} is set twice; remove one of the two"
        raise ConfigError([Problem(message, "", error.lineno, file)]) from error
    except (ValueError, RecursionError) as error:
        line = line_of_digits(text) if isinstance(error, ValueError) else None
        raise ConfigError([Problem(limit_fault(error), "", line, file)]) from error
    if places := list(too_large(document)):
        lines, what = key_lines(text), "is a whole number beyond 64 bits"
        raise ConfigError([placed(where, what, file, lines) for where in places])
    return document


def _last_key(text: str, number: int) -> str:
    """The table and key, or the table, that a line of TOML sets; empty where it sets none."""
    table = ""
    for line in text.splitlines()[:number]:
        stripped = line.strip()
        if stripped.startswith("["):
            table = stripped.partition("]")[0].strip("[ ")
            found = f"[{table}]"
        elif "=" in stripped and not stripped.startswith("#"):
            found = " ".join(filter(None, (table and f"[{table}]", stripped.partition("=")[0])))
        else:
            found = ""
    return found.strip()


def placed(
    where: tuple[str, ...], message: str, file: Path, lines: Mapping[tuple[str, ...], int]
) -> Problem:
    """A mistake with its file, line, table and key."""
    # The key itself, else its table; a table that has only tables inside has no line of its own.
    upwards = [lines[where[:n]] for n in range(len(where), 0, -1) if where[:n] in lines]
    below = [line for path, line in lines.items() if path[: len(where)] == where]
    line = next(iter([*upwards, *below]), None)
    return Problem(message, _words(where), line, file)


def source_of(file: Path, lines: Mapping[tuple[str, ...], int], where: tuple[str, ...]) -> str:
    """The file that sets something, and its line as far as known."""
    line = lines.get(where)
    return str(file) if line is None else f"{file}:{line}"


def _words(where: tuple[str, ...]) -> str:
    if len(where) == 1:
        return f"[{where[0]}]"
    table, key = (where[:2], where[2:]) if where[0] in _NAMED else (where[:1], where[1:])
    return " ".join([f"[{'.'.join(map(_bare, table))}]", *map(_bare, key)])


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else repr(name)


def _document_problems(document: dict[str, Any]) -> Iterator[Found]:
    for name, table in document.items():
        if name not in TABLES:
            known = ", ".join(f"[{table}]" for table in TABLES)
            hint = did_you_mean(name, TABLES)
            yield (name,), f"unknown table{hint or ''} (known: {known})"
        elif not isinstance(table, dict):
            yield (name,), f"must be a table, got {_toml_type(table)}; write [{name}]"
        elif name == "ui":
            yield from _table_problems(("ui",), table, UiOptions)
        elif name == "keys":
            yield from _keys_problems(table)
        else:
            for inner, section in table.items():
                yield from _TABLE_CHECKS[name]((name, inner), section)


def _table_problems(
    where: tuple[str, ...], table: dict[str, Any], model: type[msgspec.Struct]
) -> Iterator[Found]:
    fields = option_fields(model)
    for key, value in table.items():
        if key not in fields:
            hint = did_you_mean(key, fields)
            known = "" if hint else f" (known: {', '.join(fields)})"
            yield (*where, key), f"unknown key{hint}{known}"
            continue
        try:
            msgspec.convert(value, fields[key].type, strict=True)
        except msgspec.ValidationError:
            # The value is not repeated: a key pasted into the wrong option must not reach a log.
            got = _toml_type(value)
            if isinstance(value, int | float) and not isinstance(value, bool):
                got = f"{value!r}"
            elif isinstance(value, str) and key not in {"api_key_env", "api_key_command"}:
                got = f"{value[:80]!r}"
            yield (*where, key), f"got {got}; expected {description(fields[key])}"


def _keys_problems(table: dict[str, Any]) -> Iterator[Found]:
    for action, keys in _flat(table):
        try:
            msgspec.convert({action: keys}, Keys, strict=True)
        except msgspec.ValidationError:
            expected = 'expected a key, such as "ctrl+r", or a list of keys'
            yield ("keys", action), f"got {_toml_type(keys)}; {expected}"
            continue
        if not keys or (isinstance(keys, list) and "" in keys):
            yield ("keys", action), "names no key; remove the line for the default"


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Keys by action id: TOML makes nested tables of an unquoted `log.search`."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _host_problems(where: tuple[str, ...], section: Any) -> Iterator[Found]:
    host = where[-1]
    if host == DEMO:
        yield where, "the host 'demo' is built in and takes no options; use another name"
    elif not isinstance(section, dict):
        message = f"must be a table, got {_toml_type(section)}; write [hosts.{_bare(host)}]"
        yield (
            where,
            message
            if host not in option_fields(HostOptions)
            else ("an option of one host; write it under [hosts.NAME]"),
        )
    elif not is_host_name(host):
        yield where, "not a host's name: letters, digits and . _ - @ : only, no '-' in front"
    else:
        if "api_key" in section:
            yield (*where, "api_key"), _LITERAL_KEY
        if host == LOCAL:
            yield from (
                ((*where, key), _SSH_OF_LOCAL) for key in ("ssh", "ssh_config") if key in section
            )
        if "knobs" in section:
            yield from mapping_problems((*where, "knobs"), section["knobs"])
        rest = {key: value for key, value in section.items() if key not in {"api_key", "knobs"}}
        yield from _table_problems(where, rest, HostOptions)
        if {"api_key_env", "api_key_command"} <= section.keys():
            yield (*where, "api_key_command"), "stands beside api_key_env; keep one of the two"


TableCheck = Callable[[tuple[str, ...], Any], Iterable[Found]]
"""What finds the mistakes in one table of a kind that holds one a name."""
SHARED_CHECKS: dict[str, TableCheck] = {
    "presets": preset_problems,
    "sweeps": sweep_problems,
    "bench": plan_problems,
}
"""Of tables that a project's file may hold too."""
_TABLE_CHECKS: dict[str, TableCheck] = {"hosts": _host_problems, **SHARED_CHECKS}


def _toml_type(value: Any) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        float: "float",
        str: "string",
        list: "list",
        dict: "table",
    }
    return names.get(type(value), "date or time")


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Line numbers of tables and keys; none where multi-line strings make lines ambiguous."""
    found: dict[tuple[str, ...], int] = {}
    if '"""' in text or "'''" in text:
        return found
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        try:
            if stripped.startswith("["):
                table = _path(tomli.loads(stripped))
                found.setdefault(table, number)
            elif "=" in stripped and not stripped.startswith("#"):
                key = stripped.partition("=")[0]
                path = (*table, *_path(tomli.loads(f"{key}=0")))
                if path[0] == "keys":  # an id with dots, quoted or not
                    path = ("keys", ".".join(path[1:]))
                found.setdefault(path, number)
        except (ValueError, RecursionError):
            continue  # a line inside a list over several lines, say
    return found


def _path(nested: Any) -> tuple[str, ...]:
    path = []
    while isinstance(nested, dict) and nested:
        name, nested = next(iter(nested.items()))
        path.append(name)
    return tuple(path)
