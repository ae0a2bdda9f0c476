"""How what was asked for is written in a line."""

from __future__ import annotations

from ddtui.core.bench_plan import BenchPlan
from ddtui.experiments.naming import own_options


def test_a_plan_is_told_by_what_differs_from_the_default_one() -> None:
    assert own_options(BenchPlan(name="any")) == {}
    plan = BenchPlan(concurrency=(1, 8), thinking=True, coding=False, temperature=0.5)
    assert own_options(plan) == {
        "concurrency": "1 8",
        "temperature": "0.5",
        "thinking": "true",
        "coding": "false",
    }
