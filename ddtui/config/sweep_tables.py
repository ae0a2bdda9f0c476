"""What may stand in `[sweeps.NAME]`: mistakes named, values read.

A sweep takes knobs by name, `flags`, `environment` and `preset`, each with a value or a list of
values; or all of these as one line, `grid`. Beside them stand `couple`, `if`, `match`, `baseline`,
`again`, `repeats`, `plan`, `description` and `hypothesis`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.grid_text import BASELINES, MOST_REPEATS, parse_grid, size_problem
from ddtui.config.preset_tables import FLAG, NAME, VARIABLE, Found
from ddtui.core.conditions import BadCondition, Condition, read_condition
from ddtui.core.knobs import KNOBS, TEXT_PATTERN, BadValue, knob_name, knob_value
from ddtui.core.launch import Value
from ddtui.core.sweep import POLICIES, PRESET, Axis, Matching, Sweep, policy_name

_KEYS = (
    *("description", "grid", "flags", "environment", PRESET, "couple", "if", "match"),
    *("baseline", "again", "repeats", "plan", "hypothesis"),
)
_MATCH_KEYS = ("policy", "block_size", "control")


class _Wrong(Exception):
    """A value cannot be used; the message says what is expected."""


def read_sweep(where: tuple[str, ...], table: Any) -> tuple[Sweep, list[Found]]:
    """A sweep and every mistake in it; with mistakes the sweep is not to be used."""
    reader = _Reader(where)
    return reader.read(table), reader.problems


def sweep_problems(where: tuple[str, ...], table: Any) -> list[Found]:
    """Every mistake in one sweep. `where` leads to it, its name last."""
    reader = _Reader(where)
    reader.read(table)
    return reader.problems


class _Reader:
    """Reads one sweep's table; mistakes are collected."""

    def __init__(self, where: tuple[str, ...]) -> None:
        self._where = where
        self.problems: list[Found] = []
        self._axes: list[Axis] = []

    def read(self, table: Any) -> Sweep:
        name = self._where[-1]
        if not isinstance(table, dict):
            self._wrong((), f"must be a table; write [sweeps.{name}]")
            return Sweep(name=name)
        if not NAME.fullmatch(name):
            self._wrong((), "not a sweep's name: letters, digits and . _ + - only, 64 at most")
        base = self._grid(table)
        changes: dict[str, Any] = {"name": name}
        for key, value in table.items():
            try:
                changes |= self._key(key, value)
            except _Wrong as error:
                self._wrong((key,), str(error))
        if base.conditions:
            changes["conditions"] = (*base.conditions, *changes.get("conditions", ()))
        sweep = msgspec.structs.replace(base, **changes)
        sweep = msgspec.structs.replace(sweep, axes=(*base.axes, *self._axes))
        self._whole(sweep)
        return sweep

    def _wrong(self, path: Iterable[str], message: str) -> None:
        self.problems.append(((*self._where, *path), message))

    def _grid(self, table: Mapping[str, Any]) -> Sweep:
        text = table.get("grid", "")
        if not isinstance(text, str):
            self._wrong(("grid",), 'expected one line of text, such as "budget=4,8 topk=4"')
        elif "grid" in table:
            try:
                return parse_grid(text)
            except ConfigError as error:
                for problem in error.problems:
                    self._wrong(("grid",), problem.message)
        return Sweep()

    def _whole(self, sweep: Sweep) -> None:
        settings = sweep.settings
        for name in sorted({each for each in settings if settings.count(each) > 1}):
            self._wrong(_path(name), "is set twice in this sweep; keep one of the two")
        if not sweep.axes and not self.problems:
            self._wrong((), "tries nothing: add settings, such as budget = [4, 8]")
        if too_many := size_problem(sweep):
            self._wrong((), too_many)

    # One answer a key.
    def _key(self, key: str, value: Any) -> dict[str, Any]:  # noqa: PLR0911
        """What one key changes in the sweep. Raises _Wrong."""
        match key:
            case "grid":
                return {}
            case "description" | "hypothesis":
                return {key: _text(value)}
            case "plan":
                return {key: _name(value, "a bench plan")}
            case "repeats":
                return {key: _repeats(value)}
            case "again":
                return {key: _flag(value)}
            case "if":
                return {"conditions": _conditions(value)}
            case "match":
                return {"match": _match(value)}
            case "baseline":
                return _baseline(value)
            case "couple":
                self._couples(value)
            case "flags" | "environment":
                self._named_axes(key, value)
            case _:
                self._axes.append(_axis(key, value))
        return {}

    def _named_axes(self, key: str, table: Any) -> None:
        if not isinstance(table, dict):
            raise _Wrong("must be a table: { name = value }")
        kind = "flag" if key == "flags" else "env"
        for name, value in table.items():
            try:
                self._axes.append(_axis(f"{kind}:{name}", value))
            except _Wrong as error:
                self._wrong((key, name), str(error))

    def _couples(self, value: Any) -> None:
        example = "[{ block_size = 8, budget = 16 }, { block_size = 16, budget = 35 }]"
        groups = value if _is_list_of(value, list) else [value]
        for group in groups:
            if not _is_list_of(group, dict):
                raise _Wrong(f"expected a list of tables with the same keys: {example}")
            rows = [dict(_flat(row)) for row in group]
            names = tuple(rows[0])
            if any(set(row) != set(names) for row in rows):
                raise _Wrong(f"every table must set the same: {', '.join(names)}")
            self._axes.append(
                Axis(names, tuple(tuple(row[name] for name in names) for row in rows))
            )


