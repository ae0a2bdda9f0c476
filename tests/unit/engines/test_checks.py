"""Each rule of the checks: where it speaks, and where it must not."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from ddtui.core.launch import Finding, Launch, Level
from ddtui.core.load_history import LoadRecord
from ddtui.core.samples import Gpu, GpuProcess, ListenerOwner, ListenerSample
from ddtui.engines.sglang.check_context import GIB, RULES
from ddtui.engines.sglang.checks import CheckContext, check
from ddtui.engines.sglang.server_flags import ServerFlags, ValueType, from_server_info
from tests.unit.engines.captures import FOLDER, text_of
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
    fork,
    launch,
    mainline,
)

TREE = fork(*BUDGET_FORK)
REPORT = "sglang-fresh-dflash.after.server_info.txt"
EAGLE = "--model-path m --speculative-algorithm EAGLE --speculative-draft-model-path d"
GPUS = [Gpu(index, uuid=f"GPU-{index}", name="NVIDIA RTX PRO 6000 Blackwell", memory_total=96 * GIB)
        for index in range(2)]  # fmt: skip
LOAD = LoadRecord(
    model="/models/K2",
    drafter="/models/K2-DFlash",
    tp=8,
    flags={"mem-fraction-static": "0.85"},
    seconds=500.0,
    memory_target=(66 * GIB,) * 8,
    memory_drafter=(67 * GIB,) * 8,
    memory_ready=(90 * GIB,) * 8,
)


def found(
    arguments: str,
    server: ServerFlags | None = None,
    environment: dict[str, str] | None = None,
    before: str | None = None,
    **known: Any,
) -> dict[str, Finding]:
    after = launch(arguments, **(environment or {}))
    earlier = after if before is None else launch(before, **(environment or {}))
    context = CheckContext(before=earlier, after=after, server=server or mainline(), **known)
    return {finding.rule: finding for finding in check(context)}


def more(arguments: str, base: str = DFLASH) -> str:
    return f"{base} {arguments}"


CASES: list[tuple[str, Level, dict[str, Any]]] = [
    # (rule, level, a launch that it speaks of)
    ("removed-flag", Level.ERROR, {"arguments": more("--speculative-skip-dp-mlp-sync")}),
    ("unknown-flag", Level.ERROR, {"arguments": more("--speculative-bogus 3"), "before": DFLASH}),
    ("unknown-flag", Level.WARNING, {"arguments": more("--cuda-graph-max-bs 16")}),
    ("abbreviated-flag", Level.WARNING, {"arguments": more("--mem-fraction 0.9")}),
    ("wrong-choice", Level.ERROR, {"arguments": more("--dtype float7")}),
    ("missing-value", Level.ERROR, {"arguments": more("--context-length --trust-remote-code")}),
    ("unexpected-value", Level.ERROR, {"arguments": more("--trust-remote-code=yes")}),
    ("unexpected-value", Level.ERROR, {"arguments": more("--trust-remote-code yes --x")}),
    ("wrong-type", Level.ERROR, {"arguments": more("--context-length many")}),
    ("wrong-type", Level.ERROR, {"arguments": more("--page-size 1.5")}),
    ("secret-on-command-line", Level.NOTE, {"arguments": more("--api-key hush")}),
    ("metrics-off", Level.NOTE, {"arguments": DFLASH.replace(" --enable-metrics", "")}),
    ("unknown-algorithm", Level.ERROR, {"arguments": DFLASH.replace("DFLASH", "DDTREE")}),
    ("no-drafter", Level.ERROR,
     {"arguments": re.sub(r"--speculative-draft-model-path \S+", "", DFLASH)}),
    ("block-sizes-differ", Level.ERROR, {"arguments": more("--speculative-num-draft-tokens 16")}),
    ("block-sizes-differ", Level.WARNING,
     {"arguments": more("--speculative-num-draft-tokens 16", DDTREE), "server": TREE}),
    ("block-too-small", Level.ERROR, {"arguments": DFLASH.replace("block-size 8", "block-size 1")}),
    ("block-too-small", Level.ERROR, {"arguments": DFLASH.replace("block-size 8", "block-size 0"),
                                      "drafter_config": {"block_size": 8}}),
    ("window-not-positive", Level.ERROR, {"arguments": DFLASH.replace("2048", "0")}),
    ("window-below-block", Level.ERROR, {"arguments": DFLASH.replace("2048", "7")}),
    ("window-ignored", Level.WARNING, {"arguments": DFLASH.replace("DFLASH --", "NGRAM --", 1)}),
    ("steps-overridden", Level.WARNING, {"arguments": more("--speculative-num-steps 3")}),
    ("steps-overridden", Level.WARNING, {"arguments": more("--speculative-eagle-topk 4")}),
    ("pipeline-parallel", Level.ERROR, {"arguments": more("--pp-size 2")}),
    ("dp-attention", Level.ERROR, {"arguments": more("--enable-dp-attention")}),
    ("dp-attention", Level.ERROR,
     {"arguments": more("--enable-dp-attention", DDTREE), "server": TREE}),
    ("eagle-auto-values", Level.ERROR, {"arguments": more("--speculative-eagle-topk 4", EAGLE)}),
    ("eagle-chain-tokens", Level.WARNING,
     {"arguments": more("--speculative-num-steps 3 --speculative-eagle-topk 1"
                        " --speculative-num-draft-tokens 8", EAGLE)}),
    ("eagle-topk-backend", Level.ERROR,
     {"arguments": more("--speculative-num-steps 3 --speculative-eagle-topk 4 --page-size 64"
                        " --attention-backend flashmla", EAGLE)}),
    ("eagle-topk-backend", Level.ERROR,
     {"arguments": more("--speculative-num-steps 3 --speculative-eagle-topk 4"
                        " --attention-backend trtllm_mha", EAGLE)}),
    ("dspark-draft-tokens", Level.ERROR,
     {"arguments": "--model-path m --speculative-algorithm DSPARK --speculative-dspark-block-size 7"
                   " --speculative-num-draft-tokens 7"}),
    ("block-not-trained", Level.WARNING,
     {"arguments": DFLASH, "drafter_config": {"dflash_config": {"block_size": 16}}}),
    ("block-not-trained", Level.WARNING,
     {"arguments": DFLASH, "drafter_config": {"block_size": 4}}),
    ("block-implausible", Level.ERROR, {"arguments": DFLASH.replace("size 8", "size 999999")}),
    ("block-implausible", Level.ERROR,
     {"arguments": DFLASH.replace("size 8", "size 999999"), "drafter_config": {"block_size": 8}}),
    ("block-implausible", Level.ERROR,
     {"arguments": more("--context-length 64", DFLASH.replace("size 8", "size 64"))}),
    ("block-implausible", Level.WARNING, {"arguments": DFLASH.replace("size 8", "size 32")}),
    ("budget-implausible", Level.ERROR,
     {"arguments": DDTREE.replace("budget 16", "budget 999999"), "server": TREE}),
    ("budget-implausible", Level.WARNING,
     {"arguments": DDTREE.replace("budget 16", "budget 2048"), "server": TREE}),
    ("block-size-unknown", Level.NOTE,
     {"arguments": DFLASH.replace("--speculative-dflash-block-size 8", "")}),
    ("budget-too-small", Level.ERROR,
     {"arguments": DDTREE.replace("budget 16", "budget 0"), "server": TREE}),
    ("budget-too-small", Level.ERROR,
     {"arguments": more("--speculative-dflash-verify-budget 0"), "server": fork(*CHAIN_FORK)}),
    ("budget-is-chain", Level.WARNING,
     {"arguments": DDTREE.replace("budget 16", "budget 7"), "server": TREE}),
    ("budget-is-chain", Level.WARNING,
     {"arguments": more("--speculative-num-draft-tokens 8 --speculative-dflash-enable-ddtree"),
      "server": fork(*SWITCH_FORK)}),
    ("budget-without-tree", Level.WARNING,
     {"arguments": more("--speculative-ddtree-budget 8"), "server": TREE}),
    ("max-running-default", Level.NOTE,
     {"arguments": DFLASH.replace("--max-running-requests 16", "")}),
    ("width-beyond-graphs", Level.WARNING,
     {"arguments": more("--speculative-ddtree-cuda-graph-buckets 8 16", DDTREE),
      "server": fork(*V2_FORK)}),
    ("width-beyond-graphs", Level.WARNING, {"arguments": more("--cuda-graph-max-bs-decode 8")}),
    ("width-beyond-graphs", Level.WARNING, {"arguments": more("--cuda-graph-bs-decode 1 2 8")}),
    ("width-beyond-graphs", Level.WARNING, {"arguments": more("--disable-cuda-graph")}),
    ("width-beyond-graphs", Level.NOTE, {"arguments": DDTREE, "server": TREE}),
    ("verify-growth", Level.WARNING,
     {"arguments": DDTREE.replace("budget 16", "budget 34"), "before": DDTREE, "server": TREE}),
    ("memory-estimate", Level.WARNING,
     {"arguments": DFLASH.replace("0.85", "0.65"), "last_load": LOAD, "gpus": GPUS}),
    ("memory-estimate", Level.WARNING,
     {"arguments": DFLASH.replace("0.85", "0.93"), "last_load": LOAD, "gpus": GPUS}),
    ("memory-estimate", Level.WARNING,
     {"arguments": DDTREE.replace("budget 16", "budget 64"), "before": DDTREE, "server": TREE,
      "last_load": LOAD, "gpus": GPUS}),
    ("port-range", Level.ERROR, {"arguments": f"{DFLASH} --port 99999"}),
    ("port-held", Level.ERROR,
     {"arguments": DFLASH, "listener": ListenerSample(1.0, "x", 30000, ListenerOwner.FOREIGN)}),
    ("gpu-memory-held", Level.WARNING,
     {"arguments": DFLASH, "gpus": GPUS,
      "processes": [GpuProcess(77, "GPU-1", "python", 3 * GIB, in_unit=False)]}),
    ("disk-room", Level.WARNING, {"arguments": DFLASH, "disk_free": {"/": GIB}}),
    ("disk-room", Level.ERROR, {"arguments": DFLASH, "disk_free": {"/var": 0}}),
    ("simulated-acceptance", Level.WARNING,
     {"arguments": DFLASH, "environment": {"SGLANG_SIMULATE_ACC_LEN": "4.2"}}),
    ("trtllm-on-sm120", Level.WARNING,
     {"arguments": more("--attention-backend trtllm_mha"), "gpus": GPUS}),
]  # fmt: skip

FINE: list[tuple[str, dict[str, Any]]] = [
    # (rule, a launch close to it that it must not speak of)
    ("removed-flag",
     {"arguments": DFLASH.replace("draft-window", "dflash-draft-window"),
      "server": fork("speculative-dflash-draft-window-size")}),
    ("unknown-flag", {"arguments": more("--tp 8 --speculative-draft-model d"), "before": "--x"}),
    ("abbreviated-flag", {"arguments": more("--tp 8")}),
    ("wrong-choice", {"arguments": more("--dtype bfloat16")}),
    ("missing-value", {"arguments": more("--lora-paths")}),
    ("unexpected-value", {"arguments": more("--cuda-graph-bs-decode 1 2 8 --trust-remote-code")}),
    ("wrong-type",
     {"arguments": more("--chunked-prefill-size -1 --schedule-conservativeness 0.3")}),
    ("secret-on-command-line", {"arguments": more("--max-total-tokens 20000")}),
    ("metrics-off", {"arguments": DFLASH}),
    ("unknown-algorithm", {"arguments": DDTREE, "server": TREE}),
    ("no-drafter", {"arguments": more("--speculative-num-draft-tokens 4 --x",
                                      "--model-path m --speculative-algorithm NGRAM")}),
    ("block-sizes-differ", {"arguments": more("--speculative-num-draft-tokens 8")}),
    ("block-sizes-differ",
     {"arguments": more("--speculative-num-draft-tokens 33 --speculative-dflash-enable-ddtree"),
      "server": fork(*SWITCH_FORK)}),
    ("block-too-small", {"arguments": DFLASH.replace("block-size 8", "block-size 2")}),
    ("window-not-positive", {"arguments": DFLASH}),
    ("window-below-block", {"arguments": DFLASH.replace("2048", "8")}),
    ("window-ignored", {"arguments": DFLASH}),
    ("steps-overridden",
     {"arguments": more("--speculative-eagle-topk 8 --speculative-dflash-tree-verify"),
      "server": fork(*VERIFY_FORK)}),
    ("steps-overridden", {"arguments": more("--speculative-num-steps 3", EAGLE)}),
    ("pipeline-parallel", {"arguments": more("--pp-size 1")}),
    ("pipeline-parallel", {"arguments": "--model-path m --pp-size 2"}),
    ("dp-attention",
     {"arguments": more("--enable-dp-attention --enable-dp-lm-head"),
      "environment": {"SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": "0"}}),
    ("eagle-auto-values", {"arguments": EAGLE}),
    ("eagle-chain-tokens",
     {"arguments": more("--speculative-num-steps 3 --speculative-eagle-topk 1"
                        " --speculative-num-draft-tokens 4", EAGLE)}),
    ("eagle-topk-backend",
     {"arguments": more("--speculative-num-steps 3 --speculative-eagle-topk 4 --page-size 64"
                        " --attention-backend triton", EAGLE)}),
    ("dspark-draft-tokens",
     {"arguments": "--model-path m --speculative-algorithm DSPARK --speculative-dspark-block-size 7"
                   " --speculative-num-draft-tokens 8"}),
    ("block-not-trained", {"arguments": DFLASH, "drafter_config": {"block_size": 8}}),
    ("block-not-trained", {"arguments": DFLASH}),
    ("block-implausible", {"arguments": DFLASH.replace("size 8", "size 16")}),
    ("block-implausible", {"arguments": DFLASH.replace("size 8", "size 512"),
                           "drafter_config": {"block_size": 512}}),
    ("budget-implausible",
     {"arguments": DDTREE.replace("budget 16", "budget 1024"), "server": TREE}),
    ("budget-implausible", {"arguments": DFLASH.replace("size 8", "size 4096")}),
    ("block-size-unknown",
     {"arguments": DFLASH.replace("--speculative-dflash-block-size 8", ""),
      "drafter_config": {"block_size": 8}}),
    ("budget-too-small", {"arguments": DDTREE, "server": TREE}),
    ("budget-is-chain", {"arguments": DDTREE.replace("budget 16", "budget 8"), "server": TREE}),
    ("budget-is-chain", {"arguments": DFLASH, "server": TREE}),
    ("budget-without-tree", {"arguments": DDTREE, "server": TREE}),
    ("max-running-default", {"arguments": DFLASH}),
    ("width-beyond-graphs",
     {"arguments": more("--speculative-ddtree-cuda-graph-buckets 8 17", DDTREE),
      "server": fork(*V2_FORK)}),
    ("width-beyond-graphs", {"arguments": more("--cuda-graph-max-bs-decode 16")}),
    ("width-beyond-graphs", {"arguments": DDTREE, "server": TREE, "environment": TOPK}),
    ("verify-growth",
     {"arguments": DDTREE.replace("budget 16", "budget 33"), "before": DDTREE, "server": TREE}),
    ("memory-estimate", {"arguments": DFLASH, "last_load": LOAD, "gpus": GPUS}),
    ("memory-estimate",
     {"arguments": DFLASH.replace("0.85", "0.65"), "gpus": GPUS,
      "last_load": msgspec.structs.replace(LOAD, model="/models/another")}),
    ("memory-estimate", {"arguments": DFLASH.replace("0.85", "0.65"), "last_load": LOAD}),
    ("port-range", {"arguments": f"{DFLASH} --port 65535"}),
    ("port-held",
     {"arguments": DFLASH, "listener": ListenerSample(1.0, "x", 30000, ListenerOwner.UNIT)}),
    ("port-held",
     {"arguments": DFLASH, "listener": ListenerSample(1.0, "x", 30001, ListenerOwner.FOREIGN)}),
    ("gpu-memory-held",
     {"arguments": DFLASH, "processes": [GpuProcess(77, "GPU-1", "sglang", GIB, in_unit=True),
                                         GpuProcess(78, "GPU-1", "?", GIB, in_unit=None)]}),
    ("disk-room", {"arguments": DFLASH, "disk_free": {"/": 3 * GIB}}),
    ("simulated-acceptance",
     {"arguments": DFLASH, "environment": {"SGLANG_SIMULATE_ACC_LEN": "-1"}}),
    ("trtllm-on-sm120", {"arguments": more("--attention-backend triton"), "gpus": GPUS}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "level", "known"), CASES)
def test_a_rule_speaks(rule: str, level: Level, known: dict[str, Any]) -> None:
    finding = found(**known)[rule]
    assert finding.level is level
    assert finding.text
    assert finding.reason


@pytest.mark.parametrize(("rule", "known"), FINE)
def test_a_rule_keeps_quiet(rule: str, known: dict[str, Any]) -> None:
    assert rule not in found(**known)


def test_every_rule_is_tested_both_ways() -> None:
    assert {rule for rule, _, _ in CASES} == {rule for rule, _ in FINE} == RULES.keys()


def test_findings_name_values_and_the_way_out() -> None:
    wrong = found(
        more("--speculative-dflash-block-siz 16 --speculative-num-draft-tokens 16"), before=DFLASH
    )
    # argparse completes an unambiguous beginning, so this is doubted, not refused.
    assert wrong["abbreviated-flag"].remedy == "write --speculative-dflash-block-size"
    wrong = found(more("--speculative-dflsh-block-size 16"), before=DFLASH)
    assert wrong["unknown-flag"].remedy == "did you mean --speculative-dflash-block-size?"
    old = DFLASH.replace("draft-window", "dflash-draft-window")
    gone = found(old)["removed-flag"]
    assert "0.5.20" in gone.text
    assert gone.remedy == "use --speculative-draft-window-size"
    held = found(
        DFLASH, processes=[GpuProcess(77, "GPU-1", "python", 3 * GIB, in_unit=False)], gpus=GPUS
    )["gpu-memory-held"]
    assert held.text == "pid 77 (python) outside the unit holds 3.0 GiB of GPU 1"
    beyond = found(DFLASH, drafter_config={"block_size": 4})["block-not-trained"]
    assert "LARGER" in beyond.text
    growth = found(DDTREE.replace("budget 16", "budget 50"), TREE, before=DDTREE)["verify-growth"]
    assert growth.text.startswith("a full pass verifies 816 tokens instead of 272, 3.0 times")
    assert (
        "estimate"
        in found(DFLASH.replace("0.85", "0.65"), last_load=LOAD, gpus=GPUS)["memory-estimate"].text
    )


def test_secrets_are_never_in_a_finding() -> None:
    findings = found(more("--api-key hush --admin-api-key hush2 --trust-remote-code hush3"))
    shown = repr(findings.values()).replace("hush3", "")
    assert "hush" not in shown


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*server_info.txt")))
def test_the_command_lines_of_real_servers_have_no_errors(name: str) -> None:
    text = text_of(name)
    command = re.search(r'"launch_command":\s*"([^"]*)"', text)
    assert command is not None
    arguments = command[1]
    report = from_server_info(msgspec.json.decode(text))
    for server in (mainline(), report):
        findings = found(arguments, server).values()
        assert [each for each in findings if each.level is Level.ERROR] == []


@pytest.mark.parametrize(
    ("log", "arguments", "rule"),
    [
        ("sglang-fail-unknown-flag.log", "--model-path m --speculative-bogus 3", "unknown-flag"),
        ("sglang-fail-bad-choice.log", "--model-path m --dtype float7", "wrong-choice"),
        (
            "sglang-fail-dflash-block-conflict.log",
            more("--speculative-num-draft-tokens 16"),
            "block-sizes-differ",
        ),
        (
            "sglang-fail-dflash-nodraft.log",
            "--model-path m --speculative-algorithm DFLASH",
            "no-drafter",
        ),
        (
            "sglang-fail-dflash-window-small.log",
            DFLASH.replace("2048", "4"),
            "window-below-block",
        ),
        ("sglang-fail-spec-ddtree.log", DFLASH.replace("DFLASH", "DDTREE"), "unknown-algorithm"),
    ],
)
def test_what_a_real_server_refused_is_refused_before(log: str, arguments: str, rule: str) -> None:
    assert re.search(r"error: |ValueError: ", text_of(log))
    assert found(arguments, before="--model-path m")[rule].level is Level.ERROR


def test_a_wrapper_cannot_be_checked() -> None:
    start = Launch(("bash", "-c", "x"))
    (finding,) = check(CheckContext(before=start, after=start))
    assert (finding.level, finding.rule) == (Level.ERROR, "command-not-editable")


def test_without_a_server_the_coupling_rules_still_hold() -> None:
    after = launch(DFLASH.replace("2048", "7") + " --context-length many")
    findings = {each.rule for each in check(CheckContext(before=after, after=after))}
    assert {"window-below-block", "wrong-type"} <= findings
    assert "unknown-flag" not in findings


@pytest.mark.parametrize("server", [None, from_server_info({"model_path": "m"}, "0.5.23")])
def test_what_is_a_number_in_every_version_is_one_here(server: ServerFlags | None) -> None:
    after = launch(more("--mem-fraction-static notanumber"))
    (finding,) = [
        each
        for each in check(CheckContext(before=launch(DFLASH), after=after, server=server))
        if each.rule == "wrong-type"
    ]
    assert finding.level is Level.ERROR
    assert finding.reason.startswith("the server would exit ")


def test_what_a_list_with_gaps_lacks_is_only_doubted() -> None:
    """The keys of /server_info do not name every flag of a server: its --help does."""
    arguments = {"model_path": "m", "tp_size": 8, "enable_metrics": True, "speculative_x": 4}
    server = from_server_info(arguments, "0.5.23")
    asked = "--model-path m --speculative-bogus 3 --speculative-skip-dp-mlp-sync --speculative-x a"
    findings = found(asked, server, before="--model-path m")
    for rule in ("unknown-flag", "removed-flag"):
        assert findings[rule].level is Level.WARNING
        assert "as far as its /server_info tells, which does not name every flag" in (
            findings[rule].text
        )
        assert findings[rule].reason.startswith("if the server refuses it, it will exit ")
    assert findings["wrong-type"].level is Level.WARNING
    assert findings["wrong-type"].reason.endswith("exit with status 2 at once: invalid value")
    assert found(DFLASH, server)["unknown-algorithm"].level is Level.WARNING
    assert not [each for each in findings.values() if each.level is Level.ERROR]


def told_of_budget(arguments: str, server: ServerFlags | None, before: str) -> list[Finding]:
    context = CheckContext(before=launch(before), after=launch(arguments), server=server)
    return [each for each in check(context) if "ddtree-budget" in each.text]


def test_a_trees_flag_is_refused_where_the_servers_report_has_none() -> None:
    """Each argument of speculation is in /server_info, so what is not there is no flag."""
    report = from_server_info(msgspec.json.decode(text_of(REPORT)))
    (finding,) = told_of_budget(more("--speculative-ddtree-budget 8"), report, DFLASH)
    assert (finding.level, finding.rule) == (Level.ERROR, "unknown-flag")
    assert finding.text == (
        "--speculative-ddtree-budget is no flag of this server: its /server_info names every"
        " argument of speculation, and not this one"
    )
    assert finding.remedy.startswith("leave it out: only builds of SGLang that can verify a tree")
    algorithm = found(DDTREE, report)["unknown-algorithm"]
    assert algorithm.level is Level.ERROR
    # Other arguments are in it with gaps.
    assert found(more("--config x"), report, before=DFLASH)["unknown-flag"].level is Level.WARNING


def test_a_trees_flag_without_a_tree_is_told_once() -> None:
    """Whatever is known of the server: refused where it may not have it, else a warning."""
    asked = more("--speculative-ddtree-budget 8")
    for server, before, level, rule in (
        (mainline(), DFLASH, Level.ERROR, "unknown-flag"),
        (mainline(), asked, Level.WARNING, "unknown-flag"),
        (None, DFLASH, Level.ERROR, "budget-without-tree"),
        (None, asked, Level.WARNING, "budget-without-tree"),
        (TREE, DFLASH, Level.WARNING, "budget-without-tree"),
    ):
        (finding,) = told_of_budget(asked, server, before)
        assert (finding.level, finding.rule) == (level, rule)


def test_a_reported_integer_is_no_proof_that_fractions_are_wrong() -> None:
    flags = dict(mainline().flags)
    info = msgspec.structs.replace(flags["watchdog-timeout"], type=ValueType.INTEGER)
    server = msgspec.structs.replace(mainline(), flags=flags | {"watchdog-timeout": info})
    assert found(more("--watchdog-timeout 0.5"), server)["wrong-type"].level is Level.WARNING
    assert found(more("--watchdog-timeout x"), server)["wrong-type"].level is Level.ERROR


def test_errors_come_first() -> None:
    after = Launch((*PYTHON, *more("--api-key x --pp-size 2 --speculative-num-steps 3").split()))
    levels = [each.level for each in check(CheckContext(before=after, after=after))]
    assert levels == sorted(levels, key=[Level.ERROR, Level.WARNING, Level.NOTE].index)
    assert len(set(levels)) == 3
