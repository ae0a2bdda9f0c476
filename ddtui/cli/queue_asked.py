"""What the options of `ddtui queue` ask for: requests, plans, places and matched values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ddtui.cli.preset_source import presets_for
from ddtui.config.assignments import parse_assignments
from ddtui.config.bench_plans import find_plan, load_plans
from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.load import Loaded
from ddtui.config.presets import merged
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, Match, Place
from ddtui.core.knobs import knob_name
from ddtui.core.launch import Request, Value
from ddtui.core.measurement import Measurement
from ddtui.core.sweep import POLICIES
from ddtui.experiments.matching import Shape, matched


def request_of(loaded: Loaded, host: str, preset: str | None, words: Sequence[str]) -> Request:
    """A preset with what was `--set` on top of it. Raises ConfigError."""
    over = parse_assignments(words)
    return over if preset is None else merged(presets_for(loaded, host).request(preset), over)


def place_of(
    *, first: bool = False, last: bool = False, before: str | None = None, after: str | None = None
) -> Place | None:
    """The place that options name; None for none. Raises ConfigError for more than one."""
    named = [
        place
        for given, place in (
            (first, Place("first")),
            (last, Place("last")),
            (before is not None, Place("before", before or "")),
            (after is not None, Place("after", after or "")),
        )
        if given
    ]
    if len(named) > 1:
        raise ConfigError.of("give one place: --first, --last, --before ID or --after ID")
    return named[0] if named else None


def names_to_unset(words: Iterable[str]) -> tuple[str, ...]:
    """Names that `--unset` gives, as requests have them: knobs by their own name."""
    return tuple(
        knob_name(word) or word.removeprefix("flag:").removeprefix("env:").removeprefix("--")
        for word in words
    )


def with_match(
    policy: str, over: Request, old: Experiment | None, measured: Measurement | None
) -> tuple[Request, Match]:
    """`over` with the budget that matches its block size to what an experiment has.

    Args:
        policy: Name of the policy.
        over: What is changed; it sets the block size, and no budget.
        old: The experiment to match.
        measured: Its measurement, for knobs that its request leaves to the server.

    Raises:
        ConfigError: It cannot be computed; says what is missing.
    """
    if policy not in POLICIES:
        names = ", ".join(POLICIES)
        hint = did_you_mean(policy, POLICIES)
        raise ConfigError.of(f"there is no policy {policy[:80]!r}{hint} (policies: {names})")
    if old is None:
        raise ConfigError.of("--match needs an experiment to match; name it with --like")
    if "budget" in over.knobs:
        raise ConfigError.of("--match computes the budget; leave out --set budget=...")
    block_size = over.knobs.get("block_size")
    if not isinstance(block_size, int):
        raise ConfigError.of("--match needs the new block size; give --set block_size=...")
    known: Mapping[str, str] = {} if measured is None else measured.knobs
    reference = Shape(
        block_size=_number(old.request.knobs, known, "block_size"),
        budget=_number(old.request.knobs, known, "budget"),
        topk=_number_or_none(old.request.knobs, known, "topk"),
    )
    topk = over.knobs.get("topk")
    found = matched(policy, reference, block_size, topk if isinstance(topk, int) else None)
    if found.value is None:
        raise ConfigError.of(f"{policy} gives no budget: {'; '.join(found.errors)}")
    knobs = {**over.knobs, "budget": found.value}
    return msgspec.structs.replace(over, knobs=knobs), found.as_match(reference)


def _number(asked: Mapping[str, Value], known: Mapping[str, str], name: str) -> int:
    found = _number_or_none(asked, known, name)
    if found is None:
        what = f"--match needs to know the {name} of the experiment that is matched"
        raise ConfigError.of(f"{what}: it sets none, and was not measured yet")
    return found


def _number_or_none(asked: Mapping[str, Value], known: Mapping[str, str], name: str) -> int | None:
    value = asked.get(name)
    if name not in asked and known.get(name, "").isdecimal():
        return int(known[name])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plan_named(loaded: Loaded, name: str | None) -> BenchPlan | None:
    """The bench plan of this name; None where none is named. Raises ConfigError."""
    return None if name is None else find_plan(load_plans(loaded), name)
