"""What is asked before a queue is run, stopped, or left, in words. Nothing here does anything."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.snapshot import Snapshot
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row, wrapped
from ddtui.ui.questions import at_work, unit_of, word_for
from ddtui.ui.queue_rows import eta_row, left_words, progress_words, state_words
from ddtui.ui.queue_source import QueueView, RunPlan
from ddtui.ui.screens.confirm import Words

_MOST = 8
_State = ExperimentState


def start_words(plan: RunPlan, snapshot: Snapshot, now: float) -> Words:
    """Before the queue is run here: what is loaded, for how long, and what the unit is left in."""
    view = plan.view
    busy, requests = at_work(snapshot, now)
    going_on = view.in_state(_State.RUNNING, _State.PENDING)

    def body(width: int) -> Sequence[Row]:
        if plan.holder:
            rows = wrapped(f"Somebody runs this queue already: {plan.holder}.", width, Ink.BAD)
            return [*rows, Row("Wait until that is done, or stop it.")]
        count = len(going_on)
        rows = [Row(f"{count} experiment{'' if count == 1 else 's'}: ", Ink.STRONG)]
        rows[0].extend(eta_row(view, now))
        unit = unit_of(snapshot)
        loads = view.eta.reloads if view.eta is not None else 1
        if loads:
            words = f"The engine stops: {unit}, each time that it is loaded. {requests}"
            rows += wrapped(words, width, Ink.BAD if busy else Ink.WARN)
        else:
            rows += wrapped(f"{unit} is loaded already as the next ones need it.", width)
        words = f"At the end the unit is left {left_words(view.settings.leave)}."
        rows += wrapped(words, width)
        if moved := sum(each.id in view.moved for each in going_on):
            words = f"{moved} of them would be another configuration than when they were added:"
            why = "they are made on what is in force now, and that has changed."
            rows += wrapped(f"{words} {why}", width, Ink.WARN)
        if view.settings.paused:
            rows += wrapped("The queue is paused: nothing is taken up until it goes on.", width)
        if not plan.sandboxed:
            words = "The coding tasks are not judged: this machine cannot isolate a model's code"
            rows += wrapped(f"{words} (see ddtui doctor).", width, Ink.WARN)
        rows += [Row(), *_next_rows(going_on, view, width)]
        sources = view.eta.sources if view.eta is not None else ()
        rows += [Row()] * bool(sources)
        return [*rows, *(row for each in sources for row in wrapped(each, width, Ink.LABEL))]

    action = "" if plan.holder else "Start"
    return Words(
        title=f"Run the queue of {fmt.clean(snapshot.host)[:40]} here",
        body=body,
        action=action,
        typed=word_for(snapshot) if busy and action else "",
        cancel="Cancel" if action else "Close",
    )


def what_runs(view: QueueView) -> object:
    """All that the question before a run rests on, to tell whether it holds still."""
    going_on = view.in_state(_State.RUNNING, _State.PENDING)
    each_in_turn = [(each.id, each.state, each.title, each.request, each.plan) for each in going_on]
    settings, run = view.settings, view.run
    return each_in_turn, settings.leave, settings.paused, run.where, run.who


def _next_rows(going_on: Sequence[Experiment], view: QueueView, width: int) -> list[Row]:
    rows = []
    for number, each in enumerate(going_on[:_MOST], 1):
        leg = view.leg(each.id)
        row = Row().put(str(number), 3, Ink.LABEL, right=True).add("  ").add(each.title)
        if each.state is _State.RUNNING:
            row.add(f"  carried on at the step: {state_words(each)}", Ink.LABEL)
        elif leg is not None and leg.loads:
            row.add("  load", Ink.WARN)
        rows.append(row.cut(width))
    if len(going_on) > _MOST:
        rows.append(Row(f"     and {len(going_on) - _MOST} more", Ink.LABEL))
    return rows


def stop_words(view: QueueView) -> Words:
    """Before whoever runs the queue is asked to stop."""

    def body(width: int) -> Sequence[Row]:
        rows = _under_way(view, width)
        words = (
            "What is measured is kept, the cell under way is given up. The engine stays as it is"
        )
        rows += wrapped(f"{words}; the next run goes on from there.", width)
        if view.run.where == "elsewhere":
            rows += wrapped(f"It is run by {view.run.who}.", width, Ink.WARN)
        return rows

    return Words("Stop running the queue", body, "Stop", cancel="Go on")


def cancel_words(experiment: Experiment) -> Words:
    """Before an experiment that runs is cancelled."""

    def body(width: int) -> Sequence[Row]:
        rows = wrapped(f"{experiment.title}: {state_words(experiment)}", width, Ink.STRONG)
        words = "It is ended at its next step; what is whole of its measurement is kept as partial."
        return [*rows, *wrapped(f"{words} A load that is under way is not broken off.", width)]

    return Words("Cancel the experiment that runs", body, "Cancel it", cancel="Let it run")


def careful_words(title: str, action: str, what: str) -> Words:
    """Before something that a runner takes up at once."""

    def body(width: int) -> Sequence[Row]:
        rows = wrapped(what, width, Ink.STRONG)
        words = "The queue is being run: it is taken up in its turn, and the engine loaded for it."
        return [*rows, *wrapped(words, width, Ink.WARN)]

    return Words(title, body, action)


def leave_app_words(view: QueueView, host: str, *, simulated: bool) -> Words:
    """Before ddtui is left while it runs the queue; a simulated host ends with it."""

    def body(width: int) -> Sequence[Row]:
        rows = [*_under_way(view, width), Row()]
        if simulated:
            words = "The simulated host ends with ddtui: what is measured by then is kept."
            return [*rows, *wrapped(words, width)]
        rows += wrapped("Hand over: a runner without a terminal goes on with it.", width)
        rows += wrapped(
            f"  ddtui run {host} --status tells how far it is, --stop stops it", width, Ink.LABEL
        )
        rows += wrapped("Stop it: what is measured is kept; the engine stays as it is.", width)
        words = "Either way the cell under way is measured anew; a load goes on where it is."
        return [*rows, *wrapped(words, width, Ink.LABEL)]

    title = "ddtui runs the queue here"
    if simulated:
        return Words(title, body, "Leave", cancel="Stay")
    return Words(title, body, "Hand over", refuse="Stop it", cancel="Stay")


def _under_way(view: QueueView, width: int) -> list[Row]:
    running = view.running
    if running is None:
        return []
    progress = view.run.progress
    words = f"{running.title}: {state_words(running)}"
    if progress is not None:
        words += f", {progress_words(progress)}"
    left = view.in_state(_State.PENDING)
    rows = wrapped(words, width, Ink.STRONG)
    return rows + ([Row(f"{len(left)} wait after it", Ink.LABEL)] if left else [])
