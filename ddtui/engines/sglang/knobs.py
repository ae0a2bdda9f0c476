"""The knobs of SGLang and of its DDTree forks, under names that hold for all of them.

Mainline SGLang has no DDTree; the forks that have it differ in their flags, and in what
`num_draft_tokens` means with it (the block size, budget + 1, or the size of the tree). So a knob is
looked for under every name that is known, and whatever else is called `speculative_*` or
`*ddtree*` is shown as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ddtui.engines.sglang.arguments import Scalar

SPECULATION = (
    ("algorithm", ("speculative_algorithm",)),
    # `block_size` is what the drafter itself logs: a proof, where the others are requests.
    (
        "block size",
        (
            "block_size",
            "speculative_ddtree_block_size",
            "speculative_dflash_block_size",
            "speculative_dspark_block_size",
        ),
    ),
    ("budget", ("speculative_ddtree_budget", "ddtree_budget", "tree_budget")),
    ("verify budget", ("speculative_dflash_verify_budget",)),
    ("tree width", ("speculative_dflash_tree_width",)),
    (
        "top-k",
        (
            "speculative_ddtree_topk",
            "speculative_ddtree_max_topk",
            "sglang_ddtree_max_topk",
            "speculative_eagle_topk",
        ),
    ),
    (
        "window",
        ("speculative_draft_window_size", "speculative_dflash_draft_window_size"),
    ),
    ("sink", ("speculative_draft_sink_size",)),
    ("draft tokens", ("speculative_num_draft_tokens",)),
    ("steps", ("speculative_num_steps",)),
    ("verify width", ("num_tokens_per_req",)),
    ("tree nodes", ("max_tree_nodes", "sglang_dflash_max_num_nodes")),
)
SERVER = (
    ("tp", ("tp_size", "tensor_parallel_size", "tp")),
    ("dp", ("dp_size", "data_parallel_size", "dp")),
    ("ep", ("ep_size", "expert_parallel_size", "ep")),
    ("pp", ("pp_size", "pipeline_parallel_size", "pp")),
    ("mem fraction", ("mem_fraction_static",)),
    ("attention backend", ("attention_backend",)),
    ("prefill attention", ("prefill_attention_backend",)),
    ("decode attention", ("decode_attention_backend",)),
    ("draft attention", ("speculative_draft_attention_backend",)),
    ("MoE runner", ("moe_runner_backend",)),
    ("quantization", ("quantization",)),
    ("KV dtype", ("kv_cache_dtype",)),
    ("draft KV dtype", ("speculative_draft_kv_cache_dtype",)),
    ("context length", ("context_length",)),
    ("max running", ("max_running_requests",)),
    ("chunked prefill", ("chunked_prefill_size",)),
    ("graph max batch", ("cuda_graph_max_bs_decode", "cuda_graph_max_bs")),
    ("graphs off", ("disable_cuda_graph",)),
)
"""Display name, and the arguments that it may stand under, the most certain one first."""

_BLOCK_IS_DRAFT_TOKENS = ("DFLASH", "DDTREE")
"""Algorithms whose block size is `num_draft_tokens` where no other flag gives it."""
_TREE_VERIFIERS = ("speculative_dflash_enable_ddtree", "speculative_dflash_tree_verify")
"""Forks' switches with which `num_draft_tokens` is the size of the tree instead."""

_TREE_VARIABLES = ("SGLANG_DDTREE_", "SGLANG_DFLASH_MAX_NUM_NODES")
"""Variables of the unit by which forks set what others have flags for."""

