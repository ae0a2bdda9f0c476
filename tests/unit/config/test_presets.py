"""Presets and assignments: what is accepted, how they are put together, what mistakes are told."""

from pathlib import Path

import pytest

from ddtui.config.assignments import parse_assignments
from ddtui.config.errors import ConfigError
from ddtui.config.load import load, parse
from ddtui.config.presets import PROJECT_FILE, Presets, load_presets, merged
from ddtui.core.launch import Request
from ddtui.engines.sglang.command import CommandLine

FILE = Path("config.toml")

USER = """
[presets.base]
description = "what all share"
knobs = { max-running = 8, window = 2048 }
flags = { "mem-fraction-static" = 0.85, "disable-radix-cache" = true }
environment = { NCCL_DEBUG = "WARN" }

[presets.budget-16]
extends = "base"
budget = 16
top_k = 4
window = "none"
unset = ["--disable-radix-cache"]
unset_environment = ["NCCL_DEBUG"]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    folder = tmp_path / "project"
    folder.mkdir()
    return tmp_path / "config.toml", folder


def presets(files: tuple[Path, Path], user: str, project: str = "", **built_in: str) -> Presets:
    config, folder = files
    config.write_text(user, encoding="utf-8")
    if project:
        (folder / PROJECT_FILE).write_text(project, encoding="utf-8")
    return load_presets(load(config), folder, built_in)


def told(error: pytest.ExceptionInfo[ConfigError]) -> str:
    return "\n".join(map(str, error.value.problems))


def test_a_preset_is_what_it_extends_with_its_own_on_top(files: tuple[Path, Path]) -> None:
    found = presets(files, USER)
    assert found.request("budget-16") == Request(
        "budget-16",
        {"max_running": 8, "window": None, "budget": 16, "topk": 4},
        {"mem-fraction-static": 0.85, "disable-radix-cache": None},
        {"NCCL_DEBUG": None},
    )
    assert [each.name for each in found.chain("budget-16")] == ["base", "budget-16"]
    assert found.find("budget-16").source == f"{files[0]}:8"


def test_the_project_goes_before_the_user_and_both_before_what_is_built_in(
    files: tuple[Path, Path],
) -> None:
    found = presets(
        files,
        USER,
        "[presets.budget-16]\nextends = 'tiny'\nbudget = 17\n"
        "[knobs]\nblock-size = '--my-block'\ntopk = 'env:MY_TOPK'\n",
        demo="[presets.tiny]\nbudget = 1\n[presets.base]\nbudget = 2\n",
    )
    own = found.find("budget-16")
    assert found.request("budget-16").knobs == {"budget": 17}
    assert own.source == f"{files[1] / PROJECT_FILE}:1"
    assert own.note == f"replaces one of the same name ({files[0]}:8)"
    assert found.find("tiny").source == "demo"
    assert found.find("base").note == "replaces one of the same name (demo)"
    assert found.mapping({"block_size": "other"}) == {"block_size": "other", "topk": "env:MY_TOPK"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[presets.a]\nbudgt = 1", "config.toml:2: [presets.a] budgt: unknown key; did you mean"),
        ("[presets.a]\nbudget = '16'", "[presets.a] budget: got '16'; expected an integer, or"),
        ("[presets.a]\nbudget = true", "got True; expected an integer"),
        ("[presets.a]\nmem_fraction = nan", "got nan; expected a number"),
        ("[presets.a.knobs]\nwindw = 3", ":2: [presets.a] knobs windw: unknown knob; did you mean"),
        ("[presets.a]\nextends = 3", "[presets.a] extends: expected one line of text"),
        ("[presets.a]\nflags = 3", "[presets.a] flags: must be a table"),
        ("[presets.a]\nflags = { 'a b' = 1 }", "[presets.a] flags 'a b': not a flag's name"),
        ("[presets.a]\nflags = { a = [1, 2] }", "got list; expected a text, a number, true or"),
        ('[presets.a]\nflags = { a = "x\\ny" }', "expected one line of text"),
        ("[presets.a]\nunset = 'a'", "[presets.a] unset: expected a list of flags"),
        ("[presets.a]\nflags = { a = 1 }\nunset = ['--a']", "a is set and taken away"),
        ("[presets.a]\nenvironment = { X = 1 }", "[presets.a] environment X: expected one line"),
        ("[presets.a]\nenvironment = { 'X-Y' = '1' }", "not a variable's name"),
        ("[presets.a]\ntopk = 1\nknobs = { top_k = 2 }", "topk: stands beside knobs too"),
        ("[presets]\nbudget = 3", "[presets.budget]: an option of one preset; write it under"),
        ("[presets.'a b']", "not a preset's name"),
        ("[hosts.a.knobs]\nbudgt = 'x'", "[hosts.a] knobs budgt: unknown knob; did you mean"),
        ("[hosts.a.knobs]\nbudget = 'env:1'", "got 'env:1'; expected a flag of the server"),
        ("[hosts.a]\nknobs = 'x'", "[hosts.a] knobs: must be a table"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(text, FILE)
    assert expected in told(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ui]\nmouse = true", "ddtui.toml:1: [ui]: unknown table; a project's file has only"),
        ("[preset.a]", "did you mean 'presets'?"),
        ("[knobs]\nbudget = 3", "ddtui.toml:2: [knobs] budget: got 3; expected a flag"),
        ("[presets.a]\nbudget = 1.5", "ddtui.toml:2: [presets.a] budget: got 1.5"),
        ("presets = 1", "[presets]: must be a table"),
        ("x", "is not valid TOML"),
        ("[knobs]\nbudget = '--a'\nbudget = '--b'", "ddtui.toml:3: [knobs] budget is set twice"),
    ],
)
def test_a_projects_file_is_read_as_strictly(
    files: tuple[Path, Path], text: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as error:
        presets(files, USER, text)
    assert expected in told(error)


def test_circles_and_unknown_bases_are_mistakes(files: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError) as error:
        presets(
            files,
            "[presets.a]\nextends = 'b'\n[presets.b]\nextends = 'a'\n[presets.c]\nextends = 'a'\n"
            "[presets.d]\nextends = 'e'\n[presets.self]\nextends = 'self'",
        )
    assert [str(problem).partition("[")[2] for problem in error.value.problems] == [
        "presets.a] extends: goes in a circle: a extends b extends a",
        "presets.b] extends: goes in a circle: b extends a extends b",
        "presets.d] extends: there is no preset 'e'",
        "presets.self] extends: goes in a circle: self extends self",
    ]


def test_an_unknown_preset_is_told_with_the_nearest(files: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match=r"no preset 'budget16'; did you mean 'budget-16'"):
        presets(files, USER).request("budget16")


def test_assignments() -> None:
    words = "budget=16 window=none mem-fraction=0.85 graphs_off=on algorithm=DDTREE"
    more = "flag:--a=0.90 flag:b=true flag:c=none env:X=1 env:Y= env:Z=none"
    assert parse_assignments([*words.split(), *more.split()]) == Request(
        "",
        {
            "budget": 16,
            "window": None,
            "mem_fraction": 0.85,
            "graphs_off": True,
            "algorithm": "DDTREE",
        },
        {"a": "0.90", "b": True, "c": None},
        {"X": "1", "Y": "", "Z": None},
    )


def test_a_text_that_would_mean_something_can_be_given() -> None:
    """`true`, `false` and `none` as a flag's very value: some take just these words."""
    flags = parse_assignments(["text:a=true", "text:--b=none", "flag:c=true"]).flags
    assert flags == {"a": "true", "b": "none", "c": True}
    for name, value in (("a", "true"), ("b", "none")):
        line = CommandLine(["sglang", "serve", "--model", "m"])
        line.set(name, flags[name])
        assert line.argv[-2:] == (f"--{name}", value)
    with pytest.raises(ConfigError, match="is set twice"):
        parse_assignments(["text:a=true", "flag:a=false"])


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("budget", "--set budget: has no value; expected KNOB=VALUE, flag:NAME=VALUE"),
        ("budgt=1", "there is no knob 'budgt'; did you mean budget?"),
        ("budget=many", "got 'many'; expected an integer"),
        ("budget=1.5", "expected an integer"),
        ("mem_fraction=inf", "expected a number"),
        ("graphs_off=maybe", "expected true or false"),
        ("flag:a=", "write flag:NAME=true for a bare flag"),
        ("flag:a b=1", "is no name of a flag"),
        ("env:1A=2", "is no name of a variable"),
        ("var:A=2", "'var' is none of flag, text and env"),
        ("flag:a=x\ny", "the value is not one line of text"),
    ],
)
def test_wrong_assignments(word: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_assignments([word])
    assert expected in told(error)


def test_a_value_that_is_too_long_is_told_and_not_shown() -> None:
    long = "x" * 5000
    with pytest.raises(ConfigError) as error:
        parse_assignments([f"flag:served-model-name={long}"])
    assert "too long (5000 characters, most 4096)" in told(error)
    assert len(told(error)) < 300
    with pytest.raises(ConfigError) as error:
        parse(f'[presets.p]\nflags = {{ "served-model-name" = "{long}" }}', FILE)
    assert "too long (5000 characters, most 4096)" in told(error)
    assert len(told(error)) < 300


def test_all_wrong_assignments_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        parse_assignments(["budget=1", "top_k=1", "topk=2", "x=3"])
    assert [problem.where for problem in error.value.problems] == ["--set topk=2", "--set x=3"]


def test_what_is_set_beside_a_preset_goes_before_it() -> None:
    base = Request("p", {"budget": 8, "topk": 4}, {"a": 1}, {"X": "1"})
    over = parse_assignments(["budget=16", "flag:a=none", "env:X=none"])
    assert merged(base, over) == Request("p", {"budget": 16, "topk": 4}, {"a": None}, {"X": None})
