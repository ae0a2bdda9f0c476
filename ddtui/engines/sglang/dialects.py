"""Which flag or variable a knob is on a server: mainline SGLang, and the forks that have DDTree.

DDTree is not in mainline, and the forks name its flags differently and mean different things by
`--speculative-num-draft-tokens`. So the dialect is told from the flags that the installed server
has and from the unit's environment; where they do not tell, nothing is assumed.

Sources: SGLang 0.5.23's own coupling rules; sgl-project/sglang pull requests 27509, 29907, 31069,
32053 and 36196; the forks of Rancy-Wang and DB-Guo.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ddtui.core.knobs import KNOBS
from ddtui.core.launch import Change
from ddtui.engines.sglang.command import CommandLine
from ddtui.engines.sglang.server_flags import SERVER_INFO, ServerFlags

ALGORITHM = "speculative-algorithm"
DRAFT_TOKENS = "speculative-num-draft-tokens"
BLOCK = "speculative-dflash-block-size"
TREE_BLOCK = "speculative-ddtree-block-size"
BUDGET = "speculative-ddtree-budget"
EAGLE_TOPK = "speculative-eagle-topk"
STEPS = "speculative-num-steps"
WINDOWS = ("speculative-draft-window-size", "speculative-dflash-draft-window-size")
DRAFT_MODEL = "speculative-draft-model-path"
TREE_WIDTH = "speculative-dflash-tree-width"
VERIFY_BUDGET = "speculative-dflash-verify-budget"
MAX_TOPK = "SGLANG_DDTREE_MAX_TOPK"
MAX_NODES = "SGLANG_DFLASH_MAX_NUM_NODES"

BLOCK_ALGORITHMS = ("DFLASH", "DDTREE")
CHAIN_ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")


class Target(msgspec.Struct, frozen=True):
    """What a knob sets on one server."""

    flag: str = ""
    variable: str = ""
    add: int = 0
    """Added to the knob's value: 1 where the server counts the root of the tree too."""
    note: str = ""

    @property
    def text(self) -> str:
        """As an operator would write it."""
        return f"--{self.flag}" if self.flag else f"environment {self.variable}"


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How one line of SGLang names the knobs of block drafting."""

    id: str
    title: str
    """As an operator knows it: what it is a build of, and how it verifies a tree."""
    source: str = ""
    """Where a build with it comes from; empty for SGLang's own releases."""
    marker: str = ""
    """The flag by which a server of this dialect is told."""
    algorithm: str = "DFLASH"
    """Value of `--speculative-algorithm` for it."""
    switch: str = ""
    """The bare flag that turns the tree on, beside the algorithm."""
    variables: str = ""
    """Beginning of the environment variables by which it is told from others with its marker."""
    targets: Mapping[str, Target] = {}


