"""An experiment like another one with changed values: "the same with block size 16 to match"."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec

from ddtui.config.presets import merged
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request, Value
from ddtui.experiments.matching import Circumstances, Matched, Shape, matched, side_by_side
from ddtui.experiments.naming import retitled


class CannotMatch(ValueError):
    """There is nothing to match, or no budget that matches; the message says why."""


def like(
    experiment: Experiment,
    changes: Request,
    policy: str | None = None,
    *,
    in_force: Mapping[str, Value] | None = None,
    known: Circumstances | None = None,
) -> Experiment:
    """A pending experiment like another one, with `changes` on top.

    Args:
        experiment: The one to be like; its plan, sweep and hypothesis are kept, its fate is not.
        changes: Values to set; with a policy they set the block size, and no budget.
        policy: The budget is computed by it, to match the block size that is changed.
        in_force: Values that the experiment leaves to the server, by knob.
        known: What bears on the matching.

    Raises:
        CannotMatch: The budget cannot be computed.
    """
    match = None
    if policy is not None:
        reference, found = matched_like(experiment, changes, policy, in_force=in_force, known=known)
        changes = merged(changes, Request(knobs={"budget": found.value}))
        match = found.as_match(reference)
    elif experiment.match is not None and experiment.match.knob not in changes.knobs:
        match = experiment.match
    request = merged(experiment.request, changes)
    return Experiment(
        id=uuid.uuid4().hex,
        host=experiment.host,
        simulated=experiment.simulated,
        title=retitled(experiment.title, experiment.request, request),
        request=request,
        plan=experiment.plan,
        sweep=experiment.sweep,
        hypothesis=experiment.hypothesis,
        match=match,
        like=experiment.id,
    )


def matched_like(
    experiment: Experiment,
    changes: Request,
    policy: str,
    *,
    in_force: Mapping[str, Value] | None = None,
    known: Circumstances | None = None,
) -> tuple[Shape, Matched]:
    """What is matched, and the budget that a policy gives. Raises CannotMatch."""
    reference, block, topk = shapes(experiment.request, changes, in_force or {})
    found = matched(policy, reference, block, topk, _with_window(experiment, changes, known))
    if found.value is None:
        raise CannotMatch(f"{policy} gives no budget: {'; '.join(found.errors)}")
    return reference, found


def choices(
    experiment: Experiment,
    changes: Request,
    *,
    in_force: Mapping[str, Value] | None = None,
    known: Circumstances | None = None,
) -> tuple[Matched, ...]:
    """What every policy would give, to choose from. Raises CannotMatch."""
    reference, block, topk = shapes(experiment.request, changes, in_force or {})
    return side_by_side(reference, block, topk, _with_window(experiment, changes, known))


def shapes(
    request: Request, changes: Request, in_force: Mapping[str, Value]
) -> tuple[Shape, int, int | None]:
    """What is to be matched, the new block size and the new topk. Raises CannotMatch."""
    if "budget" in changes.knobs:
        raise CannotMatch("the budget is set and to be computed: leave out one of the two")
    block = changes.knobs.get("block_size")
    if not isinstance(block, int):
        raise CannotMatch("matching needs the new block size: set block_size")
    before = {**in_force, **request.knobs}
    sizes = {name: before.get(name) for name in ("block_size", "budget", "topk")}
    for name in ("block_size", "budget"):
        if not isinstance(sizes[name], int):
            raise CannotMatch(_unknown(name, before))
    reference = Shape(**{name: size for name, size in sizes.items() if isinstance(size, int)})
    topk = changes.knobs.get("topk", reference.topk)
    return reference, block, topk if isinstance(topk, int) else None


def _unknown(name: str, values: Mapping[str, Value]) -> str:
    """Why a size is not known, and the way out."""
    algorithm = str(values.get("algorithm") or "")
    if name == "budget" and algorithm and algorithm != "DDTREE":
        return (
            f"there is no budget to match: {algorithm} verifies no tree. Change the block size"
            " alone, without matching; with DDTREE set algorithm and budget on it first"
        )
    return (
        f"matching needs to know the {name} of the experiment that it is to be like: that one sets"
        f" none, and what its server has is not known. Set {name} on it, or let `ddtui sweep` or"
        " `ddtui run` ask the host"
    )


def _with_window(
    experiment: Experiment, changes: Request, known: Circumstances | None
) -> Circumstances:
    """With the window that it will have, where that is set."""
    known = known or Circumstances()
    knobs = {**experiment.request.knobs, **changes.knobs}
    if "window" not in knobs:
        return known
    window = knobs["window"]
    return msgspec.structs.replace(known, window=window if isinstance(window, int) else None)
