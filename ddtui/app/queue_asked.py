"""What the options of `ddtui queue` ask for: requests, plans, places and matched values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ddtui.app.preset_source import presets_for
from ddtui.bench.errors import BadPrompts
from ddtui.bench.prompts import load_prompts, placed
from ddtui.config.assignments import parse_assignments
from ddtui.config.bench_plans import find_plan, load_plans, only_plan
from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.load import Loaded
from ddtui.config.presets import merged
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, Match, Place
from ddtui.core.generation import Prompt
from ddtui.core.knobs import knob_name
from ddtui.core.launch import Request, Value
from ddtui.core.sweep import POLICIES, Sweep, policy_name
from ddtui.experiments.kept import MOST_MEASUREMENTS
from ddtui.experiments.matching import Circumstances
from ddtui.experiments.matching_like import CannotMatch, matched_like
from ddtui.experiments.plan_known import circumstances, knobs_known
from ddtui.experiments.queue import Queue
from ddtui.store import Store


def request_of(loaded: Loaded, host: str, preset: str | None, words: Sequence[str]) -> Request:
    """A preset with what was `--set` on top of it. Raises ConfigError."""
    over = parse_assignments(words)
    return over if preset is None else merged(presets_for(loaded, host).request(preset), over)


def plan_of(loaded: Loaded, sweep: Sweep) -> BenchPlan:
    """The bench plan that a sweep is measured by. Raises ConfigError."""
    plan = plan_named(loaded, sweep.plan or None) or BenchPlan()
    if sweep.repeats is None:
        return plan
    return msgspec.structs.replace(plan, repeats=sweep.repeats, name="")


def prompts_of(plan: BenchPlan) -> tuple[Prompt, ...]:
    """What a plan asks: that it can be read is known before anything is done. Raises ConfigError.

    Nothing where an external program asks.
    """
    try:
        return () if plan.command else load_prompts(plan.prompts)
    except BadPrompts as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        raise ConfigError.of(f"{error}{remedy}", where=f"bench plan {plan.name}".strip()) from error


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


def known_of(
    store: Store, queue: Queue, experiment: Experiment | None
) -> tuple[dict[str, Value], Circumstances | None]:
    """Knobs of an experiment, and what bears on matching it, as far as the store knows."""
    if experiment is None:
        return {}, None
    kept = store.measurements
    measured = kept.get(experiment.measurement) if experiment.measurement else None
    in_force = queue.settings().in_force
    knobs = knobs_known(experiment, in_force, measured)
    others = kept.of_host(queue.host, simulated=queue.simulated, most=MOST_MEASUREMENTS)
    return knobs, circumstances(knobs, others, experiment.configuration, in_force.limits)


def with_match(
    policy: str,
    over: Request,
    old: Experiment | None,
    in_force: Mapping[str, Value],
    known: Circumstances | None = None,
) -> tuple[Request, Match, list[str]]:
    """`over` with the budget that matches its block size to what an experiment has.

    Args:
        policy: Name or number of the policy.
        over: What is changed; it sets the block size, and no budget.
        old: The experiment to match.
        in_force: Its knobs, as far as they are known.
        known: What bears on matching.

    Returns the request, the match, and what to look out for. Raises ConfigError where it cannot be
    computed; says what is missing.
    """
    name = policy_name(policy)
    if name is None:
        names, hint = ", ".join(POLICIES), did_you_mean(policy, POLICIES)
        raise ConfigError.of(f"there is no policy {policy[:80]!r}{hint} (policies: {names})")
    if old is None:
        raise ConfigError.of("--match needs an experiment to match; name it with --like")
    if "budget" in over.knobs:
        raise ConfigError.of("--match computes the budget; leave out --set budget=...")
    if not isinstance(over.knobs.get("block_size"), int):
        raise ConfigError.of("--match needs the new block size; give --set block_size=...")
    try:
        reference, found = matched_like(old, over, name, in_force=in_force, known=known)
    except CannotMatch as error:
        raise ConfigError.of(str(error), where="--match") from error
    knobs = {**over.knobs, "budget": found.value}
    request = msgspec.structs.replace(over, knobs=knobs)
    return request, found.as_match(reference), list(found.warnings)


def plan_named(loaded: Loaded, name: str | None) -> BenchPlan | None:
    """The bench plan of this name, or of a file; None where none is named. Raises ConfigError.

    A file of prompts is meant from this folder, and measured by from another one later.
    """
    if name is None:
        return None
    is_file = name.endswith(".toml")
    plan = only_plan(Path(name).expanduser()) if is_file else find_plan(load_plans(loaded), name)
    return _placed(plan)


def plans_to_name(loaded: Loaded) -> dict[str, BenchPlan]:
    """The plans that have a name here, as `plan_named` gives them.

    A project's file that is wrong gives none any name: what was measured is shown nevertheless.
    """
    try:
        return {name: _placed(plan) for name, plan in load_plans(loaded).items()}
    except ConfigError:
        return {}


def _placed(plan: BenchPlan) -> BenchPlan:
    return plan if plan.command else msgspec.structs.replace(plan, prompts=placed(plan.prompts))
