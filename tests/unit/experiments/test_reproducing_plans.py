"""A result's command names a bench plan only where that name means the same plan still."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from ddtui.config.bench_plan_tables import BUILT_IN
from ddtui.core.bench_plan import BenchPlan
from ddtui.experiments.results import results_view
from tests.unit.experiments.results_world import cell, measured

USUAL = BenchPlan(name="usual", repeats=5)


def command_of(plan: BenchPlan, plans: Mapping[str, BenchPlan] | None) -> str:
    (row,) = results_view("ct200", [measured(8, (cell(170.0),), plan=plan)], [], plans=plans).rows
    return row.reproduce


@pytest.mark.parametrize(
    ("plans", "named"),
    [
        ({"usual": USUAL}, True),
        ({"usual": msgspec.structs.replace(USUAL, repeats=3)}, False),  # edited since
        ({}, False),  # it came from a file
        (None, True),
    ],
)
def test_a_plan_is_named_or_written_out(plans: Mapping[str, BenchPlan] | None, named: bool) -> None:
    command = command_of(USUAL, plans)
    assert command.endswith("--plan usual") == named
    assert ("[bench.usual]" in command and "repeats = 5" in command) == (not named)


def test_a_built_in_plan_that_the_configuration_has_otherwise_is_written_out() -> None:
    quick = BUILT_IN["quick"]
    other = msgspec.structs.replace(quick, repeats=quick.repeats + 1)
    assert command_of(quick, {"quick": quick}).endswith("--plan quick")
    assert "[bench.quick]" in command_of(quick, {"quick": other})
