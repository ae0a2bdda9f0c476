"""A reconfiguration: its steps, what it waits for, and how it ended with the proof or the cause."""

from __future__ import annotations

from msgspec.structs import replace
from rich.cells import cell_len

from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, flow, lines_of, wrapped
from ddtui.ui.shown import Shown
from ddtui.ui.source import ProofView, Question, ReconfigurationView, StepStatus, StepView
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.load import eta_words

ENDED_SHOWN = 180.0
"""Seconds for which one that ended well is shown; one that did not stays until it is dismissed."""
ENDED_WHOLE = 30.0
"""Seconds after which one that ended well is told in one line."""
_NAME = 13
_MOST_EVIDENCE = 6
_DOUBT = frozenset({"overridden", "not reported"})
"""What became of a change where the server resolved it otherwise, or does not tell."""
_LOADING = frozenset({"starting", "loading"})


def visible(view: ReconfigurationView | None, now: float) -> bool:
    """Whether there is one that the operator should see."""
    if view is None:
        return False
    if not view.succeeded or view.ended is None:
        return True
    return now - view.ended <= ENDED_SHOWN


def settled(view: ReconfigurationView, now: float) -> bool:
    """Whether it ended well, and so long ago that one line tells enough of it."""
    if not view.succeeded or view.doubt or view.ended is None:
        return False
    return now - view.ended > ENDED_WHOLE


class ReconfigurationPanel(Panel):
    """Shows `Shown.reconfiguration`: each step in a line where there is room, else in a row."""

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002  (Textual's own name for it)
        hide: str = "monitor.hide",
    ) -> None:
        """`hide` is the action of its screen that puts away what has ended."""
        super().__init__(id=id)
        self._hide = hide

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        view = shown.reconfiguration
        if view is None:
            return Drawing()
        title = title_row(with_experiment(view, shown), shown.glyphs)
        note = time_row(view, shown)
        key = shown.keys.get(self._hide, "")
        if view.ending and key and title.width + note.width + len(key) + 18 <= width:
            note.add(f"  {key} hides this", Ink.LABEL)
        drawing = Drawing(title=title, note=note)
        drawing.rows = fitting_rows(view, shown, width, height)
        return drawing


def with_experiment(view: ReconfigurationView, shown: Shown) -> ReconfigurationView:
    """Named by the experiment that it is made for: one that goes on is in the queue."""
    queue = shown.queue
    if view.preset or view.experiment or queue is None or queue.running is None:
        return view
    running = queue.running
    return replace(view, experiment=running.title) if running.change == view.id else view


def title_row(view: ReconfigurationView, glyphs: Glyphs) -> Row:
    """What it is, and where it stands."""
    row = Row(fmt.clean(view.heading)[:48], Ink.TITLE).add("  ")
    if view.question is not None:
        return row.add(f" {glyphs.warn} DECIDE ", Ink.WARN_BADGE)
    if view.interrupted:
        return row.add(f" {glyphs.warn} INTERRUPTED ", Ink.WARN_BADGE)
    if not view.ending:
        step = next((each.name for each in view.steps if each.status is StepStatus.RUNNING), "")
        return row.add(f" {glyphs.running} {fmt.clean(step or 'running').upper()} ", Ink.BUSY_BADGE)
    if view.succeeded:
        return row.add(f" {glyphs.ok} {view.ending.upper()} ", Ink.GOOD_BADGE)
    ink = Ink.WARN_BADGE if view.ending == "rolled back" else Ink.BAD_BADGE
    return row.add(f" {glyphs.failed} {fmt.clean(view.ending).upper()} ", ink)


def time_row(view: ReconfigurationView, shown: Shown) -> Row:
    """How long it goes on, and when the engine will be ready."""
    if view.ended is not None:
        row = Row(f"after {fmt.duration(view.ended - view.began)}", Ink.LABEL)
        return row.add(f", {fmt.ago(shown.now - view.ended)} ago", Ink.LABEL)
    row = Row(fmt.duration(shown.now - view.began), Ink.STRONG)
    step = next((each.name for each in view.steps if each.status is StepStatus.RUNNING), "")
    load = shown.snapshot.load
    if step in _LOADING and load is not None and not load.finished and load.eta_seconds is not None:
        row.add(f", {eta_words(load)}", Ink.STRONG)
        if load.eta_source:
            row.add(f" by {fmt.clean(load.eta_source)}", Ink.LABEL)
    return row