_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "speculative_boundary_reduction": ("ar", "rs+rsv"),
    "speculative_domino_candidate_pool_size": ("2048",),
    "speculative_dspark_align_verify_tokens_to_graph_tier": ("false",),
    "speculative_accept_threshold_single": ("1.0", "1"),
    "speculative_accept_threshold_acc": ("1.0", "1"),
    "speculative_use_rejection_sampling": ("false",),
    "speculative_use_block_verification": ("false",),
    "speculative_attention_mode": ("prefill",),
    "speculative_dsa_topk_backend": ("sgl-kernel",),
    "speculative_nsa_topk_backend": ("sgl-kernel",),
    "speculative_moe_runner_backend": ("auto",),
    "speculative_moe_a2a_backend": ("none",),
    "speculative_skip_dp_mlp_sync": ("false",),
    "speculative_adaptive": ("false",),
    "speculative_ngram_min_bfs_breadth": ("1",),
    "speculative_ngram_max_bfs_breadth": ("10",),
    "speculative_ngram_match_type": ("bfs",),
    "speculative_ngram_max_trie_depth": ("18",),
    "speculative_ngram_capacity": ("10000000",),
    "speculative_ngram_external_sam_budget": ("0",),
    "speculative_ngram_external_corpus_max_tokens": ("10000000",),
    "dp_size": ("1",),
    "ep_size": ("1",),
    "pp_size": ("1",),
    "kv_cache_dtype": ("auto",),
    "moe_runner_backend": ("auto",),
    "disable_cuda_graph": ("false",),
    "chunked_prefill_size": ("-1",),
}
"""Mainline's own defaults (0.5.11 to 0.5.23), in lower case: values that tell nothing."""
_NO_KNOBS = (
    "speculative_draft_model_path",
    "speculative_draft_model",
    "speculative_draft_model_revision",
    "speculative_draft_load_format",
)


def knobs(
    values: Mapping[str, Scalar], environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the knobs found in server arguments or flags, and in the unit's environment.

    Speculation first, then whatever speculative argument has no name here, then the server's own.
    Arguments that are not set, or stand at a default that says nothing, are left out.
    """
    plain = {name.replace("-", "_").lower(): value for name, value in values.items()}
    _settle_block_size(plain)
    _settle_tree(plain, environment or {})
    result: dict[str, str] = {}
    used: set[str] = set(_NO_KNOBS)
    _take(SPECULATION, plain, result, used)
    server: dict[str, str] = {}
    _take(SERVER, plain, server, used)
    for name, value in plain.items():
        if name in used or name.startswith("_"):
            continue
        if (name.startswith("speculative_") or "ddtree" in name) and _says_something(name, value):
            result[name.removeprefix("speculative_").replace("_", " ")] = display(value)
    return result | server


def _take(
    table: tuple[tuple[str, tuple[str, ...]], ...],
    plain: dict[str, Scalar],
    result: dict[str, str],
    used: set[str],
) -> None:
    for label, names in table:
        used.update(names)
        for name in names:
            if name in plain and _says_something(name, plain[name]):
                result[label] = display(plain[name])
                break


def _settle_block_size(plain: dict[str, Scalar]) -> None:
    """Note as `block_size` what `num_draft_tokens` says of it, where that decides."""
    algorithm = str(plain.get("speculative_algorithm") or "").upper()
    width = plain.get("speculative_num_draft_tokens")
    if width is None or "block_size" in plain or algorithm not in _BLOCK_IS_DRAFT_TOKENS:
        return
    if any(_is_on(plain.get(name)) for name in _TREE_VERIFIERS):
        return
    given = [plain.get(f"speculative_{name}_block_size") for name in ("ddtree", "dflash")]
    # One fork ignores --speculative-dflash-block-size with DDTREE; it knows no ddtree_block_size.
    ignores = algorithm == "DDTREE" and "speculative_ddtree_block_size" not in plain
    if ignores or not any(given):
        plain["block_size"] = width


def _settle_tree(plain: dict[str, Scalar], environment: Mapping[str, str]) -> None:
    """With DDTREE top-k is a variable, if anything: the flag of that name is forced to 1."""
    algorithm = str(plain.get("speculative_algorithm") or "").upper()
    if algorithm == "DDTREE":
        plain.pop("speculative_eagle_topk", None)
    if algorithm in _BLOCK_IS_DRAFT_TOKENS:
        for name, value in environment.items():
            if name.startswith(_TREE_VARIABLES):
                plain.setdefault(name.lower(), value)


def _says_something(name: str, value: Scalar) -> bool:
    if value is None or value == "":
        return False
    return str(value).lower() not in _DEFAULTS.get(name, ())


def _is_on(value: Scalar) -> bool:
    return str(value).lower() == "true"


def display(value: Scalar) -> str:
    """A value as shown: `on` and `off` for switches, floats without needless digits."""
    if isinstance(value, bool) or str(value) in ("true", "false"):
        return "on" if _is_on(value) else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
