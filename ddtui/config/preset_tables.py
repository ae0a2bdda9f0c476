"""What may stand in `[presets.NAME]` and in a mapping of knobs: mistakes named, values read.

A preset takes `description`, `extends`, knobs (by name, or under `knobs`), `flags`, `unset` (flags
to take away), `environment` and `unset_environment`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ddtui.config.errors import did_you_mean
from ddtui.core.knobs import (
    KNOBS,
    LONGEST_TEXT,
    TEXT_PATTERN,
    BadValue,
    knob_name,
    knob_value,
    nearest_knob,
)
from ddtui.core.launch import Request, Value

Found = tuple[tuple[str, ...], str]
"""Where a mistake is (tables and key), and what it is."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
FLAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,119}")

_KEYS = (
    "description",
    "extends",
    "knobs",
    "flags",
    "unset",
    "environment",
    "unset_environment",
)


class PresetTable(msgspec.Struct, frozen=True):
    """A preset as it is written, without what it extends."""

    description: str = ""
    extends: str = ""
    request: Request = Request()


def preset_problems(where: tuple[str, ...], table: Any) -> Iterator[Found]:
    """Every mistake in one preset. `where` leads to it, its name last."""
    name = where[-1]
    if not isinstance(table, dict):
        is_option = name in _KEYS or knob_name(name)
        hint = "an option of one preset; write it under [presets.NAME]"
        yield where, hint if is_option else f"must be a table; write [presets.{name}]"
        return
    if not NAME.fullmatch(name):
        yield where, "not a preset's name: letters, digits and . _ + - only, 64 at most"
    for key, value in table.items():
        place = (*where, key)
        match key:
            case "description" | "extends":
                yield from _text_problems(place, value)
            case "knobs":
                yield from _table_of(place, value, _knob_problems)
            case "flags":
                yield from _table_of(place, value, _flag_problems)
            case "environment":
                yield from _table_of(place, value, _variable_problems)
            case "unset":
                yield from _list_problems(place, value, FLAG, "flags, such as ['disable-radix']")
            case "unset_environment":
                yield from _list_problems(place, value, VARIABLE, "variables, such as ['HF_HOME']")
            case _:
                yield from _knob_problems(place, key, value, beside=_KEYS)
    yield from _contradictions(where, table)


def _too_long(value: Any) -> str:
    """What is wrong with a text that is too long; empty for any other value."""
    if not isinstance(value, str) or len(value) <= LONGEST_TEXT:
        return ""
    return f"the value is too long ({len(value)} characters, most {LONGEST_TEXT})"


def _text_problems(where: tuple[str, ...], value: Any) -> Iterator[Found]:
    if wrong := _too_long(value):
        yield where, wrong
    elif not isinstance(value, str) or not TEXT_PATTERN.fullmatch(value):
        yield where, "expected one line of text"


def _table_of(where: tuple[str, ...], value: Any, check: Any) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield where, "must be a table: { name = value }"
        return
    for key, inner in value.items():
        yield from check((*where, key), key, inner)


def _knob_problems(
    where: tuple[str, ...], key: str, value: Any, beside: Iterable[str] = ()
) -> Iterator[Found]:
    knob = knob_name(key)
    if knob is None:
        hint = did_you_mean(key, [*beside, *KNOBS])
        others = f", {', '.join(beside)}" if beside else ""
        known = "" if hint else f" (knobs: {', '.join(KNOBS)}{others})"
        yield where, f"unknown {'key' if beside else 'knob'}{hint}{known}"
        return
    try:
        knob_value(knob, value)
    except BadValue as error:
        yield where, f"got {_shown(value)}; {error}"


def _flag_problems(where: tuple[str, ...], key: str, value: Any) -> Iterator[Found]:
    if not FLAG.fullmatch(key.removeprefix("--")):
        yield where, "not a flag's name: letters, digits and . _ - only"
    elif isinstance(value, bool):
        return
    elif wrong := _too_long(value):
        yield where, wrong
    elif isinstance(value, str):
        if not TEXT_PATTERN.fullmatch(value):
            yield where, "expected one line of text without control characters"
    elif not isinstance(value, int | float) or not math.isfinite(value):
        expected = 'expected a text, a number, true or false; lists are written "1 2 4"'
        yield where, f"got {_shown(value)}; {expected}"


