"""A grid before it is queued, as rows: its configurations, what blocks some, loads and time."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.core.spans import about
from ddtui.core.sweep import DEFAULT_POLICY, Sweep
from ddtui.core.text import counted
from ddtui.experiments.eta import Leg
from ddtui.experiments.grid import Expansion, MatchRow
from ddtui.experiments.matching import Matched
from ddtui.experiments.plan_sweep import Planned
from ddtui.experiments.worked import Worked, blocked_titles, by_reason
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, wrapped

MOST_ROWS = 200
"""Configurations of one list that are shown; the rest is counted."""


def expansion_rows(found: Expansion, width: int, glyphs: Glyphs) -> list[Row]:
    """A grid as it expands here, before the host is asked."""
    count = len(found.combinations)
    row = Row(str(count), Ink.STRONG).add(f" configuration{'' if count == 1 else 's'}")
    if found.total != count:
        row.add(f" of {counted(found.total, 'combination')}", Ink.LABEL)
    rows = [row, *_taken_out(found, width)]
    rows += match_rows(found.matches, None, width, glyphs)
    rows.append(Row())
    for number, each in enumerate(found.combinations[:MOST_ROWS], 1):
        row = Row().put(str(number), 4, Ink.LABEL, right=True).add("  ").add(each.title)
        notes = ["baseline"] * each.baseline + ["control"] * each.control
        rows.append(row.add(f"  {', '.join(notes)}", Ink.LABEL).cut(width))
        if each.impossible:
            rows += wrapped(f"{glyphs.failed} {each.impossible}", width, Ink.BAD, indent=6)
    return rows + _rest(count)


def worked_rows(worked: Worked, width: int, glyphs: Glyphs) -> list[Row]:
    """A grid as the host has checked it: in the order in which it is run."""
    runs, blocked, eta = worked.arranged.runs, worked.arranged.blocked, worked.eta
    loads = sum(leg.loads for leg in worked.legs)
    row = Row(str(len(runs)), Ink.STRONG).add(" to run")
    if blocked:
        row.add(", ").add(f"{len(blocked)} blocked", Ink.BAD)
    row.add("   ").add(str(loads), Ink.STRONG).add(f" load{'' if loads == 1 else 's'}")
    if eta.seconds is None:
        row.add("   time not known yet", Ink.LABEL)
    else:
        row.add("   all done in ", Ink.LABEL).add(about(eta.seconds), Ink.STRONG)
    if eta.guess:
        row.add(" (a guess)", Ink.WARN)
    if worked.before:
        row.add(f", after {worked.before} that wait already", Ink.LABEL)
    rows = [row.cut(width)]
    if worked.at_the_end:
        rows += wrapped(f"and {worked.at_the_end}", width, indent=2)
    for source in eta.sources:
        rows += wrapped(source, width, Ink.LABEL, indent=2)
    if worked.reusable:
        used = sum(each.measured is not None for each in runs)
        told = f"{used} of them taken over" if used else "^r takes that over"
        were = "was" if worked.reusable == 1 else "were"
        rows += wrapped(f"{worked.reusable} {were} measured by this plan already: {told}", width)
    rows += _taken_out(worked.expansion, width)
    for reason, titles in by_reason(blocked)[:MOST_ROWS]:
        words = f"{glyphs.failed} {blocked_titles(titles, len(runs) + len(blocked))}: {reason}"
        rows += wrapped(words, width, Ink.BAD)
    rows += match_rows(worked.expansion.matches, worked.sweep, width, glyphs)
    rows.append(Row())
    for number, (run, leg) in enumerate(zip(runs[:MOST_ROWS], worked.legs, strict=False), 1):
        rows += _run_rows(number, run, leg, width, glyphs)
    for run in worked.arranged.same[:MOST_ROWS]:
        words = f"left out: {run.combination.title} is the same here as {run.same_as}"
        rows += wrapped(words, width, Ink.LABEL)
    return rows + _rest(len(runs))


def _run_rows(number: int, run: Planned, leg: Leg, width: int, glyphs: Glyphs) -> list[Row]:
    combination = run.combination
    notes = ["the baseline again"] * run.again
    notes += ["baseline"] * (combination.baseline and not run.again)
    notes += ["control"] * combination.control
    if combination.match is not None and not combination.control:
        notes.append(combination.match.formula)
    notes += ["measured already"] * (run.measured is not None)
    row = Row().put(str(number), 4, Ink.LABEL, right=True).add("  ").add(combination.title)
    row.add(f"  {'; '.join(notes)}", Ink.LABEL)
    right = Row("load  ", Ink.WARN) if leg.loads else Row()
    if leg.ends is not None:
        right.put(f"in {about(leg.ends)}", 11, Ink.LABEL, right=True)
    rows = [row.with_right(right, width)]
    for warning in run.warnings:
        rows += wrapped(f"{glyphs.warn} {warning}", width, Ink.WARN, indent=6)
    return rows


def _taken_out(found: Expansion, width: int) -> list[Row]:
    rows = []
    for condition, count in found.excluded.items():
        rows += wrapped(f"{count} taken out by: {condition}", width, Ink.LABEL)
    for condition, count in found.unjudged.items():
        words = f"{count} kept, as they leave a setting to the server: {condition}"
        rows += wrapped(words, width, Ink.LABEL)
    if found.duplicates:
        rows.append(Row(f"{found.duplicates} came out like another one", Ink.LABEL))
    return rows


def _rest(count: int) -> list[Row]:
    return [Row(f"and {count - MOST_ROWS} more", Ink.LABEL)] if count > MOST_ROWS else []


# ---- matching ------------------------------------------------------------------------------------


def match_rows(
    matches: Sequence[MatchRow], sweep: Sweep | None, width: int, glyphs: Glyphs
) -> list[Row]:
    """Every policy's budgets side by side, with the formula of the last one."""
    if not matches:
        return []
    chosen = sweep.match.policy if sweep is not None and sweep.match is not None else DEFAULT_POLICY
    first = matches[0]
    group = [
        each
        for each in matches
        if (each.block_size, each.topk, each.reference.block_size)
        == (first.block_size, first.topk, first.reference.block_size)
    ][:6]
    rows = [Row(), Row(f"Budgets for block size {first.block_size}, to match", Ink.TITLE)]
    rows[-1].add(f" block size {first.reference.block_size}", Ink.TITLE)
    head = Row("  ").put("budget", 10, Ink.LABEL)
    for each in group:
        head.put(str(each.reference.budget), 6, Ink.LABEL, right=True)
    rows.append(head)
    for at, policy in enumerate(group[-1].policies):
        mine = policy.policy == chosen
        row = Row(f"{glyphs.running} " if mine else "  ", Ink.BUSY)
        row.put(policy.policy, 10, Ink.STRONG if mine else Ink.TEXT)
        for each in group:
            value = each.policies[at].value
            row.put("-" if value is None else str(value), 6, right=True)
        rows.append(row.add("  ").add(policy.formula or policy.keeps, Ink.LABEL).cut(width))
    return rows


def policy_row(found: Matched, number: int, width: int) -> Row:
    """One policy to choose: P1, its name, the budget, its formula, what it keeps."""
    row = Row(f"P{number} ", Ink.LABEL).put(found.policy, 10, Ink.STRONG)
    value = "-" if found.value is None else str(found.value)
    row.put(value, 5, Ink.STRONG, right=True).add("  ")
    if found.value is None:
        return row.add("; ".join(found.errors), Ink.LABEL).cut(width)
    row.add(found.formula)
    return row.with_right(Row(found.keeps, Ink.LABEL), width) if width >= 90 else row.cut(width)
