"""`/metrics`, `/v1/loads` and `/server_info`: SGLang 0.5.23's names, the simulated figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate

from ddtui.core.events import Phase
from ddtui.demo.config import VERSION
from ddtui.demo.engine import EngineState, SimulatedEngine
from ddtui.demo.serving import BUCKETS, Histogram
from ddtui.demo.startup import GIB

_Labels = Mapping[str, str]

_NO_DISAGGREGATION = {
    "mode": "null",
    "prefill_bootstrap_queue_reqs": 0,
    "prefill_inflight_queue_reqs": 0,
    "decode_prealloc_queue_reqs": 0,
    "decode_transfer_queue_reqs": 0,
    "decode_retracted_queue_reqs": 0,
    "kv_transfer_speed_gb_s": 0.0,
    "kv_transfer_latency_ms": 0.0,
}


class _Exposition:
    """Lines of the Prometheus text format."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def family(
        self, name: str, kind: str, values: Sequence[tuple[_Labels, float]], text: str
    ) -> None:
        """One metric with its samples."""
        self._head(name, kind, text)
        for labels, value in values:
            self._sample(f"sglang:{name}", labels, value)

    def histogram(self, name: str, values: Sequence[tuple[_Labels, Histogram]], text: str) -> None:
        """A histogram of observed seconds."""
        self._head(name, "histogram", text)
        for labels, observed in values:
            self._sample(f"sglang:{name}_sum", labels, observed.total)
            bounds = (*(repr(float(bound)) for bound in BUCKETS), "+Inf")
            for bound, count in zip(bounds, accumulate(observed.counts), strict=True):
                self._sample(f"sglang:{name}_bucket", {**labels, "le": bound}, count)
            self._sample(f"sglang:{name}_count", labels, sum(observed.counts))

    def text(self) -> str:
        """The whole exposition."""
        return "\n".join(self._lines) + "\n"

    def _head(self, name: str, kind: str, text: str) -> None:
        self._lines.append(f"# HELP sglang:{name} {text}")
        self._lines.append(f"# TYPE sglang:{name} {kind}")

    def _sample(self, name: str, labels: _Labels, value: float) -> None:
        inside = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
        self._lines.append(f"{name}{{{inside}}} {float(value)!r}")


