"""A sweep that was worked out, as text and as JSON. Nothing of it holds a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ddtui.cli.output import Paint, clean, narrowed, table, wrapped
from ddtui.core.bench_plan import short_name
from ddtui.core.redact import safe_text
from ddtui.core.spans import about
from ddtui.core.sweep import DEFAULT_POLICY, Sweep
from ddtui.core.text import counted
from ddtui.experiments.eta import Leg
from ddtui.experiments.grid import MatchRow
from ddtui.experiments.naming import redacted
from ddtui.experiments.plan_sweep import Planned
from ddtui.experiments.worked import Worked, blocked_titles, by_reason

_GIVE = ((4, 24), (1, 32), (4, 0), (1, 12))
"""How the columns of the plan give way: what is said of each, then the title."""
_MOST_ROWS = 100
"""Lines of one table; the rest is counted. JSON has all."""


def duration(seconds: float | None) -> str:
    """`1 h 05 m`, `12 m`, `45 s`; `?` for what is not known."""
    return "?" if seconds is None else about(seconds)


# ---- text ----------------------------------------------------------------------------------------


def sweep_lines(worked: Worked, paint: Paint, width: int | None = None) -> Iterator[str]:
    """What the sweep would do, in at most `width` columns."""
    yield from _counted(worked, paint)
    yield from match_lines(worked.expansion.matches, worked.sweep, paint, width)
    if worked.arranged.runs:
        yield ""
        yield from _runs(worked, paint, width)
    yield from _left_out(worked, paint, width)
    yield ""
    for line in _totals(worked):
        yield from wrapped(line, width)


def _told(kind: str, colour: str, text: str, paint: Paint, width: int | None) -> Iterator[str]:
    """A sentence that begins with its kind: `warning: ...`."""
    first, *more = wrapped(f"{kind}: {text}", width)
    yield paint(kind, colour) + first.removeprefix(kind)
    yield from more


def _counted(worked: Worked, paint: Paint) -> Iterator[str]:
    found = worked.expansion
    runs, blocked = len(worked.arranged.runs), len(worked.arranged.blocked)
    name = worked.sweep.name or "grid"
    simulated = " (simulated)" if worked.simulated else ""
    title = paint(f"{clean(worked.host)}{simulated}: {name}", "bold")
    yield f"{title}: {runs} to run, {blocked} blocked, of {counted(found.total, 'combination')}"
    if worked.sweep.description:
        yield clean(worked.sweep.description)
    for condition, count in found.excluded.items():
        yield f"  {count} taken out by: {clean(condition)}"
    for condition, count in found.unjudged.items():
        yield f"  {count} kept, as they leave a setting to the server: {clean(condition)}"
    if found.duplicates:
        yield f"  {found.duplicates} came out like another one"


def match_lines(
    rows: Sequence[MatchRow], sweep: Sweep, paint: Paint, width: int | None = None
) -> Iterator[str]:
    """Every policy's budgets side by side, with the formula of the last one."""
    chosen = sweep.match.policy if sweep.match is not None else DEFAULT_POLICY
    for group in _groups(rows):
        last = group[-1]
        topks = sorted({str(row.topk) for row in rows if _like(row, group)})
        topk = "" if topks == ["None"] else f", topk {', '.join(topks)}"
        yield ""
        yield (
            f"budgets for block size {last.block_size}, to match block size"
            f" {last.reference.block_size}{topk}:"
        )
        head = ("", "POLICY", *(str(row.reference.budget) for row in group))
        body = [
            (
                "*" if policy.policy == chosen else "",
                policy.policy,
                *(_value(row.policies[at].value) for row in group),
                policy.formula or "; ".join(policy.errors),
                policy.keeps,
            )
            for at, policy in enumerate(last.policies)
        ]
        formula = f"FORMULA, for {last.reference.budget}"
        right = range(2, 2 + len(group))
        at = 2 + len(group)
        shown = narrowed([(*head, formula, "KEEPS"), *body], width, ((at + 1, 0), (at, 12)))
        lines = table(shown, right=right)
        yield lines[0]
        for line, cells in zip(lines[1:], body, strict=True):
            yield paint(line, "bold") if cells[0] else line
        for warning, budgets in _warnings(group, chosen).items():
            each = "each of them" if len(budgets) == len(group) > 1 else ", ".join(budgets)
            yield from _told("warning", "yellow", f"{each}: {warning}", paint, width)