def _path(setting: str) -> tuple[str, ...]:
    kind, colon, name = setting.partition(":")
    return ({"flag": "flags", "env": "environment"}[kind], name) if colon else (setting,)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, kind) for each in value)


def _flat(table: Mapping[str, Any]) -> Iterable[tuple[str, Value]]:
    """Settings by their own names, `flags` and `environment` with their kind. Raises _Wrong."""
    for key, value in table.items():
        if key not in ("flags", "environment"):
            yield _setting(key, value)
        elif not isinstance(value, dict):
            raise _Wrong(f"{key} must be a table: {{ name = value }}")
        else:
            kind = "flag" if key == "flags" else "env"
            yield from (_setting(f"{kind}:{name}", inner) for name, inner in value.items())


def _axis(name: str, value: Any) -> Axis:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise _Wrong("has no values; leave it out, or name at least one")
    read = [_setting(name, each) for each in values]
    found = [each for _, each in read]
    for at, each in enumerate(found):
        if any(
            each is other or (each == other and type(each) is type(other)) for other in found[:at]
        ):
            raise _Wrong(f"{values[at]!r} stands there twice")
    return Axis((read[0][0],), tuple((each,) for each in found))


def _setting(name: str, value: Any) -> tuple[str, Value]:
    """A setting's own name and one of its values. Raises _Wrong."""
    kind, colon, inner = name.partition(":")
    if colon and kind == "flag":
        flag = inner.removeprefix("--")
        if not FLAG.fullmatch(flag):
            raise _Wrong("not a flag's name: letters, digits and . _ - only")
        return f"flag:{flag}", _flag_value(value)
    if colon:
        if not VARIABLE.fullmatch(inner):
            raise _Wrong("not a variable's name: letters, digits and _ only")
        text = _text(value, empty=True)
        return f"env:{inner}", None if text.lower() == "none" else text
    if name == PRESET:
        return PRESET, _name(value, "a preset")
    knob = knob_name(name)
    if knob is None:
        hint = did_you_mean(name, [*_KEYS, *KNOBS])
        known = "" if hint else f" (knobs: {', '.join(KNOBS)}; {', '.join(_KEYS)})"
        raise _Wrong(f"unknown key{hint}{known}")
    try:
        return knob, knob_value(knob, value)
    except BadValue as error:
        raise _Wrong(f"got {_shown(value)}; {error}") from error


def _flag_value(value: Any) -> Value:
    if isinstance(value, str):
        text = _text(value)
        return None if text.lower() == "none" else text
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return value
    raise _Wrong(f'got {_shown(value)}; expected a text, a number, true, false or "none"')


def _text(value: Any, *, empty: bool = False) -> str:
    if isinstance(value, str) and (TEXT_PATTERN.fullmatch(value) or (empty and not value)):
        return value
    raise _Wrong(f"got {_shown(value)}; expected one line of text in quotes")


def _name(value: Any, what: str) -> str:
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    raise _Wrong(f"got {_shown(value)}; expected the name of {what}")


def _repeats(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_REPEATS:
        return value
    raise _Wrong(f"got {_shown(value)}; expected 1 to {MOST_REPEATS} repeats")


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _Wrong(f"got {_shown(value)}; expected true or false")


def _conditions(value: Any) -> tuple[Condition, ...]:
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in texts):
        raise _Wrong('expected a condition, such as "topk <= budget", or a list of them')
    try:
        return tuple(map(read_condition, texts))
    except BadCondition as error:
        raise _Wrong(str(error)) from error


def _match(value: Any) -> Matching | None:
    if isinstance(value, bool):
        return Matching() if value else None
    table = {"policy": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise _Wrong('expected a policy, such as "nodes", or { policy = "nodes", block_size = 8 }')
    for key in table:
        if key not in _MATCH_KEYS:
            hint = did_you_mean(key, _MATCH_KEYS) or f" (known: {', '.join(_MATCH_KEYS)})"
            raise _Wrong(f"unknown key {key!r}{hint}")
    written = table.get("policy", Matching().policy)
    policy = policy_name(written) if isinstance(written, str) else None
    if policy is None:
        hint = did_you_mean(str(written), POLICIES) or f" (policies: {', '.join(POLICIES)})"
        raise _Wrong(f"there is no policy {str(written)[:80]!r}{hint}")
    size = table.get("block_size")
    if size is not None and not (type(size) is int and 2 <= size <= 4096):
        raise _Wrong(f"got block_size {_shown(size)}; expected the one that the budgets are for")
    return Matching(policy=policy, block_size=size, control=_flag(table.get("control", False)))


def _baseline(value: Any) -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {"baseline": "values", "baseline_values": dict(_flat(value))}
    if not isinstance(value, str) or value not in BASELINES:
        known = ", ".join(f'"{each}"' for each in BASELINES)
        raise _Wrong(f"got {_shown(value)}; expected {known}, or values: {{ budget = 8 }}")
    return {"baseline": BASELINES[value]}


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "table" if isinstance(value, dict) else "list"
    return repr(value)[:80]