def exposition(engine: SimulatedEngine) -> str:
    """The whole of `/metrics`."""
    out = _Exposition()
    request = {"engine_type": "unified", "model_name": engine.config.model}
    rank = {**request, "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
    _gauges(out, engine, rank)
    _startup(out, engine, request, rank)
    _counters(out, engine, request, rank)
    return out.text()


def _gauges(out: _Exposition, engine: SimulatedEngine, rank: _Labels) -> None:
    gauges, plan, config = engine.scheduler.gauges, engine.plan, engine.config
    usage = gauges.used_tokens / plan.kv_tokens
    values: list[tuple[str, float, str]] = [
        ("num_running_reqs", gauges.running, "Running requests."),
        ("num_queue_reqs", gauges.queued, "Waiting requests."),
        ("num_grammar_queue_reqs", 0, "Requests waiting for a grammar."),
        ("gen_throughput", gauges.throughput, "Generation throughput (token/s)."),
        ("cache_hit_rate", gauges.cache_hit_rate, "Prefix cache hit rate."),
        ("token_usage", round(usage, 2), "Token usage."),
        ("full_token_usage", usage, "Token usage, full attention."),
        ("num_used_tokens", gauges.used_tokens, "Used tokens."),
        ("kv_used_tokens", gauges.used_tokens, "Used tokens of the KV cache."),
        ("kv_available_tokens", plan.kv_tokens - gauges.used_tokens, "Free tokens."),
        ("decode_sum_seq_lens", gauges.used_tokens, "Sum of sequence lengths."),
        ("max_total_num_tokens", plan.kv_tokens, "Capacity of the KV cache in tokens."),
        ("context_len", plan.context_length, "Longest request."),
        ("page_size", 1, "Page size."),
        ("num_pages", plan.kv_tokens, "Pages."),
        ("is_cuda_graph", 1, "Whether the last pass ran as a graph."),
        ("utilization", 0, "Utilization."),
        ("new_token_ratio", 0.7, "New token ratio."),
        ("weight_memory_usage_gb", plan.weights_per_rank / GIB, "Weights."),
        ("kv_cache_memory_usage_gb", plan.kv_per_rank / GIB, "KV cache."),
        ("startup_available_gpu_memory_gb", plan.available(plan.ready_at), "Free after start."),
    ]
    if config.algorithm:
        values += [
            ("spec_accept_length", gauges.acceptance_length, "Mean acceptance length."),
            ("spec_accept_rate", gauges.acceptance_rate, "Mean acceptance rate."),
            ("spec_num_steps", 1, "Draft steps."),
            ("spec_num_draft_tokens", config.block_size, "Draft tokens."),
        ]
    for name, value, text in values:
        out.family(name, "gauge", [(rank, value)], text)


def _startup(out: _Exposition, engine: SimulatedEngine, request: _Labels, rank: _Labels) -> None:
    times = startup_times(engine)
    graphs = graph_times(engine)
    phases = [({**request, "phase": phase}, seconds) for phase, seconds in times.items()]
    out.family("startup_time_seconds", "gauge", phases, "Seconds of a phase of the start.")
    captured = [({**request, "phase": name}, seconds) for name, seconds in graphs.items()]
    out.family("startup_cuda_graph_time_seconds", "gauge", captured, "Seconds of a capture.")
    memory = [({**rank, "phase": name}, 0.9 if value else 0.0) for name, value in graphs.items()]
    out.family("graph_memory_usage_gb", "gauge", memory, "Memory of captured graphs.")


def _counters(out: _Exposition, engine: SimulatedEngine, request: _Labels, rank: _Labels) -> None:
    totals = engine.scheduler.totals
    modes = (
        ("prefill_compute", totals.prefill_tokens),
        ("prefill_cache", totals.cached_tokens),
        ("decode", totals.decode_tokens),
    )
    realtime = [({**rank, "mode": mode}, float(value)) for mode, value in modes]
    out.family("realtime_tokens_total", "counter", realtime, "Tokens processed.")
    streams = [({**request, "is_streaming": str(kind).lower()}, kind) for kind in (False, True)]
    for name, by_kind, text in (
        ("prompt_tokens_total", totals.prompt_tokens, "Prompt tokens."),
        ("generation_tokens_total", totals.generated, "Generated tokens."),
        ("num_requests_total", totals.requests, "Requests."),
    ):
        samples = [(labels, float(by_kind[kind])) for labels, kind in streams]
        out.family(name, "counter", samples, text)
    cached = {**request, "cache_source": "device"}
    out.family("cached_tokens_total", "counter", [(cached, totals.cached_tokens)], "Cached tokens.")
    if engine.config.algorithm:
        calls = [(request, float(totals.verify_calls))]
        out.family("spec_verify_calls_total", "counter", calls, "Verification passes.")
    for name, observed, text in (
        ("time_to_first_token_seconds", totals.first_token, "Time to first token."),
        ("e2e_request_latency_seconds", totals.latency, "Time of a whole request."),
    ):
        out.histogram(name, [(labels, observed[kind]) for labels, kind in streams], text)


def graph_times(engine: SimulatedEngine) -> dict[str, float]:
    """Seconds of each graph capture."""
    seconds = engine.plan.seconds(Phase.GRAPHS)
    speculating = bool(engine.config.algorithm)
    return {
        "prefill": 0.0,
        "decode": 0.0 if speculating else seconds,
        "target_verify": seconds * 0.65 if speculating else 0.0,
        "draft_prefill": 0.0,
        "draft_decode": seconds * 0.35 if speculating else 0.0,
        "draft_extend": 0.0,
    }


def startup_times(engine: SimulatedEngine) -> dict[str, float]:
    """Seconds of each phase that SGLang reports."""
    plan = engine.plan
    return {
        "load_weight": plan.seconds(Phase.TARGET),
        "kv_cache_allocation": plan.seconds(Phase.KV_CACHE),
        "scheduler_e2e": plan.port_opens_at,
        "tokenizer_e2e": plan.port_opens_at,
    }


def lifetime_acceptance(engine: SimulatedEngine) -> float:
    """Tokens a verification pass since the start or the last flush."""
    scheduler = engine.scheduler
    return scheduler.lifetime_tokens / max(1, scheduler.lifetime_passes)


def loads(engine: SimulatedEngine) -> dict[str, object]:
    """The answer of `/v1/loads`."""
    scheduler, plan, now = engine.scheduler, engine.plan, engine.clock()
    gauges, used = scheduler.gauges, scheduler.used_tokens
    metered = bool(engine.config.arguments["enable_metrics"])
    load: dict[str, object] = {
        "timestamp": now,
        "dp_rank": 0,
        "num_running_reqs": len(scheduler.running),
        "num_waiting_reqs": len(scheduler.waiting),
        "num_waiting_uncached_tokens": sum(r.prompt_tokens for r in scheduler.waiting),
        "num_used_tokens": used,
        "num_total_tokens": used,
        "num_active_tokens": used,
        "num_prealloc_ready_tokens": 0,
        "max_total_num_tokens": plan.kv_tokens,
        "max_running_requests": engine.config.number("max_running_requests", 48),
        "token_usage": round(used / plan.kv_tokens, 4),
        "gen_throughput": round(gauges.throughput, 2) if metered else 0.0,
        "cache_hit_rate": round(gauges.cache_hit_rate, 4),
        "utilization": 0.0,
        "total_prefill_uncached_tokens": scheduler.totals.prefill_tokens,
        "total_prefill_busy_us": 0,
        "decode_moments": [0.0] * 6,
        "disaggregation": _NO_DISAGGREGATION,
        "memory": {
            "weight_gb": round(plan.weights_per_rank / GIB, 3),
            "kv_cache_gb": round(plan.kv_per_rank / GIB, 3),
            "graph_gb": 1.9,
            "token_capacity": plan.kv_tokens,
        },
        "queues": {
            "waiting": len(scheduler.waiting),
            "grammar": 0,
            "paused": 0,
            "retracted": 0,
            "prealloc_ready": 0,
        },
    }
    if engine.config.algorithm and scheduler.lifetime_passes:
        load["speculative"] = {
            "accept_length": round(lifetime_acceptance(engine), 3),
            "accept_rate": round(gauges.acceptance_rate, 3) if metered else 0.0,
        }
    stamp = datetime.fromtimestamp(now, UTC).isoformat()
    return {
        "timestamp": stamp,
        "version": VERSION,
        "accelerator": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "num_accelerators": engine.config.tp,
        "loads": [load],
    }


def server_info(engine: SimulatedEngine) -> dict[str, object]:
    """The answer of `/server_info`."""
    config, plan, scheduler = engine.config, engine.plan, engine.scheduler
    startup: dict[str, object] = {**startup_times(engine), "cuda_graph": graph_times(engine)}
    state: dict[str, object] = {
        **config.arguments,
        "world_size": config.tp,
        "startup_time": startup,
        "effective_max_running_requests_per_dp": config.number("max_running_requests", 48),
        "last_gen_throughput": scheduler.gauges.throughput,
        "memory_usage": {
            "weight": round(plan.weights_per_rank / GIB, 3),
            "kvcache": round(plan.kv_per_rank / GIB, 3),
            "startup_available": round(plan.available(plan.ready_at), 2),
            "token_capacity": plan.kv_tokens,
            "token_capacity_swa": None,
            "graph": dict.fromkeys(graph_times(engine), 0.3),
        },
        "decode_cuda_graph_bs": [1, 2, 4, 8, 12, 16],
        "decode_cuda_graph_memory_gb": 1.9,
    }
    state.pop("custom_sigquit_handler", None)
    if config.algorithm and scheduler.lifetime_passes:
        state["avg_spec_accept_length"] = lifetime_acceptance(engine)
    ready = engine.state is EngineState.READY
    layout: dict[str, object] = {
        "enabled": False,
        "backend": None,
        "page_size": 1,
        "hicache_object_layout": {"pools": []},
        "reason": "Hierarchical cache is disabled",
    }
    return {
        **config.arguments,
        "launch_command": " ".join(config.command),
        "status": "ready" if ready else "starting",
        "max_total_num_tokens": plan.kv_tokens,
        "max_req_input_len": plan.context_length - 6,
        "startup_time": startup,
        "hicache_object_layout": layout,
        "kv_events": None,
        "internal_states": [state],
        "version": VERSION,
        "frontend": "python",
    }
