"""Rules about speculation: how its flags depend on one another and on the drafter."""

from __future__ import annotations

from collections.abc import Iterator

from ddtui.core.launch import Finding, Level
from ddtui.engines.sglang.check_context import DEFAULT_MAX_RUNNING, Say, View, rule
from ddtui.engines.sglang.dialects import (
    BLOCK,
    BUDGET,
    CHAIN_ALGORITHMS,
    DRAFT_MODEL,
    DRAFT_TOKENS,
    EAGLE_TOPK,
    MAX_TOPK,
    STEPS,
    TREE_BLOCK,
    VERIFY_BUDGET,
    WINDOWS,
    lacks,
)

_VALUE_ERROR = "the server would stop with a ValueError while it reads its arguments"
PUBLISHED_BLOCK = 16
"""The largest block of a published DFlash drafter, and what SGLang takes where it has none."""
MOST_BLOCK = 256
"""Beyond it a block size is taken for a slip."""
MEASURED_BUDGET = 1024
MOST_BUDGET = 16 * MEASURED_BUDGET
"""Beyond it one request's pass is longer than any prefill's: taken for a slip."""
_BLOCK_REMEDY = "use the one that the drafter was trained with: `block_size` in its config.json"
_TOPK_BACKENDS = ("flashinfer", "fa3", "triton")


@rule("unknown-algorithm", "the server would stop: Unknown speculative algorithm name")
def unknown_algorithm(view: View, say: Say) -> Iterator[Finding]:
    """An algorithm whose flags this server does not have."""
    server, algorithm = view.server, view.algorithm
    if server is None or not algorithm:
        return
    # A list with gaps, as the keys of /server_info are one, proves little by what it lacks.
    level = Level.ERROR if server.complete else Level.WARNING
    if algorithm == "DDTREE" and not (server.knows(BUDGET) or server.knows(TREE_BLOCK)):
        yield say(
            Level.ERROR if lacks(server, BUDGET) else level,
            f"this server has no DDTREE ({view.dialect.title})",
            "mainline SGLang has none: install a fork that has it, or use DFLASH",
        )
    if algorithm == "DFLASH" and not server.knows(BLOCK) and not any(map(server.knows, WINDOWS)):
        yield say(level, "this server has no DFLASH", "it came with SGLang 0.5.11")
    if algorithm == "DSPARK" and not server.knows("speculative-dspark-block-size"):
        yield say(level, "this server has no DSPARK", "it came with SGLang 0.5.16")


@rule("no-drafter", f"{_VALUE_ERROR}: it requires setting --speculative-draft-model-path")
def no_drafter(view: View, say: Say) -> Iterator[Finding]:
    """Block drafting without a drafter."""
    if view.drafts_blocks and view.text(DRAFT_MODEL, "true") == "true":
        yield say.error(f"{view.algorithm} has no drafter", f"set --{DRAFT_MODEL}")


@rule("block-sizes-differ", f"{_VALUE_ERROR}: for DFLASH they must match")
def block_sizes_differ(view: View, say: Say) -> Iterator[Finding]:
    """Two block sizes, where the draft tokens are the block size."""
    tokens, block = view.number(DRAFT_TOKENS), view.number(BLOCK)
    if not view.drafts_blocks or tokens is None or block is None or tokens == block:
        return
    if view.dialect.switch and view.verifies_tree:
        return  # the draft tokens are the size of the tree
    text = f"--{DRAFT_TOKENS} {tokens} and --{BLOCK} {block} differ"
    if view.algorithm == "DFLASH":
        yield say.error(text, "set the knob block_size, which sets both")
    elif view.dialect.id != "ddtree-v2":
        reason = "DDTREE reads one of the two, and which one depends on the fork"
        yield say.warning(text, "set the knob block_size, which sets both", reason)


