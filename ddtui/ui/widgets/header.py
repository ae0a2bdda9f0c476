"""The two lines on top: host, link, unit and readiness; and the configuration in force."""

from __future__ import annotations

from ddtui.core.samples import Collector, LinkState
from ddtui.core.snapshot import Readiness, ReadinessState, Verdict
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import SKEW_SHOWN, Shown
from ddtui.ui.source import StepStatus
from ddtui.ui.widgets.canvas import Canvas, Drawing
from ddtui.ui.widgets.reconfiguration import with_experiment

_LOOK = {
    ReadinessState.READY: ("ok", Ink.GOOD_BADGE),
    ReadinessState.DEGRADED: ("warn", Ink.WARN_BADGE),
    ReadinessState.FAILED: ("failed", Ink.BAD_BADGE),
    ReadinessState.CRASH_LOOP: ("failed", Ink.BAD_BADGE),
    ReadinessState.ABSENT: ("failed", Ink.BAD_BADGE),
    ReadinessState.STOPPED: ("pending", Ink.QUIET_BADGE),
    ReadinessState.STOPPING: ("pending", Ink.QUIET_BADGE),
    ReadinessState.MASKED: ("pending", Ink.QUIET_BADGE),
    ReadinessState.UNKNOWN: ("pending", Ink.QUIET_BADGE),
}


def readiness_look(state: ReadinessState, glyphs: Glyphs) -> tuple[str, Ink]:
    """Symbol and badge of a readiness: told apart by word and symbol, also without colour."""
    name, ink = _LOOK.get(state, ("running", Ink.BUSY_BADGE))
    symbol: str = getattr(glyphs, name)
    return symbol, ink


def link_row(shown: Shown) -> Row:
    """The link's state, with the age of the last word from the host when it is not fresh."""
    glyphs, link = shown.glyphs, shown.link
    if link.state is LinkState.LIVE:
        age = shown.age
        if age is not None and age > SLOW_SOURCE_WARN and shown.paused_at is None:
            return Row(f"{glyphs.warn} live, silent {fmt.ago(age)}", Ink.WARN)
        return Row(f"{glyphs.ok} live", Ink.GOOD)
    if link.state is LinkState.CONNECTING and shown.snapshot.last_heard is None:
        return Row(f"{glyphs.running} connecting", Ink.WARN)
    word = {
        LinkState.CONNECTING: "CONNECTING",
        LinkState.RETRYING: "DISCONNECTED",
        LinkState.REFUSED: "REFUSED",
        LinkState.CLOSED: "CLOSED",
    }[link.state]
    ink = Ink.WARN_BADGE if link.state is LinkState.CONNECTING else Ink.BAD_BADGE
    row = Row(f" {glyphs.failed} {word} ", ink)
    if shown.age is not None:
        row.add(f" last data {fmt.ago(shown.age)} ago", Ink.WARN)
    return row


SLOW_SOURCE_WARN = 6.0
"""Seconds without a word on a live link from which that is said."""


def readiness_row(
    readiness: Readiness, now: float, glyphs: Glyphs, *, stale: bool, since: bool = True
) -> Row:
    """The readiness badge, and (`since`) for how long it has stood."""
    symbol, badge = readiness_look(readiness.state, glyphs)
    ink = Ink.DIM if stale else badge
    row = Row(f" {symbol} {str(readiness.state).upper()}{'?' if stale else ''} ", ink)
    if since and readiness.since is not None:
        row.add(f" {fmt.ago(now - readiness.since)}", Ink.LABEL)
    return row


def proof_row(readiness: Readiness, glyphs: Glyphs, *, stale: bool) -> Row:
    """How much of the readiness is proved, in one phrase."""
    evidence = readiness.evidence
    if not evidence:
        return Row()
    if stale:
        return Row("nothing is proved now", Ink.WARN)
    proved = sum(each.verdict is Verdict.PROVED for each in evidence)
    against = [fmt.clean(each.name)[:24] for each in evidence if each.verdict is Verdict.AGAINST]
    if against:
        return Row(f"{glyphs.failed} against: {', '.join(against)}", Ink.BAD)
    ink = Ink.GOOD if proved == len(evidence) else Ink.LABEL
    symbol = glyphs.ok if proved == len(evidence) else glyphs.maybe
    return Row(f"{symbol} {proved} of {len(evidence)} proved", ink)


