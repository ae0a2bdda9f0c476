"""A queue and its experiments, as text and as JSON. Nothing of it holds a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ddtui.cli.output import Paint, clean, narrowed, table, wrapped
from ddtui.cli.queue_beside import Beside
from ddtui.core.bench_plan import BenchPlan, short_name
from ddtui.core.experiment import (
    ENDED,
    WAITING,
    Experiment,
    ExperimentState,
    Match,
    QueueEvent,
    QueueSettings,
)
from ddtui.core.local_time import moment
from ddtui.core.redact import safe_text
from ddtui.core.text import clean as cut
from ddtui.experiments.naming import own_options, short_id, shown, value_text

if TYPE_CHECKING:
    from ddtui.cli.queue import Changed

_COLOURS = {
    ExperimentState.RUNNING: "cyan",
    ExperimentState.DONE: "green",
    ExperimentState.FAILED: "red",
    ExperimentState.HELD: "yellow",
    ExperimentState.CANCELLED: "dim",
}
_HEAD = ("#", "ID", "STATE", "CONFIGURATION", "TOK/S", "ACCEPT", "PLAN", "TRIES", "WHY")
_TO_RIGHT = {"#", "TOK/S", "ACCEPT", "TRIES"}
_GIVE = (
    *(("TRIES", 0), ("CONFIGURATION", 40), ("WHY", 16), ("PLAN", 0), ("WHY", 0)),
    *(("CONFIGURATION", 26), ("ACCEPT", 0), ("TOK/S", 0), ("CONFIGURATION", 12)),
)
"""How the columns of the list give way: what tells rows apart stays; `show` has all in full."""
LEFT = "interrupted"
"""How a state is called that says `running`, where nobody runs it."""
_WIDE = 60
"""Most characters of a free text in a table."""


def places(queue: Sequence[Experiment]) -> dict[str, int]:
    """The place in the queue, from 1, of everything that has not ended, by id."""
    there = [each.id for each in queue if each.state not in ENDED]
    return {each: place for place, each in enumerate(there, 1)}


def experiment_report(experiment: Experiment, place: int | None, beside: Beside) -> dict[str, Any]:
    """An experiment for JSON: its fields without those of order, with what stands beside them."""
    plain: dict[str, Any] = msgspec.to_builtins(shown(experiment))
    del plain["position"], plain["ended_as"]
    return {
        "id": plain.pop("id"),
        "short": short_id(experiment.id),
        "place": place,
        **plain,
        "interrupted": experiment.id in beside.left,
        "result": msgspec.to_builtins(beside.results.get(experiment.id)),
    }


def experiment_reports(
    experiments: Sequence[Experiment], queue: Sequence[Experiment], beside: Beside
) -> list[dict[str, Any]]:
    """Experiments for JSON, each with its place in `queue`."""
    there = places(queue)
    return [experiment_report(each, there.get(each.id), beside) for each in experiments]


def queue_report(
    queue: Sequence[Experiment], settings: QueueSettings, version: int, beside: Beside
) -> dict[str, Any]:
    """A whole queue for JSON."""
    return {
        **settings_report(settings),
        "version": version,
        "experiments": experiment_reports(queue, queue, beside),
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
    beside: Beside,
    paint: Paint,
    width: int | None = None,
) -> Iterator[str]:
    """A line about the queue, then one for each experiment, cut to `width` columns."""
    counts = {state: sum(each.state is state for each in queue) for state in ExperimentState}
    counts[ExperimentState.RUNNING] -= len(beside.left)
    counted = [(count, state.value) for state, count in counts.items()]
    words = ", ".join(
        f"{count} {name}" for count, name in [(len(beside.left), LEFT), *counted] if count
    )
    about = f"{settings.host}: {words or 'nothing queued'}; {settings_line(settings)}"
    yield from wrapped(about, width)
    if queue:
        yield from _table(queue, beside, paint, width)
    if beside.left:
        yield from wrapped(f"{LEFT}: {_go_on(settings.host)}", width)


def _table(
    queue: Sequence[Experiment], beside: Beside, paint: Paint, width: int | None
) -> Iterator[str]:
    there = places(queue)
    rows = [_row(each, there.get(each.id), beside) for each in map(shown, queue)]
    needless = {n for n, name in enumerate(_HEAD) if not any(row[n] for row in rows)}
    give = [(_HEAD.index(name), least) for name, least in _GIVE]
    head, *cells = narrowed([_HEAD, *rows], width, give, without=needless)
    right = [n for n, name in enumerate(head) if name in _TO_RIGHT]
    first, *lines = table([head, *cells], right=right)
    yield first
    for each, line in zip(queue, lines, strict=True):
        colour = "yellow" if each.id in beside.left else _COLOURS.get(each.state)
        yield paint(line, *filter(None, [colour]))
    gone = [name for n, name in enumerate(_HEAD) if name not in head and n not in needless]
    if gone:
        yield from wrapped(f"left out at this width: {', '.join(gone)} (--json has all)", width)


def _row(experiment: Experiment, place: int | None, beside: Beside) -> tuple[str, ...]:
    result = beside.results.get(experiment.id)
    return (
        "" if place is None else str(place),
        short_id(experiment.id),
        state_text(experiment, beside),
        cut(experiment.title, _WIDE) + (" (baseline)" if experiment.baseline else ""),
        "" if result is None or result.user_rate is None else f"{result.user_rate:.0f}",
        "" if result is None or result.acceptance is None else f"{result.acceptance:.2f}",
        short_name(experiment.plan),
        str(experiment.attempts) if experiment.attempts > 1 else "",
        cut(_why(experiment), _WIDE),
    )


def _why(experiment: Experiment) -> str:
    """Why it failed; else what is expected of it, or where its budget comes from."""
    if experiment.state is ExperimentState.FAILED and experiment.cause:
        return str(experiment.cause.get("title", ""))
    return experiment.hypothesis or experiment.note or match_text(experiment.match)


def match_text(match: Match | None) -> str:
    """Where a matched value comes from: `nodes: ceil(4 x 15 / 7) = 9, for budget 4`."""
    return "" if match is None else f"{match.policy}: {match.formula}, to match {match.reference}"


def state_text(experiment: Experiment, beside: Beside) -> str:
    """The state with the step, whether it is to be cancelled, and whether its runner is gone."""
    text = experiment.state.value
    if experiment.state is ExperimentState.RUNNING:
        text = LEFT if experiment.id in beside.left else text
        text += f": {experiment.step}" if experiment.step else ""
        text += ", to be cancelled" if experiment.cancel else ""
    return text


def _go_on(host: str) -> str:
    return f"nobody runs it now from this machine; `ddtui run {clean(host)}` carries it on"


def changed_lines(
    changed: Sequence[Changed], queue: Sequence[Experiment], beside: Beside
) -> Iterator[str]:
    """A line for each experiment that was changed: what was done, what it is now, and where."""
    there = places(queue)
    for one in changed:
        each = shown(one.experiment)
        what = "to be cancelled" if each.cancel and one.what == "cancelled" else one.what
        place = f", place {there[each.id]}" if each.id in there and each.state in WAITING else ""
        name = f"{short_id(each.id)} {clean(each.title)}"
        yield f"{what}: {name}: {state_text(each, beside)}{place}"
        if each.match is not None:
            yield f"       {clean(match_text(each.match))}"


def detail_lines(
    experiment: Experiment,
    place: int | None,
    log: Sequence[QueueEvent],
    beside: Beside,
    paint: Paint,
) -> Iterator[str]:
    """All that is known of an experiment."""
    each = shown(experiment)
    yield paint(f"{each.id}  {clean(each.title)}", "bold")
    where = "" if place is None else f", place {place} of the queue"
    gone = f" ({_go_on(each.host)})" if each.id in beside.left else ""
    cleared = ", cleared from the list" if each.cleared else ""
    yield f"{state_text(each, beside)}{gone}{where}{cleared}"
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
        yield "matched", clean(match_text(each.match))
    for name in ("sweep", "hypothesis", "note", "by", "runner", "measurement", "like"):
        if text := getattr(each, name):
            yield name, clean(text)
    if each.baseline:
        yield "baseline", "the others of its sweep are compared with it"
    for name in ("created", "began", "ended"):
        if (at := getattr(each, name)) is not None:
            yield name, moment(at)


def _plan_text(plan: BenchPlan) -> str:
    options = ", ".join(f"{name} {text}" for name, text in own_options(plan).items())
    return clean(f"{short_name(plan)}{f' ({options})' if options else ''}")