@rule("block-too-small", "a block holds the last verified token and at least one drafted token")
def block_too_small(view: View, say: Say) -> Iterator[Finding]:
    """A block size below 2."""
    if view.block is not None and view.block < 2:
        yield say.error(f"block size {view.block} drafts nothing", "2 is the least")


@rule("window-not-positive", _VALUE_ERROR)
def window_not_positive(view: View, say: Say) -> Iterator[Finding]:
    """A draft window without a token in it."""
    window = view.number(*WINDOWS)
    if window is not None and window <= 0:
        yield say.error(f"draft window {window} is not positive", "leave it out for no window")


@rule("window-below-block", f"{_VALUE_ERROR}: --speculative-draft-window-size must be >= ...")
def window_below_block(view: View, say: Say) -> Iterator[Finding]:
    """A draft window that cannot hold a block."""
    window, block = view.number(*WINDOWS), view.block
    if window is not None and block is not None and 0 < window < block:
        yield say.error(
            f"draft window {window} is smaller than block size {block}",
            f"set window to {block} or more, or to none",
        )


@rule("window-ignored", "only DFLASH, DDTREE and some EAGLE drafters have a windowed draft cache")
def window_ignored(view: View, say: Say) -> Iterator[Finding]:
    """A draft window without an algorithm that uses one."""
    if view.number(*WINDOWS) is not None and view.algorithm in ("", "NGRAM", "DSPARK", "UNO"):
        yield say.warning(f"the draft window has no effect with {view.algorithm or 'no drafter'}")


@rule("steps-overridden", "a block is drafted in one step: the server warns and sets both to 1")
def steps_overridden(view: View, say: Say) -> Iterator[Finding]:
    """Steps or top-k other than 1 for block drafting."""
    if not view.drafts_blocks:
        return
    names = (STEPS,) if view.dialect.id == "dflash-tree-verify" else (STEPS, EAGLE_TOPK)
    for name in names:
        value = view.number(name)
        if value not in (None, 1):
            yield say.warning(f"--{name} {value} will be overridden to 1", f"leave --{name} out")


@rule("pipeline-parallel", f"{_VALUE_ERROR}: only supports pp_size == 1")
def pipeline_parallel(view: View, say: Say) -> Iterator[Finding]:
    """Block drafting over pipeline stages."""
    stages = view.number("pp-size", "pipeline-parallel-size", "pp") or 1
    if (view.drafts_blocks or view.algorithm == "UNO") and stages != 1:
        yield say.error(f"{view.algorithm} does not run with pp_size {stages}", "use pp_size 1")


@rule("dp-attention", f"{_VALUE_ERROR}, or fail later")
def dp_attention(view: View, say: Say) -> Iterator[Finding]:
    """What DP attention needs beside block drafting; DDTREE and NGRAM do not have it."""
    if not view.on("enable-dp-attention"):
        return
    if view.algorithm in ("DDTREE", "NGRAM"):
        yield say.error(f"{view.algorithm} does not run with --enable-dp-attention")
    if view.algorithm != "DFLASH":
        return
    if not view.on("enable-dp-lm-head"):
        yield say.error("DFLASH with DP attention needs --enable-dp-lm-head")
    if (view.number("attn-cp-size") or 1) != 1:
        yield say.error("DFLASH with DP attention needs --attn-cp-size 1")
    if view.environment.get("SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION") != "0":
        yield say.error(
            "DFLASH with DP attention needs SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=0",
            "set it in the unit's environment",
        )


@rule("eagle-auto-values", "the server asserts that all three are left to it, or none")
def eagle_auto_values(view: View, say: Say) -> Iterator[Finding]:
    """Top-k or draft tokens for EAGLE without steps."""
    if view.algorithm not in CHAIN_ALGORITHMS or STEPS in view.values:
        return
    for name in (EAGLE_TOPK, DRAFT_TOKENS):
        if name in view.values:
            yield say.error(
                f"--{name} is set for {view.algorithm} and --{STEPS} is not",
                f"set --{STEPS} too, or leave all three out",
            )


