"""Plans: what a request changes in a command line, by dialect."""

from __future__ import annotations

import msgspec
import pytest

from ddtui.core.launch import ChangeKind, Launch, Level, Request, Value
from ddtui.engines.sglang.checks import CheckContext, check
from ddtui.engines.sglang.command import CommandLine
from ddtui.engines.sglang.dialects import DIALECTS, detect, knob_flags, knob_of
from ddtui.engines.sglang.planning import plan
from ddtui.engines.sglang.server_flags import ServerFlags
from tests.unit.engines.servers import (
    BUDGET_FORK,
    CHAIN_FORK,
    DDTREE,
    DFLASH,
    PYTHON,
    SWITCH_FORK,
    TOPK,
    V2_FORK,
    VERIFY_FORK,
    WIDTH_FORK,
    fork,
    launch,
    mainline,
)


def changes(
    start: Launch,
    server: ServerFlags | None,
    overrides: dict[str, str] | None = None,
    **knobs: Value,
) -> dict[str, tuple[str | None, str | None]]:
    after, made, findings = plan(start, Request(knobs=knobs), server, None, overrides)
    assert [each.text for each in findings if each.level is Level.ERROR] == []
    assert after.argv[:3] == PYTHON
    return {each.name: (each.before, each.after) for each in made}


def errors(start: Launch, server: ServerFlags, **knobs: Value) -> list[tuple[str, str]]:
    after, made, findings = plan(start, Request(knobs=knobs), server)
    assert (after, made) == (start, ())
    return [(each.text, each.remedy) for each in findings if each.level is Level.ERROR]


# ---- editing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "name", "value", "after"),
    [
        ("--a 1 --port=7 --b 2", "port", 8, "--a 1 --port=8 --b 2"),
        ("--port 7", "port", "-1", "--port -1"),
        ("--revision x", "revision", "-y", "--revision=-y"),
        ("--tp 8 --x", "tp-size", 4, "--tp 4 --x"),
        ("--port 1 --port 2", "port", 3, "--port 1 --port 3"),
        ("--port 1 --x y --port 2", "port", None, "--x y"),
        ("--enable-metrics", "enable-metrics", True, "--enable-metrics"),
        ("--enable-metrics --port 1", "enable-metrics", False, "--port 1"),
        ("--port 1", "enable-metrics", True, "--port 1 --enable-metrics"),
        ("--enable-tf32-matmul", "enable-tf32-matmul", False, "--no-enable-tf32-matmul"),
        ("--no-enable-tf32-matmul", "enable-tf32-matmul", True, "--enable-tf32-matmul"),
        ("--cuda-graph-bs-decode 1 2 4 --x", "cuda-graph-bs-decode", "8 16",
         "--cuda-graph-bs-decode 8 16 --x"),
        ("--mem-fraction-static 0.9", "mem-fraction-static", 0.85, "--mem-fraction-static 0.85"),
        ("--mem-fraction 0.9", "mem-fraction-static", 0.85, "--mem-fraction 0.85"),
        ("--uvicorn-access-log-exclude-prefixes /a /b", "port", 1,
         "--uvicorn-access-log-exclude-prefixes /a /b --port 1"),
        ("--port 1", "chat-template", '{"a": "b c"}', '--port 1 --chat-template {"a":_"b_c"}'),
    ],
)  # fmt: skip
def test_only_the_flag_changes(before: str, name: str, value: Value, after: str) -> None:
    line = CommandLine([*PYTHON, *before.split()], mainline())
    line.set(name, value)
    assert line.argv[:3] == PYTHON
    assert [word.replace(" ", "_") for word in line.argv[3:]] == after.split()


@pytest.mark.parametrize(
    "argv",
    [
        ["bash", "-c", "exec python -m sglang.launch_server --port 1"],
        ["/opt/start-engine.sh"],
        ["$ENGINE_COMMAND"],
        [],
    ],
)
def test_a_wrapper_is_an_error_with_the_way_out(argv: list[str]) -> None:
    start = Launch(tuple(argv))
    after, made, findings = plan(start, Request(flags={"port": 1}), mainline())
    assert (after, made) == (start, ())
    assert [(each.level, each.rule) for each in findings] == [(Level.ERROR, "command-not-editable")]
    assert "ExecStart" in findings[0].remedy


