"""What the simulated engine's answers look like: SGLang's usage, meta_info and counts of drafts."""

from __future__ import annotations

import zlib

from ddtui.demo.config import EngineConfig
from ddtui.demo.serving import Generation

_WORDS = (
    *("the", "a", "of", "to", "in", "is", "that", "it", "for", "on", "with", "as", "by", "at"),
    *("from", "this", "value", "list", "index", "loop", "return", "number", "result", "string"),
    *("key", "node", "path", "cache", "token", "batch", "model", "draft", "tree", "verify"),
)


def text_of(generation: Generation, start: int = 0) -> tuple[str, str]:
    """Reasoning and visible text from a token on: scripted, or made up, one word a token."""
    if generation.script:
        return generation.script.between(start, generation.tokens)
    visible = max(start, min(generation.thoughts, generation.tokens))
    return _words(generation.rid, start, visible), _words(
        generation.rid, visible, generation.tokens
    )


def _words(seed: str, start: int, end: int) -> str:
    picks = (zlib.crc32(f"{seed} {index}".encode()) for index in range(start, end))
    return "".join(f" {_WORDS[pick % len(_WORDS)]}" for pick in picks)


def finish_reason(generation: Generation) -> str:
    """Why it ended."""
    if generation.aborted:
        return "abort"
    script = generation.script
    return "stop" if script and generation.tokens >= len(script.tokens) else "length"


def _reasoning_tokens(generation: Generation) -> int:
    thoughts = generation.script.thoughts if generation.script else generation.thoughts
    return min(generation.tokens, thoughts)


def usage(generation: Generation) -> dict[str, object]:
    """`usage` of the OpenAI endpoints, of the tokens so far."""
    return {
        "prompt_tokens": generation.prompt_tokens,
        "total_tokens": generation.prompt_tokens + generation.tokens,
        "completion_tokens": generation.tokens,
        "prompt_tokens_details": None,
        "reasoning_tokens": _reasoning_tokens(generation),
        "completion_tokens_details": None,
    }


def speculation(generation: Generation, config: EngineConfig) -> dict[str, object]:
    """A request's own counts of drafts."""
    proposed = generation.passes * (config.block_size - 1)
    return {
        "spec_accept_rate": generation.correct_drafts / max(1, proposed),
        "spec_accept_length": generation.tokens / max(1, generation.passes),
        "spec_num_correct_drafts": generation.correct_drafts,
        "spec_num_proposed_drafts": proposed,
        "spec_verify_ct": generation.passes,
        "spec_correct_drafts_histogram": generation.histogram,
    }


def meta_info(generation: Generation, config: EngineConfig, *, done: bool) -> dict[str, object]:
    """`meta_info` of `/generate`; figures of the whole request only once it is done."""
    finish: dict[str, object] = {"type": finish_reason(generation)}
    if finish["type"] == "length":
        finish["length"] = generation.tokens
    info: dict[str, object] = {
        "id": generation.rid,
        "finish_reason": finish if done else None,
        "prompt_tokens": generation.prompt_tokens,
        "weight_version": "default",
        "num_retractions": 0,
        "reasoning_tokens": _reasoning_tokens(generation),
        "completion_tokens": generation.tokens,
        "cached_tokens": generation.cached_tokens,
        "cached_tokens_details": None,
        "dp_rank": None,
    }
    if not done:
        return info
    info["e2e_latency"] = generation.finished - generation.arrived
    if config.block_size > 1:
        info |= speculation(generation, config)
    if config.arguments["enable_metrics"]:
        seconds = max(1e-6, generation.finished - generation.first_token)
        info |= {
            "queue_time": max(0.0, generation.scheduled - generation.arrived),
            "forward_entry_time": generation.scheduled,
            "prefill_finished_time": generation.first_token,
            "request_received_ts": generation.arrived,
            "first_token_latency": generation.first_token - generation.arrived,
            "decode_throughput": (generation.tokens - 1) / seconds,
            "request_finished_ts": generation.finished,
            "response_sent_to_client_ts": generation.finished,
        }
    return info
