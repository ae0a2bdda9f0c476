"""A host's queue as rows: what stands above its table, and a line for each experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from textual.content import Content

from ddtui.bench.progress import Progress
from ddtui.bench.progress import Step as BenchStep
from ddtui.core.experiment import ENDED, Experiment, ExperimentState
from ddtui.core.spans import about
from ddtui.core.sweep import CONTROL
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, flow
from ddtui.ui.queue_source import QueueView, Result

_State = ExperimentState
_LOOKS = {
    _State.RUNNING: ("running", Ink.BUSY),
    _State.PENDING: ("pending", Ink.TEXT),
    _State.HELD: ("maybe", Ink.WARN),
    _State.DONE: ("ok", Ink.GOOD),
    _State.FAILED: ("failed", Ink.BAD),
    _State.CANCELLED: ("skipped", Ink.LABEL),
}
_ORDER = (
    *(_State.RUNNING, _State.PENDING, _State.HELD),
    *(_State.FAILED, _State.DONE, _State.CANCELLED),
)
_PLACE, _STATE, _TIME = 3, 10, 11
_NOTED, _NOTED_WELL = 100, 130
"""Widths from which there is a column of notes, and a wider one."""
_GAP = "  "
_LEAST_TITLE = 18
_LEAST_WHAT = 17
"""Room for a rate and an acceptance length."""
_WHAT_IN_FULL = 20
_ACCEPT_FROM = 30
"""Room in which the acceptance length is named as in the results."""
_STYLES = {
    Ink.LABEL: "$label",
    Ink.DIM: "$label",
    Ink.GOOD: "$success",
    Ink.WARN: "bold $warning",
    Ink.BAD: "bold $error",
    Ink.BUSY: "$primary",
    Ink.TITLE: "bold $primary",
    Ink.STRONG: "bold",
}


def content_of(row: Row) -> Content:
    """A row for a list, where it lies on whatever ground its line has."""
    found = Content("")
    for text, ink in row.spans:
        style = _STYLES.get(ink)
        found = found.append(Content(text) if style is None else Content.styled(text, style))
    return found


def look_of(experiment: Experiment, glyphs: Glyphs) -> tuple[str, Ink]:
    """Symbol and ink of its state."""
    name, ink = _LOOKS[experiment.state]
    symbol: str = getattr(glyphs, name)
    return symbol, ink


# ---- above the table -----------------------------------------------------------------------------


def head_rows(view: QueueView, now: float, width: int, glyphs: Glyphs) -> list[Row]:
    """How much there is, how long it takes; who runs it, and what it is left in. Two rows."""
    return [_counts(view, now, width), _who(view, width, glyphs)]


def _counts(view: QueueView, now: float, width: int) -> Row:
    if view.problem:
        return Row(" ").add(view.problem, Ink.BAD).cut(width)
    if not view.read:
        return Row(" reading the queue ...", Ink.LABEL)
    right = eta_row(view, now if width >= 100 else None).add(" ")
    counts = {str(each): len(view.in_state(each)) for each in _ORDER}
    if _is_left(view):  # as `ddtui queue` calls it
        counts = {"interrupted": counts.pop(_State.RUNNING), **counts}
    if _count_row(counts).width + right.width >= width:
        counts["ended"] = counts.pop(_State.DONE) + counts.pop(_State.CANCELLED)
    while len(counts) > 1 and _count_row(counts).width + right.width >= width:
        counts.popitem()  # what goes on and waits matters more
    return _count_row(counts).with_right(right, width)


def _count_row(counts: Mapping[str, int]) -> Row:
    pieces = [
        Row(str(count), Ink.BAD if name == _State.FAILED else Ink.STRONG).add(f" {name}", Ink.LABEL)
        for name, count in counts.items()
        if count
    ]
    words = flow(pieces, 10_000, 2)[0] if pieces else Row("nothing queued", Ink.LABEL)
    return Row(" ").extend(words)


def eta_row(view: QueueView, now: float | None) -> Row:
    """Loads of the engine, and when all is done; by the clock too, where `now` is given."""
    eta = view.eta
    waiting = view.in_state(_State.PENDING, _State.RUNNING)
    if eta is None or not waiting:
        return Row()
    if any(view.leg(each.id) is None for each in waiting):
        return Row("loads and times are being worked out", Ink.LABEL)
    most = "" if view.checked else "at most "
    row = Row(f"{most}{eta.reloads} load{'' if eta.reloads == 1 else 's'}", Ink.STRONG)
    if eta.seconds is None:
        return row.add("  time not known yet", Ink.LABEL)
    if view.settings.paused and not view.in_state(_State.RUNNING):
        return row.add("  to do: ", Ink.LABEL).add(about(eta.seconds), Ink.STRONG)
    row.add("  all done in ", Ink.LABEL).add(about(eta.seconds), Ink.STRONG)
    if now is not None:
        row.add(f" at {fmt.clock(now + eta.seconds)[:5]}", Ink.LABEL)
    return row.add(" (a guess)", Ink.WARN) if eta.guess else row


def _who(view: QueueView, width: int, glyphs: Glyphs) -> Row:
    left = Row(" ").extend(who_row(view, glyphs))
    if _is_left(view):
        left.add("  its runner is gone: the next one carries it on", Ink.WARN)
    elif not view.run.running and view.run.ended:
        left.add(f"  the last run: {view.run.ended}", Ink.LABEL)
    right = Row()
    if view.settings.paused:
        right.add(" PAUSED ", Ink.WARN_BADGE).add("  ")
    right.add("at the end: ", Ink.LABEL).add(leave_words(view.settings.leave)).add(" ")
    return left.with_right(right, width)


def _is_left(view: QueueView) -> bool:
    """Whether what stands as running has no runner any more, as far as that is known."""
    return view.running is not None and not view.run.running and not view.run.unknown


def who_row(view: QueueView, glyphs: Glyphs) -> Row:
    """Who runs the queue, where, since when."""
    run = view.run
    if not run.running:
        if run.unknown:
            return Row(f"{glyphs.pending} who runs it is not known: {run.unknown}", Ink.WARN)
        return Row(f"{glyphs.pending} nobody runs the queue", Ink.LABEL)
    where = "a simulated host of its own" if view.settings.simulated else "this machine"
    words = {"here": "run here", "this machine": f"run by process {run.pid} on {where}"}
    row = Row(f"{glyphs.running} {words.get(run.where, 'run by ' + run.who)}", Ink.BUSY)
    if run.since is not None:
        row.add(f" since {fmt.clock(run.since)[:5]}", Ink.LABEL)
    if run.stopping:
        row.add("  ").add(" STOPPING ", Ink.WARN_BADGE)
    if run.waiting:
        row.add(f"  {run.waiting}", Ink.WARN)
    elif run.step == "leaving":
        row.add(f"  leaving the unit in {run.detail}", Ink.LABEL)
    return row


def leave_words(leave: str) -> str:
    """In which configuration the unit is left."""
    return {
        "baseline": "as it was before",
        "best": "the fastest one",
        "last": "the last one",
    }.get(leave, leave)


def left_words(leave: str) -> str:
    """The same for a sentence, where no heading explains it."""
    return {
        "baseline": "as it was before the queue began",
        "best": "in the fastest of what this queue measures",
        "last": "in the configuration of the last experiment",
    }.get(leave, leave)


# ---- the table -----------------------------------------------------------------------------------


class Columns(NamedTuple):
    """Widths of the columns that share what the others leave."""

    title: int
    what: int
    """0 where it has no room."""


def columns_for(view: QueueView, width: int) -> Columns:
    """As wide as the longest title takes, and the rest for what goes on and came of it."""
    rest = _rest(width) - len(_GAP)
    if rest < 2 * _LEAST_TITLE:
        return Columns(max(8, rest + len(_GAP)), 0)
    longest = max((len(each.title) for each in view.experiments), default=0)
    most = rest - max(_LEAST_WHAT, rest * 2 // 5)
    title = max(_LEAST_TITLE, min(longest, most))
    return Columns(title, rest - title)


def heading(columns: Columns, width: int) -> Row:
    """The names of the columns."""
    row = Row().put("#", _PLACE, Ink.LABEL, right=True).add(_GAP)
    row.put("state", _STATE + 2, Ink.LABEL).add(_GAP)
    row.put("configuration", columns.title, Ink.LABEL).add(_GAP)
    if columns.what:
        words = "plan, step or result" if columns.what >= _WHAT_IN_FULL else "plan or result"
        row.put(words, columns.what, Ink.LABEL).add(_GAP)
    row.put("time", _TIME, Ink.LABEL, right=True)
    return row.add(f"{_GAP}note" if _notes_width(width) else "", Ink.LABEL).cut(width)


def line(
    experiment: Experiment,
    place: int | None,
    view: QueueView,
    width: int,
    glyphs: Glyphs,
    *,
    columns: Columns | None = None,
) -> Row:
    """One experiment in one line; `columns` spares to look at all titles for each."""
    symbol, ink = look_of(experiment, glyphs)
    title_width, what_width = columns or columns_for(view, width)
    row = Row().put("" if place is None else str(place), _PLACE, Ink.LABEL, right=True)
    row.add(_GAP).add(f"{symbol} ", ink).put(state_words(experiment), _STATE, ink).add(_GAP)
    strong = experiment.state is _State.RUNNING
    title_ink = Ink.STRONG if strong else Ink.LABEL if experiment.cleared else Ink.TEXT
    row.put(experiment.title, title_width, title_ink).add(_GAP)
    if what_width:
        what = what_row(experiment, view, what_width, marked=not _notes_width(width))
        row.extend(_padded(what, what_width)).add(_GAP)
    words, time_ink = time_words(experiment, view)
    row.put(words, _TIME, time_ink, right=True)
    if room := _notes_width(width):
        row.add(_GAP).extend(_notes_row(experiment, view, room))
    return row.cut(width)


def _padded(row: Row, width: int) -> Row:
    return Row().extend(row.cut(width)).to(width)


def _rest(width: int) -> int:
    """Columns for the title, and for what goes on."""
    notes = _notes_width(width)
    return width - _PLACE - _STATE - 2 - _TIME - (notes + len(_GAP) if notes else 0) - 3 * len(_GAP)


def _notes_width(width: int) -> int:
    return 0 if width < _NOTED else 10 if width < _NOTED_WELL else 20


def state_words(experiment: Experiment) -> str:
    """The state; of a running one its step."""
    if experiment.state is not _State.RUNNING:
        return experiment.state.value
    if experiment.cancel:
        return "cancelling"
    return experiment.step or "taken up"


def what_row(experiment: Experiment, view: QueueView, room: int, *, marked: bool = True) -> Row:
    """What goes on in it, or what came of it; for one that waits, what it will take.

    `marked`: a disturbed measurement is marked here.
    """
    result = view.results.get(experiment.id)
    if experiment.state is _State.FAILED:
        return Row(str((experiment.cause or {}).get("title", "")), Ink.BAD)
    if experiment.state is _State.RUNNING:
        return _running_row(experiment, view, room)
    if experiment.state in ENDED:
        return Row() if result is None else result_row(result, room, marked=marked)
    leg = view.leg(experiment.id)
    load = Row() if leg is None or not leg.loads else Row("load, ", Ink.WARN)
    words = "measured already" if experiment.reused else plan_words(experiment)
    if load.width + len(words) > room:
        words = _whole(words.removeprefix("plan "), room - load.width)
    return load.add(words, Ink.LABEL)


def _running_row(experiment: Experiment, view: QueueView, room: int) -> Row:
    """How far it is; of one that runs elsewhere what the store tells: cells that are whole."""
    run, result = view.run, view.results.get(experiment.id)
    if run.where == "here":
        progress = run.progress
        return Row(run.detail, Ink.LABEL) if progress is None else _progress_row(progress, room)
    row = Row() if result is None else result_row(result).add("  ")
    if experiment.began is None:
        return row
    return row.add(f"since {fmt.clock(experiment.began)}", Ink.LABEL)


def _progress_row(progress: Progress, room: int) -> Row:
    return Row(_whole(progress_words(progress), room), Ink.BUSY)


def _whole(words: str, room: int) -> str:
    """As many parts of a list as fit, each one whole."""
    while len(words) > room and ", " in words:
        words = words.rpartition(", ")[0]
    return words


def plan_words(experiment: Experiment) -> str:
    """How it is measured, in short."""
    plan = experiment.plan
    if plan.name:
        return f"plan {plan.name}"
    if plan.command:
        return "external bench"
    cells = ",".join(map(str, plan.concurrency))
    repeats = "1 repeat" if plan.repeats == 1 else f"{plan.repeats} repeats"
    return f"{plan.prompts} x{cells}, {repeats}"


def result_row(result: Result, room: int = 1_000, *, marked: bool = True) -> Row:
    """Rate, acceptance length, coding tasks; the last ones left out where they have no room."""
    row = Row()
    if result.user_rate is not None:
        row.add(fmt.tokens_per_second(result.user_rate), Ink.STRONG).add(" tok/s", Ink.LABEL)
    if result.acceptance is not None:
        word = " accept " if room >= _ACCEPT_FROM else " len "
        row.add(word, Ink.LABEL).add(f"{result.acceptance:.2f}", Ink.STRONG)
    if result.passed is not None:
        _add_whole(row, Row(f"  {result.passed}/{result.tasks}"), room)
    if result.disturbed and marked:
        _add_whole(row, Row("  disturbed", Ink.WARN), room)
    return row


def _add_whole(row: Row, piece: Row, room: int) -> None:
    if row.width + piece.width <= room:
        row.extend(piece)


def progress_words(progress: Progress) -> str:
    """How far a bench is, in a few words."""
    words = []
    if progress.step is BenchStep.COMMAND:
        return "external bench"
    if progress.cells > 1:
        words.append(f"cell {progress.cell}/{progress.cells}")
    if progress.step is BenchStep.PREPARING:
        return ", ".join([*words, "preparing"])
    kind = "warm-up" if progress.step is BenchStep.WARMING_UP else "repeat"
    most = "" if progress.step is BenchStep.WARMING_UP else f"/{progress.batches}"
    words.append(f"{kind} {progress.batch}{most}")
    if progress.rate is not None:
        words.append(f"{fmt.tokens_per_second(progress.rate)} tok/s")
    return ", ".join(words)


def time_words(experiment: Experiment, view: QueueView) -> tuple[str, Ink]:
    """When it ends, or how long it took."""
    began, ended = experiment.began, experiment.ended
    if experiment.state in ENDED:
        took = ended - began if began is not None and ended is not None else None
        return ("" if took is None else about(took)), Ink.LABEL
    leg = view.leg(experiment.id)
    if leg is None or leg.ends is None or experiment.state is _State.HELD:
        return "", Ink.LABEL
    if leg.ends < 1:  # it takes longer than it was thought to
        return "soon", Ink.TEXT
    return f"in {about(leg.ends)}", Ink.TEXT


def _notes_row(experiment: Experiment, view: QueueView, room: int) -> Row:
    """The first that is to be noted, and of the others what has room; warnings first."""
    result = view.results.get(experiment.id)
    warnings = ["other base"] * (experiment.id in view.moved)
    warnings += ["disturbed"] * (result is not None and result.disturbed)
    words = [(each, Ink.WARN) for each in warnings]
    words += [(each, Ink.LABEL) for each in noted(experiment)]
    row = Row()
    for word, ink in words:
        _add_whole(row, Row(f", {word}" if row.width else word, ink), room)
    return row


def noted(experiment: Experiment) -> list[str]:
    """What is told of it beside what it measures, a word each; the details have it in full."""
    match = experiment.match
    control = match is not None and match.policy == CONTROL
    there = {
        "baseline": experiment.baseline,
        "control": control,
        "matched": match is not None and not control,
        "hypothesis": bool(experiment.hypothesis),
        "note": bool(experiment.note) and not control,
    }
    return [word for word, given in there.items() if given]


def places(experiments: Iterable[Experiment]) -> dict[str, int]:
    """The place in the queue, from 1, of everything that has not ended."""
    there = [each.id for each in experiments if each.state not in ENDED]
    return {each: place for place, each in enumerate(there, 1)}
