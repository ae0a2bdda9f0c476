"""Servers for the tests: a real 0.5.23's help, and forks made of it by adding their flags."""

from __future__ import annotations

from functools import cache

import msgspec

from ddtui.core.launch import Launch
from ddtui.engines.sglang.server_flags import FlagInfo, ServerFlags, ValueType, parse_help
from tests.unit.engines.captures import text_of

PYTHON = ("/opt/llm/venv/bin/python", "-m", "sglang.launch_server")
DFLASH = (
    "--model-path /models/K2 --tp-size 8 --port 30000 --mem-fraction-static 0.85 "
    "--max-running-requests 16 --speculative-algorithm DFLASH "
    "--speculative-draft-model-path /models/K2-DFlash --speculative-dflash-block-size 8 "
    "--speculative-draft-window-size 2048 --enable-metrics"
)
DDTREE = DFLASH.replace("DFLASH", "DDTREE") + " --speculative-ddtree-budget 16"

BUDGET_FORK = ("speculative-ddtree-budget",)
V2_FORK = (*BUDGET_FORK, "speculative-ddtree-block-size", "speculative-ddtree-cuda-graph-buckets")
SWITCH_FORK = ("-speculative-dflash-enable-ddtree",)
VERIFY_FORK = ("-speculative-dflash-tree-verify",)
WIDTH_FORK = ("speculative-dflash-tree-width",)
CHAIN_FORK = ("speculative-dflash-verify-budget",)
TOPK = {"SGLANG_DDTREE_MAX_TOPK": "8"}


@cache
def mainline() -> ServerFlags:
    """SGLang 0.5.23."""
    return parse_help(text_of("sglang-help-usage.txt"), "0.5.23")


def fork(*names: str) -> ServerFlags:
    """Mainline and these flags; a dash in front makes a switch of one."""
    flags = dict(mainline().flags)
    for name in names:
        plain = name.removeprefix("-")
        kind = ValueType.SWITCH if name != plain else ValueType.UNKNOWN
        many = name.endswith("-buckets")
        flags[plain] = FlagInfo(plain, takes_value=name == plain, type=kind, many=many)
    return msgspec.structs.replace(mainline(), flags=flags)


def launch(arguments: str, **environment: str) -> Launch:
    """A unit's command with these arguments."""
    return Launch((*PYTHON, *arguments.split()), environment)
