"""What may stand in `[bench.NAME]`: options, ranges and meanings; mistakes named, values read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ddtui.config.errors import did_you_mean
from ddtui.config.preset_tables import NAME, Found
from ddtui.core.bench_plan import BenchPlan

_Text = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
_Concurrency = Annotated[int, Meta(ge=1, le=4096)]
_Tokens = Annotated[int, Meta(ge=1, le=1_000_000)]

OPTIONS: dict[str, tuple[Any, str]] = {
    "prompts": (_Text, 'a set ("coding", "reasoning", "chat", "long", "humaneval"), or a file'),
    "endpoint": (Literal["chat", "generate"], '"chat" or "generate"'),
    "concurrency": (
        Annotated[tuple[_Concurrency, ...], Meta(min_length=1, max_length=32)],
        "requests at once, 1 to 4096, or a list of up to 32 such numbers",
    ),
    "output_tokens": (_Tokens, "tokens at most for an answer, 1 to 1000000"),
    "temperature": (Annotated[float, Meta(ge=0, le=2)], "a number from 0 to 2"),
    "repeats": (Annotated[int, Meta(ge=1, le=100)], "batches that count, 1 to 100"),
    "requests": (
        Annotated[int, Meta(ge=0, le=100_000)],
        "requests of a batch, up to 100000; 0 for every prompt once",
    ),
    "warmup_batches": (
        Annotated[int, Meta(ge=0, le=100)],
        "batches at most before those that count, 0 to 100",
    ),
    "agreement": (
        Annotated[float, Meta(ge=0.001, le=1)],
        "how near two batches must be to agree, 0.001 to 1 (a share of their tok/s)",
    ),
    "thinking": (bool, "true or false: ask a reasoning model to think or not"),
    "stall_seconds": (
        Annotated[float, Meta(ge=1, le=86_400)],
        "seconds without a new token after which a stream is ended, 1 to 86400",
    ),
    "flush_cache": (bool, "true or false: empty the prefix cache before each batch"),
    "seed": (Annotated[int, Meta(ge=0, le=2**31 - 1)], "a whole number from 0 to 2147483647"),
    "coding": (bool, "true or false: judge the coding tasks too"),
    "coding_tokens": (_Tokens, "tokens at most for the answer to a coding task, 1 to 1000000"),
    "command": (
        tuple[_Text, ...],
        'program and arguments, such as ["python3", "-m", "sglang.bench_serving"]',
    ),
    "command_seconds": (
        Annotated[float, Meta(ge=1, le=604_800)],
        "seconds after which the external bench is ended, 1 to 604800",
    ),
}
"""Type and meaning of each option."""

BUILT_IN: dict[str, BenchPlan] = {
    "glance": BenchPlan(
        name="glance", requests=3, output_tokens=96, warmup_batches=3, coding=False
    ),
    "quick": BenchPlan(name="quick", requests=4, output_tokens=256, warmup_batches=4, coding=False),
    "standard": BenchPlan(name="standard", concurrency=(1, 8)),
    "throughput": BenchPlan(
        name="throughput", prompts="chat", concurrency=(1, 8, 32, 64), coding=False
    ),
}
"""Plans that are always there; a table of the same name goes before."""

DEFAULT = "default"
"""What measures where no plan is named: always the same, so that its results can be compared."""


def plan_problems(where: tuple[str, ...], table: Any) -> Iterator[Found]:
    """Every mistake in one plan. `where` leads to it, its name last."""
    name = where[-1]
    if not NAME.fullmatch(name):
        yield where, "not a plan's name: letters, digits and . _ + - only, 64 at most"
    if name == DEFAULT:
        yield where, "the plan that measures where none is named is always the same; name it anew"
    if not isinstance(table, dict):
        yield where, f"must be a table; write [bench.{name}]"
        return
    for key, value in table.items():
        if problem := _problem(key, value):
            yield (*where, key), problem


def _problem(key: str, value: Any) -> str:
    if key not in OPTIONS:
        hint = did_you_mean(key, OPTIONS)
        return "unknown key" + (hint or f" (known: {', '.join(OPTIONS)})")
    kind, meaning = OPTIONS[key]
    try:
        msgspec.convert(_listed(key, value), kind, strict=True)
    except msgspec.ValidationError:
        shown = "a table" if isinstance(value, dict) else repr(value)[:80]
        return f"got {shown}; expected {meaning}"
    return ""


def _listed(key: str, value: Any) -> Any:
    """One concurrency may stand alone."""
    alone = key == "concurrency" and isinstance(value, int) and not isinstance(value, bool)
    return [value] if alone else value


def read_plan(name: str, table: Mapping[str, Any]) -> BenchPlan:
    """A plan without mistakes (`plan_problems` has found none)."""
    fields = {key: _listed(key, value) for key, value in table.items()}
    return msgspec.convert({**fields, "name": name}, BenchPlan, strict=True)
