"""The load as a timeline: one line a phase, with what its fraction comes from, and the end."""

from __future__ import annotations

from ddtui.core.events import Phase
from ddtui.core.snapshot import LoadView, PhaseStatus, PhaseView
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.bars import bar
from ddtui.ui.widgets.canvas import Drawing, Panel

_NAME = 19


class LoadPanel(Panel):
    """The load in progress, or the one that failed."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        load = shown.snapshot.load
        drawing = Drawing(title=Row("Load", Ink.TITLE), faded=shown.faded)
        if load is None:
            drawing.rows = [Row("no load seen yet", Ink.LABEL)]
            return drawing
        drawing.title.add("  ").extend(eta_row(load, shown))
        drawing.rows = load_rows(load, shown, width, height)
        return drawing


def eta_row(load: LoadView, shown: Shown) -> Row:
    """When it will be done, by what; or how it ended."""
    spent = fmt.duration((load.ended or shown.host_now) - load.began)
    if load.failed:
        return Row(f"{shown.glyphs.failed} failed after {spent}", Ink.BAD)
    if load.finished:
        return Row(f"done in {spent}", Ink.GOOD)
    if load.ended is not None:
        return Row(f"{shown.glyphs.failed} stopped after {spent}", Ink.WARN)
    row = Row()
    if load.fraction is not None:
        row.add(f"{load.fraction * 100:.0f} %  ", Ink.STRONG)
    if load.eta_seconds is None:
        why = fmt.clean(load.eta_source) or "not enough seen yet"
        return row.add(f"{spent} so far, no estimate: {why}", Ink.LABEL)
    row.add(eta_words(load), Ink.STRONG)
    if load.eta_of is not Phase.READY:
        row.add(", the rest is not known", Ink.LABEL)
    if load.eta_source:
        row.add(f"  by {fmt.clean(load.eta_source)}", Ink.LABEL)
    return row


def eta_words(load: LoadView) -> str:
    """What the estimate is of: `ready in 4 m 02 s`, or only `weights loaded in 4 m 02 s`."""
    what = "ready" if load.eta_of is Phase.READY else "weights loaded"
    return f"{what} in {fmt.duration(load.eta_seconds)}"


def load_rows(load: LoadView, shown: Shown, width: int, height: int) -> list[Row]:
    """Warnings, then the phases; with little height only those that are not over."""
    rows = warning_rows(load, shown)
    phases = [phase for phase in load.phases if phase.phase is not Phase.READY]
    room = max(1, height - len(rows))
    if len(phases) > room:
        told = [each for each in phases if each.status is not PhaseStatus.SKIPPED]
        phases = told if len(told) <= room else _around_current(told, room)
    return [*(phase_row(phase, shown, width) for phase in phases), *rows]


def _around_current(phases: list[PhaseView], room: int) -> list[PhaseView]:
    """The phases that still matter: from the running or failed one on."""
    at = next(
        (
            index
            for index, each in enumerate(phases)
            if each.status in {PhaseStatus.RUNNING, PhaseStatus.FAILED}
        ),
        0,
    )
    start = max(0, min(at, len(phases) - room))
    return phases[start : start + room]


def warning_rows(load: LoadView, shown: Shown) -> list[Row]:
    """What is wrong with the load, in words."""
    said = {alert.key for alert in shown.snapshot.alerts}  # above already, and never cut there
    rows = []
    if "stall" not in said and load.stalled_for is not None and not load.finished:
        words = f"no progress by any source for {fmt.duration(load.stalled_for)}"
        rows.append(Row(f"{shown.glyphs.warn} {words}", Ink.BAD))
    if "straggler" not in said and load.straggler and not load.finished:
        words = f"{fmt.clean(load.straggler)} is behind the others"
        rows.append(Row(f"{shown.glyphs.warn} {words}", Ink.WARN))
    return rows


def _look(status: PhaseStatus, glyphs: Glyphs) -> tuple[str, Ink]:
    return {
        PhaseStatus.PENDING: (glyphs.pending, Ink.LABEL),
        PhaseStatus.RUNNING: (glyphs.running, Ink.BUSY),
        PhaseStatus.DONE: (glyphs.ok, Ink.GOOD),
        PhaseStatus.FAILED: (glyphs.failed, Ink.BAD),
        PhaseStatus.SKIPPED: (glyphs.skipped, Ink.DIM),
    }[status]


def phase_row(phase: PhaseView, shown: Shown, width: int) -> Row:
    """One phase: symbol, name, bar, percent, seconds of those expected, source or detail."""
    symbol, ink = _look(phase.status, shown.glyphs)
    running = phase.status is PhaseStatus.RUNNING
    quiet = phase.status in {PhaseStatus.PENDING, PhaseStatus.SKIPPED}
    row = Row(f"{symbol} ", ink)
    name_ink = Ink.STRONG if running else Ink.LABEL if quiet else Ink.TEXT
    row.put(str(phase.phase), _NAME, name_ink).add(" ")
    if phase.status is PhaseStatus.SKIPPED:
        return row.add("not in this start", Ink.DIM)
    length = 24 if width >= 104 else 16 if width >= 84 else 8
    fraction = 1.0 if phase.status is PhaseStatus.DONE else phase.fraction
    fraction = 0.0 if phase.status is PhaseStatus.PENDING else fraction
    failed = phase.status is PhaseStatus.FAILED
    bar_ink = Ink.PROGRESS if running else Ink.BAD if failed else Ink.GOOD
    row.extend(bar(fraction, length, bar_ink, shown.glyphs))
    share = phase.fraction if running or failed else None
    percent = "" if share is None else f"{share * 100:.0f} %"
    row.add(" ").put(percent, 6, Ink.STRONG, right=True)
    notes = [fmt.clean(each) for each in (phase.source if running else "", phase.detail) if each]
    spent, column = _seconds(phase, shown), 23 if width >= 84 else 21
    room = width - row.width - 3
    if column + len(", ".join(notes)) > room:  # how far it is matters more than by what
        notes = notes[-1:]
    if len(spent) + len(", ".join(notes)) > room:
        spent = spent.partition(" of ")[0]
    column = max(len(spent), min(column, room - len(", ".join(notes))))
    row.add("  ").put(spent, column, name_ink)
    return row.add(" ").add(", ".join(notes), Ink.LABEL).cut(width)


def _seconds(phase: PhaseView, shown: Shown) -> str:
    expected = phase.expected_seconds
    about = f"~{fmt.duration(expected)}" if expected is not None else ""
    if phase.began is None:
        return about
    spent = fmt.duration((phase.ended or shown.host_now) - phase.began)
    return f"{spent} of {about}" if about and phase.ended is None else spent


def summary_row(load: LoadView, shown: Shown) -> Row:
    """A load that is over, in one line."""
    glyphs = shown.glyphs
    if load.ended is None:
        return Row(f"{glyphs.ok} loaded", Ink.GOOD)
    spent, since = load.ended - load.began, shown.host_now - load.ended
    row = Row(f"{glyphs.ok} ", Ink.GOOD).add(f"loaded in {fmt.duration(spent)}", Ink.TEXT)
    return row.add(f", {fmt.ago(since)} ago", Ink.LABEL)
