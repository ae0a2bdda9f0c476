"""Knobs of results: which differ, how their values are ordered, and what is equal beside one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ddtui.core.knobs import KNOBS, NONE

Knobs = Mapping[str, str]

TIED = {"block_size": ("draft_tokens", "steps")}
"""Knobs that follow another one, and so do not count as different beside it."""

_ORDER = {name: place for place, name in enumerate(KNOBS)}


def varying_knobs(rows: Iterable[Knobs]) -> tuple[str, ...]:
    """Knobs with more than one value, speculation first. One that a row lacks is `none` there.

    What only follows another one (`TIED`) is left out.
    """
    found = list(rows)
    names = sorted({name for row in found for name in row}, key=_place)
    varying = [name for name in names if len({value_of(row, name) for row in found}) > 1]
    return tuple(name for name in varying if not _follows(name, varying, found))


def _follows(name: str, varying: Sequence[str], rows: Sequence[Knobs]) -> bool:
    """Whether a knob only follows another one that varies, and so tells nothing beside it."""
    for leader, followers in TIED.items():
        if name in followers and leader in varying:
            pairs = {(value_of(row, leader), value_of(row, name)) for row in rows}
            return len(pairs) == len({value for value, _ in pairs})
    return False


def value_of(knobs: Knobs, name: str) -> str:
    """A knob's value; `none` where it is not set."""
    return knobs.get(name) or NONE


def says(title: str, name: str, value: str) -> bool:
    """Whether a title tells a knob's value."""
    return f" {name} {value} " in f" {title} "


def numeric(value: str) -> float | None:
    """A value as a number, or None."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def value_order(value: str) -> tuple[bool, float, str]:
    """Key that sorts values: numbers by size, then words."""
    found = numeric(value)
    return (found is None, found or 0.0, value)


def others(knobs: Knobs, name: str, varying: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The other knobs that vary, with their values here: equal where only `name` differs."""
    follows = TIED.get(name, ())
    return tuple(
        (other, value_of(knobs, other))
        for other in varying
        if other != name and other not in follows
    )


def in_words(pairs: Iterable[tuple[str, str]]) -> str:
    """`budget 8, topk 4`."""
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _place(name: str) -> tuple[int, str]:
    return (_ORDER.get(name, len(_ORDER)), name)
