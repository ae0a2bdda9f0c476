"""Changes that were made, as lines of a list and in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddtui.core.launch import Change
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, lines_of, wrapped
from ddtui.ui.plan_rows import change_rows
from ddtui.ui.source import ReconfigurationView, StepStatus
from ddtui.ui.widgets.reconfiguration import proof_rows

_WHEN, _ENDED, _TOOK = 19, 13, 9
_MOST_WHO, _LEAST_WHO = 16, 6
_MOST_WHAT = 48
_YEAR = len("2026-")
_SECONDS = len(":07")
"""Of the time, which has them where there is room for who it was."""
_GAP = "  "
_CHANGES = 24
"""Cells from which what was changed has a column."""
_STEP = 13


@dataclass(frozen=True)
class Widths:
    """Of the columns that are as wide as what stands in them."""

    what: int
    who: int
    changes: bool
    """Whether there is room for what was changed; else not for the year either."""


def widths(listed: Sequence[ReconfigurationView], width: int) -> Widths:
    """How `width` cells are shared among the columns of a list."""
    who = min(_MOST_WHO, max((len(fmt.clean(each.who)) for each in listed), default=_LEAST_WHO))
    room = width - _WHEN - _ENDED - _TOOK - 4 * len(_GAP)
    title = max((len(each.title) for each in listed), default=4)
    if room - who - len(_GAP) >= _CHANGES + min(title, _CHANGES):
        most = max(10, (room - who - len(_GAP)) // 2)
        return Widths(min(title, most, _MOST_WHAT), who, True)
    room += _YEAR
    told = max((len(_told(each)) for each in listed), default=4)
    if room < 2 * _MOST_WHO:  # who it was is in the details
        return Widths(max(10, room + len(_GAP) + _SECONDS), 0, False)
    who = max(_LEAST_WHO, min(who, room - told))
    return Widths(max(10, min(told, room - who)), who, False)


def heading(width: int, columns: Widths) -> str:
    """The names of the columns."""
    return _columns(columns, "when", "who", "what", "changes", "ended", "took").cut(width).text


def line(
    view: ReconfigurationView, width: int, glyphs: Glyphs, columns: Widths | None = None
) -> str:
    """One change in one line."""
    columns = columns or widths([view], width)
    row = _columns(
        columns,
        fmt.date(view.began, seconds=bool(columns.who)),
        view.who,
        view.title if columns.changes else _told(view),
        ", ".join(_short(each, glyphs) for each in view.changes),
        f"{_symbol(view, glyphs)} {_ending(view)}",
        "" if view.ended is None else fmt.duration(view.ended - view.began),
    )
    return row.cut(width).text


def _columns(
    columns: Widths, when: str, who: str, what: str, changes: str, ended: str, took: str
) -> Row:
    """The columns in their order."""
    year = 0 if columns.changes else _YEAR
    room = _WHEN - year - (0 if columns.who else _SECONDS)
    row = Row().put(when[year:] if when[0].isdecimal() else when, room).add(_GAP)
    row.put(ended, _ENDED).add(_GAP).put(took, _TOOK).add(_GAP)
    row.put(what, columns.what)
    if columns.who:
        row.add(_GAP).put(who, columns.who)
    return row.add(_GAP).add(changes) if columns.changes else row


def _told(view: ReconfigurationView) -> str:
    """What it is, where no column tells what was changed: a bare kind is told apart by that."""
    if view.preset or view.experiment:
        return view.title
    to = (f"{each.knob or each.name} {_shown(each.after)}" for each in view.changes)
    return fmt.clean(" ".join((view.title, *to)))


def _ending(view: ReconfigurationView) -> str:
    return view.ending or "not ended"


def _symbol(view: ReconfigurationView, glyphs: Glyphs) -> str:
    if view.succeeded:
        return glyphs.ok
    return glyphs.warn if view.ending in {"", "rolled back"} else glyphs.failed


def _short(change: Change, glyphs: Glyphs) -> str:
    """A change in a few words, as wide with any glyphs."""
    name, arrow = change.knob or change.name, ">" if glyphs.ascii else glyphs.arrow
    return fmt.clean(f"{name} {_shown(change.before)} {arrow} {_shown(change.after)}")


def _shown(value: str | None) -> str:
    return "not set" if value is None else value


def record_rows(view: ReconfigurationView, width: int, glyphs: Glyphs) -> list[Row]:
    """One change in full: who, what was asked, how it ended, with the time of each step."""
    ink = Ink.GOOD if view.succeeded else Ink.WARN
    ink = ink if view.ending in {"", "in force", "rolled back"} else Ink.BAD
    ended = Row(f"{_symbol(view, glyphs)} {fmt.clean(_ending(view))}", ink)
    if view.ended is not None:
        ended.add(f"  after {fmt.duration(view.ended - view.began)}", Ink.LABEL)
    rows = [
        ended,
        _fact("when", fmt.date(view.began, seconds=True)),
        _fact("who", view.who),
        _fact("unit", view.unit),
        _fact("what", view.title),
    ]
    if view.cause:
        rows += _section("Cause", wrapped(view.cause, width, Ink.BAD))
        for each in view.evidence:
            rows += lines_of(f"| {each}", width, Ink.LABEL)
        rows += lines_of(f"do: {view.remedy}", width) if view.remedy else []
    if view.changes:
        rows += _section("Asked for", change_rows(view.changes, width, glyphs))
    else:
        rows += _section("Asked for", [Row("nothing of its configuration changes")])
    if view.proofs:
        rows += _section("Came into force", proof_rows(view, glyphs, width))
    return rows + _section("Steps", _step_rows(view, width, glyphs))


def _fact(name: str, value: str) -> Row:
    return Row().put(name, 6, Ink.LABEL).add(fmt.clean(value) or fmt.NOTHING)


def _section(title: str, rows: Sequence[Row]) -> list[Row]:
    return [Row(), Row(title, Ink.TITLE), *rows]


def _step_rows(view: ReconfigurationView, width: int, glyphs: Glyphs) -> list[Row]:
    rows = []
    for step in view.steps:
        if step.began is None:
            continue  # it never came to that
        bad = step.status is StepStatus.FAILED
        symbol, ink = (glyphs.failed, Ink.BAD) if bad else (glyphs.ok, Ink.GOOD)
        row = Row(f"{symbol} ", ink).put(fmt.clean(step.name), _STEP).add(" ")
        row.put(fmt.clock(step.began), 9, Ink.LABEL)
        row.put(fmt.seconds(step.seconds), 10, right=True)
        detail = fmt.clean(step.detail)
        if row.width + 2 + len(detail) <= width:
            rows.append(row.add(_GAP).add(detail, Ink.LABEL))
        else:
            rows += [row, *wrapped(detail, width, Ink.LABEL, indent=4)]
    return rows
