"""Which figures an engine can have: one that cannot be is not shown as if it were live."""

from __future__ import annotations

import msgspec

from ddtui.core.bounded import LARGEST, within
from ddtui.core.samples import EngineCounters

_ROUNDED_ABOVE = 1.05
"""Up to here a share above 1 is one of 1: its two parts were read at different moments."""
_LONGEST_ACCEPTANCE = 1000.0
"""Tokens a verification; no drafter proposes as many."""


def count(number: float | None) -> float | None:
    """A number of things, or of things a second: not negative, and finite."""
    return within(number, 0.0, LARGEST)


def share(number: float | None) -> float | None:
    """A share from 0 to 1."""
    if number is None or not 0.0 <= number <= _ROUNDED_ABOVE:
        return None
    return number if number <= 1.0 else 1.0


def acceptance_length(number: float | None, drafts: float | None = None) -> float | None:
    """Tokens a verification: at least its own one, and no more than are drafted for it."""
    if number is None or not 1.0 <= number < _LONGEST_ACCEPTANCE:
        return None
    return number if not drafts or number <= max(2.0, 2 * drafts) else None


def possible(counters: EngineCounters) -> EngineCounters:
    """The same without the figures that cannot be."""
    drafts = count(counters.draft_tokens)
    acceptance = acceptance_length(counters.acceptance_length, drafts)
    return msgspec.structs.replace(
        counters,
        decode_tokens_total=count(counters.decode_tokens_total),
        generation_tokens_total=count(counters.generation_tokens_total),
        prompt_tokens_total=count(counters.prompt_tokens_total),
        verify_calls_total=count(counters.verify_calls_total),
        generation_throughput=count(counters.generation_throughput),
        acceptance_length=acceptance,
        acceptance_is_lifetime=counters.acceptance_is_lifetime and acceptance is not None,
        draft_tokens=drafts,
        running=count(counters.running),
        queued=count(counters.queued),
        kv_usage=share(counters.kv_usage),
        max_total_tokens=count(counters.max_total_tokens),
        cache_hit_rate=share(counters.cache_hit_rate),
        first_token_seconds_total=count(counters.first_token_seconds_total),
        first_tokens_total=count(counters.first_tokens_total),
    )
