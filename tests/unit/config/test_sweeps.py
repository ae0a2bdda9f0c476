"""Sweeps as they are written: in one line, in the configuration, in a file."""

from pathlib import Path

import pytest

from ddtui.config.errors import ConfigError
from ddtui.config.grid_text import LONGEST, parse_grid
from ddtui.config.load import load
from ddtui.config.sweeps import load_sweeps, read_sweep_file
from ddtui.core.sweep import Axis, Matching, Sweep

CAMPAIGN = "budget=4,8,12,16 topk=4,6 window=2048,none block_size=8,16 match"


def alone(name: str, *values: object) -> Axis:
    return Axis((name,), tuple((value,) for value in values))  # type: ignore[misc]


def told(error: pytest.ExceptionInfo[ConfigError]) -> str:
    return "\n".join(map(str, error.value.problems))


def test_a_grid_in_one_line() -> None:
    assert parse_grid(CAMPAIGN) == Sweep(
        axes=(
            alone("budget", 4, 8, 12, 16),
            alone("topk", 4, 6),
            alone("window", 2048, None),
            alone("block_size", 8, 16),
        ),
        match=Matching(),
    )
    assert parse_grid(CAMPAIGN).combinations == 32


def test_all_that_a_line_can_say() -> None:
    sweep = parse_grid(
        "preset=base,fast budget~block-size=8:16,16:35 flag:--page-size=1,64"
        ' flag:cuda-graph-bs="1 2 4","1, 2" flag:enable-x=true,none env:NCCL_DEBUG=WARN,none'
        " match=P6:8 control baseline:budget=8 baseline:top_k=4 again repeats=5 plan=quick"
        " if topk <= budget if block_size > 8 or budget < 16"
    )
    assert sweep.axes == (
        alone("preset", "base", "fast"),
        Axis(("budget", "block_size"), ((8, 16), (16, 35))),
        alone("flag:page-size", "1", "64"),
        alone("flag:cuda-graph-bs", "1 2 4", "1, 2"),
        alone("flag:enable-x", True, None),
        alone("env:NCCL_DEBUG", "WARN", None),
    )
    assert sweep.match == Matching(policy="tile", block_size=8, control=True)
    assert (sweep.baseline, sweep.baseline_values) == ("values", {"budget": 8, "topk": 4})
    assert (sweep.again, sweep.repeats, sweep.plan) == (True, 5, "quick")
    assert [each.text for each in sweep.conditions] == [
        "topk <= budget",
        "block_size > 8 or budget < 16",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "budgt=4 topk=4",
            "grid: there is no knob 'budgt'; did you mean budget?"
            " (server flags: flag:NAME=VALUE)\n    budgt=4 topk=4\n    ^",
        ),
        ("topk=4 budget=4,x", "got 'x'; expected an integer"),
        ("topk=4 budget=4,x", "\n    topk=4 budget=4,x\n                    ^"),
        ("budget=4 budget=8", "budget is set twice\n    budget=4 budget=8\n             ^"),
        ("tree_budget=4 budget~topk=8:4", "budget is set twice"),
        ("budget=4,4", "4 stands there twice\n    budget=4,4\n             ^"),
        ("budget=4,", "got ''; expected an integer"),
        (
            "budget~block_size=8:16,16",
            "expected 2 values for budget~block_size, as in budget~block_size=8:8,16:16; got '16'",
        ),
        ("budget=4 match=node", "there is no policy 'node'; did you mean 'nodes'?"),
        ("budget=4 match=best", "policies: nodes, ratio, siblings, cost, coverage, tile, measured"),
        ("budget=4 match=nodes:1", "expected the block size that the budgets are for"),
        ("budget=4 repeat=4", "there is no setting 'repeat'; did you mean 'repeats'?"),
        ("budget=4 repeats=0", "got '0'; expected 1 to 100 repeats"),
        ("budget=4 contrl", "did not expect 'contrl'; did you mean 'control'?"),
        ("budget=4 8", "'8' has no values; write NAME=VALUE,VALUE"),
        ("budget=4 baseline=last", "got 'last'; expected first, in-force, none, auto, or values"),
        ("budget=4 baseline:budget=8 baseline:budget=4", "budget of the baseline is set twice"),
        ('flag:x="1 2', 'this quote has no end\n    flag:x="1 2\n           ^'),
        ("preset=../x", "'../x' is no name of a preset"),
        ("flag:-=1", "'-' is no name of a flag"),
        (
            "budget=4 if topk <= budgt if 1",
            "\n    budget=4 if topk <= budgt if 1\n                        ^",
        ),
        ("budget=4 if topk <= budget window=4", "did not expect '='; did you mean ==?"),
        (" ", "is empty: name settings and their values, such as budget=4,8 topk=4,6"),
        ("x" * (LONGEST + 1), f"is longer than {LONGEST} characters"),
        (
            f"budget={','.join(map(str, range(1, 201)))} topk={','.join(map(str, range(1, 52)))}",
            "has 200 x 51 = 10200 combinations, and 10000 is the most",
        ),
    ],
)
def test_a_mistake_in_a_line_is_shown_where_it_is(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_grid(text)
    assert expected in told(error)


def test_all_mistakes_of_a_line_are_told_and_a_long_one_is_cut_around_each() -> None:
    with pytest.raises(ConfigError) as error:
        parse_grid("budgt=4 " + "topk=4,5,6,7,8,9 window=1,2,3 " * 20 + "blok=8")
    shown = told(error)
    assert "budgt" in shown
    assert "there is no knob 'blok'" in shown
    for line in shown.splitlines():
        assert len(line) < 400


TOML = """
[sweeps.campaign]
description = "does a longer block pay?"
budget = [4, 8, 12, 16]
top_k = [4, 6]
window = [2048, "none"]
flags = { "page-size" = [1, 64] }
environment = { NCCL_DEBUG = "WARN" }
preset = "base"
couple = [{ block_size = 8, steps = 1 }, { block_size = 16, flags = { x = true }, steps = 2 }]
if = ["topk <= budget"]
match = { policy = "ratio", block_size = 8, control = true }
baseline = { budget = 8, topk = 4 }
again = true
repeats = 5
plan = "quick"
hypothesis = "yes"

[sweeps.line]
grid = "budget=4,8 if budget > 4"
topk = 4
if = "topk <= budget"
match = true
baseline = "in-force"
"""


def test_sweeps_of_the_configuration_and_the_project(tmp_path: Path) -> None:
    file, project = tmp_path / "config.toml", tmp_path / "project"
    project.mkdir()
    file.write_text(TOML.replace("flags = { x = true }, steps = 2", "steps = 2"), encoding="utf-8")
    (project / "ddtui.toml").write_text("[sweeps.line]\nbudget = 4\n", encoding="utf-8")
    found = load_sweeps(load(file), project)
    campaign = found["campaign"].sweep
    assert campaign.axes == (
        alone("budget", 4, 8, 12, 16),
        alone("topk", 4, 6),
        alone("window", 2048, None),
        alone("flag:page-size", 1, 64),
        alone("env:NCCL_DEBUG", "WARN"),
        alone("preset", "base"),
        Axis(("block_size", "steps"), ((8, 1), (16, 2))),
    )
    assert campaign.match == Matching(policy="ratio", block_size=8, control=True)
    assert (campaign.baseline, campaign.baseline_values) == ("values", {"budget": 8, "topk": 4})
    assert (campaign.again, campaign.repeats, campaign.plan) == (True, 5, "quick")
    assert (campaign.name, campaign.hypothesis) == ("campaign", "yes")
    assert found["campaign"].source == f"{file}:2"
    assert found["line"].source == f"{project / 'ddtui.toml'}:1"
    assert found["line"].sweep.axes == (alone("budget", 4),)
    own = load_sweeps(load(file), tmp_path)["line"].sweep
    assert [each.text for each in own.conditions] == ["budget > 4", "topk <= budget"]
    assert (own.match, own.baseline) == (Matching(), "in force")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("budgets = 4", "[sweeps.x] budgets: unknown key; did you mean 'budget'?"),
        ("zzz = 4", "unknown key (knobs: algorithm, "),
        ("budget = [4, 'x']", "[sweeps.x] budget: got 'x'; expected an integer"),
        ("budget = [4, 4]", "[sweeps.x] budget: 4 stands there twice"),
        ("budget = []", "[sweeps.x] budget: has no values"),
        ("budget = 4\ngrid = 'budget=8'", "[sweeps.x] budget: is set twice in this sweep"),
        ("budget = 4\nflags = 3", "[sweeps.x] flags: must be a table"),
        ("flags = { '--x y' = 3 }", "not a flag's name"),
        ("environment = { A = 1 }", "[sweeps.x] environment A: got 1; expected one line of text"),
        ("budget = 4\nif = 'topk <= budgt'", "there is no knob 'budgt'; did you mean budget?"),
        ("budget = 4\nif = 3", "expected a condition"),
        ("budget = 4\nmatch = 'node'", "there is no policy 'node'; did you mean 'nodes'?"),
        ("budget = 4\nmatch = { polcy = 'nodes' }", "unknown key 'polcy'; did you mean 'policy'?"),
        ("budget = 4\nmatch = { block_size = true }", "got block_size True"),
        ("budget = 4\nbaseline = 'last'", "got 'last'; expected \"first\""),
        ("couple = [{ budget = 4 }, { topk = 4 }]", "every table must set the same: budget"),
        ("couple = 3", "expected a list of tables with the same keys"),
        ("budget = 4\nrepeats = 1000", "got 1000; expected 1 to 100 repeats"),
        ("budget = 4\nagain = 'yes'", "got 'yes'; expected true or false"),
        ("budget = 4\nplan = ''", "expected the name of a bench plan"),
        ("description = 'nothing'", "[sweeps.x]: tries nothing"),
        ("grid = 'budget=4,x'", "[sweeps.x] grid: got 'x'"),
        (f"budget = {list(range(1, 102))}\ntopk = {list(range(1, 101))}", "101 x 100 = 10100"),
    ],
)
def test_mistakes_in_a_table_are_told(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[sweeps.x]\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load(file)
    assert expected in told(error)
    assert f"{file}:" in told(error)


def test_a_sweep_in_a_file_by_itself(tmp_path: Path) -> None:
    plain, several = tmp_path / "blocks.toml", tmp_path / "several.toml"
    plain.write_text("budget = [4, 8]\nmatch = true\n", encoding="utf-8")
    found = read_sweep_file(plain)
    assert (found.sweep.name, found.sweep.axes) == ("blocks", (alone("budget", 4, 8),))
    several.write_text("[sweeps.a]\nbudget = 4\n[sweeps.b]\nbudget = 8\n", encoding="utf-8")
    assert read_sweep_file(several, "b").sweep.axes == (alone("budget", 8),)
    for name, expected in (
        ("", "has several sweeps (sweeps: a, b); name one as FILE:NAME"),
        ("c", "has no sweep 'c'"),
    ):
        with pytest.raises(ConfigError) as error:
            read_sweep_file(several, name)
        assert expected in told(error)
    plain.write_text("budget = [4, 'x']\n", encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_sweep_file(plain)
    assert f"{plain}:1: [sweeps.blocks] budget: got 'x'" in told(error)
    plain.write_text("[sweeps.a]\nbudget = 4\n[hosts.x]\nssh = 'y'\n", encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_sweep_file(plain)
    assert "[hosts]: unknown table" in told(error)
    with pytest.raises(ConfigError) as error:
        read_sweep_file(tmp_path / "missing.toml")
    assert "no such file" in told(error)
