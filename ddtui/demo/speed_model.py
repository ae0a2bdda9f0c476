"""How fast the simulated engine decodes, and how many drafts it accepts: plausible, not measured.

The shape is the known one: acceptance length only grows with the budget, while throughput has its
best where one more node costs more time than it brings tokens.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence

from ddtui.demo.config import EngineConfig

_Curve = Sequence[tuple[float, float]]

_PASS_MS: _Curve = (
    (0, 19.0),
    (1, 20.4),
    (4, 22.6),
    (8, 25.3),
    (12, 32.3),
    (16, 34.2),
    (32, 46.0),
    (64, 68.0),
)
"""Milliseconds of one target pass for one request, by budget."""
_ACCEPTED: _Curve = (
    (0, 1.0),
    (1, 1.78),
    (4, 3.4),
    (8, 4.3),
    (12, 4.81),
    (16, 5.04),
    (32, 5.5),
    (64, 5.8),
)
"""Acceptance length by budget, at block size 8, top-k 8 and a window of 2,048 tokens."""
_CHAIN: _Curve = ((1, 1.0), (2, 1.72), (4, 2.75), (8, 3.62), (12, 3.74), (16, 3.7), (32, 3.2))
"""Acceptance length of a chain (DFLASH without a tree) by block size."""
_BLOCK: _Curve = (
    (1, 0.25),
    (2, 0.42),
    (4, 0.76),
    (6, 0.93),
    (8, 1.0),
    (10, 1.01),
    (16, 0.97),
    (32, 0.8),
)
_TOPK: _Curve = ((1, 0.86), (2, 0.95), (4, 0.99), (8, 1.0), (64, 1.0))
_WINDOW: _Curve = ((256, 0.92), (512, 0.96), (1024, 0.985), (2048, 1.0), (8192, 1.004))
_WINDOW_COST: _Curve = ((256, 0.99), (2048, 1.0), (8192, 1.015))
"""Time of a pass by the drafter's window: it reads so many tokens of its cache."""
_PREFILL_TOKENS_PER_SECOND = 4200.0


def _at(curve: _Curve, x: float) -> float:
    """Linear interpolation, flat outside."""
    index = bisect_left([point[0] for point in curve], x)
    if index == 0:
        return curve[0][1]
    if index == len(curve):
        return curve[-1][1]
    (x0, y0), (x1, y1) = curve[index - 1], curve[index]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


class SpeedModel:
    """Speed and acceptance of one configuration."""

    def __init__(self, config: EngineConfig, rng: random.Random) -> None:
        self._rng = rng
        self.horizon = min(config.block_size - 1, config.budget)
        """The most drafts that a pass can accept: a path of the tree is no longer than its nodes,
        and no deeper than the block."""
        if config.algorithm == "DDTREE":
            mean = _at(_ACCEPTED, config.budget) * _at(_BLOCK, config.block_size)
            mean *= _at(_TOPK, config.topk) * _at(_WINDOW, config.window or 8192)
        elif config.algorithm:
            mean = _at(_CHAIN, config.block_size) * _at(_WINDOW, config.window or 8192)
        else:
            mean = 1.0
        # A fresh server never gives quite the same figures as the one before it.
        mean *= rng.uniform(0.99, 1.01) if config.algorithm else 1.0
        self.acceptance_length = max(1.0, min(mean, float(self.horizon + 1)))
        self.pass_seconds = _at(_PASS_MS, config.budget if config.algorithm else 0) / 1000
        self.pass_seconds *= 1 + 0.002 * (config.block_size - 8) if config.algorithm else 1.0
        self.pass_seconds *= _at(_WINDOW_COST, config.window or 8192) if config.algorithm else 1.0
        self.pass_seconds *= rng.uniform(0.992, 1.008)
        self._chance = self._solve(self.acceptance_length)

    def step_seconds(self, running: int) -> float:
        """Seconds of one decode iteration with `running` requests in the batch."""
        return self.pass_seconds * (1 + 0.055 * max(0, running - 1))

    def prefill_seconds(self, tokens: int) -> float:
        """Seconds to read `tokens` new prompt tokens."""
        return 0.045 + tokens / _PREFILL_TOKENS_PER_SECOND

    def accepted(self, ease: float = 1.0, luck: random.Random | None = None) -> int:
        """Drafts accepted in one pass; `ease` is how predictable this request is (1 = usual)."""
        rng = luck or self._rng
        chance, count = min(0.995, self._chance * ease), 0
        # One draw a pass: with equal luck a better configuration never accepts less.
        drawn, reached = rng.random(), chance
        while count < self.horizon and drawn < reached:
            count, reached = count + 1, reached * chance
        return count

    def _solve(self, mean: float) -> float:
        """The chance a draft is accepted for which a pass emits `mean` tokens."""
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            if sum(middle**k for k in range(self.horizon + 1)) < mean:
                low = middle
            else:
                high = middle
        return (low + high) / 2