def _warnings(group: Sequence[MatchRow], chosen: str) -> dict[str, list[str]]:
    """What to look out for with the chosen policy, and the budgets of which it is said."""
    told: dict[str, list[str]] = {}
    for row in group:
        found = next(each for each in row.policies if each.policy == chosen)
        for warning in found.warnings:
            of = f"budget {row.reference.budget} -> {found.value}"
            told.setdefault(clean(warning), []).append(of)
    return told


def _value(value: int | None) -> str:
    return "-" if value is None else str(value)


def _groups(rows: Sequence[MatchRow]) -> list[list[MatchRow]]:
    """Rows of one block size and width; a width that changes no value is not shown again."""
    found: dict[tuple[int, int, int | None], list[MatchRow]] = {}
    for row in rows:
        key = (row.reference.block_size, row.block_size, row.topk)
        found.setdefault(key, []).append(row)
    result: list[list[MatchRow]] = []
    for group in found.values():
        if not any(_values(each) == _values(group) for each in result):
            result.append(group)
    return result


def _values(group: Sequence[MatchRow]) -> list[object]:
    return [
        (
            *(row.reference.block_size, row.reference.budget, row.block_size),
            *(each.value for each in row.policies),
        )
        for row in group
    ]


def _like(row: MatchRow, group: Sequence[MatchRow]) -> bool:
    return any(_values([row]) == _values([each]) for each in group)


def _runs(worked: Worked, paint: Paint, width: int | None) -> Iterator[str]:
    rows = []
    for at, (each, leg) in enumerate(zip(worked.arranged.runs, worked.legs, strict=True), 1):
        load = ("load" if leg.loads else "") if worked.checked else "?"
        ends = duration(leg.ends)
        rows.append((str(at), clean(each.combination.title), load, ends, _what(each)))
    head = ("#", "CONFIGURATION", "LOADS", "ENDS IN", "")
    lines = table(narrowed([head, *rows[:_MOST_ROWS]], width, _GIVE), right=(0, 3))
    yield paint(lines[0], "dim")
    yield from lines[1:]
    if len(rows) > _MOST_ROWS:
        yield f"... and {len(rows) - _MOST_ROWS} more (--json has all)"
    told: dict[str, list[str]] = {}
    for each in worked.arranged.runs:
        if not each.again:
            for warning in each.warnings:
                told.setdefault(clean(warning), []).append(clean(each.combination.title))
    for warning, titles in told.items():
        if warning not in _said(worked):
            of = titles[0] if len(titles) == 1 else f"{len(titles)} configurations"
            yield from _told("warning", "yellow", f"{of}: {warning}", paint, width)


def _said(worked: Worked) -> set[str]:
    """Warnings that stand below the table of policies already."""
    return {
        clean(warning)
        for row in worked.expansion.matches
        for policy in row.policies
        for warning in policy.warnings
    }


def _what(each: Planned) -> str:
    words = []
    if each.again:
        words.append("the baseline again")
    elif each.combination.baseline:
        words.append("baseline")
    if each.combination.control:
        words.append("control: its budget is not matched")
    elif each.combination.match is not None:
        words.append(each.combination.match.formula)
    if each.measured is not None:
        words.append("measured already")
    return "; ".join(words)


def _left_out(worked: Worked, paint: Paint, width: int | None) -> Iterator[str]:
    count = len(worked.arranged.blocked) + len(worked.arranged.runs)
    reasons = by_reason(worked.arranged.blocked)
    for reason, titles in reasons[:_MOST_ROWS]:
        text = f"{clean(blocked_titles(titles, count))}: {clean(reason)}"
        yield from _told("blocked", "red", text, paint, width)
    if len(reasons) > _MOST_ROWS:
        yield f"... and {len(reasons) - _MOST_ROWS} more reasons for which others are blocked"
    for each in worked.arranged.same[:_MOST_ROWS]:
        title, first = clean(each.combination.title), clean(each.same_as)
        yield from wrapped(f"left out: {title}: on this server it is the same as {first}", width)


