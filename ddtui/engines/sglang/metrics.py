"""SGLang's Prometheus exposition, read once a second: about 90 kB, of which a dozen names matter.

Read by hand and not with prometheus_client's parser, which takes 15 ms for such a text and
builds every bucket of every histogram; this takes well under 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ddtui.core.bounded import bounded_float, bounded_int
from ddtui.core.samples import EngineCounters
from ddtui.engines.sglang.possible import possible

PREFIX = "sglang:"

_LABEL = re.compile(r'(?<!\w)(\w{1,100})="((?:[^"\\]|\\.)*)"')

_LONGEST_LINE = 4096
"""Characters; the longest real lines have some 300."""

_QUEUES = ("num_running_reqs", "num_queue_reqs")
"""Gauges that repeat their total by priority: the total's label is empty."""
_WANTED = frozenset(
    (
        *_QUEUES,
        "realtime_tokens_total",
        "generation_tokens_total",
        "prompt_tokens_total",
        "spec_verify_calls_total",
        "num_requests_total",
        "gen_throughput",
        "spec_accept_length",
        "spec_num_draft_tokens",
        "token_usage",
        "max_total_num_tokens",
        "cache_hit_rate",
        "time_to_first_token_seconds_sum",
        "time_to_first_token_seconds_count",
    )
)


class _Series(NamedTuple):
    labels: dict[str, str]
    value: float


def parse_metrics(text: str) -> EngineCounters | None:
    """Return the engine's figures; None when the text holds none of SGLang's metrics.

    Lines that cannot be read are passed over. Ranks of one data-parallel replica report the same
    figures (with --enable-metrics-for-all-schedulers): one of them counts. Replicas are added up,
    or averaged where a sum means nothing.
    """
    found: dict[str, list[_Series]] = {}
    is_ours = False
    for line in text.split("\n"):
        if not line.startswith(PREFIX) or len(line) > _LONGEST_LINE:
            continue
        is_ours = True
        name_end = line.find("{")
        if name_end < 0:
            name_end = line.find(" ")
        name = line[len(PREFIX) : name_end]
        if name in _WANTED:
            series = _series(line[name_end:])
            if series is not None:
                found.setdefault(name, []).append(series)
    return _counters(found) if is_ours else None


def _series(text: str) -> _Series | None:
    close = text.rfind("}")
    labels = dict(_LABEL.findall(text[: close + 1])) if close > 0 else {}
    words = text[close + 1 :].split()
    value = bounded_float(words[0]) if words else None
    return None if value is None else _Series(labels, value)


def _counters(found: dict[str, list[_Series]]) -> EngineCounters:
    def figure(
        name: str,
        combine: Callable[[list[float]], float] = sum,
        **wanted: str,
    ) -> float | None:
        values = _replicas(found.get(name, ()), name, wanted)
        # None is negative; a sum would hide that one is.
        return combine(values) if values and min(values) >= 0 else None

    acceptance = figure("spec_accept_length", _mean_of_active)
    drafts = figure("spec_num_draft_tokens", max)
    counters = EngineCounters(
        decode_tokens_total=figure("realtime_tokens_total", mode="decode"),
        generation_tokens_total=figure("generation_tokens_total"),
        prompt_tokens_total=figure("prompt_tokens_total"),
        verify_calls_total=figure("spec_verify_calls_total"),
        requests_total=figure("num_requests_total"),
        generation_throughput=figure("gen_throughput"),
        # Both gauges are 0 where nothing is speculated, or nothing has been yet.
        acceptance_length=acceptance or None,
        draft_tokens=drafts or None,
        running=figure("num_running_reqs"),
        queued=figure("num_queue_reqs"),
        kv_usage=figure("token_usage", max),
        max_total_tokens=figure("max_total_num_tokens"),
        cache_hit_rate=figure("cache_hit_rate", _mean),
        first_token_seconds_total=figure("time_to_first_token_seconds_sum", is_streaming="true"),
        first_tokens_total=figure("time_to_first_token_seconds_count", is_streaming="true"),
    )
    return possible(counters)


def _replicas(series: Iterable[_Series], name: str, wanted: dict[str, str]) -> list[float]:
    """One value a data-parallel replica: that of its first rank, all other labels added up."""
    ranks: dict[str, dict[tuple[int, ...], float]] = {}
    for labels, value in series:
        if any(labels.get(label) != text for label, text in wanted.items()):
            continue
        if name in _QUEUES and labels.get("priority"):
            continue
        rank = tuple(_number(labels.get(key)) for key in ("pp_rank", "tp_rank", "moe_ep_rank"))
        of_replica = ranks.setdefault(labels.get("dp_rank", ""), {})
        of_replica[rank] = of_replica.get(rank, 0.0) + value
    return [of_replica[min(of_replica)] for of_replica in ranks.values()]


def _number(text: str | None) -> int:
    return bounded_int(text or "") or 0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _mean_of_active(values: list[float]) -> float:
    """Replicas that have decoded nothing yet say 0."""
    active = [value for value in values if value > 0]
    return _mean(active) if active else 0.0
