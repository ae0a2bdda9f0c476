"""Budgets that match another block size: each policy's value, with its formula and its warnings.

A block of `b` tokens holds its anchor, so its tree is `b - 1` deep at most. No policy is right in
general: they differ in what stays the same. So all are shown side by side, and `cost`, which keeps
the budget, is the control of any other: it tells the block's effect from the budget's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec

from ddtui.core.experiment import Match
from ddtui.core.sweep import CONTROL, DEFAULT_POLICY, POLICIES

_TILES = (8, 16, 32, 64, 128)
"""Rows that verification kernels work on at once; above the last one, multiples of 64."""
_LEAST_REACHED = 0.05
"""Share of verifications that must accept a whole block for a longer one to help."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A measured cell: one request at a time."""

    block_size: int
    budget: int
    acceptance: float
    """Acceptance length."""
    step_seconds: float


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, as far as matching needs it."""

    block_size: int
    budget: int
    topk: int | None = None


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the values. None and empty: not known, and not warned of."""

    window: int | None = None
    trained_block: int | None = None
    """Block size that the drafter was trained with."""
    max_topk: int | None = None
    """Cap of the tree's width."""
    max_running: int | None = None
    graph_widths: tuple[int, ...] = ()
    """Nodes with the root that CUDA graphs are captured for."""
    acceptance: float | None = None
    """Acceptance length of the reference."""
    positions: tuple[float, ...] = ()
    """Share of its verifications that accept at least 1, 2, ... drafts."""
    points: tuple[Point, ...] = ()
    """What was measured, for the policy `measured`."""


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy gives."""

    policy: str
    keeps: str
    """What stays the same, in words."""
    value: int | None
    """The budget; None where the policy cannot tell one."""
    formula: str = ""
    """With its figures."""
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """Why there is no value, or why it cannot be used."""
    control: bool = False

    def as_match(self, reference: Shape) -> Match:
        """What an experiment keeps of it. Raises ValueError where it has no value."""
        if self.value is None:
            raise ValueError("; ".join(self.errors))
        words = f"block size {reference.block_size}, budget {reference.budget}"
        shape = (reference.block_size, reference.budget)
        return Match(self.policy, self.formula, "budget", self.value, words, *shape)


class _No(Exception):
    """A policy has no value; says why."""


_Found = tuple[int, str, tuple[str, ...]]
"""A budget, its formula, and what is to say of it."""


def matched(
    policy: str,
    reference: Shape,
    block_size: int,
    topk: int | None = None,
    known: Circumstances | None = None,
) -> Matched:
    """The budget that matches `reference` at another block size.

    `topk` is the new one, where it changes too. Raises KeyError for an unknown policy.
    """
    known = known or Circumstances()
    new_topk = reference.topk if topk is None else topk
    base = Matched(policy=policy, keeps=POLICIES[policy], value=None, control=policy == CONTROL)
    if hard := _impossible(reference, block_size, known):
        return msgspec.structs.replace(base, errors=hard)
    try:
        value, formula, said = _POLICIES[policy](reference, block_size, new_topk, known)
    except _No as error:
        return msgspec.structs.replace(base, errors=(str(error),))
    if value < 1:
        errors = (f"{formula}: a tree has at least one node beside its root",)
        return msgspec.structs.replace(base, formula=formula, errors=errors)
    new = Shape(block_size=block_size, budget=value, topk=new_topk)
    warnings = (*said, *_warnings(reference, new, known))
    return msgspec.structs.replace(base, value=value, formula=formula, warnings=warnings)


def side_by_side(
    reference: Shape,
    block_size: int,
    topk: int | None = None,
    known: Circumstances | None = None,
) -> tuple[Matched, ...]:
    """All policies, the default one first."""
    return tuple(matched(policy, reference, block_size, topk, known) for policy in POLICIES)


def _impossible(old: Shape, block: int, known: Circumstances) -> tuple[str, ...]:
    found = []
    for size in sorted({old.block_size, block}):
        if size < 2:
            found.append(f"block size {size} drafts nothing: 2 is the least")
    if old.budget < 1:
        found.append(f"budget {old.budget} is no tree: 1 is the least")
    if known.window is not None and known.window < block:
        found.append(f"window {known.window} is smaller than block size {block}")
    return tuple(found)


# ---- the policies --------------------------------------------------------------------------------


def _nodes(old: Shape, block: int, _topk: int | None, _known: Circumstances) -> _Found:
    depth, new = old.block_size - 1, block - 1
    value = math.ceil(Fraction(old.budget * new, depth))
    return value, f"ceil({old.budget} x {new} / {depth}) = {value}", ()


def _ratio(old: Shape, block: int, _topk: int | None, _known: Circumstances) -> _Found:
    value = math.ceil(Fraction(old.budget * block, old.block_size))
    formula = f"ceil({old.budget} x {block} / {old.block_size}) = {value}"
    chain = block - 1
    if old.budget >= old.block_size - 1 and value < chain:
        note = f"raised from {value} to {chain}: the chain would not reach its last depth"
        return chain, f"max({formula}, {block} - 1) = {chain}", (note,)
    return value, formula, ()


def _siblings(old: Shape, block: int, _topk: int | None, _known: Circumstances) -> _Found:
    depth, new = old.block_size - 1, block - 1
    value = old.budget + new - depth
    return value, f"{old.budget} + ({new} - {depth}) = {value}", ()


def _cost(old: Shape, _block: int, _topk: int | None, _known: Circumstances) -> _Found:
    return old.budget, f"{old.budget} = {old.budget}", ()


def _coverage(old: Shape, block: int, topk: int | None, _known: Circumstances) -> _Found:
    if old.topk is None or topk is None:
        raise _No("needs topk: add it to what is set")
    depth, new = old.block_size - 1, block - 1
    share = Fraction(old.budget, depth * old.topk)
    value = math.floor(share * new * topk + Fraction(1, 2))
    formula = (
        f"round({old.budget} / ({depth} x {old.topk}) x {new} x {topk})"
        f" = round({float(share):.3f} x {new * topk}) = {value}"
    )
    full = _full_tree(topk, new, value)
    if full < value:
        return full, f"min({formula}, whole tree {full}) = {full}", ()
    return value, formula, ()


def _full_tree(topk: int, depth: int, enough: int) -> int:
    """Nodes of a tree that is not pruned; any number beyond `enough` for a larger one."""
    total, level = 0, 1
    for _ in range(depth):
        level *= topk
        total += level
        if total > enough:
            break
    return total


def _tile(old: Shape, block: int, topk: int | None, known: Circumstances) -> _Found:
    nodes, formula, _ = _nodes(old, block, topk, known)
    rows = nodes + 1
    tile = next((each for each in _TILES if each >= rows), math.ceil(rows / 64) * 64)
    return tile - 1, f"{formula}; {rows} rows with the root, up to {tile}: {tile - 1}", ()


def _measured(old: Shape, block: int, _topk: int | None, known: Circumstances) -> _Found:
    points = [each for each in known.points if each.block_size == block and each.step_seconds > 0]
    if not points:
        raise _No(f"nothing was measured with block size {block}")
    best = max(points, key=lambda each: (each.acceptance / each.step_seconds, -each.budget))
    many = f"{len(points)} budgets" if len(points) > 1 else "the only budget"
    formula = (
        f"best of {many} measured: {best.acceptance:.2f} / {best.step_seconds * 1000:.1f} ms"
        f" = {best.acceptance / best.step_seconds:.1f} tok/s at {best.budget}"
    )
    before = [
        each
        for each in known.points
        if (each.block_size, each.budget) == (old.block_size, old.budget) and each.step_seconds > 0
    ]
    said: tuple[str, ...] = ()
    if before:
        needed = best.step_seconds / before[0].step_seconds
        gained = best.acceptance / before[0].acceptance
        said = (f"breaks even at {needed:.2f} x the acceptance length; it had {gained:.2f} x",)
    if len(points) < 3:
        said = (*said, "few budgets were measured: the best one may be another")
    return best.budget, formula, said


_POLICIES: dict[str, Callable[[Shape, int, int | None, Circumstances], _Found]] = {
    "nodes": _nodes,
    "ratio": _ratio,
    "siblings": _siblings,
    "cost": _cost,
    "coverage": _coverage,
    "tile": _tile,
    "measured": _measured,
}


# ---- what to look out for ------------------------------------------------------------------------


def _warnings(old: Shape, new: Shape, known: Circumstances) -> Sequence[str]:
    return (
        *_of_the_tree(old, new, known),
        *_of_the_block(old, new, known),
        *_of_the_server(old, new, known),
    )


def _wide(shape: Shape) -> bool:
    """Whether the budget is enough for the width of its topk at every depth."""
    return shape.topk is not None and shape.budget >= (shape.topk - 1) * (shape.block_size - 1)


def _of_the_tree(old: Shape, new: Shape, known: Circumstances) -> list[str]:
    found, depth = [], new.block_size - 1
    if new.budget <= depth:
        found.append(
            f"budget {new.budget} with block size {new.block_size}: the tree is only a chain"
        )
    width = new.budget // depth + 1
    caps = [each for each in (new.topk, known.max_topk) if each is not None]
    if caps and min(caps) < width and new.budget > depth:
        found.append(f"its width {width} is capped at {min(caps)}")
    if new.topk is not None and _wide(old) and not _wide(new):
        needed = (new.topk - 1) * depth
        found.append(f"topk {new.topk} at every depth takes a budget of {needed}, as it had before")
    if caps and (full := _full_tree(min(caps), depth, 2 * new.budget)) < new.budget / 2:
        found.append(f"only {full} of its {new.budget} nodes can exist: the rest is padding")
    return found


def _of_the_block(old: Shape, new: Shape, known: Circumstances) -> list[str]:
    found = []
    if known.trained_block is not None and new.block_size > known.trained_block:
        found.append(
            f"block size {new.block_size} is larger than the drafter's trained"
            f" {known.trained_block}"
        )
    if new.block_size <= old.block_size:
        return found
    whole = old.block_size - 1
    if len(known.positions) >= whole:
        reached = known.positions[whole - 1]
        if reached < _LEAST_REACHED:
            found.append(
                f"only {reached:.1%} of verifications accept all {whole} drafts of block size"
                f" {old.block_size}: a longer block cannot help"
            )
    elif known.acceptance is not None and known.acceptance < old.block_size / 2:
        found.append(
            f"acceptance length {known.acceptance:.2f} is far below block size"
            f" {old.block_size}: a longer block hardly helps"
        )
    return found


def _of_the_server(old: Shape, new: Shape, known: Circumstances) -> list[str]:
    found = []
    rows = new.budget + 1
    if known.graph_widths and rows not in known.graph_widths:
        found.append(f"{rows} rows (the budget and its root) are not covered by CUDA graphs")
    growth = rows / (old.budget + 1)
    if known.max_running is not None and growth > 2:
        found.append(
            f"{rows} x {known.max_running} rows with all requests running, {growth:.1f} x as many"
            " as before: memory for graphs and logits grows with them"
        )
    return found


__all__ = [
    "CONTROL",
    "DEFAULT_POLICY",
    "POLICIES",
    "Circumstances",
    "Matched",
    "Point",
    "Shape",
    "matched",
    "side_by_side",
]
