"""A sweep as it is asked for: settings with the values to try, and how they go together. Pure data.

A setting is named by its knob, `flag:NAME`, `env:NAME`, or `preset`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from ddtui.core.conditions import Condition
from ddtui.core.launch import Value

PRESET = "preset"
"""The setting whose values are names of presets."""
MOST_COMBINATIONS = 10_000

POLICIES: Mapping[str, str] = {
    "nodes": "same nodes per depth",
    "ratio": "same ratio to the block size",
    "siblings": "same siblings beside the chain",
    "cost": "same cost of verification (control)",
    "coverage": "same share of the widest tree",
    "tile": "nodes per depth, up to a full tile",
    "measured": "the best of what was measured",
}
"""Policies that match a budget to another block size, and what each keeps the same."""
DEFAULT_POLICY = "nodes"
CONTROL = "cost"
"""The policy that tells the effect of the block size from that of the budget."""

Baseline = Literal["auto", "first", "in force", "none", "values"]
"""`auto`: what is in force if that is one of the sweep's, else the first one."""


class Axis(msgspec.Struct, frozen=True):
    """Settings that change together, and their values; one setting alone mostly."""

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    """Each with one value a name."""


class Matching(msgspec.Struct, frozen=True, kw_only=True):
    """Budgets are meant for one block size, and computed for the others."""

    policy: str = DEFAULT_POLICY
    block_size: int | None = None
    """What the budgets are meant for; None: the first one of the sweep, or the one in force."""
    control: bool = False
    """Also try each unchanged budget, which isolates the effect of the block size."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What to try. Axes are combined each with each, the last one the fastest."""

    name: str = ""
    description: str = ""
    axes: tuple[Axis, ...] = ()
    conditions: tuple[Condition, ...] = ()
    match: Matching | None = None
    baseline: Baseline = "auto"
    baseline_values: Mapping[str, Value] = {}
    again: bool = False
    """Measure the baseline once more at the end, so that a drift shows."""
    plan: str = ""
    """Name of the bench plan; empty for the default one."""
    repeats: int | None = None
    """In place of the plan's own."""
    hypothesis: str = ""

    @property
    def settings(self) -> tuple[str, ...]:
        """All settings, in order."""
        return tuple(name for axis in self.axes for name in axis.names)

    @property
    def combinations(self) -> int:
        """How many there are before conditions take some out."""
        return math.prod(len(axis.values) for axis in self.axes)


def policy_name(text: str) -> str | None:
    """The policy that a name or number (`nodes`, `P1`) means, or None."""
    plain = text.strip().lower()
    if plain.startswith("p") and plain[1:].isdecimal() and 1 <= int(plain[1:]) <= len(POLICIES):
        return tuple(POLICIES)[int(plain[1:]) - 1]
    return plain if plain in POLICIES else None
