"""What the log screen offers to choose from: the ranks and phases that its lines have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ddtui.core.events import Phase
from ddtui.ui.screens.choice import Choice

ALL = "all"
"""Id of the choice that filters nothing."""


def rank_choices(counts: Mapping[str, int]) -> list[Choice]:
    """All ranks in the order of their numbers, each with its lines; ids are `=RANK`."""
    ranks = sorted(counts.items(), key=lambda item: _numbers_first(item[0]))
    return [
        Choice(ALL, "all ranks"),
        *(Choice(f"={rank}", rank or "without a rank", f"{count:,}") for rank, count in ranks),
    ]


def phase_choices(counts: Mapping[Phase, int]) -> list[Choice]:
    """The phases passed through, in their order, each with its lines."""
    phases = [phase for phase in Phase if phase in counts]
    return [
        Choice(ALL, "all phases"),
        *(Choice(phase, str(phase), f"{counts[phase]:,}") for phase in phases),
    ]


def _numbers_first(rank: str) -> tuple[list[int], str]:
    """A sort key that puts TP2 before TP10."""
    return [int(digits) for digits in re.findall(r"\d+", rank)], rank
