"""Matching a budget to another block size: the values, their formulas, and what is warned of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.experiment import Match
from ddtui.core.sweep import POLICIES, policy_name
from ddtui.experiments.matching import Circumstances, Point, Shape, matched, side_by_side


def of(budget: int, *, block: int = 8, topk: int | None = None) -> Shape:
    return Shape(block_size=block, budget=budget, topk=topk)


@pytest.mark.parametrize(
    ("policy", "values"),
    [
        ("nodes", {7: 15, 15: 33, 22: 48, 64: 138, 4: 9, 8: 18, 12: 26, 16: 35}),
        ("ratio", {7: 15, 15: 30, 22: 44, 64: 128, 3: 6}),
        ("siblings", {7: 15, 15: 23, 22: 30, 64: 72}),
        ("cost", {7: 7, 15: 15, 22: 22, 64: 64}),
        ("coverage", {7: 15, 15: 32, 22: 47, 64: 137}),
        ("tile", {7: 15, 13: 31, 15: 63, 22: 63, 64: 191}),
    ],
)
def test_block_size_8_to_16(policy: str, values: dict[int, int]) -> None:
    found = {budget: matched(policy, of(budget, topk=4), 16).value for budget in values}
    assert found == values


def test_formulas_have_their_figures() -> None:
    shown = {each.policy: each.formula for each in side_by_side(of(16, topk=4), 16)}
    assert shown == {
        "nodes": "ceil(16 x 15 / 7) = 35",
        "ratio": "ceil(16 x 16 / 8) = 32",
        "siblings": "16 + (15 - 7) = 24",
        "cost": "16 = 16",
        "coverage": "round(16 / (7 x 4) x 15 x 4) = round(0.571 x 60) = 34",
        "tile": "ceil(16 x 15 / 7) = 35; 36 rows with the root, up to 64: 63",
        "measured": "",
    }


def test_a_ratio_never_cuts_the_chain_short() -> None:
    found = matched("ratio", of(7), 16)
    assert found.formula == "max(ceil(7 x 16 / 8) = 14, 16 - 1) = 15"
    assert found.warnings[0] == "raised from 14 to 15: the chain would not reach its last depth"


def test_coverage_follows_another_topk_and_stops_at_the_whole_tree() -> None:
    assert matched("coverage", of(16, topk=4), 16, topk=2).value == 17
    narrow = matched("coverage", of(14, block=3, topk=2), 4, topk=1)
    assert (narrow.value, narrow.formula) == (
        3,
        "min(round(14 / (2 x 2) x 3 x 1) = round(3.500 x 3) = 11, whole tree 3) = 3",
    )
    unknown = matched("coverage", of(16), 16)
    assert (unknown.value, unknown.errors) == (None, ("needs topk: add it to what is set",))


def test_what_was_measured_is_taken_by_speed_not_by_acceptance() -> None:
    points = tuple(
        Point(block_size=block, budget=budget, acceptance=acceptance, step_seconds=seconds)
        for block, budget, acceptance, seconds in (
            (8, 16, 4.0, 0.020),
            (16, 16, 4.2, 0.021),
            (16, 35, 5.0, 0.022),
            (16, 64, 5.5, 0.030),
        )
    )
    found = matched("measured", of(16), 16, known=Circumstances(points=points))
    assert found.value == 35
    assert found.formula == "best of 3 budgets measured: 5.00 / 22.0 ms = 227.3 tok/s at 35"
    assert found.warnings == ("breaks even at 1.10 x the acceptance length; it had 1.25 x",)
    missing = matched("measured", of(16), 12, known=Circumstances(points=points))
    assert missing.errors == ("nothing was measured with block size 12",)


@pytest.mark.parametrize(
    ("old", "block", "known", "told"),
    [
        (of(4), 16, Circumstances(), "budget 9 with block size 16: the tree is only a chain"),
        (
            of(16),
            16,
            Circumstances(trained_block=8),
            "block size 16 is larger than the drafter's trained 8",
        ),
        (of(64, topk=4), 16, Circumstances(), "its width 10 is capped at 4"),
        (of(64), 16, Circumstances(max_topk=6), "its width 10 is capped at 6"),
        (
            of(22, topk=1),
            16,
            Circumstances(),
            "only 15 of its 48 nodes can exist: the rest is padding",
        ),
        (
            of(16),
            16,
            Circumstances(graph_widths=(17, 32)),
            "36 rows (the budget and its root) are not covered by CUDA graphs",
        ),
        (
            of(16),
            16,
            Circumstances(max_running=32),
            "36 x 32 rows with all requests running, 2.1 x as many as before:"
            " memory for graphs and logits grows with them",
        ),
        (
            of(16),
            16,
            Circumstances(positions=(0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.031)),
            "only 3.1% of verifications accept all 7 drafts of block size 8:"
            " a longer block cannot help",
        ),
        (
            of(16),
            16,
            Circumstances(acceptance=3.1),
            "acceptance length 3.10 is far below block size 8: a longer block hardly helps",
        ),
    ],
)
def test_warnings(old: Shape, block: int, known: Circumstances, told: str) -> None:
    assert told in matched("nodes", old, block, known=known).warnings


def test_a_width_that_gets_lost_is_told() -> None:
    told = "topk 3 at every depth takes a budget of 30, as it had before"
    assert told in matched("siblings", of(16, topk=3), 16).warnings
    assert told not in matched("nodes", of(16, topk=3), 16).warnings


def test_nothing_is_warned_of_that_is_well_or_not_known() -> None:
    fine = Circumstances(
        trained_block=16, graph_widths=(36,), positions=(0.9,) * 7, max_running=8, window=16
    )
    assert matched("nodes", of(16), 16, known=fine).warnings == (
        "36 x 8 rows with all requests running, 2.1 x as many as before:"
        " memory for graphs and logits grows with them",
    )
    assert matched("nodes", of(16), 16).warnings == ()
    assert matched("nodes", of(35, block=16), 8).value == 17


@pytest.mark.parametrize(
    ("old", "block", "known", "told"),
    [
        (of(16), 1, Circumstances(), "block size 1 drafts nothing: 2 is the least"),
        (of(1, block=1), 8, Circumstances(), "block size 1 drafts nothing: 2 is the least"),
        (of(0), 16, Circumstances(), "budget 0 is no tree: 1 is the least"),
        (of(16), 16, Circumstances(window=12), "window 12 is smaller than block size 16"),
    ],
)
def test_what_cannot_be(old: Shape, block: int, known: Circumstances, told: str) -> None:
    for each in side_by_side(old, block, known=known):
        assert each.value is None
        assert told in each.errors


def test_a_shorter_block_may_leave_no_tree() -> None:
    found = matched("siblings", of(4, block=16), 8)
    assert found.value is None
    assert found.errors == ("4 + (7 - 15) = -4: a tree has at least one node beside its root",)
    with pytest.raises(ValueError, match="at least one node"):
        found.as_match(of(4, block=16))


def test_what_an_experiment_keeps() -> None:
    assert matched("nodes", of(16), 16).as_match(of(16)) == Match(
        "nodes", "ceil(16 x 15 / 7) = 35", "budget", 35, "block size 8, budget 16", 8, 16
    )


def test_policies_by_name_and_number() -> None:
    assert [policy_name(f"P{number}") for number in range(1, 8)] == list(POLICIES)
    assert policy_name(" Tile ") == "tile"
    assert policy_name("P8") is None
    assert policy_name("node") is None
    assert [each.policy for each in side_by_side(of(16), 16) if each.control] == ["cost"]


SHAPES = st.builds(
    Shape, block_size=st.integers(2, 64), budget=st.integers(1, 2000), topk=st.integers(1, 16)
)


@given(old=SHAPES, block=st.integers(2, 64))
def test_the_same_block_size_keeps_the_budget(old: Shape, block: int) -> None:
    for policy in ("nodes", "ratio", "siblings", "cost"):
        same = matched(policy, old, old.block_size)
        assert same.value == old.budget
    nodes = matched("nodes", old, block).value
    assert nodes is not None
    depth, new = old.block_size - 1, block - 1
    assert (nodes - 1) * depth < old.budget * new <= nodes * depth
    tile = matched("tile", old, block).value
    assert tile is not None
    assert tile >= nodes
    assert (tile + 1) % 8 == 0