_BUDGET = Target(BUDGET)
_TREE_SIZE = Target(DRAFT_TOKENS, add=1, note="the size of the tree: its budget and the root")

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        id="ddtree-v2",
        title="SGLang with DDTREE v2 (Rancy-Wang's fork)",
        source="Rancy-Wang's fork",
        marker=TREE_BLOCK,
        algorithm="DDTREE",
        targets={"budget": _BUDGET},
    ),
    Dialect(
        id="ddtree-topk",
        title="SGLang with DDTREE and top-k (sgl-project/sglang pull request 29907)",
        source="sgl-project/sglang pull request 29907",
        marker=BUDGET,
        algorithm="DDTREE",
        variables="SGLANG_DDTREE_",
        targets={"budget": _BUDGET, "topk": Target(variable=MAX_TOPK)},
    ),
    Dialect(
        id="ddtree",
        title="SGLang with DDTREE (sgl-project/sglang pull request 27509 or 29907)",
        source="sgl-project/sglang pull request 27509",
        marker=BUDGET,
        algorithm="DDTREE",
        targets={"budget": _BUDGET},
    ),
    Dialect(
        id="dflash-ddtree",
        title="SGLang whose DFLASH can verify a tree (DB-Guo's fork)",
        source="DB-Guo's fork",
        marker="speculative-dflash-enable-ddtree",
        switch="speculative-dflash-enable-ddtree",
        targets={"budget": _TREE_SIZE},
    ),
    Dialect(
        id="dflash-tree-verify",
        title="SGLang whose DFLASH can verify a tree (sgl-project/sglang pull request 31069)",
        source="sgl-project/sglang pull request 31069",
        marker="speculative-dflash-tree-verify",
        switch="speculative-dflash-tree-verify",
        targets={"budget": _TREE_SIZE, "topk": Target(EAGLE_TOPK)},
    ),
    Dialect(
        id="dflash-tree-width",
        title="SGLang whose DFLASH has a tree width (sgl-project/sglang pull request 36196)",
        source="sgl-project/sglang pull request 36196",
        marker=TREE_WIDTH,
        targets={"topk": Target(TREE_WIDTH), "tree_nodes": Target(variable=MAX_NODES)},
    ),
    Dialect(
        id="dflash-verify-budget",
        title="SGLang whose DFLASH verifies a part of a block"
        " (sgl-project/sglang pull request 32053)",
        source="sgl-project/sglang pull request 32053",
        marker=VERIFY_BUDGET,
        targets={"verify_budget": Target(VERIFY_BUDGET)},
    ),
    Dialect(id="dflash", title="mainline SGLang with DFLASH, without a tree", marker=BLOCK),
    Dialect(id="mainline", title="SGLang without block drafting", algorithm=""),
)
"""The most telling marker first."""

BY_ID = {dialect.id: dialect for dialect in DIALECTS}

COMMON: Mapping[str, tuple[str, ...]] = {
    "algorithm": (ALGORITHM,),
    "draft_model": (DRAFT_MODEL,),
    "window": WINDOWS,
    "sink": ("speculative-draft-sink-size",),
    "steps": (STEPS,),
    "draft_tokens": (DRAFT_TOKENS,),
    "max_running": ("max-running-requests",),
    "mem_fraction": ("mem-fraction-static",),
    "context_length": ("context-length",),
    "chunked_prefill": ("chunked-prefill-size",),
    "graph_max_batch": ("cuda-graph-max-bs-decode", "cuda-graph-max-bs"),
    "graphs_off": ("disable-cuda-graph",),
    "page_size": ("page-size",),
    "attention_backend": ("attention-backend",),
    "draft_attention_backend": ("speculative-draft-attention-backend",),
    "moe_runner": ("moe-runner-backend",),
    "kv_dtype": ("kv-cache-dtype",),
    "draft_kv_dtype": ("speculative-draft-kv-cache-dtype",),
    "quantization": ("quantization",),
    "tp": ("tp-size",),
    "dp": ("dp-size",),
    "ep": ("ep-size",),
}
"""Knobs that are the same flag in all dialects, under the names that versions give it."""


_MEANS = {BLOCK: "block_size", TREE_BLOCK: "block_size", EAGLE_TOPK: "topk"}
"""Flags that are one knob each in every dialect, though no table above has them so."""


def knob_of(name: str) -> str:
    """The knob that a flag or variable is, whatever set it; empty where it may be several.

    `--speculative-num-draft-tokens` is a block size, a tree's size or a chain's length.
    """
    if name == DRAFT_TOKENS:
        return ""
    targets = ((knob, each) for one in DIALECTS for knob, each in one.targets.items())
    found = {knob for knob, each in targets if name in {each.flag, each.variable}}
    found |= {knob for knob, names in COMMON.items() if name in names}
    found |= {_MEANS[name]} if name in _MEANS else set()
    return found.pop() if len(found) == 1 else ""


class NoTarget(ValueError):
    """This server has nothing for a knob. `remedy` says which dialects would."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


def detect(server: ServerFlags, environment: Mapping[str, str] | None = None) -> Dialect:
    """The dialect of a server, from its flags and the unit's environment."""
    for dialect in DIALECTS:
        if dialect.marker and not server.knows(dialect.marker):
            continue
        if not dialect.variables or any(
            name.startswith(dialect.variables) for name in environment or ()
        ):
            return dialect
    return BY_ID["mainline"]