def fitting_rows(view: ReconfigurationView, shown: Shown, width: int, height: int) -> list[Row]:
    """One line a step, or all steps in running text where that is too much for `height`."""
    if settled(view, shown.now):
        return [_settled_row(view, shown.glyphs, width)][:height]
    told = _told(view, shown, width)
    full = [row for each in view.steps for row in step_rows(each, shown, width)]
    if len(full) + len(told) <= height:
        return [*full, *told]
    rows = [*compact_steps(view, shown, width), *_detail(view, width), *told]
    if len(rows) > height:  # only where it stands
        rows = [*_present_step(view, shown, width), *told, *_detail(view, width)]
    return rows[:height]


def _present_step(view: ReconfigurationView, shown: Shown, width: int) -> list[Row]:
    """The running or failed step alone, and which one of how many it is."""
    for number, step in enumerate(view.steps, 1):
        if step.status in {StepStatus.RUNNING, StepStatus.FAILED}:
            symbol, ink = _look(step.status, shown.glyphs)
            row = Row(f"{symbol} ", ink).add(fmt.clean(step.name), _name_ink(step))
            row.add(f" {fmt.duration(_seconds(step, shown))}", Ink.LABEL)
            return [row.add(f"  step {number} of {len(view.steps)}", Ink.LABEL).cut(width)]
    return []


def compact_rows(view: ReconfigurationView, shown: Shown, width: int) -> list[Row]:
    """All that matters, in as few lines as it takes."""
    if settled(view, shown.now):
        return [_settled_row(view, shown.glyphs, width)]
    return [
        *compact_steps(view, shown, width),
        *_detail(view, width),
        *_told(view, shown, width),
    ]


def _settled_row(view: ReconfigurationView, glyphs: Glyphs, width: int) -> Row:
    """What came of one that ended well."""
    if not view.proofs:
        return Row(f"{glyphs.ok} {view.ending}", Ink.GOOD).cut(width)
    row = _proof_row(view.proofs[0], glyphs, width)
    if len(view.proofs) > 1:
        row.add(f"  and {len(view.proofs) - 1} more", Ink.LABEL)
    return row.cut(width)


def compact_steps(view: ReconfigurationView, shown: Shown, width: int) -> list[Row]:
    """The steps one after the other, as many in a line as fit."""
    pieces = []
    for step in view.steps:
        symbol, ink = _look(step.status, shown.glyphs)
        row = Row(f"{symbol} ", ink).add(fmt.clean(step.name), _name_ink(step))
        seconds = _seconds(step, shown)
        if seconds is not None and (seconds >= 1 or step.status is StepStatus.RUNNING):
            row.add(f" {fmt.duration(seconds)}", Ink.LABEL)
        pieces.append(row)
    return flow(pieces, width, 2)


def step_rows(step: StepView, shown: Shown, width: int) -> list[Row]:
    """One step: symbol, name, when it began, how long it took; and what goes on in it."""
    symbol, ink = _look(step.status, shown.glyphs)
    row = Row(f"{symbol} ", ink).put(fmt.clean(step.name), _NAME, _name_ink(step)).add(" ")
    if step.began is None:
        return [row.cut(width)]
    row.put(fmt.clock(step.began), 9, Ink.LABEL)
    done = step.status is StepStatus.DONE  # a running one would tick in tenths
    words = (fmt.seconds if done else fmt.duration)(_seconds(step, shown))
    row.put(words, 10, _name_ink(step))
    detail = fmt.clean(step.detail)
    ink = Ink.BAD if step.status is StepStatus.FAILED else Ink.LABEL
    if row.width + cell_len(detail) <= width or step.status is not StepStatus.RUNNING:
        return [row.add(detail, ink).cut(width)]
    held = Ink.WARN if step.name == "releasing" else ink
    return [row, *wrapped(detail, width, held, indent=2)[:4]]


def _seconds(step: StepView, shown: Shown) -> float | None:
    if step.began is None or step.seconds is not None:
        return step.seconds
    return max(0.0, shown.now - step.began) if step.status is StepStatus.RUNNING else None


