"""The same with block size 16 to match."""

import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, Match
from ddtui.core.launch import Request
from ddtui.experiments.matching_like import CannotMatch, choices, like

OLD = Experiment(
    id="old",
    host="demo",
    simulated=True,
    title="budget 16 topk 4",
    request=Request("base", {"budget": 16, "topk": 4, "window": 2048}, {"page-size": 1}),
    plan=BenchPlan(name="quick"),
    state=ExperimentState.FAILED,
    measurement="m",
    cause={"title": "x"},
    sweep="campaign",
    attempts=3,
    baseline=True,
)
BLOCK_16 = Request(knobs={"block_size": 16})


def test_the_same_with_block_size_16_to_match() -> None:
    new = like(OLD, BLOCK_16, "nodes", in_force={"block_size": 8})
    assert new.request == Request(
        "base", {"budget": 35, "topk": 4, "window": 2048, "block_size": 16}, {"page-size": 1}
    )
    assert new.match == Match(
        "nodes", "ceil(16 x 15 / 7) = 35", "budget", 35, "block size 8, budget 16", 8, 16
    )
    assert new.title == "budget 35 topk 4 block_size 16"
    assert (new.state, new.attempts, new.measurement, new.cause) == ("pending", 0, "", None)
    assert (new.sweep, new.plan.name, new.like, new.baseline) == ("campaign", "quick", "old", False)
    assert new.id != OLD.id
    # And once more from there: the match is of the new one, not of the first.
    third = like(new, Request(knobs={"block_size": 8}), "ratio")
    assert third.match is not None
    assert third.match.formula == "ceil(35 x 8 / 16) = 18"


def test_without_a_policy_only_what_is_asked_for_changes() -> None:
    new = like(OLD, Request(knobs={"topk": 6}, environment={"A": "1"}))
    assert new.request.knobs == {"budget": 16, "topk": 6, "window": 2048}
    assert new.title == "budget 16 topk 6 A=1"
    assert new.match is None
    matched = like(OLD, BLOCK_16, "nodes", in_force={"block_size": 8})
    assert like(matched, Request(knobs={"topk": 6})).match == matched.match
    assert like(matched, Request(knobs={"budget": 9})).match is None


def test_all_policies_to_choose_from() -> None:
    found = choices(OLD, BLOCK_16, in_force={"block_size": 8})
    assert [(each.policy, each.value) for each in found] == [
        ("nodes", 35),
        ("ratio", 32),
        ("siblings", 24),
        ("cost", 16),
        ("coverage", 34),
        ("tile", 63),
        ("measured", None),
    ]


@pytest.mark.parametrize(
    ("changes", "in_force", "told"),
    [
        (Request(knobs={"topk": 6}), {"block_size": 8}, "needs the new block size"),
        (BLOCK_16, {}, "needs to know the block_size of the experiment"),
        (
            Request(knobs={"block_size": 16, "budget": 3}),
            {"block_size": 8},
            "the budget is set and to be computed",
        ),
        (
            Request(knobs={"block_size": 16, "window": 8}),
            {"block_size": 8},
            "nodes gives no budget: window 8 is smaller than block size 16",
        ),
    ],
)
def test_what_cannot_be_matched(changes: Request, in_force: dict[str, int], told: str) -> None:
    with pytest.raises(CannotMatch, match=told):
        like(OLD, changes, "nodes", in_force=in_force)


@pytest.mark.parametrize(
    ("in_force", "told"),
    [
        ({"block_size": 8, "algorithm": "DFLASH"}, "there is no budget to match: DFLASH verifies"),
        ({"block_size": 8, "algorithm": "DDTREE"}, "what its server has is not known"),
        ({"block_size": 8}, "what its server has is not known"),
    ],
)
def test_without_a_tree_there_is_no_budget_to_match(
    in_force: dict[str, int | str], told: str
) -> None:
    old = Experiment(id="a", host="ct200", title="in force", request=Request())
    with pytest.raises(CannotMatch, match=told):
        like(old, Request(knobs={"block_size": 16}), "nodes", in_force=in_force)
