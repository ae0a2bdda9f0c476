"""Exact events of every captured log."""

from __future__ import annotations

import pytest

from ddtui.core.events import AnyEvent, Configured, Decoded, Failed, PhaseEnded, Prefilled
from tests.unit.engines.captures import FOLDER, events_of, story, text_of

REPO_ID = (
    "Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/nonexistent/model'. "
    "Use `repo_type` argument if needed."
)

STORIES = {
    "sglang-base.log": [
        "12: configured 539",
        "12: began starting (arguments read)",
        "24: began starting (distributed init)",
        "27: ended starting in 0.02 s (distributed init)",
        "45: began loading target",
        "46: ended loading target in 0.08 s (Qwen3ForCausalLM)",
        "47: began allocating KV cache (target, 20,000 tokens)",
        "48: ended allocating KV cache (target, 20,000 tokens)",
        "50: configured 6",
        "53: configured 10",
        "58: port http://127.0.0.1:31001",
        "58: began warming up",
        "135: ended warming up",
        "135: FiredUp",
        "135: began ready",
        "361: Draining",
    ],
    "sglang-dflash.log": [
        "12: configured 539",
        "12: began starting (arguments read)",
        "24: began starting (distributed init)",
        "27: ended starting in 0.01 s (distributed init)",
        "45: began loading target",
        "46: ended loading target in 0.01 s (Qwen3ForCausalLM)",
        "48: began loading drafter",
        "49: ended loading drafter in 0 s (DFlashDraftModel)",
        "50: configured 5",
        "51: configured 4",
        "52: began allocating KV cache (target, 20,000 tokens)",
        "53: ended allocating KV cache (target, 20,000 tokens)",
        "54: began allocating KV cache (drafter, 20,000 tokens)",
        "55: ended allocating KV cache (drafter, 20,000 tokens)",
        "59: configured 6",
        "62: configured 10",
        "67: port http://127.0.0.1:31006",
        "67: began warming up",
        "150: ended warming up",
        "150: FiredUp",
        "150: began ready",
        "263: Draining",
    ],
    "sglang-fresh-dflash.log": [
        "12: configured 539",
        "12: began starting (arguments read)",
        "24: began starting (distributed init)",
        "27: ended starting in 0.02 s (distributed init)",
        "45: began loading target",
        "46: ended loading target in 0.02 s (Qwen3ForCausalLM)",
        "48: began loading drafter",
        "49: ended loading drafter in 0 s (DFlashDraftModel)",
        "50: configured 5",
        "51: configured 4",
        "52: began allocating KV cache (target, 20,000 tokens)",
        "53: ended allocating KV cache (target, 20,000 tokens)",
        "54: began allocating KV cache (drafter, 20,000 tokens)",
        "55: ended allocating KV cache (drafter, 20,000 tokens)",
        "59: configured 6",
        "62: configured 10",
        "67: port http://127.0.0.1:31201",
        "67: began warming up",
        "150: ended warming up",
        "150: FiredUp",
        "150: began ready",
        "262: Draining",
    ],
    "sglang-ngram.log": [
        "14: configured 539",
        "14: began starting (arguments read)",
        "26: began starting (distributed init)",
        "29: ended starting in 0.04 s (distributed init)",
        "47: began loading target",
        "48: ended loading target in 0.07 s (Qwen3ForCausalLM)",
        "49: began allocating KV cache (target, 20,000 tokens)",
        "50: ended allocating KV cache (target, 20,000 tokens)",
        "52: configured 6",
        "55: configured 10",
        "60: port http://127.0.0.1:31003",
        "60: began warming up",
        "227: ended warming up",
        "227: FiredUp",
        "227: began ready",
        "344: Draining",
    ],
    "sglang-fail-port-in-use.log": [
        "12: configured 539",
        "12: began starting (arguments read)",
        "24: began starting (distributed init)",
        "27: ended starting in 0.01 s (distributed init)",
        "45: began loading target",
        "46: ended loading target in 0.02 s (Qwen3ForCausalLM)",
        "47: began allocating KV cache (target, 20,000 tokens)",
        "48: ended allocating KV cache (target, 20,000 tokens)",
        "50: configured 6",
        "53: configured 10",
        "58: failed [Errno 98] error while attempting to bind on address ('127.0.0.1', 31003): "
        "address already in use",
        "60: wrapper Subprocess scheduler_0 (pid=24794) crashed with exit code -15. "
        "Triggering SIGQUIT for cleanup...",
        "61: wrapper Received sigquit from a child process. It usually means the child failed.",
    ],
    "sglang-fail-bad-choice.log": [
        "478: failed argument --dtype: invalid choice: 'float7' "
        "(choose from 'auto', 'half', 'float16', 'bfloat16', 'float', 'float32')",
    ],
    "sglang-fail-unknown-flag.log": [
        "478: failed unrecognized arguments: --speculative-bogus 3",
    ],
    "sglang-fail-dflash-block-conflict.log": [
        "30: failed ValueError: Both --speculative-num-draft-tokens and "
        "--speculative-dflash-block-size are set but they differ. For DFLASH they must match. "
        "speculative_num_draft_tokens=8, speculative_dflash_block_size=16.",
    ],
    "sglang-fail-dflash-nodraft.log": [
        "29: failed ValueError: DFLASH speculative decoding requires setting "
        "--speculative-draft-model-path.",
    ],
    "sglang-fail-dflash-window-small.log": [
        "30: failed ValueError: --speculative-draft-window-size must be >= "
        "--speculative-num-draft-tokens (block_size). window_size=4, block_size=8.",
    ],
    "sglang-fail-spec-ddtree.log": [
        "28: failed ValueError: Unknown speculative algorithm name: DDTREE",
    ],
    "sglang-fail-missing-model.log": [
        f"16: failed huggingface_hub.errors.HFValidationError: {REPO_ID}",
        f"41: wrapper OSError: {REPO_ID}",
        f"52: failed huggingface_hub.errors.HFValidationError: {REPO_ID}",
        f"87: wrapper OSError: {REPO_ID}",
    ],
}


