"""What SGLang's progress bars stand for."""

from __future__ import annotations

import re
from typing import NamedTuple

from ddtui.core.bounded import bounded_float, bounded_int
from ddtui.core.journal_text import BAR

_SCALE = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}

_MOST_PARTS = 4
"""Of a duration: days, hours, minutes, seconds."""

_WEIGHTS = re.compile(
    r"(?:Multi-thread loading (?:pt )?|Loading \w+(?: checkpoint)? |Loading safetensors using )"
)
_GRAPHS = (
    "Capturing batches",
    "Capturing num tokens",
    "Capturing prefill shape",
    "Compiling num tokens",
    "DeepGEMM warmup",
)


class Bar(NamedTuple):
    """One state of a progress bar."""

    label: str
    done: int
    total: int
    elapsed: float | None
    """Seconds by the bar's own clock."""

    @property
    def is_weights(self) -> bool:
        """Whether it counts the shards of a model that is being loaded."""
        return _WEIGHTS.match(self.label) is not None

    @property
    def is_graphs(self) -> bool:
        """Whether it counts captured graphs or compiled kernels."""
        return self.label.startswith(_GRAPHS)


def read_bar(text: str) -> Bar | None:
    """The bar at the start of a line; None where there is none, or one without a known end."""
    match = BAR.match(text)
    if match is None or match["total"] is None:
        return None
    done, total = _count(match["done"]), _count(match["total"])
    if done is None or total is None:
        return None
    label = match["label"].removesuffix(":").strip()
    return Bar(label, done, total, _seconds(match["elapsed"]))


def _count(text: str) -> int | None:
    number = bounded_float(text.rstrip("kMGTP"))
    return None if number is None else round(number * _SCALE.get(text[-1], 1))


def _seconds(text: str) -> float | None:
    total = 0
    parts = text.split(":")
    if len(parts) > _MOST_PARTS:
        return None
    for part in parts:
        number = bounded_int(part)
        if number is None:
            return None
        total = total * 60 + number
    return float(total)
