"""Presets for the simulated host, so that there is something to apply at first sight."""

from __future__ import annotations

SOURCE = "built in, for demo"

DEMO_PRESETS = """
[presets.budget-4]
description = "a small budget: the tree is only a chain"
budget = 4

[presets.budget-8]
description = "a small tree, as the unit is configured"
budget = 8

[presets.budget-12]
description = "a tree of 12 nodes"
budget = 12

[presets.budget-16]
description = "a tree of 16 nodes"
budget = 16

[presets.block16]
description = "twice the drafter's trained block, and a tree to match"
block_size = 16
budget = 33

[presets.window-none]
description = "the drafter sees the whole context"
window = "none"
"""
