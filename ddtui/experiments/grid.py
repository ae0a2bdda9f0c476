"""Expands a sweep to its configurations: each with each, conditions applied, budgets matched. Pure.

The requests that come out are made on one launch for all (what is in force when the queue begins),
so that none depends on the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import msgspec

from ddtui.config.errors import ConfigError
from ddtui.config.grid_text import pointed
from ddtui.config.presets import merged
from ddtui.core.conditions import BadCondition, Condition
from ddtui.core.experiment import Match
from ddtui.core.launch import Request, Value
from ddtui.core.sweep import CONTROL, PRESET, Sweep
from ddtui.experiments.matching import Circumstances, Matched, Shape, matched, side_by_side
from ddtui.experiments.naming import title_of

Values = Mapping[str, Value]
PresetOf = Callable[[str], Request]
"""What a preset asks for, by its name. Raises ConfigError."""


class Combination(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration of a sweep."""

    request: Request
    title: str = ""
    baseline: bool = False
    control: bool = False
    """Keeps its budget at another block size, to tell the block's effect from the budget's."""
    match: Match | None = None
    warnings: tuple[str, ...] = ()
    """Of its matching."""
    impossible: str = ""
    """Why it cannot be tried; empty for one that can."""


class MatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A budget with what every policy makes of it at another block size."""

    reference: Shape
    block_size: int
    topk: int | None
    policies: tuple[Matched, ...]


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """All that came of a sweep."""

    combinations: tuple[Combination, ...]
    total: int
    """Before anything was taken out."""
    excluded: dict[str, int] = {}
    """By condition: how many it took out."""
    unjudged: dict[str, int] = {}
    """By condition: how many it says nothing of, as they leave a setting to the server."""
    duplicates: int = 0
    """How many came out like another one."""
    matches: tuple[MatchRow, ...] = ()


def expand(
    sweep: Sweep,
    preset_of: PresetOf | None = None,
    base: Values | None = None,
    known: Circumstances | None = None,
) -> Expansion:
    """The configurations of a sweep, the baseline first where it is known already.

    `base` are the values in force, by setting: conditions and matching take from them what the
    sweep does not set. Raises ConfigError for a sweep that cannot be expanded.
    """
    return _Expanding(sweep, preset_of, base or {}, known or Circumstances()).result()


class _Expanding:
    """A sweep in the middle of being expanded."""

    def __init__(
        self, sweep: Sweep, preset_of: PresetOf | None, base: Values, known: Circumstances
    ) -> None:
        self._sweep, self._base, self._known = sweep, base, known
        self._preset_of = preset_of or _no_presets
        self._requests: dict[str, Request] = {}
        self._excluded: dict[str, int] = {}
        self._unjudged: dict[str, int] = {}
        self._matches: dict[tuple[Shape, int, int | None], MatchRow] = {}
        self._reference = _reference_block(sweep, base)

    def result(self) -> Expansion:
        rows = product(*(axis.values for axis in self._sweep.axes)) if self._sweep.axes else ()
        settings = self._sweep.settings
        found: list[Combination] = []
        total = 0
        for row in rows:
            total += 1
            values = dict(zip(settings, (each for part in row for each in part), strict=True))
            found += [each for each in self._matched(self._request(values)) if self._kept(each)]
        self._check_names(found)
        unique = list(_unique(found))
        titled = _titled(_with_baseline(self._sweep, unique), self._base)
        return Expansion(
            combinations=tuple(titled),
            total=total,
            excluded=self._excluded,
            unjudged=self._unjudged,
            duplicates=len(found) - len(unique),
            matches=tuple(self._matches.values()),
        )

    def _request(self, values: Values) -> Request:
        preset = values.get(PRESET)
        own = request_of(values)
        return own if preset is None else merged(self._preset(str(preset)), own)

    def _preset(self, name: str) -> Request:
        if name not in self._requests:
            self._requests[name] = self._preset_of(name)
        return self._requests[name]

    # ---- matching ------------------------------------------------------------------------------

    def _matched(self, request: Request) -> Iterator[Combination]:
        match, values = self._sweep.match, self._values(request)
        block, budget, topk = (_integer(values, name) for name in ("block_size", "budget", "topk"))
        if match is None or block is None or self._reference is None or block == self._reference:
            yield Combination(request=request)
            return
        if budget is None:
            raise ConfigError.of(
                "match needs the budgets to match: add budget=...", where=_where(self._sweep)
            )
        reference = Shape(block_size=self._reference, budget=budget, topk=topk)
        window = _integer(values, "window")
        known = msgspec.structs.replace(self._known, window=window)
        key = (reference, block, topk)
        if key not in self._matches:  # whether its window holds a block is told of each one
            policies = side_by_side(reference, block, topk, self._known)
            self._matches[key] = MatchRow(
                reference=reference, block_size=block, topk=topk, policies=policies
            )
        yield self._one(request, matched(match.policy, reference, block, topk, known), reference)
        if match.control and match.policy != CONTROL:
            control = matched(CONTROL, reference, block, topk, known)
            yield self._one(request, control, reference)

    def _one(self, request: Request, found: Matched, reference: Shape) -> Combination:
        if found.value is None:
            why = f"{found.policy}: {'; '.join(found.errors)}"
            return Combination(request=request, impossible=why)
        return Combination(
            request=merged(request, Request(knobs={"budget": found.value})),
            match=found.as_match(reference),
            control=found.control,
            warnings=found.warnings,
        )

    # ---- conditions ----------------------------------------------------------------------------

    def _values(self, request: Request) -> dict[str, Value]:
        return {**self._base, **settings_of(request)}

    def _kept(self, found: Combination) -> bool:
        if found.impossible:
            return True  # what it would be judged by is not known
        values = self._values(found.request)
        for condition in self._sweep.conditions:
            holds = self._holds(condition, values)
            if holds is False:
                self._excluded[condition.text] = self._excluded.get(condition.text, 0) + 1
                return False
            if holds is None:
                self._unjudged[condition.text] = self._unjudged.get(condition.text, 0) + 1
        return True

    def _holds(self, condition: Condition, values: Values) -> bool | None:
        try:
            return condition.holds(values)
        except BadCondition as error:
            message = pointed(error.what, error.text, error.at)
            raise ConfigError.of(message, where=f"{_where(self._sweep)} if") from error

    def _check_names(self, found: Sequence[Combination]) -> None:
        """A condition on something that nobody sets would silently keep everything."""
        given = {*self._base, *self._sweep.settings}
        for request in (*self._requests.values(), *(each.request for each in found)):
            given |= settings_of(request).keys()
        for condition in self._sweep.conditions:
            for name in condition.names:
                if name not in given:
                    at = max(0, condition.text.find(name))
                    what = f"{name} is not in the sweep, and not known to be in force: add {name}=."
                    message = pointed(what + "..", condition.text, at)
                    raise ConfigError.of(message, where=f"{_where(self._sweep)} if")


def _no_presets(name: str) -> Request:
    raise ConfigError.of(f"there is no preset {name[:80]!r}")


def _where(sweep: Sweep) -> str:
    return f"sweep {sweep.name}" if sweep.name else "grid"


def _integer(values: Values, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _reference_block(sweep: Sweep, base: Values) -> int | None:
    """The block size that budgets are meant for; None without matching. Raises ConfigError."""
    if sweep.match is None:
        return None
    if sweep.match.block_size is not None:
        return sweep.match.block_size
    sizes = [
        row[axis.names.index("block_size")]
        for axis in sweep.axes
        if "block_size" in axis.names
        for row in axis.values
    ]
    found = sizes[0] if len(set(sizes)) > 1 else base.get("block_size")
    if isinstance(found, int):
        return found
    raise ConfigError.of(
        "match needs the block size that the budgets are for, and none is known to be in force:"
        ' write match=nodes:8, or { policy = "nodes", block_size = 8 }',
        where=_where(sweep),
    )


def request_of(values: Values) -> Request:
    """What settings ask for; a preset is only named."""
    knobs = {name: value for name, value in values.items() if ":" not in name and name != PRESET}
    flags = {
        name.removeprefix("flag:"): value
        for name, value in values.items()
        if name.startswith("flag:")
    }
    environment = {
        name.removeprefix("env:"): None if value is None else str(value)
        for name, value in values.items()
        if name.startswith("env:")
    }
    return Request(str(values.get(PRESET) or ""), knobs, flags, environment)


def settings_of(request: Request) -> dict[str, Value]:
    """What a request sets, by setting."""
    values: dict[str, Value] = dict(request.knobs)
    values |= {f"flag:{name}": value for name, value in request.flags.items()}
    values |= {f"env:{name}": value for name, value in request.environment.items()}
    return values | ({PRESET: request.preset} if request.preset else {})


def _content(request: Request) -> tuple[tuple[str, str], ...]:
    """What makes a request the same as another one: its values, whatever preset they are of."""
    pairs = settings_of(request)
    pairs.pop(PRESET, None)
    return tuple(sorted((name, repr(value)) for name, value in pairs.items()))


def _unique(found: Sequence[Combination]) -> Iterator[Combination]:
    seen = set()
    for each in found:
        key = (_content(each.request), each.impossible)
        if key not in seen:
            seen.add(key)
            yield each


def _with_baseline(sweep: Sweep, found: Sequence[Combination]) -> list[Combination]:
    """The baseline marked, and first; added where it is not among them."""
    if sweep.baseline == "in force":
        return [Combination(request=Request(), baseline=True), *found]
    if sweep.baseline == "first" and found:
        return marked(found, 0)
    if sweep.baseline == "values":
        wanted = sweep.baseline_values
        for at, each in enumerate(found):
            values = settings_of(each.request)
            if all(name in values and values[name] == wanted[name] for name in wanted):
                return marked(found, at)
        return [Combination(request=request_of(wanted), baseline=True), *found]
    return list(found)


def marked(found: Sequence[Combination], at: int) -> list[Combination]:
    """The combinations with the one at `at` as their baseline, first."""
    baseline = msgspec.structs.replace(found[at], baseline=True)
    return [baseline, *found[:at], *found[at + 1 :]]


def _titled(found: Sequence[Combination], base: Values) -> list[Combination]:
    """Titles of what differs among them, or from what is in force; of all where nothing does."""
    settings = [settings_of(each.request) for each in found]
    names = list(dict.fromkeys(name for each in settings for name in each))
    telling = {
        name
        for name in names
        if len({repr(each.get(name, "")) for each in settings}) > 1
        or (name != PRESET and name not in base)
        or any(base.get(name) != each[name] for each in settings if name in base and name in each)
    }
    result = []
    for combination, values in zip(found, settings, strict=True):
        shown = {name: value for name, value in values.items() if name in telling} or values
        result.append(msgspec.structs.replace(combination, title=title_of(request_of(shown))))
    return result
