"""Bench plans by name: those built in, the user's `[bench.NAME]`, and the project's before them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ddtui.config.bench_plan_tables import BUILT_IN, DEFAULT, plan_problems, read_plan
from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.load import Loaded, key_lines, placed, read_document, read_text, source_of
from ddtui.config.presets import read_project
from ddtui.core.bench_plan import BenchPlan

BUILT_IN_SOURCE = "built in"


class PlanOfSource(msgspec.Struct, frozen=True):
    """A plan, and where it comes from."""

    plan: BenchPlan
    source: str
    """The file and line, or BUILT_IN_SOURCE."""


def load_plans(loaded: Loaded, folder: Path | None = None) -> dict[str, BenchPlan]:
    """All plans by name: built in, of the configuration, of `ddtui.toml` in `folder`.

    Raises ConfigError with every mistake of the project's file; the configuration has been checked
    when it was loaded.
    """
    return {name: each.plan for name, each in plans_with_sources(loaded, folder).items()}


def plans_with_sources(loaded: Loaded, folder: Path | None = None) -> dict[str, PlanOfSource]:
    """All plans as `load_plans` has them, each with its source. Raises ConfigError."""
    found = {DEFAULT: BenchPlan(), **BUILT_IN}
    plans = {name: PlanOfSource(plan, BUILT_IN_SOURCE) for name, plan in found.items()}
    project = read_project(loaded, folder)
    layers = [(loaded.path.file, loaded.config.bench, loaded.lines)]
    if project is not None:
        layers.append((project.file, project.tables.get("bench", {}), project.lines))
    for file, tables, lines in layers:
        for name, table in tables.items():
            source = source_of(file, lines, ("bench", name))
            plans[name] = PlanOfSource(read_plan(name, table), source)
    return plans


def read_plans(file: Path) -> dict[str, BenchPlan]:
    """The plans of the `[bench.NAME]` tables of a file. Raises ConfigError."""
    try:
        text = read_text(file)
    except FileNotFoundError as error:
        raise ConfigError.of("no such file", file) from error
    tables: Any = read_document(text, file).get("bench", {})
    if not isinstance(tables, dict):
        raise ConfigError.of("[bench] must hold one table a plan; write [bench.NAME]", file)
    lines = key_lines(text)
    problems = [
        placed(where, message, file, lines)
        for name, table in tables.items()
        for where, message in plan_problems(("bench", name), table)
    ]
    if problems:
        raise ConfigError(sorted(problems, key=lambda problem: problem.line or 0))
    return {name: read_plan(name, table) for name, table in tables.items()}


def only_plan(file: Path) -> BenchPlan:
    """The one plan that a file holds. Raises ConfigError."""
    plans = read_plans(file)
    if len(plans) != 1:
        what = f"must hold one bench plan, [bench.NAME], and holds {len(plans) or 'none'}"
        raise ConfigError.of(what, file)
    (found,) = plans.values()
    return found


def find_plan(plans: dict[str, BenchPlan], name: str) -> BenchPlan:
    """The plan of this name. Raises ConfigError, which names the nearest."""
    if name not in plans:
        raise ConfigError.of(
            f"there is no bench plan {name[:80]!r}{did_you_mean(name, plans)}"
            f" (plans: {', '.join(plans)})"
        )
    return plans[name]