@pytest.mark.parametrize(
    "prefix",
    [
        ["numactl", "-m", "0", "python3", "-u", "-m", "sglang.launch_server"],
        ["/opt/llm/venv/bin/sglang", "serve"],
        ["env", "A=1", "python", "/opt/sglang/launch_server.py"],
    ],
)
def test_what_stands_before_the_arguments_is_never_touched(prefix: list[str]) -> None:
    start = Launch((*prefix, "--port", "1"))
    after, _, _ = plan(start, Request(flags={"port": 2}), mainline())
    assert after.argv == (*prefix, "--port", "2")


# ---- dialects -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "environment", "dialect"),
    [
        ((), {}, "dflash"),
        (BUDGET_FORK, {}, "ddtree"),
        (BUDGET_FORK, {"CUDA_HOME": "x"}, "ddtree"),
        (BUDGET_FORK, TOPK, "ddtree-topk"),
        (V2_FORK, TOPK, "ddtree-v2"),
        (SWITCH_FORK, {}, "dflash-ddtree"),
        (VERIFY_FORK, {}, "dflash-tree-verify"),
        (WIDTH_FORK, {}, "dflash-tree-width"),
        (CHAIN_FORK, {}, "dflash-verify-budget"),
    ],
)
def test_the_dialect_is_told_from_the_server(
    server: tuple[str, ...], environment: dict[str, str], dialect: str
) -> None:
    assert detect(fork(*server), environment).id == dialect


def test_a_server_without_block_drafting_is_told_too() -> None:
    flags = {name: info for name, info in mainline().flags.items() if "dflash" not in name}
    old = msgspec.structs.replace(mainline(), flags=flags)
    assert detect(old).id == "mainline"
    assert len({dialect.id for dialect in DIALECTS}) == len(DIALECTS)


def test_block_and_window_on_mainline() -> None:
    assert changes(launch(DFLASH), mainline(), block_size=16, window=None) == {
        "speculative-dflash-block-size": ("8", "16"),
        "speculative-draft-window-size": ("2048", None),
    }
    both = launch(DFLASH + " --speculative-num-draft-tokens 8")
    assert changes(both, mainline(), block_size=16) == {
        "speculative-dflash-block-size": ("8", "16"),
        "speculative-num-draft-tokens": ("8", "16"),
    }
    _, made, _ = plan(both, Request(knobs={"block_size": 16}), mainline())
    assert [(each.knob, bool(each.note)) for each in made] == [
        ("block_size", False),
        ("block_size", True),
    ]
    tokens = launch(DFLASH.replace("dflash-block-size", "num-draft-tokens"))
    assert changes(tokens, mainline(), block_size=16) == {
        "speculative-num-draft-tokens": ("8", "16")
    }


def test_the_windows_older_name_is_used_where_it_is_the_one() -> None:
    old = launch(DFLASH.replace("draft-window", "dflash-draft-window"))
    server = fork("speculative-dflash-draft-window-size")
    assert changes(old, server, window=4096) == {
        "speculative-dflash-draft-window-size": ("2048", "4096")
    }


def test_budget_and_block_of_ddtree() -> None:
    plain = launch(DDTREE)
    assert changes(plain, fork(*BUDGET_FORK), budget=33, block_size=16) == {
        "speculative-ddtree-budget": ("16", "33"),
        "speculative-dflash-block-size": ("8", "16"),
        "speculative-num-draft-tokens": (None, "16"),
    }
    known = launch(DDTREE, **TOPK)
    assert changes(known, fork(*BUDGET_FORK), budget=33, block_size=16, topk=4) == {
        "speculative-ddtree-budget": ("16", "33"),
        "speculative-dflash-block-size": ("8", "16"),
        "SGLANG_DDTREE_MAX_TOPK": ("8", "4"),
    }
    own = launch(DDTREE.replace("dflash-block-size", "ddtree-block-size"))
    assert changes(own, fork(*V2_FORK), budget=33, block_size=16) == {
        "speculative-ddtree-budget": ("16", "33"),
        "speculative-ddtree-block-size": ("8", "16"),
    }


