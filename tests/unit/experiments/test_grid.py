"""Expanding sweeps: which configurations come out, in which order, and why others do not."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.config.errors import ConfigError
from ddtui.config.grid_text import parse_grid
from ddtui.core.conditions import read_condition
from ddtui.core.experiment import Match
from ddtui.core.launch import Request, Value
from ddtui.core.sweep import Axis, Sweep
from ddtui.experiments.grid import Expansion, expand, settings_of

CAMPAIGN = "budget=4,8,12,16 topk=4,6 window=2048,none"


def titles(expansion: Expansion) -> list[str]:
    return [each.title for each in expansion.combinations]


def told(error: pytest.ExceptionInfo[ConfigError]) -> str:
    return "\n".join(map(str, error.value.problems))


def test_the_campaign() -> None:
    found = expand(parse_grid(CAMPAIGN))
    assert titles(found) == [
        "budget 4 topk 4 window 2048",
        "budget 4 topk 4 window none",
        "budget 4 topk 6 window 2048",
        "budget 4 topk 6 window none",
        "budget 8 topk 4 window 2048",
        "budget 8 topk 4 window none",
        "budget 8 topk 6 window 2048",
        "budget 8 topk 6 window none",
        "budget 12 topk 4 window 2048",
        "budget 12 topk 4 window none",
        "budget 12 topk 6 window 2048",
        "budget 12 topk 6 window none",
        "budget 16 topk 4 window 2048",
        "budget 16 topk 4 window none",
        "budget 16 topk 6 window 2048",
        "budget 16 topk 6 window none",
    ]
    assert found.combinations[1].request == Request(knobs={"budget": 4, "topk": 4, "window": None})


def test_then_block_size_16_with_matching_budgets() -> None:
    text = f"block_size=16 {CAMPAIGN} match if topk <= budget"
    found = expand(parse_grid(text), base={"block_size": 8, "budget": 7})
    assert titles(found)[:5] == [
        "block_size 16 budget 9 topk 4 window 2048",
        "block_size 16 budget 9 topk 4 window none",
        "block_size 16 budget 9 topk 6 window 2048",
        "block_size 16 budget 9 topk 6 window none",
        "block_size 16 budget 18 topk 4 window 2048",
    ]
    assert {each.request.knobs["budget"] for each in found.combinations} == {9, 18, 26, 35}
    assert all(each.request.knobs["block_size"] == 16 for each in found.combinations)
    last = found.combinations[-1]
    assert last.match == Match(
        "nodes", "ceil(16 x 15 / 7) = 35", "budget", 35, "block size 8, budget 16", 8, 16
    )
    first = found.matches[0]
    assert (first.reference.budget, first.block_size, first.topk) == (4, 16, 4)
    assert [(each.policy, each.value) for each in first.policies] == [
        ("nodes", 9),
        ("ratio", 8),
        ("siblings", 12),
        ("cost", 4),
        ("coverage", 9),
        ("tile", 15),
        ("measured", None),
    ]
    told = "budget 9 with block size 16: the tree is only a chain"
    assert found.combinations[0].warnings == (told,)


def test_both_block_sizes_at_once_with_their_controls() -> None:
    found = expand(parse_grid("budget=16 block_size=8,16 match=ratio control"))
    assert titles(found) == ["block_size 8 budget 16", "block_size 16 budget 32", "block_size 16 "
                             "budget 16"]  # fmt: skip
    assert [each.control for each in found.combinations] == [False, False, True]
    assert [each.match.policy if each.match else "" for each in found.combinations] == [
        "",
        "ratio",
        "cost",
    ]


def test_a_matched_budget_that_another_one_has_already_is_not_tried_twice() -> None:
    found = expand(parse_grid("budget=7,15 block_size=16 match=nodes:8 control"))
    assert [each.request.knobs["budget"] for each in found.combinations] == [15, 7, 33]
    assert found.duplicates == 1


def test_what_cannot_be_matched_says_why() -> None:
    found = expand(parse_grid("budget=16 window=12 block_size=8,16 match"))
    assert [each.impossible for each in found.combinations] == [
        "",
        "nodes: window 12 is smaller than block size 16",
    ]
    assert found.combinations[1].title == "block_size 16 budget 16 window 12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("block_size=16 budget=8 match", "match needs the block size that the budgets are for"),
        ("block_size=8,16 match", "match needs the budgets to match: add budget=..."),
        ("budget=8 if topk < 4", "topk is not in the sweep, and not known to be in force"),
        ("budget=8 if topk < 4", "\n    topk < 4\n    ^"),
        ("budget=0,8 if 16 / budget > 1", "divides by zero\n    16 / budget > 1\n       ^"),
        ("preset=base budget=4", "there is no preset 'base'"),
    ],
)
def test_a_sweep_that_cannot_be_expanded_says_why(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        expand(parse_grid(text))
    assert expected in told(error)


def test_conditions_take_out_and_are_counted() -> None:
    found = expand(parse_grid(f"{CAMPAIGN} if topk <= budget if window > 1024 or budget < 16"))
    assert found.total == 16
    assert len(found.combinations) == 14
    assert found.excluded == {"topk <= budget": 2}
    # window none: nothing is known of it, so it is kept, and told.
    assert found.unjudged == {"window > 1024 or budget < 16": 2}


def test_conditions_see_what_is_in_force_and_what_presets_set() -> None:
    presets = {
        "small": Request("small", {"topk": 2}, {"page-size": 1}),
        "large": Request("large", {"topk": 16}, {}, {"A": "1"}),
    }
    sweep = parse_grid("preset=small,large budget=8 if topk <= budget if block_size == 8")
    found = expand(sweep, presets.__getitem__, {"block_size": 8, "topk": 99})
    assert [each.request for each in found.combinations] == [
        Request("small", {"topk": 2, "budget": 8}, {"page-size": 1})
    ]
    assert expand(sweep, presets.__getitem__, {"block_size": 4}).combinations == ()


def test_coupled_flags_and_variables() -> None:
    found = expand(parse_grid("budget~block_size=8:16,16:35 flag:page-size=1,64 env:A=x,none"))
    assert len(found.combinations) == 8
    assert titles(found)[0] == "block_size 16 budget 8 --page-size 1 A=x"
    assert found.combinations[-1].request == Request(
        "", {"budget": 16, "block_size": 35}, {"page-size": "64"}, {"A": None}
    )


@pytest.mark.parametrize(
    ("text", "order", "baseline"),
    [
        ("budget=4,8", ["budget 4", "budget 8"], []),
        ("budget=4,8 baseline=none", ["budget 4", "budget 8"], []),
        ("budget=4,8 baseline=first", ["budget 4", "budget 8"], [0]),
        ("budget=4,8 baseline=in-force", ["as it is", "budget 4", "budget 8"], [0]),
        ("budget=4,8 baseline:budget=8", ["budget 8", "budget 4"], [0]),
        ("budget=4,8 baseline:budget=2", ["budget 2", "budget 4", "budget 8"], [0]),
        (
            "budget=4,8 topk=2,4 baseline:topk=4",
            ["budget 4 topk 4", "budget 4 topk 2", "budget 8 topk 2", "budget 8 topk 4"],
            [0],
        ),
    ],
)
def test_the_baseline_comes_first(text: str, order: list[str], baseline: list[int]) -> None:
    found = expand(parse_grid(text))
    assert titles(found) == order
    marks = [at for at, each in enumerate(found.combinations) if each.baseline]
    assert marks == baseline


def test_a_title_shows_no_secret() -> None:
    found = expand(parse_grid("flag:api-key=sk-abcdefgh1234,sk-abcdefgh9876"))
    assert all("sk-" not in title for title in titles(found))


NAMES = ("budget", "topk", "block_size", "window", "flag:x", "env:Y")
SWEEPS = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.integers(1, 20), min_size=1, max_size=4, unique=True),
    min_size=1, max_size=4,
)  # fmt: skip


@given(axes=SWEEPS, limit=st.integers(1, 20))
def test_a_grid_is_the_product_without_what_conditions_take_out(
    axes: dict[str, list[int]], limit: int
) -> None:
    name = next(iter(axes))
    sweep = Sweep(
        axes=tuple(Axis((each,), tuple((value,) for value in axes[each])) for each in axes),
        conditions=(read_condition(f"{name} <= {limit}"),),
    )
    found = expand(sweep)
    wanted = [row for row in product(*axes.values()) if row[0] <= limit]
    got = [settings_of(each.request) for each in found.combinations]
    assert got == [
        {
            each: str(value) if each == "env:Y" else value
            for each, value in zip(axes, row, strict=True)
        }
        for row in wanted
    ]
    assert found.total == sweep.combinations
    assert found.total - sum(found.excluded.values()) == len(wanted)
    assert len(set(titles(found))) == len(wanted)


def test_a_title_leaves_out_what_all_have_and_what_is_in_force() -> None:
    sweep = parse_grid("preset=base budget=4,8 topk=4 block_size=16 flag:x=1")
    presets = {"base": Request("base", {"window": 2048})}
    in_force: dict[str, Value] = {"topk": 4, "block_size": 8, "window": 2048, "flag:x": "1"}
    found = expand(sweep, presets.__getitem__, in_force)
    assert titles(found) == ["block_size 16 budget 4", "block_size 16 budget 8"]
