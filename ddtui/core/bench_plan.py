"""How a configuration is measured: the plan of one bench. Pure data."""

from __future__ import annotations

from typing import Literal

import msgspec


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bench: every concurrency is a cell, measured `repeats` times after its warm-up."""

    name: str = ""
    """The plan's name in the configuration; empty for one made on the spot."""
    prompts: str = "coding"
    """A set that is shipped (`coding`, `reasoning`, `chat`, `long`), or a file of prompts."""
    endpoint: Literal["chat", "generate"] = "chat"
    """`/v1/chat/completions`, or the engine's native `/generate`."""
    concurrency: tuple[int, ...] = (1,)
    """Requests in flight, one cell each."""
    output_tokens: int = 512
    """At most so many tokens are generated for a request."""
    temperature: float = 0.0
    repeats: int = 3
    """Batches that count, in each cell."""
    requests: int = 0
    """Requests of a batch; 0 for every prompt once, and as many as run at once at least."""
    warmup_batches: int = 6
    """Batches at most before the first one that counts; fewer when two in a row agree."""
    agreement: float = 0.05
    """How near two batches must be to agree: a share of their tok/s."""
    thinking: bool | None = None
    """Ask a reasoning model to think or not; None leaves it to the model's template."""
    stall_seconds: float = 120.0
    """A stream that brings nothing for so long is ended; what came is kept."""
    flush_cache: bool = True
    """Empty the engine's prefix cache before each cell."""
    seed: int = 0
    coding: bool = True
    """Ask for the coding tasks too, after the timed cells, and judge the answers."""
    coding_tokens: int = 4096
    """At most so many tokens for the answer to a coding task, reasoning included."""
    command: tuple[str, ...] = ()
    """An external bench, run on the host instead of the load generator; its JSON lines are read."""
    command_seconds: float = 3600.0
    """The external bench is ended after so long."""


def short_name(plan: BenchPlan) -> str:
    """What a plan is called in a list: its name, or what tells one made on the spot from others."""
    if plan.name or same_plan(plan, BenchPlan()):
        return plan.name or "default"
    if plan.command:
        return "external bench"
    return f"{plan.prompts} x{','.join(map(str, plan.concurrency))}"


def same_plan(one: BenchPlan, other: BenchPlan) -> bool:
    """Whether two plans measure the same, however they are called."""
    return msgspec.structs.replace(one, name="") == msgspec.structs.replace(other, name="")