def test_forks_whose_tree_is_a_switch_of_dflash() -> None:
    tokens = DFLASH + " --speculative-num-draft-tokens 8"
    made = changes(launch(tokens), fork(*SWITCH_FORK), algorithm="DDTREE", budget=32)
    assert made == {
        "speculative-dflash-enable-ddtree": (None, "true"),
        "speculative-num-draft-tokens": ("8", "33"),
    }
    on = launch(f"{DFLASH} --speculative-num-draft-tokens 33 --speculative-dflash-enable-ddtree")
    assert changes(on, fork(*SWITCH_FORK), block_size=16) == {
        "speculative-dflash-block-size": ("8", "16")
    }
    assert changes(on, fork(*SWITCH_FORK), algorithm="DFLASH") == {
        "speculative-dflash-enable-ddtree": ("true", None)
    }
    on = launch(f"{DFLASH} --speculative-dflash-tree-verify")
    assert changes(on, fork(*VERIFY_FORK), topk=8, budget=32) == {
        "speculative-eagle-topk": (None, "8"),
        "speculative-num-draft-tokens": (None, "33"),
    }


def test_width_chain_and_eagle() -> None:
    assert changes(launch(DFLASH), fork(*WIDTH_FORK), topk=4, tree_nodes=30) == {
        "speculative-dflash-tree-width": (None, "4"),
        "SGLANG_DFLASH_MAX_NUM_NODES": (None, "30"),
    }
    assert changes(launch(DFLASH), fork(*CHAIN_FORK), verify_budget=6) == {
        "speculative-dflash-verify-budget": (None, "6")
    }
    eagle = launch("--model-path m --speculative-algorithm EAGLE3 --speculative-num-steps 3")
    assert changes(eagle, fork(*BUDGET_FORK), steps=5, topk=4, draft_tokens=8) == {
        "speculative-num-steps": ("3", "5"),
        "speculative-eagle-topk": (None, "4"),
        "speculative-num-draft-tokens": (None, "8"),
    }
    spark = launch(
        "--model-path m --speculative-algorithm DSPARK --speculative-dspark-block-size 7"
        " --speculative-num-draft-tokens 8"
    )
    assert changes(spark, mainline(), block_size=15) == {
        "speculative-dspark-block-size": ("7", "15"),
        "speculative-num-draft-tokens": ("8", "16"),
    }


def test_a_knob_that_the_server_has_no_flag_for_is_never_guessed() -> None:
    ((text, remedy),) = errors(launch(DFLASH), mainline(), budget=16)
    assert text == "this server has no budget (mainline SGLang with DFLASH, without a tree)"
    assert "--speculative-ddtree-budget in SGLang as of Rancy-Wang's fork" in remedy
    assert "[hosts.NAME.knobs] budget" in remedy
    ((text, remedy),) = errors(launch(DDTREE), fork(*BUDGET_FORK), topk=4)
    assert "environment SGLANG_DDTREE_MAX_TOPK" in remedy
    ((text, _),) = errors(launch(DFLASH.replace("DFLASH", "EAGLE")), fork(*BUDGET_FORK), budget=4)
    assert text.startswith("EAGLE has no budget")
    ((text, _),) = errors(launch(DFLASH), mainline(), budgt=16)
    assert text == "there is no knob 'budgt'; did you mean budget?"


def test_the_hosts_own_mapping_goes_first() -> None:
    mapping = {"budget": "env:MY_BUDGET", "topk": "--speculative-ngram-max-bfs-breadth"}
    assert changes(launch(DFLASH), mainline(), mapping, budget=16, topk=2) == {
        "MY_BUDGET": (None, "16"),
        "speculative-ngram-max-bfs-breadth": (None, "2"),
    }
    _, made, findings = plan(
        launch(DFLASH), Request(knobs={"budget": 3}), mainline(), None, {"budget": "my-bugdet"}
    )
    assert made == ()
    assert "which this server does not have" in findings[0].text


@pytest.mark.parametrize(
    ("server", "knobs", "rule", "words"),
    [
        (fork(*BUDGET_FORK), {"budget": 9}, "budget-without-tree", "--speculative-ddtree-budget"),
        (fork(*VERIFY_FORK), {"budget": 7, "topk": 4}, "tree-off", "budget and topk have"),
        (fork(*SWITCH_FORK), {"budget": 7}, "tree-off", "budget has"),
    ],
)
def test_a_budget_without_its_tree_is_pointed_out_once(
    server: ServerFlags, knobs: dict[str, Value], rule: str, words: str
) -> None:
    start = launch(DFLASH)
    after, _, findings = plan(start, Request(knobs=knobs), server)
    judged = check(CheckContext(before=start, after=after, server=server))
    told = [each for each in (*findings, *judged) if "no effect" in each.text]
    assert [(each.level, each.rule) for each in told] == [(Level.WARNING, rule)]
    assert told[0].text.startswith(words)


