"""One experiment in full, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddtui.core.experiment import ENDED, Experiment, ExperimentState, QueueEvent
from ddtui.core.launch import Plan, Request
from ddtui.core.redact import redact_text
from ddtui.experiments.naming import own_options, short_id
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, lines_of, wrapped
from ddtui.ui.plan_rows import asked_rows, change_rows, finding_rows, verdict_row
from ddtui.ui.queue_rows import look_of, plan_words, result_row, state_words
from ddtui.ui.queue_source import QueueView
from ddtui.ui.source import ControlProblem

_MOST_EVIDENCE = 8
_NAME = 11


@dataclass(frozen=True)
class QueueDetail:
    """What is known of the highlighted experiment."""

    experiment: Experiment | None = None
    plan: Plan | None = None
    """What it changes of the unit as it is configured now."""
    problem: ControlProblem | None = None
    working: bool = False
    log: Sequence[QueueEvent] = ()


def detail_rows(
    detail: QueueDetail,
    view: QueueView,
    width: int,
    glyphs: Glyphs,
    report: Mapping[str, object] | None = None,
) -> list[Row]:
    """All of it: what went wrong first, then what it changes, then where it comes from."""
    each = detail.experiment
    if each is None:
        return []
    rows = [_state_row(each, glyphs)]
    rows += _cause(each, width)
    result = view.results.get(each.id)
    if result is not None:
        row = result_row(result).add(f"  at concurrency {result.concurrency}", Ink.LABEL)
        rows += _section("Result", [row.cut(width)])
    if each.hypothesis:
        rows += _section("Hypothesis", wrapped(each.hypothesis, width))
    if each.note:
        rows += _section("Note", wrapped(each.note, width))
    if each.id in view.moved:
        words = "! another configuration than when it was added: what is in force has changed since"
        rows += wrapped(words, width, Ink.WARN)
    if each.state not in ENDED:
        rows += _changes(detail, width, glyphs, report)
    asked = asked_rows(each.request, Request(), width)
    rows += _section("Asks for", asked or [Row("what is in force when the queue begins")])
    rows += _section("Measured by", _plan_rows(each, width))
    if each.match is not None:
        rows += _section("Matched", _match(each, width))
    rows += _section("From", _origin(each, width))
    if detail.log:
        rows += _section("Log", [_event(entry, width) for entry in detail.log])
    return rows


def _section(title: str, rows: Sequence[Row]) -> list[Row]:
    return [Row(), Row(title, Ink.TITLE), *rows]


def _state_row(each: Experiment, glyphs: Glyphs) -> Row:
    symbol, ink = look_of(each, glyphs)
    row = Row(f"{symbol} {state_words(each)}", ink)
    if each.attempts > 1:
        row.add(f"  attempt {each.attempts}", Ink.WARN)
    if each.began is not None:
        end = each.ended if each.state in ENDED else None
        word = "since" if end is None else "begun"
        row.add(f"  {word} {fmt.clock(each.began)}", Ink.LABEL)
        if end is not None:
            row.add(f", took {fmt.duration(end - each.began)}", Ink.LABEL)
    if each.state in ENDED:
        row.add(
            "  measured earlier"
            if each.reused
            else "  the engine was loaded for it"
            if each.reloaded
            else "  without a load",
            Ink.LABEL,
        )
    return row


def _cause(each: Experiment, width: int) -> list[Row]:
    cause = each.cause
    if not cause:
        return []
    rows = wrapped(str(cause.get("title", "")), width, Ink.BAD)
    evidence = cause.get("evidence") or ()
    lines = [evidence] if isinstance(evidence, str) else list(evidence)
    for entry in lines[:_MOST_EVIDENCE]:
        rows += wrapped(f"| {redact_text(str(entry))}", width, Ink.LABEL)
    if remedy := cause.get("remedy"):
        rows += lines_of(f"do: {remedy}", width)
    return _section("Why it failed" if each.state is ExperimentState.FAILED else "Cause", rows)


def _changes(
    detail: QueueDetail, width: int, glyphs: Glyphs, report: Mapping[str, object] | None
) -> list[Row]:
    plan = detail.plan
    title = "Changes of the unit as it is now"
    if detail.problem is not None:
        rows = wrapped(f"not known: {detail.problem.what}", width, Ink.WARN)
        return _section(title, rows + lines_of(detail.problem.remedy, width))
    if plan is None:
        words = "working it out on the host ..." if detail.working else "not worked out"
        return _section(title, [Row(words, Ink.LABEL)])
    rows = [verdict_row(plan, glyphs).cut(width)]
    rows += change_rows(plan.changes, width, glyphs, report)
    if plan.findings:
        rows += [Row(), *finding_rows(plan.findings, width, glyphs)]
    return _section(title, rows)


def _plan_rows(each: Experiment, width: int) -> list[Row]:
    own = own_options(each.plan)
    rows = [Row(plan_words(each) if each.plan.name or own else "the default plan")]
    for name, text in own.items():
        rows.append(Row().put(name, 18, Ink.LABEL).add(text).cut(width))
    return rows


def _match(each: Experiment, width: int) -> list[Row]:
    match = each.match
    if match is None:
        return []
    row = Row(f"{match.knob} {match.value}", Ink.STRONG).add(f"  by {match.policy}", Ink.LABEL)
    rows = [row.cut(width), *wrapped(match.formula, width)]
    return [*rows, *wrapped(f"to match {match.reference}", width, Ink.LABEL)]


def _origin(each: Experiment, width: int) -> list[Row]:
    facts = [
        ("id", short_id(each.id)),
        ("preset", each.request.preset),
        ("sweep", each.sweep + (" (its baseline)" if each.sweep and each.baseline else "")),
        ("like", short_id(each.like)),
        ("added by", f"{each.by}, {fmt.date(each.created)}"),
        ("runner", each.runner.partition(" ")[0]),
    ]
    return [
        Row().put(name, _NAME, Ink.LABEL).add(fmt.clean(value)).cut(width)
        for name, value in facts
        if value
    ]


def _event(entry: QueueEvent, width: int) -> Row:
    row = Row(fmt.clock(entry.at), Ink.LABEL).add("  ").put(entry.what, 12)
    who = entry.who.partition(" ")[0]
    return row.add(f"{who} ", Ink.LABEL).add(redact_text(entry.detail), Ink.LABEL).cut(width)