def _totals(worked: Worked) -> Iterator[str]:
    eta = worked.eta
    waiting = f", after {worked.before} that wait already" if worked.before else ""
    yield f"bench plan: {short_name(worked.plan)}, {counted(worked.plan.repeats, 'repeat')}"
    if not worked.checked:
        yield "the host was not asked: nothing is checked, and loads and times are not known"
        return
    guess = " (a guess)" if eta.guess else ""
    loads = sum(leg.loads for leg in worked.legs)
    yield f"loads of the engine: {loads}; all done in {duration(eta.seconds)}{guess}{waiting}"
    if worked.at_the_end:
        yield f"  and {worked.at_the_end}"
    for source in eta.sources:
        yield f"  {clean(source)}"
    if eta.seconds is None:
        yield f"  not all can be estimated: {_unknown(worked)}"
    used = sum(each.measured is not None for each in worked.arranged.runs)
    if worked.reusable > used:
        were = "was" if worked.reusable == 1 else "were"
        yield f"{worked.reusable} {were} measured by this plan already: --reuse takes that over"
    match = worked.sweep.match
    if worked.expansion.matches and match is not None and not match.control:
        yield (
            "--control also tries each budget unchanged, which tells the block's effect from the"
            " budget's"
        )


def _unknown(worked: Worked) -> str:
    """What no estimate can be made of."""
    why = []
    if any(leg.loads and leg.load is None for leg in worked.legs):
        why.append("no load of this model was seen here yet")
    if any(leg.bench is None for leg in worked.legs):
        why.append("nothing was measured here yet, and the engine serves no request to guess from")
    return "; ".join(why) or "something before these is not known"


# ---- JSON ----------------------------------------------------------------------------------------


def sweep_report(worked: Worked) -> dict[str, Any]:
    """A sweep for JSON."""
    found = worked.expansion
    return {
        "host": worked.host,
        "simulated": worked.simulated,
        "sweep": worked.sweep.name,
        "checked": worked.checked,
        "combinations": found.total,
        "excluded": found.excluded,
        "unjudged": found.unjudged,
        "duplicates": found.duplicates,
        "plan": msgspec.to_builtins(worked.plan),
        "reloads": sum(leg.loads for leg in worked.legs) if worked.checked else None,
        "seconds": worked.eta.seconds,
        "guess": worked.eta.guess,
        "sources": list(worked.eta.sources),
        "waiting_before": worked.before,
        "at_the_end": worked.at_the_end or None,
        "reusable": worked.reusable,
        "runs": [
            _planned(each) | _leg(leg, checked=worked.checked)
            for each, leg in zip(worked.arranged.runs, worked.legs, strict=True)
        ],
        "blocked": [_planned(each) for each in worked.arranged.blocked],
        "same": [_planned(each) for each in worked.arranged.same],
        "matching": [msgspec.to_builtins(row) for row in found.matches],
    }


def _planned(each: Planned) -> dict[str, Any]:
    combination = each.combination
    return {
        "title": safe_text(combination.title, len(combination.title)),
        "request": msgspec.to_builtins(redacted(combination.request)),
        "configuration": each.key,
        "baseline": combination.baseline,
        "again": each.again,
        "control": combination.control,
        "match": msgspec.to_builtins(combination.match),
        "changes": msgspec.to_builtins(each.changes),
        "blocked": list(each.blocked),
        "warnings": list(each.warnings),
        "same_as": each.same_as,
        "measured": None if each.measured is None else each.measured.id,
    }


def _leg(leg: Leg, *, checked: bool) -> dict[str, Any]:
    return {
        "loads": leg.loads if checked else None,
        "load": msgspec.to_builtins(leg.load),
        "bench": msgspec.to_builtins(leg.bench),
        "ends_in_seconds": leg.ends,
    }
