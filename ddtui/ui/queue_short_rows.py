"""A host's queue in short, for the monitor: in one line, or in a few."""

from __future__ import annotations

from ddtui.core.experiment import ExperimentState
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row
from ddtui.ui.queue_rows import eta_row, look_of, progress_words, state_words, time_words
from ddtui.ui.queue_source import QueueView

_NEXT = 3
"""Experiments that are told of where there is little room."""


def line_row(view: QueueView, width: int, glyphs: Glyphs) -> Row:
    """The queue in one line: what runs or comes next, how many wait, when all is done."""
    row = Row(" Queue ", Ink.TITLE)
    if view.settings.paused:
        row.add(" PAUSED ", Ink.WARN_BADGE).add(" ")
    going_on = view.in_state(ExperimentState.RUNNING, ExperimentState.PENDING)
    if going_on:
        first = going_on[0]
        symbol, ink = look_of(first, glyphs)
        running = first.state is ExperimentState.RUNNING
        row.add(f"{symbol} ", ink).add(f"{state_words(first)} " if running else "", ink)
        row.add(first.title, Ink.STRONG if running else Ink.TEXT)
    elif held := len(view.in_state(ExperimentState.HELD)):
        row.add(f"{held} held", Ink.LABEL)
    right = Row(f"  +{len(going_on) - 1}  " if len(going_on) > 1 else "  ", Ink.LABEL)
    return row.with_right(right.extend(eta_row(view, None)).add(" "), width)


def short_rows(
    view: QueueView, now: float, width: int, glyphs: Glyphs, height: int = 0
) -> list[Row]:
    """The queue in short: what runs, the next two or as many as have room, when all is done."""
    rows = []
    going_on = view.in_state(ExperimentState.RUNNING, ExperimentState.PENDING)
    told = max(_NEXT, height - 1 - (view.run.progress is not None))
    for each in going_on[:told]:
        symbol, ink = look_of(each, glyphs)
        words, time_ink = time_words(each, view)
        row = Row(f"{symbol} ", ink)
        if each.state is ExperimentState.RUNNING:
            row.add(f"{state_words(each)} ", ink)
        row.add(each.title, Ink.STRONG if each.state is ExperimentState.RUNNING else Ink.TEXT)
        rows.append(row.with_right(Row(words, time_ink), width))
        progress = view.run.progress if each.state is ExperimentState.RUNNING else None
        if progress is not None:
            rows.append(Row("  ").add(progress_words(progress), Ink.LABEL).cut(width))
    more = len(going_on) - told
    held = len(view.in_state(ExperimentState.HELD))
    rest = [f"{more} more"] * (more > 0) + [f"{held} held"] * bool(held)
    last = Row(", ".join(rest), Ink.LABEL)
    total = eta_row(view, now if width >= 60 else None)
    rows.append(last.with_right(total, width) if rest else total.cut(width))
    return rows