def _variable_problems(where: tuple[str, ...], key: str, value: Any) -> Iterator[Found]:
    if not VARIABLE.fullmatch(key):
        yield where, "not a variable's name: letters, digits and _ only"
    elif wrong := _too_long(value):
        yield where, wrong
    elif not isinstance(value, str) or (value and not TEXT_PATTERN.fullmatch(value)):
        yield where, 'expected one line of text in quotes, such as "1"'


def _list_problems(
    where: tuple[str, ...], value: Any, pattern: re.Pattern[str], what: str
) -> Iterator[Found]:
    if not isinstance(value, list) or not all(
        isinstance(each, str) and pattern.fullmatch(each.removeprefix("--")) for each in value
    ):
        yield where, f"expected a list of {what}"


def _contradictions(where: tuple[str, ...], table: dict[str, Any]) -> Iterator[Found]:
    for setting, removing in (("flags", "unset"), ("environment", "unset_environment")):
        given, gone = table.get(setting), table.get(removing)
        if isinstance(given, dict) and isinstance(gone, list):
            names = {name.removeprefix("--") for name in given}
            for name in gone:
                if isinstance(name, str) and name.removeprefix("--") in names:
                    yield (*where, removing), f"{name} is set and taken away; keep one of the two"
    inner = table.get("knobs")
    if isinstance(inner, dict):
        twice = {knob_name(key) for key in inner} & {knob_name(key) for key in table} - {None}
        for knob in sorted(each for each in twice if each):
            yield (*where, "knobs", knob), "stands beside knobs too; keep one of the two"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "table" if isinstance(value, dict) else "list"
    return repr(value)[:80]


def read_preset(name: str, table: Mapping[str, Any]) -> PresetTable:
    """A preset without mistakes (`preset_problems` has found none)."""
    written = {key: value for key, value in table.items() if key not in _KEYS}
    knobs: dict[str, Value] = {}
    for key, value in (*table.get("knobs", {}).items(), *written.items()):
        if (knob := knob_name(key)) is not None:
            knobs[knob] = knob_value(knob, value)
    flags: dict[str, Value] = {
        key.removeprefix("--"): value for key, value in table.get("flags", {}).items()
    }
    flags |= {key.removeprefix("--"): None for key in table.get("unset", [])}
    environment: dict[str, str | None] = dict(table.get("environment", {}))
    environment |= dict.fromkeys(table.get("unset_environment", []))
    request = Request(name, knobs, flags, environment)
    return PresetTable(table.get("description", ""), table.get("extends", ""), request)


def mapping_problems(where: tuple[str, ...], table: Any) -> Iterator[Found]:
    """Every mistake in a mapping of knobs to flags, or to `env:NAME`."""
    if not isinstance(table, dict):
        yield where, 'must be a table: budget = "speculative-ddtree-budget"'
        return
    for key, value in table.items():
        if knob_name(key) is None:
            near = nearest_knob(key)
            hint = f"; did you mean {near!r}?" if near else f" (known: {', '.join(KNOBS)})"
            yield (*where, key), f"unknown knob{hint}"
        elif not isinstance(value, str) or not _is_target(value):
            expected = 'a flag of the server, such as "speculative-ddtree-budget", or "env:NAME"'
            yield (*where, key), f"got {_shown(value)}; expected {expected}"


def _is_target(text: str) -> bool:
    if text.startswith("env:"):
        return VARIABLE.fullmatch(text.removeprefix("env:")) is not None
    return FLAG.fullmatch(text.removeprefix("--")) is not None


def read_mapping(table: Mapping[str, str] | None) -> dict[str, str]:
    """A mapping of knobs by their own names."""
    return {knob_name(key) or key: value for key, value in (table or {}).items()}
