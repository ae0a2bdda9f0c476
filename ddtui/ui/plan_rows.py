"""A plan as rows: what changes, what speaks against it, and what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ddtui.core.launch import Change, ChangeKind, Finding, Level, Plan, Request, Value
from ddtui.core.redact import redact_mapping
from ddtui.core.text import counted
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, lines_of, wrapped

NOT_SET = "not set"
_MOST_TEXT = 2_000


def shown_name(change: Change) -> str:
    """A flag with its dashes, or a variable."""
    return f"--{change.name}" if change.kind is ChangeKind.FLAG else change.name


def verdict_row(plan: Plan, glyphs: Glyphs) -> Row:
    """Whether a plan can be applied, in one line: by word and symbol, also without colour."""
    errors = sum(each.level is Level.ERROR for each in plan.findings)
    warnings = sum(each.level is Level.WARNING for each in plan.findings)
    if errors:
        row = Row(f"{glyphs.failed} BLOCKED", Ink.BAD).add(f"  {counted(errors, 'error')}", Ink.BAD)
    elif plan.restart_only:
        row = Row(f"{glyphs.ok} nothing to write: a restart is needed", Ink.GOOD)
    elif not plan.changes:
        return Row(f"{glyphs.ok} nothing to change: the unit is configured like this", Ink.GOOD)
    else:
        row = Row(f"{glyphs.ok} can be applied", Ink.GOOD)
    if warnings:
        row.add(f"  {glyphs.warn} {counted(warnings, 'warning')}", Ink.WARN)
    return row


def change_rows(
    changes: Iterable[Change],
    width: int,
    glyphs: Glyphs,
    report: Mapping[str, object] | None = None,
) -> list[Row]:
    """Every change: name, before, after, and the knob that it comes from.

    `report` are the arguments that the running server says are in force, by name with underscores:
    where they differ from what the unit's command sets, that is shown too.
    """
    changes = list(changes)
    names = [fmt.clean(shown_name(each)) for each in changes]
    column = min(max((len(name) for name in names), default=0), max(12, width // 2))
    rows: list[Row] = []
    for change, name in zip(changes, names, strict=True):
        before, after = _value(change.before), _value(change.after)
        before += _reported(change, report)
        knob = f"  ({fmt.clean(change.knob)})" if change.knob else ""
        row = Row().put(name, column, Ink.STRONG).add("  ").add(before, Ink.LABEL)
        row.add(f" {glyphs.arrow} ", Ink.LABEL).add(after, Ink.BUSY)
        if row.width + len(knob) <= width and len(name) <= column:
            rows.append(row.add(knob, Ink.LABEL))
        else:
            rows += wrapped(name + knob, width, Ink.STRONG)
            rows += _below(before, after, width, glyphs)
        if change.note:
            rows += wrapped(change.note, width, Ink.LABEL, indent=2)
    return rows


def _below(before: str, after: str, width: int, glyphs: Glyphs) -> list[Row]:
    """Before and after under the name: in one line if they fit."""
    row = Row(f"  {before}", Ink.LABEL).add(f" {glyphs.arrow} ", Ink.LABEL).add(after, Ink.BUSY)
    if row.width <= width:
        return [row]
    rows = wrapped(before[:_MOST_TEXT], width, Ink.LABEL, indent=2)
    return rows + wrapped(f"{glyphs.arrow} {after}"[:_MOST_TEXT], width, Ink.BUSY, indent=2)


def _value(value: str | None) -> str:
    return NOT_SET if value is None else fmt.clean(value) or '""'


def _reported(change: Change, report: Mapping[str, object] | None) -> str:
    """What the server says is in force, where the unit's command says something else."""
    if change.kind is not ChangeKind.FLAG or not report:
        return ""
    key = change.name.replace("-", "_")
    if key not in report or report[key] is None:
        return ""
    so = fmt.clean(str(report[key]))
    if change.before is not None and so.lower() == change.before.lower():
        return ""
    return f" (in force: {so[:40]})"


def finding_rows(findings: Sequence[Finding], width: int, glyphs: Glyphs) -> list[Row]:
    """Every finding with its reason and remedy, errors first."""
    order = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}
    rows: list[Row] = []
    for finding in sorted(findings, key=lambda each: order[each.level]):
        symbol, word, ink = {
            Level.ERROR: (glyphs.failed, "ERROR", Ink.BAD),
            Level.WARNING: (glyphs.warn, "WARNING", Ink.WARN),
            Level.NOTE: ("i", "NOTE", Ink.LABEL),
        }[finding.level]
        text = Ink.LABEL if finding.level is Level.NOTE else Ink.TEXT
        first, *rest = wrapped(finding.text, width - len(word) - 3, text)
        rows.append(Row(f"{symbol} {word} ", ink).extend(first))
        rows += [Row(" " * (len(word) + 3)).extend(each) for each in rest]
        if finding.reason:
            rows += wrapped(f"why: {finding.reason}", width, Ink.LABEL, indent=2)
        if finding.remedy:
            rows += lines_of(f"do: {finding.remedy}", width, indent=2)
    return rows


def asked_rows(request: Request, own: Request, width: int) -> list[Row]:
    """What a request sets: knobs, flags, variables. What is in `own` was set by hand."""
    lines: list[tuple[str, Value, bool]] = []
    lines += [(name, value, name in own.knobs) for name, value in request.knobs.items()]
    flags: Mapping[str, object] = redact_mapping(request.flags)
    lines += [(f"--{n}", _plain(flags[n]), n in own.flags) for n in request.flags]
    variables: Mapping[str, object] = redact_mapping(request.environment)
    lines += [(n, _plain(variables[n]), n in own.environment) for n in request.environment]
    column = min(max((len(name) for name, _, _ in lines), default=0), max(12, width // 2))
    rows: list[Row] = []
    for name, value, by_hand in lines:
        row = Row().put(name, column, Ink.LABEL).add("  ").add(_asked(value))
        rows.append((row.add("  set here", Ink.WARN) if by_hand else row).cut(width))
    return rows


def _plain(value: object) -> Value:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _asked(value: Value) -> str:
    if value is None:
        return "taken away"
    return ("true" if value else "false") if isinstance(value, bool) else fmt.clean(str(value))