@rule("eagle-chain-tokens", "with top-k 1 the draft is a chain: the server sets steps + 1")
def eagle_chain_tokens(view: View, say: Say) -> Iterator[Finding]:
    """Draft tokens that do not fit a chain."""
    steps, topk, tokens = view.number(STEPS), view.number(EAGLE_TOPK), view.number(DRAFT_TOKENS)
    if view.algorithm not in CHAIN_ALGORITHMS or steps is None or topk != 1 or tokens is None:
        return
    if tokens != steps + 1:
        yield say.warning(f"--{DRAFT_TOKENS} {tokens} will be overridden to {steps + 1}")


@rule("eagle-topk-backend", "only flashinfer, fa3 and triton verify a tree over pages")
def eagle_topk_backend(view: View, say: Say) -> Iterator[Finding]:
    """A tree of EAGLE on a backend that cannot verify it."""
    topk, backend = view.number(EAGLE_TOPK), view.text("attention-backend")
    if view.algorithm not in CHAIN_ALGORITHMS or topk is None or topk < 2 or not backend:
        return
    pages = view.number("page-size") or 1
    if backend == "trtllm_mha" or (pages > 1 and backend not in _TOPK_BACKENDS):
        yield say.error(
            f"--{EAGLE_TOPK} {topk} does not run on {backend} with page size {pages}",
            f"use one of {', '.join(_TOPK_BACKENDS)}, or top-k 1",
        )


@rule("dspark-draft-tokens", _VALUE_ERROR)
def dspark_draft_tokens(view: View, say: Say) -> Iterator[Finding]:
    """Draft tokens other than DSPARK's block size and one."""
    gamma, tokens = view.number("speculative-dspark-block-size"), view.number(DRAFT_TOKENS)
    if view.algorithm == "DSPARK" and gamma and tokens is not None and tokens != gamma + 1:
        yield say.error(f"--{DRAFT_TOKENS} {tokens} must be {gamma + 1} for block size {gamma}")


@rule("block-not-trained", "the server only logs a warning and drafts with the block size given")
def block_not_trained(view: View, say: Say) -> Iterator[Finding]:
    """A block size other than the drafter's own. Smaller is safe, larger seldom is."""
    block, trained = view.block, view.trained_block
    if block is None or trained is None or block == trained:
        return
    if block < trained:
        yield say.warning(
            f"block size {block} is smaller than the drafter's trained {trained}",
            reason="published figures lose some acceptance with it, and nothing else",
        )
    else:
        yield say.warning(
            f"block size {block} is LARGER than the drafter's trained {trained}:"
            " positions that it has never drafted",
            f"use {trained}, or compare acceptance and speed with it before relying on this",
            "acceptance beyond the trained block is not guaranteed; the authors of DFlash measured"
            " 16 on a drafter of 8 as worse than 8 on all three of their data sets",
        )


@rule("block-implausible", "one pass drafts and verifies a block for every running request")
def block_implausible(view: View, say: Say) -> Iterator[Finding]:
    """A block size that no drafter has, most likely a slip; the server itself has no limit."""
    block, trained = view.block, view.trained_block
    if block is None or not view.drafts_blocks or block <= max(PUBLISHED_BLOCK, trained or 0):
        return
    given = view.number("context-length") or view.context.report.get("context_length")
    if isinstance(given, int) and 0 < given <= block:
        yield say.error(
            f"block size {block} is no less than the context length of {given}",
            _BLOCK_REMEDY if trained is None else f"use {trained}, as the drafter was trained",
            "no request has room for a single block",
        )
    elif block > max(MOST_BLOCK, trained or 0):
        yield say.error(
            f"block size {block} is beyond any drafter's: published ones have"
            f" {PUBLISHED_BLOCK} at most",
            _BLOCK_REMEDY if trained is None else f"use {trained}, as the drafter was trained",
        )
    elif trained is None:
        yield say.warning(
            f"block size {block} is larger than that of any published drafter ({PUBLISHED_BLOCK}),"
            " and this drafter's own is not known",
            _BLOCK_REMEDY,
        )


