"""What became of each change, by the server's own report."""

from __future__ import annotations

from msgspec.structs import replace

from ddtui.control.proof import Outcome, prove
from ddtui.core.host_state import HostState
from ddtui.core.launch import OVERRIDING_RULES, Change, ChangeKind, Launch
from ddtui.core.samples import ServerInfoSample
from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.check_context import RULES
from ddtui.engines.sglang.checks import CheckContext, check

TOKENS = "speculative-num-draft-tokens"
ARGV = (
    *("python", "-m", "sglang.launch_server", "--model-path", "/m"),
    *("--speculative-algorithm", "EAGLE", "--speculative-num-steps", "3"),
    *("--speculative-eagle-topk", "1", f"--{TOKENS}", "9"),
)


def test_a_flag_that_the_server_sets_otherwise_has_the_reason_of_its_check() -> None:
    launch = Launch(ARGV, {})
    findings = check(CheckContext(before=launch, after=launch))
    info = ServerInfoSample(1.0, "/server_info", {TOKENS.replace("-", "_"): 4}, ARGV)
    snapshot = replace(HostState("h", SGLANG).snapshot(1.0), server_info=info)
    change = Change(ChangeKind.FLAG, TOKENS, None, "9")
    (proof,) = prove([change], launch, snapshot, SGLANG, findings)
    assert (proof.outcome, proof.resolved) == (Outcome.OVERRIDDEN, "4")
    assert proof.reason == "with top-k 1 the draft is a chain: the server sets steps + 1"
    (proof,) = prove([change], launch, snapshot, SGLANG)
    assert proof.reason == "the server has resolved it to 4"


def test_the_rules_that_tell_of_such_flags_are_there() -> None:
    assert RULES.keys() >= OVERRIDING_RULES
