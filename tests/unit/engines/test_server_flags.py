"""The flags of a server: from real help, from `/server_info`, from argparse of every kind."""

from __future__ import annotations

import argparse
import json

import msgspec
import pytest

from ddtui.engines.sglang.server_flags import (
    NotUnderstood,
    ServerFlags,
    ValueType,
    from_server_info,
    parse_help,
    with_types,
)
from tests.unit.engines.captures import text_of
from tests.unit.engines.servers import mainline


def test_every_flag_of_a_real_servers_usage_is_found() -> None:
    server = mainline()
    assert len(server.flags) == 529
    assert server.flags["model-path"].takes_value
    assert server.flags["tokenizer-mode"].choices == ("auto", "slow")
    assert "kimi_k2" in server.flags["tool-call-parser"].choices
    assert server.flags["disable-cuda-graph"].type is ValueType.SWITCH
    assert server.flags["cuda-graph-bs-decode"].many
    assert not server.flags["cuda-graph-bs-decode"].optional_value
    paths = server.flags["lora-paths"]
    assert (paths.many, paths.optional_value) == (True, True)
    negated = server.flags["enable-tf32-matmul"].negated
    assert negated == "no-enable-tf32-matmul"
    assert server.exact(negated) is server.flags["enable-tf32-matmul"]
    assert server.complete


@pytest.mark.parametrize("name", ["sglang-fail-unknown-flag.log", "sglang-fail-bad-choice.log"])
def test_the_usage_within_a_log_gives_the_same_flags(name: str) -> None:
    assert parse_help(text_of(name)).flags.keys() == mainline().flags.keys()


def test_names_are_found_as_argparse_finds_them() -> None:
    server = mainline()
    assert server.exact("tp") is server.exact("tensor-parallel-size") is server.flags["tp-size"]
    assert server.exact("speculative-draft-model") is server.flags["speculative-draft-model-path"]
    assert server.exact("mem-fraction") is None
    assert server.find("mem-fraction") is server.flags["mem-fraction-static"]
    assert server.find("speculative-ngram") is None  # the beginning of several
    assert server.find("") is None
    assert server.nearest("speculative-dflash-blocksize") == "speculative-dflash-block-size"
    assert server.nearest("zzzzzzzzzz") == ""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="sglang serve")
    made.add_argument("--model-path", "--model", required=True, help="Path --of the model")
    made.add_argument("--tp-size", "--tensor-parallel-size", "-t", type=int, default=1, help="x")
    made.add_argument("--dtype", choices=["a", "b"], default="a", help="Data type: {c,d}")
    made.add_argument("--mesh", action=argparse.BooleanOptionalAction, help="Use it")
    made.add_argument("--maybe", nargs="?", const="y", help="z")
    made.add_argument("--pair", nargs=2, metavar=("A", "B"))
    made.add_argument("--loud", action="store_true", help="[--quiet] is the default")
    return made


def test_the_list_of_options_gives_other_spellings() -> None:
    server = parse_help(f"@help\nwarning: x\n{parser().format_help()}", "9")
    assert list(server.flags) == [
        "model-path", "tp-size", "dtype", "mesh", "maybe", "pair", "loud",
    ]  # fmt: skip
    assert server.flags["tp-size"].aliases == ("tensor-parallel-size",)
    assert server.flags["model-path"].aliases == ("model",)
    assert server.flags["dtype"].choices == ("a", "b")
    assert (server.flags["mesh"].negated, server.flags["mesh"].takes_value) == ("no-mesh", False)
    assert server.flags["maybe"].optional_value
    assert server.flags["pair"].many
    assert not server.flags["loud"].takes_value
    assert server.version == "9"


@pytest.mark.parametrize("text", ["", "ModuleNotFoundError: sglang", "usage: x", "usage: x [-h]"])
def test_what_is_no_help_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse_help(text)


def test_a_running_servers_report_gives_names_and_types() -> None:
    report = json.loads(text_of("sglang-base.after.server_info.txt"))
    server = from_server_info(report, "0.5.23")
    assert server.flags["speculative-dflash-block-size"].type is ValueType.UNKNOWN
    assert server.flags["max-running-requests"].type is ValueType.INTEGER
    assert server.flags["mem-fraction-static"].type is ValueType.NUMBER
    assert not server.flags["enable-metrics"].takes_value
    assert not server.complete
    assert not server.knows("launch-command")
    assert not server.knows("internal-states")
    missing = mainline().flags.keys() - server.flags.keys()
    assert len(missing) < 10  # the two sources agree on nearly all


def test_types_of_a_report_complete_the_help() -> None:
    server = with_types(mainline(), {"chunked_prefill_size": 8192, "enable_metrics": True, "x": 1})
    assert server.flags["chunked-prefill-size"].type is ValueType.INTEGER
    assert server.flags["enable-metrics"].type is ValueType.SWITCH
    assert server.flags.keys() == mainline().flags.keys()


def test_flags_survive_being_kept() -> None:
    kept = msgspec.json.encode(mainline())
    assert msgspec.json.decode(kept, type=ServerFlags) == mainline()
