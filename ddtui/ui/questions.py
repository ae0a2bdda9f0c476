"""What the app asks before it changes a host, in words. Nothing here does anything."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ddtui.core.launch import Finding, Level, Plan
from ddtui.core.local_time import in_local_time
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, lines_of, wrapped
from ddtui.ui.plan_rows import change_rows, finding_rows, verdict_row
from ddtui.ui.screens.confirm import Words
from ddtui.ui.source import ControlProblem, Question, ReconfigurationView
from ddtui.ui.widgets.reconfiguration import proved_by

_NOT_SERVING = frozenset(
    {
        ReadinessState.ABSENT,
        ReadinessState.MASKED,
        ReadinessState.STOPPED,
        ReadinessState.FAILED,
        ReadinessState.STARTING,
        ReadinessState.LOADING_TARGET,
        ReadinessState.LOADING_DRAFTER,
        ReadinessState.ALLOCATING,
        ReadinessState.CAPTURING,
    }
)


def unit_of(snapshot: Snapshot) -> str:
    """The unit's name without its suffix; a plain word while none is known."""
    name = snapshot.unit.name.removesuffix(".service") if snapshot.unit is not None else ""
    return fmt.clean(name)[:60] or "the unit"


def word_for(snapshot: Snapshot) -> str:
    """What must be typed to stop an engine that is at work; `apply` where the name is unusable."""
    name = unit_of(snapshot)
    return name if name.isascii() and name.isprintable() and " " not in name else "apply"


