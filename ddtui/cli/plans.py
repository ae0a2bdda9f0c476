"""`ddtui plans [NAME]`: which bench plans there are, and what each measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ddtui.cli.arguments import JsonOption
from ddtui.cli.context import told
from ddtui.cli.output import Paint, clean, emit, emit_json, narrowed, table, terminal_width

if TYPE_CHECKING:
    from ddtui.config.bench_plans import PlanOfSource
    from ddtui.core.bench_plan import BenchPlan

_HEAD = ("PLAN", "PROMPTS", "AT ONCE", "TOKENS", "REPEATS", "CODING", "SOURCE")
_GIVE = ((6, 10), (1, 10), (6, 0), (5, 0), (0, 10))
"""How columns give way where there is no room; one plan by its name has all in full."""


def plans(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show all options of one plan.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the bench plans, which --plan takes, or show one with all its options."""
    with told(context) as options:
        from ddtui.config.bench_plans import find_plan, plans_with_sources

        found = plans_with_sources(options.load())
        if name is not None:
            find_plan({each: one.plan for each, one in found.items()}, name)
            found = {name: found[name]}
        if as_json:
            reports = [_report(each, one) for each, one in found.items()]
            emit_json(reports if name is None else reports[0])
        else:
            lines = _list(found) if name is None else _detail(name, found[name], Paint())
            emit("\n".join(lines))


def _report(name: str, found: PlanOfSource) -> dict[str, object]:
    return {"name": name, **_options(found.plan), "source": found.source}


def _options(plan: BenchPlan) -> dict[str, object]:
    """Without the secrets that a command may hold, and without a name: the default has none."""
    from ddtui.core.redact import redact_argv

    options = msgspec.structs.asdict(plan)
    del options["name"]
    return {**options, "command": redact_argv(plan.command)}


def _list(found: Mapping[str, PlanOfSource]) -> list[str]:
    rows = [_row(name, each) for name, each in found.items()]
    return table(narrowed([_HEAD, *rows], terminal_width(), _GIVE), right=(4,))


def _row(name: str, found: PlanOfSource) -> tuple[str, ...]:
    plan, coding = found.plan, "yes" if found.plan.coding else "no"
    if plan.command:
        return (name, "an external bench", "", "", "", coding, clean(found.source))
    asked = f"{plan.requests} of {plan.prompts}" if plan.requests else plan.prompts
    return (
        name,
        clean(asked),
        ", ".join(map(str, plan.concurrency)),
        str(plan.output_tokens),
        str(plan.repeats),
        coding,
        clean(found.source),
    )


def _detail(name: str, found: PlanOfSource, paint: Paint) -> Iterator[str]:
    yield paint(name, "bold")
    yield f"from {clean(found.source)}"
    rows = [(key, _text(value)) for key, value in _options(found.plan).items()]
    yield from table([("OPTION", "VALUE"), *rows])


def _text(value: object) -> str:
    from ddtui.experiments.naming import option_text

    if value is None:
        return "the model's own"
    return clean(option_text(value)) or "none"
