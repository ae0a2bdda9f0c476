"""Which configuration is the fastest, for whoever reads only one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.experiments.comparison import Standing, standing_of
from ddtui.experiments.intervals import ratio
from ddtui.experiments.rows import Row
from ddtui.experiments.wording import difference_interval, rate

_NAMED = 3
"""Configurations that are named beside it."""


def fastest_words(rows: Sequence[Row], margin: float) -> list[str]:
    """Of each kind of work of which two are compared: the fastest, and what equals it."""
    compared: dict[str, list[Row]] = {}
    for row in rows:
        told = row.comparison.standing not in {Standing.NOT_COMPARED, Standing.UNCLEAR}
        if row.rate is not None and told:
            compared.setdefault(row.work, []).append(row)
    return [
        f"{_of_work(found, margin)}{f' ({work})' if len(compared) > 1 else ''}"
        for work, found in compared.items()
        if len(found) > 1
    ]


def _of_work(compared: Sequence[Row], margin: float) -> str:
    # One of more tok/s whose repeats scatter may be no faster that can be told.
    faster = [row for row in compared if row.comparison.standing is Standing.FASTER]
    best = max(faster, key=lambda row: row.rate.median if row.rate else 0.0, default=None)
    if best is None:
        return "nothing is faster than the baseline by more than can be told"
    like = [
        row.title
        for row in compared
        if row is not best and standing_of(ratio(row.rate, best.rate), margin) is Standing.TIE
    ]
    found = best.comparison
    gain = difference_interval(found.user_rate if found.by == "user" else found.total_rate)
    of = "per user" if found.by == "user" else "in total"
    speed = rate(best.rate.median if best.rate is not None else None)
    more = f" and {len(like) - _NAMED} more" if len(like) > _NAMED else ""
    rest = f"; not to be told from it: {', '.join(like[:_NAMED])}{more}" if like else ""
    return f"fastest: {best.title}: {speed} tok/s {of}, {gain} against the baseline{rest}"
