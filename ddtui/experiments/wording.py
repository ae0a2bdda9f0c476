"""Figures of results in words: of one style in tables, reports and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ddtui.core.measurement import Spread
from ddtui.experiments.intervals import Ratio

NOTHING = "–"
"""What was not measured; never a zero."""


def number(value: float | None) -> str:
    """A figure with three or four digits that tell: 4.81, 32.3, 149, 1240."""
    if value is None:
        return NOTHING
    size = abs(value)
    return f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def rate(value: float | None) -> str:
    """Tokens per second: 9.7, 147.5, 1240."""
    return NOTHING if value is None else f"{value:.{1 if abs(value) < 999.95 else 0}f}"


def milliseconds(value: float | None) -> str:
    """Seconds as milliseconds, without the unit."""
    return NOTHING if value is None else number(value * 1000)


def seconds(value: float | None) -> str:
    """Seconds as whole seconds, without the unit."""
    return NOTHING if value is None else f"{value:.0f}"


def percent(share: float | None) -> str:
    """A share: 32 %."""
    return NOTHING if share is None else f"{share * 100:.0f} %"


def factor(found: Ratio | None) -> str:
    """A ratio: ×1.12."""
    return NOTHING if found is None else f"×{found.value:.2f}"


def difference(found: Ratio | None) -> str:
    """A ratio as what is more or less: -12.4 %."""
    return NOTHING if found is None else f"{(found.value - 1) * 100:+.1f} %"


def difference_interval(found: Ratio | None) -> str:
    """The same with its interval: -12.4 % [-14.1, -10.6]."""
    if found is None or found.low is None or found.high is None:
        return difference(found)
    low, high = ((bound - 1) * 100 for bound in (found.low, found.high))
    return f"{difference(found)} [{low:+.1f}, {high:+.1f}]" if high < 1e4 else difference(found)


def half_width(figure: Spread | None) -> str:
    """How far the interval reaches from the median, at most: ±1.2. A single repeat has none."""
    if figure is None or not figure.low < figure.high:
        return NOTHING
    return f"±{number(max(figure.high - figure.median, figure.median - figure.low))}"


def gpus_in_words(names: Sequence[str]) -> str:
    """GPUs in short: 8 x NVIDIA H200."""
    return ", ".join(f"{count} x {name}" for name, count in Counter(names).items())
