"""The columns that tables of results have, as text: in the terminal, and in the report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ddtui.experiments.comparison import Standing
from ddtui.experiments.knob_values import says, value_of
from ddtui.experiments.results import ResultsView, Row
from ddtui.experiments.rows import Mark
from ddtui.experiments.wording import (
    NOTHING,
    difference,
    factor,
    half_width,
    milliseconds,
    number,
    percent,
    rate,
    seconds,
)

_LONGEST = 56
"""Characters of the work in a table; other forms have all of it."""


class Column(msgspec.Struct, frozen=True):
    """One column, with a text for every row."""

    title: str
    texts: tuple[str, ...]
    weight: int = 0
    """What is left out first where there is no room: the highest. 0 stays."""
    right: bool = True
    """Set to the right, as figures are."""


_Text = Callable[[Row], str]


def columns_of(view: ResultsView) -> list[Column]:
    """The columns that hold something, from left to right."""
    found = []
    for title, weight, right, text in _columns(view):
        texts = tuple(text(row) for row in view.rows)
        if not weight or any(each not in {"", NOTHING} for each in texts):
            found.append(Column(title, texts, weight, right))
    return found


def verdict_word(row: Row) -> str:
    """The verdict in a word: `failed` where there is nothing to judge."""
    if row.state == "failed":
        return "failed"
    return NOTHING if row.comparison.standing is Standing.NOT_COMPARED else row.comparison.standing


def marks_of(row: Row) -> str:
    """What to know before trusting a row, in a few words."""
    found = [str(mark) for mark in Mark if any(flag.startswith(mark) for flag in row.flags)]
    if row.cell is not None and (row.cell.failed or row.cell.stalled):
        found.append(f"{row.cell.failed + row.cell.stalled} requests lost")
    if row.coding is not None and row.coding.isolation != "isolated":
        found.append(f"coding {row.coding.isolation}")
    return ", ".join(found)


def coding_share(row: Row) -> str:
    """Bounds of the share of coding tasks that pass: 38–96 %."""
    if row.coding is None:
        return NOTHING
    return f"{row.coding.low * 100:.0f}–{row.coding.high * 100:.0f} %"


def _columns(view: ResultsView) -> Iterator[tuple[str, int, bool, _Text]]:
    yield "configuration", 0, False, lambda row: row.title
    for knob in view.varying:
        if not _told_by_titles(view, knob):
            yield knob, 4, True, lambda row, knob=knob: _knob(row, knob)  # type: ignore[misc]
    if len({row.work for row in view.rows}) > 1:
        yield "work", 6, False, lambda row: _without_middle(row.work)
    yield "tok/s/user", 0, True, lambda row: rate(_median(row, "user_rate"))
    yield "±", 4, True, lambda row: half_width(row.user_rate).removeprefix("±")
    yield "Δ", 2, True, _difference
    yield "verdict", 0, False, verdict_word
    yield "accept", 1, True, lambda row: number(_median(row, "acceptance_length"))
    yield "accept×", 3, True, lambda row: factor(row.comparison.acceptance)
    yield "step ms", 1, True, lambda row: milliseconds(_median(row, "step_time"))
    yield "step×", 3, True, lambda row: factor(row.comparison.step_time)
    yield "nodes used", 5, True, lambda row: percent(row.node_use)
    yield "TTFT ms", 6, True, lambda row: milliseconds(_median(row, "ttft"))
    yield "tok/s total", 6, True, lambda row: rate(_median(row, "total_rate"))
    yield "coding", 2, True, _coding
    yield "95 %", 8, True, coding_share
    yield "flips", 5, True, _flips
    yield "load s", 7, True, lambda row: seconds(row.load_seconds)
    yield "marks", 1, False, marks_of
    yield "why", 5, False, _why


def _told_by_titles(view: ResultsView, knob: str) -> bool:
    return all(says(row.title, knob, value_of(row.knobs, knob)) for row in view.rows)


def _without_middle(text: str) -> str:
    """A text of `_LONGEST` at most: commands differ at their ends."""
    if len(text) <= _LONGEST:
        return text
    end = _LONGEST // 3
    return f"{text[: _LONGEST - end - 1]}…{text[-end:]}"


def _knob(row: Row, knob: str) -> str:
    return value_of(row.knobs, knob)


def _median(row: Row, field: str) -> float | None:
    figure = getattr(row, field)
    return None if figure is None else figure.median


def _difference(row: Row) -> str:
    found = row.comparison
    return difference(found.user_rate if found.by == "user" else found.total_rate)


def _coding(row: Row) -> str:
    return NOTHING if row.coding is None else f"{row.coding.passed}/{row.coding.total}"


def _why(row: Row) -> str:
    return "" if row.state == "failed" else row.comparison.brief


def _flips(row: Row) -> str:
    """Tasks gained and lost against the baseline: +1 -0."""
    if row.coding is None or not row.coding.compared:
        return NOTHING
    return f"+{len(row.coding.gained)} -{len(row.coding.lost)}"
