from __future__ import annotations

import pytest

from ddtui.engines import ENGINES
from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.arguments import Scalar, read_arguments
from tests.unit.engines.captures import text_of


def knobs(**values: Scalar) -> dict[str, str]:
    return SGLANG.knobs(values)


def test_the_knobs_of_captured_servers() -> None:
    sample, _ = SGLANG.parse_server_info(text_of("sglang-fresh-dflash.after.server_info.txt"), 0.0)
    assert list(SGLANG.knobs(sample.arguments).items()) == [
        ("algorithm", "DFLASH"),
        ("block size", "8"),
        ("top-k", "1"),
        ("draft tokens", "8"),
        ("steps", "1"),
        ("tp", "1"),
        ("mem fraction", "0.716"),
        ("attention backend", "torch_native"),
        ("draft attention", "torch_native"),
        ("max running", "8"),
        ("chunked prefill", "4096"),
    ]
    sample, _ = SGLANG.parse_server_info(text_of("sglang-base.after.server_info.txt"), 0.0)
    assert SGLANG.knobs(sample.arguments) == {
        "tp": "1",
        "mem fraction": "0.716",
        "attention backend": "torch_native",
        "max running": "16",
        "chunked prefill": "4096",
    }


def test_flags_give_the_same_knobs_as_arguments() -> None:
    script = (
        "sglang serve --model-path m --tp 8 --speculative-algorithm DFLASH "
        "--speculative-dflash-block-size 16 --speculative-draft-window-size 4096 "
        "--mem-fraction-static 0.80 --speculative-draft-model-path d --disable-cuda-graph"
    )
    command = script.split()
    assert SGLANG.knobs(dict(SGLANG.flags(command))) == {
        "algorithm": "DFLASH",
        "block size": "16",
        "window": "4096",
        "tp": "8",
        "mem fraction": "0.80",
        "graphs off": "on",
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # The fork that ignores --speculative-dflash-block-size with DDTREE.
        (
            {
                "speculative_algorithm": "DDTREE",
                "speculative_ddtree_budget": 64,
                "speculative_num_draft_tokens": 16,
                "speculative_dflash_block_size": 8,
            },
            {"algorithm": "DDTREE", "block size": "16", "budget": "64", "draft tokens": "16"},
        ),
        # The fork with a block size of its own.
        (
            {
                "speculative_algorithm": "DDTREE",
                "speculative_ddtree_block_size": 8,
                "speculative_dflash_block_size": 4,
                "speculative_ddtree_budget": 32,
                "is_ddtree_prune": True,
                "speculative_ddtree_cpu_build": False,
            },
            {
                "algorithm": "DDTREE",
                "block size": "8",
                "budget": "32",
                "is ddtree prune": "on",
                "ddtree cpu build": "off",
            },
        ),
        (
            {
                "speculative_algorithm": "DDTREE",
                "speculative_ddtree_block_size": None,
                "speculative_dflash_block_size": 4,
                "speculative_num_draft_tokens": 33,
            },
            {"algorithm": "DDTREE", "block size": "4", "draft tokens": "33"},
        ),
        # The fork in which num_draft_tokens is the size of the tree.
        (
            {
                "speculative_algorithm": "DFLASH",
                "speculative_dflash_enable_ddtree": True,
                "speculative_num_draft_tokens": 65,
                "speculative_dflash_block_size": 16,
            },
            {
                "algorithm": "DFLASH",
                "block size": "16",
                "draft tokens": "65",
                "dflash enable ddtree": "on",
            },
        ),
        (
            {
                "speculative_algorithm": "DFLASH",
                "speculative_dflash_tree_verify": True,
                "speculative_num_draft_tokens": 33,
            },
            {"algorithm": "DFLASH", "draft tokens": "33", "dflash tree verify": "on"},
        ),
        (
            {"speculative_algorithm": "DFLASH", "speculative_dflash_tree_width": 4},
            {"algorithm": "DFLASH", "tree width": "4"},
        ),
        (
            {"speculative_algorithm": "DFLASH", "speculative_dflash_verify_budget": 6},
            {"algorithm": "DFLASH", "verify budget": "6"},
        ),
        (
            {"speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 8},
            {"algorithm": "EAGLE3", "draft tokens": "8"},
        ),
        ({"SGLANG_DDTREE_MAX_TOPK": "8"}, {"top-k": "8"}),
        ({"SGLANG_DDTREE_DEPTH_BONUS": "0.1"}, {"sglang ddtree depth bonus": "0.1"}),
        # What the drafter logged wins over what was asked for.
        (
            {
                "speculative_algorithm": "DFLASH",
                "speculative_num_draft_tokens": 8,
                "block_size": 16,
                "num_tokens_per_req": 16,
            },
            {
                "algorithm": "DFLASH",
                "block size": "16",
                "draft tokens": "8",
                "verify width": "16",
            },
        ),
        ({"speculative_something_new": 3}, {"something new": "3"}),
        ({"speculative_accept_threshold_acc": 0.9}, {"accept threshold acc": "0.9"}),
        (
            {
                "speculative_accept_threshold_acc": 1.0,
                "speculative_ngram_match_type": "BFS",
                "_speculative_draft_quantization_explicitly_set": False,
                "speculative_draft_model_path": "d",
                "tp_size": None,
                "kv_cache_dtype": "auto",
                "dp_size": 1,
            },
            {},
        ),
        (
            {"tp_size": 8, "dp_size": 2, "kv_cache_dtype": "fp8_e4m3"},
            {"tp": "8", "dp": "2", "KV dtype": "fp8_e4m3"},
        ),
    ],
)
def test_dialects(values: dict[str, Scalar], expected: dict[str, str]) -> None:
    assert SGLANG.knobs(values) == expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "server_args=ServerArgs(model_path='/m', tp_size=8, mem_fraction_static=0.8, "
            "api_key='hidden', log=None, on=True, bs=[1, 2, (3, 4)], opts={'a': {'b': 1}}, "
            "kind=<Kind.A: 1>, last=-3)",
            {
                "model_path": "/m",
                "tp_size": 8,
                "mem_fraction_static": 0.8,
                "api_key": "<redacted>",
                "log": None,
                "on": True,
                "kind": "<Kind.A: 1>",
                "last": -3,
            },
        ),
        (
            "server_args={'a': 'it\\'s, {x', 'b': \"q'\", 'c': {'a': 5}, 'd': 1e-3, 'e': ''}",
            {"a": "it's, {x", "b": "q'", "d": 0.001, "e": ""},
        ),
        ("server_args={'a': 1, 'b': 'cut of", {"a": 1}),
        ("server_args={'a': 1, 'b': 12", {"a": 1}),
        ("server_args={'a': 1, 'b': [1, 2", {"a": 1}),
        ("server_args={}", {}),
        ("server_args=", {}),
    ],
)
def test_logged_arguments(text: str, values: dict[str, Scalar]) -> None:
    assert read_arguments(text) == values


def test_an_engine_is_found_by_name_and_knows_its_command() -> None:
    assert ENGINES["sglang"] is SGLANG
    assert SGLANG.is_command(["python", "-m", "sglang.launch_server"])
    assert not SGLANG.is_command(["python", "-m", "http.server"])


def test_top_k_of_ddtree_is_the_units_variable_and_never_the_flag() -> None:
    values: dict[str, Scalar] = {
        "speculative_algorithm": "DDTREE",
        "speculative_ddtree_budget": 8,
        "speculative_eagle_topk": 1,
    }
    assert SGLANG.knobs(values) == {"algorithm": "DDTREE", "budget": "8"}
    variables = {
        "SGLANG_DDTREE_MAX_TOPK": "6",
        "SGLANG_DDTREE_DEPTH_BONUS": "0.2",
        "CUDA_HOME": "/usr/local/cuda",
    }
    assert SGLANG.knobs(values, variables) == {
        "algorithm": "DDTREE",
        "budget": "8",
        "top-k": "6",
        "sglang ddtree depth bonus": "0.2",
    }
    assert SGLANG.knobs({"speculative_algorithm": "EAGLE"}, variables) == {"algorithm": "EAGLE"}
