"""A queue and its experiments, as text and as JSON. Nothing of it holds a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ddtui.cli.output import Paint, clean, moment, narrowed, table, wrapped
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import (
    ENDED,
    WAITING,
    Experiment,
    ExperimentState,
    QueueEvent,
    QueueSettings,
)
from ddtui.core.redact import safe_text
from ddtui.core.text import clean as cut
from ddtui.experiments.naming import short_id, shown, value_text

_COLOURS = {
    ExperimentState.RUNNING: "cyan",
    ExperimentState.DONE: "green",
    ExperimentState.FAILED: "red",
    ExperimentState.HELD: "yellow",
    ExperimentState.CANCELLED: "dim",
}
_GIVE = ((6, 16), (3, 26), (6, 10), (3, 16), (6, 0), (3, 12))
"""How the columns of the list give way: the reason, then the title; `show` has them in full."""
_WIDE = 60
"""Most characters of a free text in a table."""


def places(queue: Sequence[Experiment]) -> dict[str, int]:
    """The place in the queue, from 1, of everything that has not ended, by id."""
    there = [each.id for each in queue if each.state not in ENDED]
    return {each: place for place, each in enumerate(there, 1)}


def experiment_report(experiment: Experiment, place: int | None) -> dict[str, Any]:
    """An experiment for JSON: its fields, with its place and short id, without `position`."""
    plain: dict[str, Any] = msgspec.to_builtins(shown(experiment))
    del plain["position"]
    return {"id": plain.pop("id"), "short": short_id(experiment.id), "place": place, **plain}


def experiment_reports(
    experiments: Sequence[Experiment], queue: Sequence[Experiment]
) -> list[dict[str, Any]]:
    """Experiments for JSON, each with its place in `queue`."""
    there = places(queue)
    return [experiment_report(each, there.get(each.id)) for each in experiments]


def queue_report(
    queue: Sequence[Experiment], settings: QueueSettings, version: int
) -> dict[str, Any]:
    """A whole queue for JSON."""
    return {
        **settings_report(settings),
        "version": version,
        "experiments": experiment_reports(queue, queue),
    }


def settings_report(settings: QueueSettings) -> dict[str, Any]:
    """What holds for a queue, for JSON."""
    return {
        "host": settings.host,
        "simulated": settings.simulated,
        "paused": settings.paused,
        "leave": settings.leave,
    }


def event_report(event: QueueEvent) -> dict[str, Any]:
    """An entry of an experiment's log, for JSON."""
    return {
        "at": event.at,
        "who": event.who,
        "what": event.what,
        "detail": safe_text(event.detail, len(event.detail)),
    }


def settings_line(settings: QueueSettings) -> str:
    """What holds for a queue, in a line."""
    paused = "paused; " if settings.paused else ""
    return f"{paused}at the end the unit is left in the configuration: {settings.leave}"


def queue_lines(
    queue: Sequence[Experiment],
    settings: QueueSettings,
    paint: Paint,
    width: int | None = None,
) -> Iterator[str]:
    """A line about the queue, then one for each experiment, cut to `width` columns."""
    counts = {state: sum(each.state is state for each in queue) for state in ExperimentState}
    words = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    about = f"{settings.host}: {words or 'nothing queued'}; {settings_line(settings)}"
    yield from wrapped(about, width)
    if queue:
        there = places(queue)
        rows = [_row(shown(each), there.get(each.id)) for each in queue]
        head = ("#", "ID", "STATE", "CONFIGURATION", "PLAN", "TRIES", "WHY")
        lines = table(narrowed([head, *rows], width, _GIVE), right=(0, 5))
        yield lines[0]
        for each, line in zip(queue, lines[1:], strict=True):
            yield paint(line, *filter(None, [_COLOURS.get(each.state)]))


def _row(experiment: Experiment, place: int | None) -> tuple[str, ...]:
    why = experiment.hypothesis or experiment.note
    if experiment.state is ExperimentState.FAILED and experiment.cause:
        why = str(experiment.cause.get("title", ""))
    return (
        "" if place is None else str(place),
        short_id(experiment.id),
        state_text(experiment),
        cut(experiment.title, _WIDE) + (" (baseline)" if experiment.baseline else ""),
        experiment.plan.name or "default",
        str(experiment.attempts or ""),
        cut(why, _WIDE),
    )


def state_text(experiment: Experiment) -> str:
    """The state with the step, and whether it is to be cancelled."""
    text = experiment.state.value
    if experiment.state is ExperimentState.RUNNING:
        text += f": {experiment.step}" if experiment.step else ""
        text += ", to be cancelled" if experiment.cancel else ""
    return text


def changed_lines(experiments: Sequence[Experiment], queue: Sequence[Experiment]) -> Iterator[str]:
    """A line for each experiment that was changed: what it is now, and where."""
    there = places(queue)
    for each in map(shown, experiments):
        place = f", place {there[each.id]}" if each.id in there and each.state in WAITING else ""
        yield f"{short_id(each.id)} {clean(each.title)}: {state_text(each)}{place}"


def detail_lines(
    experiment: Experiment, place: int | None, log: Sequence[QueueEvent], paint: Paint
) -> Iterator[str]:
    """All that is known of an experiment."""
    each = shown(experiment)
    yield paint(f"{each.id}  {clean(each.title)}", "bold")
    where = "" if place is None else f", place {place} of the queue"
    yield f"{state_text(each)}{where}{', cleared from the list' if each.cleared else ''}"
    yield from table(list(_facts(each)))
    if each.cause:
        yield f"cause: {clean(str(each.cause.get('title', '')))}"
        for line in each.cause.get("evidence", ()):
            yield f"       | {clean(str(line))}"
        if remedy := each.cause.get("remedy"):
            yield f"       {clean(str(remedy))}"
    if log:
        rows = [
            (moment(entry.at), entry.what, clean(entry.who), safe_text(entry.detail, _WIDE))
            for entry in log
        ]
        yield from table([("WHEN", "WHAT", "WHO", ""), *rows])


def _facts(each: Experiment) -> Iterator[tuple[str, str]]:
    if each.request.preset:
        yield "preset", clean(each.request.preset)
    for prefix, values in (
        ("", each.request.knobs),
        ("--", each.request.flags),
        ("", each.request.environment),
    ):
        for name, value in values.items():
            yield f"{prefix}{clean(name)}", clean(value_text(value))
    others = [f"{n} {value_text(v)}" for n, v in each.knobs.items() if n not in each.request.knobs]
    if others:
        yield "beside", clean(", ".join(others))
    yield "plan", _plan_text(each.plan)
    if each.match is not None:
        yield "matched", f"{each.match.policy}: {each.match.formula} (to {each.match.reference})"
    for name in ("sweep", "hypothesis", "note", "by", "runner", "measurement", "like"):
        if text := getattr(each, name):
            yield name, clean(text)
    if each.baseline:
        yield "baseline", "the others of its sweep are compared with it"
    for name in ("created", "began", "ended"):
        if (at := getattr(each, name)) is not None:
            yield name, moment(at)


def _plan_text(plan: BenchPlan) -> str:
    default = msgspec.to_builtins(BenchPlan())
    own = {
        name: value
        for name, value in msgspec.to_builtins(plan).items()
        if name != "name" and value != default[name]
    }
    options = ", ".join(f"{name} {_option(value)}" for name, value in own.items())
    return clean(f"{plan.name or 'default'}{f' ({options})' if options else ''}")


def _option(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
