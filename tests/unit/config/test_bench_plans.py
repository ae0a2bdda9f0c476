from __future__ import annotations

from pathlib import Path

import pytest

from ddtui.config.bench_plan_tables import BUILT_IN, OPTIONS
from ddtui.config.bench_plans import find_plan, load_plans, plans_with_sources, read_plans
from ddtui.config.errors import ConfigError
from ddtui.config.load import load
from ddtui.core.bench_plan import BenchPlan


def loaded(folder: Path, text: str) -> dict[str, BenchPlan]:
    file = folder / "config.toml"
    file.write_text(text)
    return load_plans(load(file, {}), folder)


def test_options_are_those_of_a_plan() -> None:
    assert set(OPTIONS) == set(BenchPlan.__struct_fields__) - {"name"}


def test_built_in_plans_own_ones_and_the_project_s_before_them(tmp_path: Path) -> None:
    (tmp_path / "ddtui.toml").write_text("[bench.mine]\nconcurrency = [1, 4]\n")
    plans = loaded(
        tmp_path, '[bench.mine]\nrepeats = 9\n[bench.quick]\nprompts = "chat"\nthinking = true\n'
    )
    assert list(BUILT_IN) == ["glance", "quick", "standard", "throughput"]
    assert plans["standard"] == BUILT_IN["standard"]
    assert plans["quick"] == BenchPlan(name="quick", prompts="chat", thinking=True)
    assert plans["mine"] == BenchPlan(name="mine", concurrency=(1, 4))
    with pytest.raises(ConfigError, match="no bench plan 'qick'; did you mean 'quick'"):
        find_plan(plans, "qick")


def test_what_measures_without_a_name_can_be_named(tmp_path: Path) -> None:
    assert find_plan(loaded(tmp_path, ""), "default") == BenchPlan()
    with pytest.raises(ConfigError, match=r"\(plans: default, glance, quick, "):
        find_plan(loaded(tmp_path, ""), "none")


def test_what_measures_without_a_name_is_always_the_same(tmp_path: Path) -> None:
    text = "[bench.default]\nrepeats = 9\n"
    with pytest.raises(ConfigError, match="where none is named is always the same"):
        loaded(tmp_path, text)
    (tmp_path / "ddtui.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"ddtui\.toml.*is always the same"):
        loaded(tmp_path, "")


def test_where_a_plan_comes_from(tmp_path: Path) -> None:
    (tmp_path / "ddtui.toml").write_text("[bench.mine]\n[bench.standard]\n")
    file = tmp_path / "config.toml"
    file.write_text("[bench.quick]\n[bench.standard]\n")
    found = plans_with_sources(load(file, {}), tmp_path)
    assert {name: each.source for name, each in found.items()} == {
        **dict.fromkeys(("default", "glance", "throughput"), "built in"),
        "quick": f"{file}:1",
        "standard": f"{tmp_path / 'ddtui.toml'}:2",
        "mine": f"{tmp_path / 'ddtui.toml'}:1",
    }


def test_single_concurrency_and_command(tmp_path: Path) -> None:
    plans = loaded(tmp_path, '[bench.x]\nconcurrency = 16\ncommand = ["bench", "--all"]\n')
    assert plans["x"].concurrency == (16,)
    assert plans["x"].command == ("bench", "--all")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("concurency = 1", "concurency: unknown key; did you mean 'concurrency'"),
        ("zzz = 1", "zzz: unknown key (known: prompts, endpoint"),
        ("concurrency = 0", "concurrency: got 0; expected requests at once, 1 to 4096"),
        ("concurrency = [1, 4097]", "concurrency: got [1, 4097]; expected"),
        ("concurrency = []", "concurrency: got []"),
        ("concurrency = true", "concurrency: got True"),
        ("repeats = 0", "repeats: got 0; expected batches that count, 1 to 100"),
        ("agreement = 0", "agreement: got 0; expected how near"),
        ('endpoint = "completions"', "endpoint: got 'completions'; expected \"chat\""),
        ("temperature = -1", "temperature: got -1"),
        ('prompts = ""', "prompts: got ''; expected a set"),
        ('command = "rm -rf /"', "command: got 'rm -rf /'; expected program and arguments"),
        ("stall_seconds = inf", "stall_seconds: got inf"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    for file in ("config.toml", "ddtui.toml"):
        (tmp_path / file).write_text(f"[bench.mine]\n{text}\n")
        with pytest.raises(ConfigError) as error:
            loaded(tmp_path, f"[bench.mine]\n{text}\n") if file == "config.toml" else read_plans(
                tmp_path / file
            )
        assert f"{file}:2: [bench.mine] {said}" in str(error.value)
        (tmp_path / file).unlink()


def test_all_mistakes_at_once_and_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, "[bench.a]\nrepeats = 0\nseed = -1\n[bench]\nb = 3\n")
    assert len(error.value.problems) == 3
    with pytest.raises(ConfigError, match="no such file"):
        read_plans(tmp_path / "nowhere.toml")


def test_guide_has_every_option_with_its_meaning() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "operating.md").read_text()
    for name, (_, meaning) in OPTIONS.items():
        assert f"| `{name}` | {meaning} |" in guide
    for name in BUILT_IN:
        assert f"`{name}`" in guide