_DOWN = frozenset({ReadinessState.STOPPED, ReadinessState.STOPPING})


def planned_step(shown: Shown) -> str:
    """The step of a change that has stopped the engine as it should; empty where none has."""
    view = shown.reconfiguration
    if view is None or not view.running or shown.faded or shown.paused_at is not None:
        return ""
    if shown.snapshot.readiness.state not in _DOWN:
        return ""
    step = next((each.name for each in view.steps if each.status is StepStatus.RUNNING), "")
    return fmt.clean(step)[:16]


class Header(Canvas):
    """Two lines; a third of rules is left to the panels."""

    DEFAULT_CSS = "Header { height: 2; }"

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        return Drawing(rows=[_first(shown, width), _second(shown, width)][:height])


def _first(shown: Shown, width: int) -> Row:
    shot = shown.snapshot
    left = Row(" ").add(fmt.clean(shot.host)[:40], Ink.STRONG)
    if shot.simulated:
        left.add("  ").add(" SIMULATED ", Ink.BADGE)
    if shown.read_only:
        left.add("  ").add(" READ-ONLY ", Ink.QUIET_BADGE)
    left.add("  ").extend(link_row(shown))
    if shown.paused_at is not None:
        left.add("  ").add(f" PAUSED at {fmt.clock(shown.paused_at)} ", Ink.BADGE)
    stale = shown.faded
    right = readiness_row(shot.readiness, shown.now, shown.glyphs, stale=stale).add(" ")
    if step := planned_step(shown):
        right = Row(f" {shown.glyphs.running} {step.upper()} ", Ink.BUSY_BADGE).add(" ")
    elif left.width + right.width >= width:  # how old all of it is matters more
        since = not shown.faded
        right = readiness_row(shot.readiness, shown.now, shown.glyphs, stale=stale, since=since)
        right.add(" ")
    unit = shot.unit
    if unit is not None:
        state = f"{unit.active_state} ({unit.sub_state})"
        old = shown.source_stale(Collector.UNIT)
        ink = Ink.DIM if old else Ink.BAD if unit.active_state == "failed" else Ink.TEXT
        name = unit.name.removesuffix(".service")
        room = width - left.width - right.width - 4
        for words in (f"{name} {state}", f"{name[:20]} {unit.active_state}", unit.active_state):
            if len(words) <= room:
                left.add("   ").add(words, ink)
                break
    return left.with_right(right, width)


def _second(shown: Shown, width: int) -> Row:
    shot, engine = shown.snapshot, shown.snapshot.engine
    right = proof_row(shot.readiness, shown.glyphs, stale=shown.faded)
    view = shown.reconfiguration
    if view is not None and planned_step(shown):
        title = fmt.clean(with_experiment(view, shown).title)
        right = Row(f"stopped for {title}", Ink.LABEL).cut(min(48, width // 2))
    system = shot.system
    skew = system.clock_skew if system else None
    if skew is not None and abs(skew) > SKEW_SHOWN:
        behind = "ahead" if skew > 0 else "behind"
        note = f"{shown.glyphs.warn} host's clock {fmt.duration(abs(skew))} {behind}"
        right = Row(note, Ink.WARN).add("  ").extend(right)
    right.add(" ")
    left = Row(" ")
    ink = Ink.TEXT if shown.connected else Ink.DIM
    room = width - right.width - 2
    for name, value in engine.knobs.items():
        piece = Row(f"{fmt.clean(name)} ", Ink.LABEL).add(fmt.clean(value)[:24], ink)
        if left.width + piece.width + 2 > room:
            break
        left.extend(piece).add("  ")
    if not engine.knobs:
        left.add(fmt.clean(shot.readiness.summary), Ink.LABEL)
    elif engine.knobs_source and left.width + len(engine.knobs_source) + 7 <= room:
        left.add(f" by {fmt.clean(engine.knobs_source)}", Ink.LABEL)
    return left.with_right(right, width)