def _name_ink(step: StepView) -> Ink:
    return {
        StepStatus.PENDING: Ink.LABEL,
        StepStatus.RUNNING: Ink.STRONG,
        StepStatus.DONE: Ink.TEXT,
        StepStatus.FAILED: Ink.BAD,
    }[step.status]


def _look(status: StepStatus, glyphs: Glyphs) -> tuple[str, Ink]:
    return {
        StepStatus.PENDING: (glyphs.pending, Ink.LABEL),
        StepStatus.RUNNING: (glyphs.running, Ink.BUSY),
        StepStatus.DONE: (glyphs.ok, Ink.GOOD),
        StepStatus.FAILED: (glyphs.failed, Ink.BAD),
    }[status]


def _detail(view: ReconfigurationView, width: int) -> list[Row]:
    """What goes on in the running step: what is still held, what the load does."""
    step = next((each for each in view.steps if each.status is StepStatus.RUNNING), None)
    if step is None or not step.detail:
        return []
    held = step.name == "releasing"
    return wrapped(step.detail, width, Ink.WARN if held else Ink.LABEL)[:3]


def _told(view: ReconfigurationView, shown: Shown, width: int) -> list[Row]:
    """What must be decided, what is to be done, how it ended."""
    if view.question is not None:
        return [*question_rows(view.question, shown, width), *proved_by(view, width)]
    if view.interrupted:
        key = shown.keys.get("app.decide", "")
        words = f"begun by {view.who} and not ended; nobody carries it on"
        rows = wrapped(words, width, Ink.WARN)
        return rows + ([Row(f"{key} carries it on", Ink.STRONG)] if key else [])
    if not view.ending:
        return [] if view.here else [Row(f"by {fmt.clean(view.who)}", Ink.LABEL)]
    rows = wrapped(view.doubt, width, Ink.WARN) if view.doubt and view.succeeded else []
    if view.cause:
        rows += [*wrapped(view.cause, width, Ink.BAD), *proved_by(view, width)]
    return [*rows, *proof_rows(view, shown.glyphs, width)]


def proved_by(view: ReconfigurationView, width: int, *, whole: bool = False) -> list[Row]:
    """The lines that prove the cause, each in one row unless they are shown whole; what to do."""
    evidence = [fmt.clean(each) for each in view.evidence if each.strip()][:_MOST_EVIDENCE]
    rows = [Row("| ", Ink.LABEL).add(each).cut(width) for each in evidence]
    if whole:
        rows = [row for each in evidence for row in lines_of(f"| {each}", width, Ink.LABEL)]
    return [*rows, *(lines_of(f"do: {view.remedy}", width) if view.remedy else [])]


def question_rows(question: Question, shown: Shown, width: int) -> list[Row]:
    """What waits for the operator, and by which key."""
    rows = wrapped(question.text, width, Ink.BAD)[:4]
    words = {
        "rollback": "Roll back to what was in force before?",
        "orphans": "End what is left of the old engine?",
    }[question.kind]
    key = shown.keys.get("app.decide", "")
    return [*rows, Row(words, Ink.STRONG).add(f"  {key} decides" if key else "", Ink.WARN)]


def proof_rows(view: ReconfigurationView, glyphs: Glyphs, width: int) -> list[Row]:
    """What became of each change, by the server's own report."""
    return [_proof_row(each, glyphs, width) for each in view.proofs]


def _proof_row(proof: ProofView, glyphs: Glyphs, width: int) -> Row:
    symbol, ink = (glyphs.ok, Ink.GOOD) if proof.taken else (glyphs.failed, Ink.BAD)
    if proof.outcome in _DOUBT:
        symbol, ink = (glyphs.warn, Ink.WARN) if proof.resolved else (glyphs.maybe, Ink.TEXT)
    row = Row(f"{symbol} ", ink).add(fmt.clean(proof.outcome), ink).add(f"  {proof.name} ")
    row.add(fmt.clean(proof.requested or "not set"), Ink.STRONG)
    if proof.resolved is not None and proof.resolved != proof.requested:
        row.add(f"  reported: {fmt.clean(proof.resolved)}", Ink.LABEL)
    if proof.reason:
        row.add(f"  {fmt.clean(proof.reason)}", Ink.LABEL)
    return row.cut(width)
