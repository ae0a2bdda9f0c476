"""The command lines that bring a configuration back and measure it again. Pure.

They are for a POSIX shell, every word quoted where it needs to be. A secret is never in them: what
is left out is named beside.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment
from ddtui.core.knobs import KNOBS, NONE
from ddtui.core.launch import Request, Value
from ddtui.core.measurement import Measurement
from ddtui.core.redact import MASK, is_secret_name, redact_argv
from ddtui.core.text import clean

_LONGEST = 4096
"""Characters of a value, as `--set` takes them."""


def commands_of(
    host: str, experiment: Experiment | None, measured: Measurement | None, *, unit: str = ""
) -> tuple[str, tuple[str, ...]]:
    """The commands, and the names of what is secret and therefore missing.

    Args:
        host: The host's name.
        experiment: Whose request is applied; else the knobs in force are.
        measured: Whose plan is run, where there is no experiment.
        unit: Named in the commands where it is not empty.
    """
    if experiment is not None:
        request, plan = experiment.request, experiment.plan
    elif measured is not None:
        known = {name: value for name, value in measured.knobs.items() if name in KNOBS}
        request, plan = Request(knobs=dict(known)), measured.plan
    else:
        return "", ()
    words, left_out = assignments_of(request)
    where = ["--unit", unit] if unit else []
    bench = ["ddtui", "bench", host, *plan_options(plan), *where]
    if not words:
        return _line(bench), left_out
    apply = ["ddtui", "apply", host]
    for word in words:
        apply += ["--set", word]
    return f"{_line([*apply, *where])} && {_line(bench)}", left_out


def assignments_of(request: Request) -> tuple[list[str], tuple[str, ...]]:
    """What `--set` takes to ask for the same, and the names of secrets that are left out."""
    words, secret = [], []
    for name, value in _named(request):
        plain = name.partition(":")[2] or name
        text = _text(value)
        hidden = (is_secret_name(plain) and value is not None) or MASK in redact_argv([text])[0]
        if hidden:
            secret.append(name)
        else:
            words.append(f"{name}={text}")
    return words, tuple(secret)


def plan_options(plan: BenchPlan) -> list[str]:
    """Options of `ddtui bench` that give this plan: its name, or what differs from the default."""
    if plan.name:
        return ["--plan", plan.name]
    usual = BenchPlan()
    words: list[str] = []
    for field in BenchPlan.__struct_fields__:
        value = getattr(plan, field)
        if value != getattr(usual, field):
            words += ["--set", f"{field}={_plan_text(value)}"]
    return words


def _named(request: Request) -> Iterator[tuple[str, Value]]:
    yield from request.knobs.items()
    yield from ((f"flag:{name}", value) for name, value in request.flags.items())
    yield from ((f"env:{name}", value) for name, value in request.environment.items())


def _text(value: Value) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean(str(value), _LONGEST)


def _plan_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return _text(value if isinstance(value, str | int | float | bool) else None)


def _line(words: list[str]) -> str:
    return shlex.join(clean(word, _LONGEST + 100) for word in words)
