"""Plans, changes and their records, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ddtui.cli.output import Paint, clean, folded, narrowed, table, terminal_width
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Change, ChangeKind, Finding, Level, Plan
from ddtui.core.local_time import in_local_time, moment
from ddtui.core.redact import redact_mapping
from ddtui.engines.sglang.dialects import named

_COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
_GIVE = (
    *(("CHANGES", 40), ("SECONDS", 0), ("WHO", 0), ("CHANGES", 24), ("CHANGE", 0)),
    *(("ENDED", 16), ("CHANGES", 12)),
)
"""How the columns of the history give way where there is no room."""
_INDENT = 7
"""Columns before what goes on from the line above."""
_ENDINGS = {"in force": "green", "rolled back": "yellow"}


def plan_lines(plan: Plan, paint: Paint) -> Iterator[str]:
    """Every changed flag and variable, before and after, then what was found."""
    if plan.back_to:
        width = terminal_width()
        yield from folded(f"back to {clean(in_local_time(plan.back_to))}", width, _INDENT)
        if plan.undoes:
            words = f"{'':{_INDENT}}undoes {clean(in_local_time(plan.undoes))}"
            yield from folded(words, width, _INDENT)
    if plan.changes:
        rows = [("", "BEFORE", "AFTER", "")]
        for each in plan.changes:
            name = f"--{each.name}" if each.kind is ChangeKind.FLAG else each.name
            knob = f"({each.knob})" if each.knob else ""
            rows.append((name, _value(each.before), _value(each.after), knob))
        yield from table(rows)
    else:
        yield "no flag and no variable changes"
    yield from finding_lines(plan.findings, paint)


def finding_lines(findings: Sequence[Finding], paint: Paint) -> Iterator[str]:
    """What was found, each with its reason and its remedy."""
    width = terminal_width()
    for finding in findings:
        level = paint(finding.level.value, _COLOURS[finding.level])
        yield from folded(f"{level}: {clean(finding.text)}", width, _INDENT)
        if finding.reason:
            yield from folded(f"{'':{_INDENT}}{clean(finding.reason)}", width, _INDENT)
        yield from _lines(finding.remedy)


def _lines(text: str) -> Iterator[str]:
    """Each line by itself: they may be meant for a file."""
    for line in text.splitlines():
        yield f"       {clean(line)}"


def _value(value: str | None) -> str:
    return "-" if value is None else clean(value)


def plan_report(plan: Plan) -> dict[str, Any]:
    """A plan for JSON: what changes and what was found. Secrets were removed when it was made."""
    return {
        "blocked": plan.blocked,
        "restart_due": plan.restart_due,
        "back_to": plan.back_to,
        "undoes": plan.undoes,
        "changes": [msgspec.to_builtins(each) for each in plan.changes],
        "findings": [msgspec.to_builtins(each) for each in plan.findings],
    }


def not_begun(why: str, remedy: str = "", *, plan: Plan | None = None) -> dict[str, Any]:
    """A change that was not begun, for JSON: why, and its plan where there is one."""
    told = {"ending": "not begun", "why": clean(why), "remedy": remedy}
    return told if plan is None else {**told, **plan_report(plan)}


def record_lines(record: ChangeRecord, paint: Paint) -> Iterator[str]:
    """How a change ended: each change proved or not, the cause, the time of each step."""
    seconds = (record.ended or record.began) - record.began
    ending = record.ending or "not ended"
    style = "yellow" if record.doubt else _ENDINGS.get(ending, "red")
    title = paint(clean(record.ended_as), style, "bold")
    yield f"{record.unit}: {title} after {seconds:.0f} s"
    if back_to := record.state.back_to:
        yield f"       back to {clean(in_local_time(back_to))}"
    rows = [
        (
            f"--{each['name']}" if each["kind"] == "flag" else str(each["name"]),
            _value(each["requested"]),
            _value(each["resolved"]),
            str(each["outcome"]),
            clean(each.get("reason", "")),
        )
        for each in record.proofs
    ]
    if rows:
        yield from table([("", "REQUESTED", "RESOLVED", "OUTCOME", ""), *rows])
    if record.doubt and record.evidence:
        yield "readiness was proved by:"
        for each in record.evidence:
            yield f"       {each['name']} {each['verdict']}: {clean(str(each['detail']))}"
    if record.cause:
        yield f"cause: {clean(str(record.cause.get('title', '')))}"
        for line in record.cause.get("evidence", ()):
            yield f"       | {clean(str(line))}"
        yield from _lines(str(record.cause.get("remedy") or ""))
    yield "  ".join(f"{step} {took:.1f} s" for step, took in record.phases() if took >= 0.05)


def record_report(record: ChangeRecord) -> dict[str, Any]:
    """A record for JSON, without the texts of drop-ins (they may hold the unit's secrets)."""
    plain = msgspec.to_builtins(record)
    plain["back_to"] = record.state.back_to
    for name in ("drop_in", "before_drop_in", "state"):
        del plain[name]
    # Records of earlier versions may hold a flag's secret as it was asked for.
    plain["request"] = redact_mapping(plain["request"])
    plain["seconds"] = None if record.ended is None else record.ended - record.began
    plain["phases"] = [{"step": step, "seconds": took} for step, took in record.phases()]
    return dict(plain)


def history_lines(records: Sequence[ChangeRecord], width: int | None = None) -> Iterator[str]:
    """One line a change, the newest first, cut to `width` columns."""
    head = ("WHEN", "CHANGE", "WHO", "WHAT", "CHANGES", "ENDED", "SECONDS")
    give = [(head.index(name), least) for name, least in _GIVE]
    shown, *rows = narrowed([head, *map(_row, records)], width, give)
    yield from table([shown, *rows], right=[n for n, name in enumerate(shown) if name == "SECONDS"])


def _row(record: ChangeRecord) -> tuple[str, ...]:
    first = map(named, msgspec.convert(record.changes[:4], list[Change]))
    changes = ", ".join(
        f"{each.knob or each.name} {_value(each.before)} → {_value(each.after)}" for each in first
    )
    more = f" and {len(record.changes) - 4} more" if len(record.changes) > 4 else ""
    return (
        moment(record.began),
        clean(record.id[:8]),
        clean(record.who),
        f"{record.kind} {clean(record.preset)}".strip(),
        changes + more,
        clean(record.ended_as),
        "" if record.ended is None else f"{record.ended - record.began:.0f}",
    )


def simulated_note(records: Sequence[ChangeRecord]) -> str:
    """On how many simulated hosts changes were made, and what became of those."""
    hosts = {record.state.process or record.id for record in records}
    if len(hosts) > 1:
        words = f"made on {len(hosts)} simulated hosts, each of which lives as long as its command"
    else:
        words = "made on a simulated host that lives as long as its command"
    open_ones = any(not record.ending for record in records)
    return words + ("; what has not ended by then never does" if open_ones else "")
