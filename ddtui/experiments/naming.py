"""How experiments are named and shown: titles, short ids, and requests without their secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment
from ddtui.core.knobs import KNOBS, NONE
from ddtui.core.launch import Request, Value
from ddtui.core.redact import redact_argv, redact_mapping, safe_text

SHORT = 8
"""Characters of an id that are shown."""
LONGEST_TITLE = 200
"""Characters."""


def short_id(experiment_id: str) -> str:
    """The part of an id that is shown; `Queue.find` takes it."""
    return experiment_id[:SHORT]


def redacted(request: Request) -> Request:
    """A request without secrets, to be shown. It cannot be applied any more."""
    plain = msgspec.structs.asdict(request)
    for name in ("knobs", "flags", "environment"):
        plain[name] = redact_mapping(plain[name])
    return msgspec.convert(plain, Request)


def shown(experiment: Experiment) -> Experiment:
    """An experiment without secrets, to be shown."""
    return msgspec.structs.replace(
        experiment,
        request=redacted(experiment.request),
        knobs=redact_mapping(experiment.knobs),
        title=safe_text(experiment.title, LONGEST_TITLE),
        hypothesis=safe_text(experiment.hypothesis, len(experiment.hypothesis)),
        note=safe_text(experiment.note, len(experiment.note)),
        plan=msgspec.structs.replace(experiment.plan, command=redact_argv(experiment.plan.command)),
        cause=None if experiment.cause is None else redact_mapping(experiment.cause),
    )


def value_text(value: Value) -> str:
    """A knob's or flag's value, as `--set` takes it."""
    if value is None:
        return NONE
    return str(value).lower() if isinstance(value, bool) else str(value)


def option_text(value: object) -> str:
    """A bench plan's option, as a line shows it."""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def own_options(plan: BenchPlan) -> dict[str, str]:
    """The options in which a bench plan differs from the default one, as text."""
    default = msgspec.to_builtins(BenchPlan())
    return {
        name: option_text(value)
        for name, value in msgspec.to_builtins(plan).items()
        if name != "name" and value != default[name]
    }


def title_of(request: Request) -> str:
    """What a request asks for in short: `fast budget 16 topk 4 --page-size 64`; no secrets."""
    words = [request.preset, *_words(redacted(request)).values()]
    return safe_text(" ".join(filter(None, words)) or "as it is", LONGEST_TITLE)


def retitled(title: str, before: Request, after: Request) -> str:
    """The title after a request was changed: what it says of the changed values stays true."""
    if title == title_of(before):
        return title_of(after)
    old, new = _words(redacted(before)), _words(redacted(after))
    padded = f" {title} "
    for name in {**old, **new}:
        was, now = old.get(name, ""), new.get(name, "")
        if was == now:
            continue
        if was and f" {was} " in padded:
            padded = padded.replace(f" {was} ", f" {now} " if now else " ", 1)
        elif now:
            padded += f"{now} "
    return safe_text(padded.strip(), LONGEST_TITLE)


def _words(request: Request) -> dict[str, str]:
    """What stands in a title for each knob, flag and variable, in the order of the knobs."""
    known = [name for name in KNOBS if name in request.knobs]
    rest = [name for name in request.knobs if name not in KNOBS]
    words = {name: f"{name} {value_text(request.knobs[name])}" for name in (*known, *rest)}
    words |= {f"--{name}": text for name, text in _flags(request.flags)}
    pairs: Mapping[str, str | None] = request.environment
    return words | {f"env:{name}": f"{name}={value_text(pairs[name])}" for name in pairs}


def _flags(flags: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    for name, value in flags.items():
        yield name, f"--{name}" if value is True else f"--{name} {value_text(value)}"