def algorithm_of(values: Mapping[str, str]) -> str:
    """The speculative algorithm in flags by name, in capitals; empty for none."""
    name = values.get(ALGORITHM, "").upper()
    return "" if name in ("", "TRUE", "NONE") else name


_FORKED = ("speculative-ddtree-", *(each.marker for each in DIALECTS if each.source))


def is_forks_flag(name: str) -> bool:
    """Whether only builds of SGLang that verify trees have a flag, or can have it."""
    return name.startswith(_FORKED)


def lacks(server: ServerFlags, name: str) -> bool:
    """Whether a server certainly has no flag of this name.

    Where its `--help` could not be had, its `/server_info` is proof for what concerns trees: each
    argument of speculation is reported there, set or not.
    """
    if server.find(name) is not None:
        return False
    return server.complete or (
        is_forks_flag(name) and server.source == SERVER_INFO and server.knows(ALGORITHM)
    )


def is_tree(values: Mapping[str, str], dialect: Dialect) -> bool:
    """Whether flags turn the verification of a tree on."""
    algorithm = algorithm_of(values)
    if dialect.switch:
        return algorithm == dialect.algorithm and values.get(dialect.switch) == "true"
    if TREE_WIDTH in values:
        return values[TREE_WIDTH] != "1"
    return algorithm == "DDTREE"


def targets_of(
    knob: str,
    *,
    line: CommandLine,
    server: ServerFlags,
    dialect: Dialect,
    overrides: Mapping[str, str] | None = None,
) -> tuple[Target, ...]:
    """What a knob sets on this server, given what its command line has already.

    `overrides` are the host's own mapping: knob to flag, or to `env:NAME`. Raises NoTarget.
    """
    if overrides and (written := overrides.get(knob)):
        if written.startswith("env:"):
            return (Target(variable=written.removeprefix("env:"), note="as configured"),)
        return (_known(knob, written.removeprefix("--"), server, line),)
    algorithm = algorithm_of(line.values())
    if knob == "block_size" and (block := _block_size(line, server, dialect)):
        return block
    if knob == "topk" and algorithm in (*CHAIN_ALGORITHMS, "NGRAM"):
        flag = "speculative-ngram-max-bfs-breadth" if algorithm == "NGRAM" else EAGLE_TOPK
        return (_known(knob, flag, server, line),)
    target = dialect.targets.get(knob)
    if target is not None and algorithm in ("", *BLOCK_ALGORITHMS):
        return (target,)
    names = COMMON.get(knob, ())
    known = [name for name in names if server.knows(name) or line.of(name)]
    written_already = [name for name in known if line.of(name)]
    if known:
        return (Target((written_already or known)[0]),)
    subject = algorithm if target is not None else "this server"
    raise NoTarget(f"{subject} has no {knob} ({dialect.title})", who_has(knob))


def _known(knob: str, flag: str, server: ServerFlags, line: CommandLine) -> Target:
    if server.complete and not server.knows(flag) and not line.of(flag):
        near = server.nearest(flag)
        hint = f"; the nearest it has is --{near}" if near else ""
        raise NoTarget(f"{knob} is --{flag}, which this server does not have{hint}", who_has(knob))
    return Target(flag)


def who_has(knob: str) -> str:
    """In words: which dialects have a knob, and how to name a flag for it."""
    sources: dict[str, list[str]] = {}
    for each in DIALECTS:
        if knob in each.targets:
            sources.setdefault(each.targets[knob].text, []).append(each.source)
    having = [
        f"{target} in SGLang as of {' or '.join(of)}" for target, of in sorted(sources.items())
    ]
    if knob == "block_size":
        having = [f"--{BLOCK}, --{DRAFT_TOKENS} or --{TREE_BLOCK} with DFLASH or DDTREE"]
    if knob == "topk":
        having.append(f"--{EAGLE_TOPK} with EAGLE")
    if knob in COMMON:
        names = " or ".join(f"--{name}" for name in COMMON[knob])
        having.append(f"{names} in versions that have it")
    own = f"name this server's flag in the host's section, [hosts.NAME.knobs] {knob} = ..."
    return f"{knob} is {'; '.join(having)}. Else {own}" if having else own


