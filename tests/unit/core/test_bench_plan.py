"""What a bench plan is called."""

from __future__ import annotations

import pytest

from ddtui.core.bench_plan import BenchPlan, short_name


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (BenchPlan(), "default"),
        (BenchPlan(name="quick", repeats=5), "quick"),
        (BenchPlan(repeats=5), "coding x1"),
        (BenchPlan(prompts="chat", concurrency=(1, 8)), "chat x1,8"),
        (BenchPlan(command=("bench",)), "external bench"),
    ],
)
def test_only_the_default_plan_is_called_so(plan: BenchPlan, name: str) -> None:
    assert short_name(plan) == name