def at_work(snapshot: Snapshot, now: float) -> tuple[bool, str]:
    """Whether requests may be running, and that in words. What is not known counts as running."""
    if snapshot.readiness.state in _NOT_SERVING:
        return False, f"The engine serves nothing now ({snapshot.readiness.state})."
    engine = snapshot.engine
    running, queued = engine.running, engine.queued
    if running is None or (running.stale(now) and not engine.idle):
        return True, "Whether requests are running is not known: they would be cut off."
    waiting = 0.0 if queued is None else queued.value
    if running.value or waiting:
        many = f"{running.value:.0f} request{'' if running.value == 1 else 's'}"
        also = f" and {waiting:.0f} waiting" if waiting else ""
        return True, f"{many} running{also}: cut off when it stops."
    return False, "No request is running."


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What bears on a question when it is asked."""

    snapshot: Snapshot
    now: float
    glyphs: Glyphs
    expected: tuple[float | None, str]
    """Seconds that the load should take, and what that is known from."""
    holder: str
    """Who else changes the unit now; empty for nobody."""
    runner: str = ""
    """Who runs experiments on the host in another process; empty for nobody."""


def apply_words(plan: Plan, at: Moment) -> Words:
    """Before a plan is applied. Without an action where it is blocked, or another one is at it."""
    snapshot, glyphs = at.snapshot, at.glyphs
    busy, requests = at_work(snapshot, at.now)
    name = fmt.clean(plan.request.preset)[:48]
    action = "Restart" if plan.restart_only else "Apply" if plan.changes else ""
    action = "" if plan.blocked or at.holder else action

    def body(width: int) -> Sequence[Row]:
        report = snapshot.server_info.arguments if snapshot.server_info is not None else None
        rows = [*_others_rows(at, width), verdict_row(plan, glyphs)]
        rows += _gap(change_rows(plan.changes, width, glyphs, report))
        rows += _gap(finding_rows(plan.findings, width, glyphs))
        if action:
            rows += _gap(_stop_rows(snapshot, requests, at.expected, width, busy=busy))
        return rows

    return Words(
        title=f"Apply {name} to {unit_of(snapshot)} on {fmt.clean(snapshot.host)[:40]}".replace(
            "  ", " "
        ),
        body=body,
        action=action,
        typed=word_for(snapshot) if busy and action else "",
        cancel="Cancel" if action else "Close",
    )


def rollback_words(plan: Plan, at: Moment) -> Words:
    """Before what was in force earlier is brought back. Without an action as in apply_words."""
    snapshot, glyphs = at.snapshot, at.glyphs
    busy, requests = at_work(snapshot, at.now)
    action = "" if plan.blocked or at.holder else "Roll back"

    def body(width: int) -> Sequence[Row]:
        rows = _others_rows(at, width)
        if plan.blocked:
            rows += [verdict_row(plan, glyphs), Row()]
        if plan.back_to:
            rows += wrapped(f"Back to {fmt.clean(in_local_time(plan.back_to))}.", width)
        if plan.undoes:
            undoes = fmt.clean(in_local_time(plan.undoes))
            rows += wrapped(f"Undoes {undoes}.", width, Ink.LABEL)
        rows += [Row()] if plan.back_to and plan.changes else []
        if not plan.changes:
            rows += wrapped("No flag and no variable changes.", width)
        rows += change_rows(plan.changes, width, glyphs)
        rows += _gap(finding_rows(plan.findings, width, glyphs))
        if action:
            rows += _gap(_stop_rows(snapshot, requests, at.expected, width, busy=busy))
        return rows

    return Words(
        title=f"Roll back {unit_of(snapshot)} on {fmt.clean(snapshot.host)[:40]}",
        body=body,
        action=action,
        typed=word_for(snapshot) if busy and action else "",
        cancel="Cancel" if action else "Close",
    )


def restart_words(against: Sequence[Finding], at: Moment) -> Words:
    """Before the unit is restarted as it is configured. Without an action as in apply_words."""
    snapshot, glyphs = at.snapshot, at.glyphs
    busy, requests = at_work(snapshot, at.now)
    blocked = any(each.level is Level.ERROR for each in against)
    action = "" if blocked or at.holder else "Restart"

    def body(width: int) -> Sequence[Row]:
        rows = _others_rows(at, width)
        if not blocked:
            rows += wrapped("Nothing of its configuration changes.", width)
            rows += _stop_rows(snapshot, requests, at.expected, width, busy=busy)
        findings = finding_rows(against, width, glyphs)
        return [*rows, *(_gap(findings) if rows else findings)]

    return Words(
        title=f"Restart {unit_of(snapshot)} on {fmt.clean(snapshot.host)[:40]}",
        body=body,
        action=action,
        typed=word_for(snapshot) if busy and action else "",
        cancel="Cancel" if action else "Close",
    )


def resume_words(view: ReconfigurationView, snapshot: Snapshot, holder: str) -> Words:
    """Before an interrupted reconfiguration is carried on."""

    def body(width: int) -> Sequence[Row]:
        last = next((each for each in reversed(view.steps) if each.began is not None), None)
        rows = _holder_rows(holder, width)
        at = f", at the step: {last.name}" if last is not None else ""
        rows += wrapped(f"{view.heading} by {view.who} was interrupted{at}.", width)
        rows += wrapped("It goes on from where the host is now, and does nothing twice.", width)
        return rows

    return Words(
        title=f"Carry on: {fmt.clean(view.title)[:40]} of {unit_of(snapshot)}",
        body=body,
        action="" if holder else "Carry on",
    )


def question_words(question: Question, view: ReconfigurationView, snapshot: Snapshot) -> Words:
    """What a reconfiguration waits for. Putting it off answers nothing."""

    def body(width: int) -> Sequence[Row]:
        rows = [*wrapped(question.text, width, Ink.BAD), *proved_by(view, width, whole=True)]
        if question.kind == "rollback":
            rows += _gap(
                wrapped("Roll back: bring back what was in force before, and prove it.", width)
            )
            rows += wrapped("Leave it: the engine stays as it is, failed.", width)
        else:
            rows += _gap(wrapped("End them: TERM, and KILL for those that stay.", width))
            rows += wrapped("Leave them: wait until they are gone, or the time is over.", width)
        return [*rows, *wrapped("Later: the question stays open, and it goes on waiting.", width)]

    if question.kind == "rollback":
        title = f"{fmt.clean(view.heading)[:40]} of {unit_of(snapshot)} has failed"
        return Words(title, body, "Roll back", refuse="Leave it", cancel="Later")
    title = f"The old engine of {unit_of(snapshot)} is not gone"
    return Words(title, body, "End them", typed="end", refuse="Leave them", cancel="Later")


def leave_words(view: ReconfigurationView, host: str) -> Words:
    """Before ddtui is left while it carries something on."""

    def body(width: int) -> Sequence[Row]:
        step = next((each.name for each in reversed(view.steps) if each.began is not None), "")
        rows = wrapped(f"{view.heading} is at the step: {step}.", width, Ink.WARN)
        rows += wrapped(
            "Nobody carries it on once ddtui is left: the engine may stay stopped, and nothing is "
            "proved or rolled back.",
            width,
        )
        how = f"To go on later: `ddtui apply {host} --resume`, or open the host in ddtui again."
        return [*rows, *wrapped(how, width)]

    return Words("Leave in the middle of a reconfiguration", body, "Leave", cancel="Stay")


def problem_words(title: str, problem: ControlProblem) -> Words:
    """Why something cannot be done."""

    def body(width: int) -> Sequence[Row]:
        return [*wrapped(problem.what, width, Ink.BAD), *_gap(lines_of(problem.remedy, width))]

    return Words(title, body, cancel="Close")


def _others_rows(at: Moment, width: int) -> list[Row]:
    """Who else has to do with the engine: a runner keeps nobody out while it measures."""
    if at.holder or not at.runner:
        return _holder_rows(at.holder, width)
    rows = wrapped(f"Experiments are being run on this host by {at.runner}.", width, Ink.WARN)
    words = "What is measured now will be measured anew, and the engine changed again for it."
    return [*rows, *wrapped(f"{words} Stop that first, where they are run.", width), Row()]


def _holder_rows(holder: str, width: int) -> list[Row]:
    if not holder:
        return []
    rows = wrapped(f"LOCKED: somebody else is changing the unit: {holder}.", width, Ink.BAD)
    return [*rows, Row("Wait until that is done.", Ink.TEXT)]


def _gap(rows: Sequence[Row]) -> list[Row]:
    return [Row(), *rows] if rows else []


_DOWN = frozenset({ReadinessState.STOPPED, ReadinessState.FAILED})
"""Nothing of the engine runs: it is only started."""


def _stop_rows(
    snapshot: Snapshot,
    requests: str,
    expected: tuple[float | None, str],
    width: int,
    *,
    busy: bool,
) -> list[Row]:
    unit = unit_of(snapshot)
    down = snapshot.readiness.state in _DOWN
    words = f"The engine starts: {unit}." if down else f"The engine stops: {unit}."
    rows = wrapped(f"{words} {requests}", width, _warn(busy))
    seconds, source = expected
    if seconds is None:
        return rows + wrapped("No earlier load tells how long loading takes.", width, Ink.TEXT)
    words = f"Loading took about {fmt.duration(seconds)} before ({source})."
    return rows + wrapped(words, width, Ink.TEXT)


def _warn(busy: bool) -> Ink:
    return Ink.BAD if busy else Ink.WARN
