"""The command lines that bring a configuration back and measure it again. Pure.

They are for a POSIX shell, every word quoted where it needs to be. A secret is never in them: what
is left out is named beside.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping

import msgspec
import tomlkit

from ddtui.config.bench_plan_tables import BUILT_IN
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.configuration_key import flags_of
from ddtui.core.experiment import Experiment
from ddtui.core.knobs import KNOBS, NONE
from ddtui.core.launch import Request, Value
from ddtui.core.measurement import Measurement
from ddtui.core.redact import MASK, is_secret_name, redact_argv
from ddtui.core.text import clean
from ddtui.experiments.launch_differences import LaunchDifferences

_WORDS = frozenset({"true", "false", NONE})
_NO_DIFFERENCES = LaunchDifferences()
_LONGEST = 4096
"""Characters of a value, as `--set` takes them."""


def commands_of(
    host: str,
    experiment: Experiment | None,
    measured: Measurement | None,
    *,
    unit: str = "",
    among: LaunchDifferences = _NO_DIFFERENCES,
    plans: Mapping[str, BenchPlan] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The commands, and the names of what is secret and therefore missing.

    Args:
        host: The host's name.
        experiment: Whose request is applied; else the flags that were in force are.
        measured: Whose plan is run, where there is no experiment.
        unit: Named in the commands where it is not empty.
        among: What it differs in from what else was measured on its unit.
        plans: Bench plans that can be named; None where that is not known, and names are believed.
    """
    if experiment is not None:
        request, plan = experiment.request, experiment.plan
    elif measured is not None:
        request, plan = _in_force(measured), measured.plan
    else:
        return "", ()
    words, left_out = assignments_of(among.completed(request, measured))
    where = ["--unit", unit] if unit else []
    before, options, hidden = plan_options(plan, plans)
    asked = list(_each("--set", words))
    if not words:
        verbs = [["bench", host, *options, *where]]
    elif any(each is not None and each.simulated for each in (experiment, measured)):
        # A simulated host ends with its verb: one that loads it and measures is needed.
        verbs = [
            ["queue", host, "add", "--first", *asked, *options],
            ["run", host, "--once", *where],
        ]
    else:
        verbs = [["apply", host, *asked, *where], ["bench", host, *options, *where]]
    lines = [_line(["ddtui", *each]) for each in verbs]
    return " && ".join([*before, *lines]), (*left_out, *hidden)


def _in_force(measured: Measurement) -> Request:
    """What brings a configuration back that nobody asked for by name.

    Its flags as they were given: a knob that the server reports need not have a flag there.
    """
    known = measured.provenance
    if not known.argv:
        return Request(knobs={name: told for name, told in measured.knobs.items() if name in KNOBS})
    flags: dict[str, Value] = {name: text or True for name, text in flags_of(known.argv).items()}
    return Request(flags=flags, environment={**known.environment})


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


def plan_options(
    plan: BenchPlan, plans: Mapping[str, BenchPlan] | None = None
) -> tuple[list[str], list[str], tuple[str, ...]]:
    """What gives this plan to `ddtui bench`: commands to run before, options, names of secrets.

    A plan has a name, or is the default one; any other is written into a file first. So is one
    whose name is another plan's by now, or nobody's: it was edited since, or came from a file.
    """
    if plan == BenchPlan():
        return [], [], ()
    known = BUILT_IN.get(plan.name, plan) if plans is None else plans.get(plan.name)
    if plan.name and known == plan:
        return [], ["--plan", plan.name], ()
    if any(MASK in word for word in redact_argv(plan.command)):
        return [], [], ("bench command",)
    lines = [f"[bench.{plan.name or 'again'}]", *_plan_lines(plan)]
    file = f"bench-{hashlib.sha256(msgspec.json.encode(lines)).hexdigest()[:8]}.toml"
    writing = _line(["printf", r"%s\n", *lines])
    return [f"{writing} > {file}"], ["--plan", file], ()


def _plan_lines(plan: BenchPlan) -> Iterator[str]:
    """What differs from the default plan, as TOML."""
    usual = BenchPlan()
    for field in BenchPlan.__struct_fields__:
        value = getattr(plan, field)
        if field != "name" and value != getattr(usual, field):
            plain = list(value) if isinstance(value, tuple) else value
            yield f"{field} = {tomlkit.item(plain).as_string()}"


def _named(request: Request) -> Iterator[tuple[str, Value]]:
    yield from request.knobs.items()
    for name, value in request.flags.items():
        # As a flag's value these words would take it away, or set it bare.
        is_word = isinstance(value, str) and value.lower() in _WORDS
        yield f"{'text' if is_word else 'flag'}:{name}", value
    yield from ((f"env:{name}", value) for name, value in request.environment.items())


def _text(value: Value) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean(str(value), _LONGEST)


def _each(option: str, values: list[str]) -> Iterator[str]:
    for value in values:
        yield from (option, value)


def _line(words: list[str]) -> str:
    return shlex.join(clean(word, _LONGEST + 100) for word in words)