def test_every_captured_log_has_its_story() -> None:
    assert sorted(STORIES) == sorted(path.name for path in FOLDER.glob("*.log"))


@pytest.mark.parametrize("name", STORIES)
def test_the_events_of_a_capture(name: str) -> None:
    assert story(events_of(text_of(name))) == STORIES[name]


@pytest.mark.parametrize("name", STORIES)
def test_every_decode_and_prefill_line_of_a_capture_is_read_in_full(name: str) -> None:
    text = text_of(name)
    events = events_of(text)
    decodes = [event for event in events if isinstance(event, Decoded)]
    prefills = [event for event in events if isinstance(event, Prefilled)]
    assert len(decodes) == text.count("] Decode batch, ")
    assert len(prefills) == text.count("] Prefill batch, ")
    speculates = "accept len" in text
    for event in decodes:
        assert None not in (event.throughput, event.running, event.queued, event.kv_usage)
        assert event.tokens is not None
        assert event.graph is False
        assert (event.acceptance_length is not None) is speculates
    for prefill in prefills:
        assert None not in (prefill.new_tokens, prefill.cached_tokens, prefill.throughput)


def test_figures_of_single_lines() -> None:
    events = events_of(text_of("sglang-fresh-dflash.log"))
    first = next(event for event in events if isinstance(event, Decoded))
    assert (first.throughput, first.acceptance_length, first.acceptance_rate) == (39.92, 4.02, 0.43)
    assert (first.running, first.queued, first.kv_usage, first.tokens) == (8, 0, 0.03, 525)
    load = next(
        event for event in events if isinstance(event, PhaseEnded) and event.memory_used == 0
    )
    assert load.memory_available == round(20.94 * 1024**3)


def configured(events: list[AnyEvent]) -> dict[str, object]:
    values: dict[str, object] = {}
    for event in events:
        if isinstance(event, Configured):
            values.update(event.values)
    return values


def test_the_configuration_that_a_log_proves() -> None:
    values = configured(events_of(text_of("sglang-fresh-dflash.log")))
    assert values["speculative_algorithm"] == "DFLASH"
    assert values["model_path"] == "models/tiny-qwen3"
    assert values["mem_fraction_static"] == 0.716
    assert values["attention_backend"] == "torch_native"
    assert values["api_key"] is None
    assert values["enable_metrics"] is True
    assert values["context_length"] is None
    # Nested arguments are left out, and what is within them is not taken for arguments.
    assert "cuda_graph_config" not in values
    assert "max_bs" not in values
    # Arguments behind the nested ones are still read.
    assert values["return_aux_hidden_state_layer_ids"] is None
    # What the drafter says of itself does not overwrite the target's arguments.
    assert values["block_size"] == 8
    assert values["draft_model_class"] == "DFlashDraftModel"
    assert values["compact_cache"] is False
    assert values["mask_token_id"] == 3
    assert values["max_total_num_tokens"] == 20000
    assert values["startup_tokenizer_e2e_seconds"] == 10.35


def test_the_first_failure_that_is_no_wrapper_is_the_root() -> None:
    failures = [
        event
        for event in events_of(text_of("sglang-fail-port-in-use.log"))
        if isinstance(event, Failed)
    ]
    root = next(failure for failure in failures if not failure.wrapper)
    assert root.message.startswith("[Errno 98]")


@pytest.mark.parametrize("name", ["sglang-base.log", "sglang-dflash.log", "sglang-ngram.log"])
def test_a_server_that_was_stopped_in_order_did_not_fail(name: str) -> None:
    assert not [event for event in events_of(text_of(name)) if isinstance(event, Failed)]