def test_a_budget_and_a_topk_without_their_tree_are_one_warning() -> None:
    start, server = launch(DFLASH, SGLANG_DDTREE_DEPTH_BONUS="1"), fork(*BUDGET_FORK)
    after, _, findings = plan(start, Request(knobs={"budget": 9, "topk": 4}), server)
    judged = check(CheckContext(before=start, after=after, server=server))
    told = [each.text for each in (*findings, *judged) if "no effect" in each.text]
    assert told == [
        "--speculative-ddtree-budget and SGLANG_DDTREE_MAX_TOPK have no effect with algorithm"
        " DFLASH"
    ]


def test_flags_of_a_request_go_before_its_knobs() -> None:
    request = Request(
        knobs={"mem_fraction": 0.8, "budget": 4},
        flags={"--mem-fraction-static": 0.9, "speculative-ddtree-budget": 4, "page-size": None},
        environment={"A": "1", "CUDA_HOME": None},
    )
    start = launch(DDTREE + " --page-size 1", CUDA_HOME="/usr")
    after, made, findings = plan(start, request, fork(*BUDGET_FORK))
    assert {each.name: (each.kind, each.before, each.after) for each in made} == {
        "mem-fraction-static": (ChangeKind.FLAG, "0.85", "0.9"),
        "speculative-ddtree-budget": (ChangeKind.FLAG, "16", "4"),
        "page-size": (ChangeKind.FLAG, "1", None),
        "A": (ChangeKind.ENVIRONMENT, None, "1"),
        "CUDA_HOME": (ChangeKind.ENVIRONMENT, "/usr", None),
    }
    assert after.environment == {"A": "1"}
    assert [each.rule for each in findings] == ["set-twice"]


def test_no_change_and_no_secret() -> None:
    _, made, findings = plan(launch(DFLASH), Request(knobs={"block_size": 8}), mainline())
    assert made == ()
    assert [each.rule for each in findings] == ["nothing-changes"]
    start = launch(DFLASH + " --api-key hush-1", HF_TOKEN="hf_old")
    request = Request(flags={"api-key": "hush-2"}, environment={"HF_TOKEN": "hf_new"})
    after, made, _ = plan(start, request, mainline())
    assert "hush-2" in after.argv
    assert len(made) == 2
    assert "hush" not in repr(made)
    assert "hf_" not in repr(made)


def test_without_a_server_only_what_is_there_can_be_changed() -> None:
    assert changes(launch(DDTREE, **TOPK), None, budget=4, topk=2, window=None) == {
        "speculative-ddtree-budget": ("16", "4"),
        "SGLANG_DDTREE_MAX_TOPK": ("8", "2"),
        "speculative-draft-window-size": ("2048", None),
    }
    _, _, findings = plan(launch(DFLASH), Request(knobs={"sink": 4}), None)
    assert findings[0].rule == "knob-without-flag"
    # Nobody has looked: that the server has none would be claimed too much.
    assert findings[0].text == "which flag sink is on this server is not known"
    _, _, findings = plan(launch(DFLASH), Request(knobs={"budget": 4}), mainline())
    assert "has no budget" in findings[0].text


def test_a_flag_is_called_by_its_knob_whatever_set_it() -> None:
    names = {
        "speculative-ddtree-budget": "budget",
        "SGLANG_DDTREE_MAX_TOPK": "topk",
        "speculative-eagle-topk": "topk",
        "speculative-dflash-block-size": "block_size",
        "speculative-dflash-draft-window-size": "window",
        "mem-fraction-static": "mem_fraction",
        "speculative-num-draft-tokens": "",
        "trust-remote-code": "",
    }
    assert {name: knob_of(name) for name in names} == names


def test_every_knob_of_a_server_for_display() -> None:
    start = launch(f"{DFLASH} --speculative-num-draft-tokens 33 --speculative-dflash-enable-ddtree")
    server = fork(*SWITCH_FORK)
    found = {each.knob: each for each in knob_flags(CommandLine(start.argv, server), {}, server)}
    assert (found["budget"].targets, found["budget"].requested) == (
        ("--speculative-num-draft-tokens",),
        "32",
    )
    assert found["window"].requested == "2048"
    assert found["sink"].requested is None
    assert found["tree_nodes"].targets == ()
    assert "36196" in found["tree_nodes"].missing