@rule("budget-implausible", "the whole tree is verified in one pass, for every running request")
def budget_implausible(view: View, say: Say) -> Iterator[Finding]:
    """A budget far beyond those that were ever measured."""
    budget = view.budget
    is_block = view.drafts_blocks and not view.verifies_tree
    if budget is None or is_block or budget <= MEASURED_BUDGET:
        return
    text = f"budget {budget} is beyond the largest that was measured ({MEASURED_BUDGET})"
    remedy = "the authors of DDTree measured the best speed at 256 to 512, and less beyond"
    yield say.error(text, remedy) if budget > MOST_BUDGET else say.warning(text, remedy)


@rule("block-size-unknown", "without flags it is the drafter's own, or 16 where it has none")
def block_size_unknown(view: View, say: Say) -> Iterator[Finding]:
    """A block size that only the server will know."""
    if view.drafts_blocks and view.block is None:
        yield say.note("the block size is left to the server, and the drafter's is not known")


@rule("budget-too-small", "a tree has at least one node beside its root")
def budget_too_small(view: View, say: Say) -> Iterator[Finding]:
    """A budget below 1."""
    if view.drafts_blocks and view.verifies_tree and view.budget is not None and view.budget < 1:
        yield say.error(f"budget {view.budget} verifies nothing", "1 is the least")
    limit = view.number(VERIFY_BUDGET)
    if limit is not None and limit < 1:
        yield say.error(f"--{VERIFY_BUDGET} {limit} verifies nothing", "1 is the least")


@rule("budget-is-chain", "the best drafted path alone takes block size - 1 nodes")
def budget_is_chain(view: View, say: Say) -> Iterator[Finding]:
    """A budget that leaves no node for a branch."""
    if not (view.drafts_blocks and view.verifies_tree):
        return
    block, budget = view.block, view.budget
    if block is not None and budget is not None and 1 <= budget <= block - 1:
        yield say.warning(
            f"budget {budget} with block size {block}: the tree is only a chain",
            f"a budget of {block} or more gives branches",
        )


@rule("budget-without-tree", "only DDTREE reads it")
def budget_without_tree(view: View, say: Say) -> Iterator[Finding]:
    """What sets the tree, where none is verified."""
    if view.verifies_tree or view.dialect.switch:
        return
    names = [f"--{BUDGET}"] * (BUDGET in view.values)
    before = view.context.before.environment.get(MAX_TOPK)
    names += [MAX_TOPK] * (view.environment.get(MAX_TOPK, before) != before)
    is_new = BUDGET in view.values and BUDGET not in view.before
    server = view.server
    unknown = server is not None and lacks(server, BUDGET) and (is_new or server.complete)
    if not names or unknown:
        return  # that the server has no such flag is told already
    have = "has" if len(names) == 1 else "have"
    text = f"{' and '.join(names)} {have} no effect with algorithm {view.algorithm or 'none'}"
    remedy = 'set the knob algorithm = "DDTREE" too, or leave it out'
    if is_new and (server is None or not server.knows(BUDGET)):
        # It gains nothing where the server has it, and keeps one from starting that has it not.
        reason = "a server that has no such flag would not start, and whether it has is not known"
        yield say.error(text, remedy, reason)
    else:
        yield say.warning(text, remedy)


@rule("max-running-default", f"block drafting without it runs {DEFAULT_MAX_RUNNING} at once")
def max_running_default(view: View, say: Say) -> Iterator[Finding]:
    """A number of requests that SGLang sets itself."""
    if view.drafts_blocks and "max-running-requests" not in view.values:
        yield say.note(
            f"--max-running-requests is not set: the server sets {DEFAULT_MAX_RUNNING}, and says so"
        )