# ---- the block size ------------------------------------------------------------------------------

_GAMMA = "speculative-dspark-block-size"


def _block_size(line: CommandLine, server: ServerFlags, dialect: Dialect) -> tuple[Target, ...]:
    """What the block size sets; nothing with an algorithm that drafts no blocks."""
    match algorithm_of(line.values()):
        case "DFLASH" if dialect.switch and is_tree(line.values(), dialect):
            return (Target(BLOCK),)  # the draft tokens are the size of the tree
        case "DFLASH":
            return _both(line, server)
        case "DDTREE":
            return _ddtree_block(line, server, dialect)
        case "DSPARK" if line.of(DRAFT_TOKENS):
            note = "DSPARK wants its block size and one more"
            return (Target(_GAMMA), Target(DRAFT_TOKENS, add=1, note=note))
        case "DSPARK":
            return (Target(_GAMMA),)
        case "" if server.knows(BLOCK):
            return (Target(BLOCK),)
        case _:
            return ()


def _both(line: CommandLine, server: ServerFlags) -> tuple[Target, ...]:
    """The flags that are there already; SGLang refuses them when they differ."""
    there = [name for name in (BLOCK, DRAFT_TOKENS) if line.of(name)]
    if len(there) == 2:
        note = "the server refuses two block sizes that differ"
        return (Target(BLOCK), Target(DRAFT_TOKENS, note=note))
    return (Target(there[0] if there else BLOCK if server.knows(BLOCK) else DRAFT_TOKENS),)


def _ddtree_block(line: CommandLine, server: ServerFlags, dialect: Dialect) -> tuple[Target, ...]:
    if dialect.id == "ddtree-v2":
        # The tree's own flag goes before the other; draft tokens may be the size of the tree.
        own = line.of(TREE_BLOCK) or not line.of(BLOCK)
        return (Target(TREE_BLOCK if own else BLOCK),)
    if dialect.id == "ddtree":
        # One of the two that it may be ignores --speculative-dflash-block-size with DDTREE.
        kept = Target(BLOCK, note="kept equal: not every DDTREE reads it")
        tokens = Target(DRAFT_TOKENS, note="the block size of DDTREE, whichever of its two it is")
        return (tokens, kept) if line.of(BLOCK) else (tokens,)
    return _both(line, server)


class KnobFlag(msgspec.Struct, frozen=True):
    """A knob on one server: what it sets, and what is set now."""

    knob: str
    targets: tuple[str, ...]
    """Flags and variables as an operator would write them; empty where the server has none."""
    requested: str | None
    """As the unit's command line or environment has it."""
    missing: str = ""
    """Who has it, where this server does not."""


def knob_flags(
    line: CommandLine,
    environment: Mapping[str, str],
    server: ServerFlags,
    overrides: Mapping[str, str] | None = None,
) -> list[KnobFlag]:
    """Every knob with what it is on this server."""
    dialect, values, result = detect(server, environment), line.values(), []
    for knob in KNOBS:
        try:
            targets = targets_of(
                knob, line=line, server=server, dialect=dialect, overrides=overrides
            )
        except NoTarget as error:
            result.append(KnobFlag(knob, (), None, error.remedy))
            continue
        found = [_requested(each, line, values, environment) for each in targets]
        text = next((each for each in found if each is not None), None)
        result.append(KnobFlag(knob, tuple(each.text for each in targets), text))
    return result


def _requested(
    target: Target, line: CommandLine, values: Mapping[str, str], environment: Mapping[str, str]
) -> str | None:
    if target.variable:
        return environment.get(target.variable)
    text = values.get(line.canonical(target.flag))
    if text is not None and target.add and text.isdecimal():
        return str(int(text) - target.add)
    return text


def named(change: Change) -> Change:
    """With its knob: a rollback's changes come from the unit's command, which names flags only."""
    return change if change.knob else msgspec.structs.replace(change, knob=knob_of(change.name))
