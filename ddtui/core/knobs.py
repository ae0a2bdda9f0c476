"""The knobs: named server parameters that operators turn, whatever a server calls their flags.

Which flag a knob is on a given server is the engine adapter's to say; here are the names, what a
value may be, and what it means. Block sizes, budgets and windows are counted in tokens or nodes.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

from ddtui.core.launch import Value


class KnobKind(enum.StrEnum):
    """What a knob's value is."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    SWITCH = "switch"


class Knob(msgspec.Struct, frozen=True):
    """One knob."""

    name: str
    kind: KnobKind
    meaning: str


_TABLE = (
    ("algorithm", KnobKind.TEXT, "speculative algorithm: DFLASH, DDTREE, EAGLE, ..."),
    ("draft_model", KnobKind.TEXT, "the drafter: a path on the host or a hub name"),
    ("block_size", KnobKind.INTEGER, "tokens that the drafter proposes in a pass, with its anchor"),
    (
        "budget",
        KnobKind.INTEGER,
        "nodes of the draft tree that a pass verifies, without its root",
    ),
    ("verify_budget", KnobKind.INTEGER, "how much of a drafted chain is verified"),
    ("topk", KnobKind.INTEGER, "candidates kept at each depth of the draft tree"),
    ("tree_nodes", KnobKind.INTEGER, "most nodes of a tree whose width is set; 0 for no limit"),
    ("window", KnobKind.INTEGER, "sliding window of the draft cache, in tokens"),
    ("sink", KnobKind.INTEGER, "first tokens that the draft cache keeps beside its window"),
    ("steps", KnobKind.INTEGER, "draft steps (EAGLE)"),
    ("draft_tokens", KnobKind.INTEGER, "tokens that one pass verifies"),
    ("max_running", KnobKind.INTEGER, "most requests that run at once"),
    ("mem_fraction", KnobKind.NUMBER, "share of GPU memory for weights and KV cache, 0 to 1"),
    ("context_length", KnobKind.INTEGER, "longest request, in tokens"),
    ("chunked_prefill", KnobKind.INTEGER, "tokens of a prefill chunk; -1 for none"),
    ("graph_max_batch", KnobKind.INTEGER, "largest batch that CUDA graphs are captured for"),
    ("graphs_off", KnobKind.SWITCH, "run without CUDA graphs"),
    ("page_size", KnobKind.INTEGER, "tokens of a page of the KV cache"),
    ("attention_backend", KnobKind.TEXT, "attention kernels of the target"),
    ("draft_attention_backend", KnobKind.TEXT, "attention kernels of the drafter"),
    ("moe_runner", KnobKind.TEXT, "kernels of the expert layers"),
    ("kv_dtype", KnobKind.TEXT, "number format of the KV cache"),
    ("draft_kv_dtype", KnobKind.TEXT, "number format of the draft cache"),
    ("quantization", KnobKind.TEXT, "number format of the weights"),
    ("tp", KnobKind.INTEGER, "tensor-parallel ranks"),
    ("dp", KnobKind.INTEGER, "data-parallel ranks"),
    ("ep", KnobKind.INTEGER, "expert-parallel ranks"),
)
KNOBS: dict[str, Knob] = {name: Knob(name, kind, meaning) for name, kind, meaning in _TABLE}
"""All knobs by name, speculation first."""

NONE = "none"
"""The word that takes a knob's flag away."""

_OTHER_NAMES = {
    "top_k": "topk",
    "mem_fraction_static": "mem_fraction",
    "max_running_requests": "max_running",
    "draft_model_path": "draft_model",
    "tree_width": "topk",
    "draft_attention": "draft_attention_backend",
    "tree_budget": "budget",
    "draft_window": "window",
}
_EXPECTED = {
    KnobKind.INTEGER: 'an integer, or "none" to leave it to the server',
    KnobKind.NUMBER: 'a number, or "none" to leave it to the server',
    KnobKind.TEXT: 'a text, or "none" to leave it to the server',
    KnobKind.SWITCH: "true or false",
}
LONGEST_TEXT = 4096
"""Characters of a text value."""
TEXT_PATTERN = re.compile(rf"[^\x00-\x1f\x7f]{{1,{LONGEST_TEXT}}}")
"""What a text value may be: one line without control characters."""


class BadValue(ValueError):
    """A knob cannot have this value; the message says what is expected."""


def knob_name(name: str) -> str | None:
    """The knob that a name means (`block-size`, `top_k`), or None."""
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    plain = _OTHER_NAMES.get(plain, plain)
    return plain if plain in KNOBS else None


def by_name(shown: Mapping[str, str]) -> dict[str, str]:
    """Knobs by their own names, from how an engine labels them (`block size`, `top-k`).

    What is no knob of `KNOBS` keeps its label, as one word. Of two labels of one knob the first
    one counts.
    """
    found: dict[str, str] = {}
    for label, value in shown.items():
        found.setdefault(knob_name(label) or label.strip().replace(" ", "_"), value)
    return found


def nearest_knob(name: str) -> str:
    """The knob whose name is most like this one; empty where none is."""
    plain = name.strip().lower().replace("-", "_")
    known = {**{each: each for each in KNOBS}, **_OTHER_NAMES}
    near = get_close_matches(plain, known, n=1, cutoff=0.6)
    return known[near[0]] if near else ""


def knob_value(name: str, value: object) -> Value:
    """A knob's value from TOML; None where it is the word `none`. Raises BadValue."""
    knob = KNOBS[name]
    if isinstance(value, str) and value.strip().lower() == NONE:
        return None
    match knob.kind:
        case KnobKind.SWITCH if isinstance(value, bool):
            return value
        case KnobKind.INTEGER if isinstance(value, int) and not isinstance(value, bool):
            return value
        case KnobKind.NUMBER if isinstance(value, int | float) and not isinstance(value, bool):
            if value == value and abs(value) != float("inf"):  # noqa: PLR0124 - not NaN
                return value
        case KnobKind.TEXT if isinstance(value, str) and TEXT_PATTERN.fullmatch(value):
            return value
        case _:
            pass
    raise BadValue(f"expected {_EXPECTED[knob.kind]} ({knob.meaning})")


def knob_text(name: str, text: str) -> Value:
    """A knob's value from a word of the command line. Raises BadValue."""
    kind, word = KNOBS[name].kind, text.strip()
    switch = {"true": True, "on": True, "false": False, "off": False}.get(word.lower())
    if kind is KnobKind.SWITCH and switch is not None:
        return switch
    try:
        if kind is KnobKind.INTEGER:
            return knob_value(name, word if word.lower() == NONE else int(word))
        if kind is KnobKind.NUMBER:
            return knob_value(name, word if word.lower() == NONE else float(word))
    except ValueError as error:
        if isinstance(error, BadValue):
            raise
        return knob_value(name, [])
    return knob_value(name, word)
