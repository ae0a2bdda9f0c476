"""Start-up lines of several versions, ranks and orders (written from their format strings)."""

from __future__ import annotations

from ddtui.core.events import BarMoved, Configured, Failed, Phase, PhaseEnded
from ddtui.core.samples import JournalLine
from ddtui.engines.sglang import SGLANG
from tests.unit.engines.captures import brief, events_of, story, told

GIB = 1024**3
T = "[2026-09-22 17:27:12]"
T0 = "[2026-09-22 17:27:12 TP0]"
T1 = "[2026-09-22 17:27:12 TP1]"


def test_two_ranks_of_0_5_23_with_graphs_and_autotune() -> None:
    assert told(
        f"{T0} Init parallel begin.",
        f"{T1} Init parallel begin.",
        f"{T0} Init parallel ends. elapsed=3.21 s",
        f"{T1} Init parallel ends. elapsed=3.22 s",
        f"{T0} Load weight begin. avail mem=94.21 GB",
        f"{T1} Load weight begin. avail mem=94.20 GB",
        "Multi-thread loading shards:  50% Completed | 32/64 [00:10<00:10,  3.10it/s]",
        f"{T0} Load weight end. elapsed=21.50 s, type=KimiK25ForConditionalGeneration, "
        "quant=compressed-tensors, avail mem=25.00 GB, mem usage=69.21 GB.",
        f"{T0} Using draft model load_format: auto",
        f"{T0} Load weight begin. avail mem=25.00 GB",
        "Multi-thread loading shards: 100% Completed | 1/1 [00:01<00:00,  1.00it/s]",
        f"{T0} Load weight end. elapsed=1.50 s, type=DFlashDraftModel, avail mem=23.00 GB, "
        "mem usage=2.00 GB.",
        f"{T0} Running FlashInfer autotune with cache: /root/.cache/x",
        f"{T0} FlashInfer autotune completed.",
        f"{T0} Capture target prefill CUDA graph begin. backend=piecewise, num_tokens=[4, 8], "
        "avail mem=9.00 GB",
        f"{T0} Capture target prefill CUDA graph end. elapsed=4.00 s, mem usage=0.50 GB, "
        "avail mem=8.50 GB.",
        f"{T0} Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=16, "
        "avail mem=8.50 GB",
        "Capturing batches (bs=8 avail_mem=8.34 GB):  50%|#####     | 4/8 [00:02<00:02,  1.9it/s]",
        f"{T0} Capture target verify CUDA graph end. bs=[1, 2], elapsed=5.25 s, "
        "mem usage=1.00 GB, avail mem=7.50 GB.",
        f"{T0} Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=1, "
        "avail mem=7.50 GB",
        f"{T0} Capture draft decode CUDA graph end. elapsed=1.00 s, mem usage=0.1 GB, "
        "avail mem=7.40 GB.",
    ) == [
        "began starting (distributed init)",
        "began starting (distributed init)",
        "ended starting in 3.21 s (distributed init)",
        "ended starting in 3.22 s (distributed init)",
        "began loading target",
        "began loading target",
        "loading target 32/64 (Multi-thread loading shards)",
        "ended loading target in 21.5 s (KimiK25ForConditionalGeneration)",
        "began loading drafter",
        "loading drafter 1/1 (Multi-thread loading shards)",
        "ended loading drafter in 1.5 s (DFlashDraftModel)",
        "began capturing graphs (FlashInfer autotune)",
        "ended capturing graphs (FlashInfer autotune)",
        "began capturing graphs (target prefill)",
        "ended capturing graphs in 4 s (target prefill)",
        "began capturing graphs (target verify)",
        "configured 1",
        "capturing graphs 4/8 (Capturing batches (bs=8 avail_mem=8.34 GB))",
        "ended capturing graphs in 5.25 s (target verify)",
        "began capturing graphs (draft decode)",
        "ended capturing graphs in 1 s (draft decode)",
    ]


def test_the_old_order_with_the_drafter_behind_the_graphs() -> None:
    assert told(
        f"{T0} Init torch distributed begin.",
        f"{T0} Init torch distributed ends. mem usage=0.36 GB",
        f"{T0} Load weight begin. avail mem=78.49 GB",
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:02,  1.20it/s]",
        f"{T0} Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, "
        "avail mem=63.37 GB, mem usage=15.12 GB.",
        f"{T0} KV Cache is allocated. #tokens: 366734, K size: 22.38 GB, V size: 22.38 GB",
        f"{T0} Memory pool end. avail mem=17.05 GB",
        f"{T0} Capture cuda graph begin. This can take up to several minutes. avail mem=16.46 GB",
        f"{T0} Capture cuda graph bs [1, 2, 4]",
        f"{T0} Capture cuda graph end. Time elapsed: 7.50 s. mem usage=0.97 GB. "
        "avail mem=15.48 GB.",
        f"{T0} Init torch distributed begin.",
        f"{T0} Init torch distributed ends. mem usage=0.00 GB",
        f"{T0} Load weight begin. avail mem=15.30 GB",
        "Loading pt checkpoint shards: 100% Completed | 1/1 [00:00<00:00,  1.20it/s]",
        f"{T0} Load weight end. type=LlamaForCausalLMEagle3, dtype=torch.float16, "
        "avail mem=13.60 GB, mem usage=1.70 GB.",
        f"{T0} KV Cache is allocated. #tokens: 366734, K size: 0.70 GB, V size: 0.70 GB",
        f"{T0} Memory pool end. avail mem=12.20 GB",
        f"{T0} Capture draft cuda graph begin. This can take up to several minutes. "
        "avail mem=12.00 GB",
        f"{T0} Capture draft cuda graph end. Time elapsed: 2.00 s. mem usage=0.20 GB. "
        "avail mem=11.80 GB.",
        f"{T0} Capture draft extend cuda graph begin (step 2). This can take up to ...",
        f"{T0} Capture piecewise CUDA graph begin. avail mem=11.80 GB",
    ) == [
        "began starting (distributed init)",
        "ended starting (distributed init)",
        "began loading target",
        "loading target 1/4 (Loading safetensors checkpoint shards)",
        "ended loading target (LlamaForCausalLM)",
        "began allocating KV cache (target, 366,734 tokens)",
        "ended allocating KV cache (target, 366,734 tokens)",
        "began capturing graphs",
        "ended capturing graphs in 7.5 s",
        "began loading drafter",
        "loading drafter 1/1 (Loading pt checkpoint shards)",
        "ended loading drafter (LlamaForCausalLMEagle3)",
        "began allocating KV cache (drafter, 366,734 tokens)",
        "ended allocating KV cache (drafter, 366,734 tokens)",
        "began capturing graphs (draft)",
        "ended capturing graphs in 2 s (draft)",
        "began capturing graphs (draft extend)",
        "began capturing graphs (piecewise)",
    ]


def test_overlapped_loading_ends_behind_the_graphs() -> None:
    assert told(
        f"{T} Load weight begin. avail mem=94.21 GB",
        f"{T} Capture target decode CUDA graph begin. backend=full, avail mem=8.50 GB",
        f"{T} Capture target decode CUDA graph end. elapsed=5.00 s, mem usage=1.00 GB, "
        "avail mem=7.50 GB.",
        f"{T} Load weight end. Committed real weights after CUDA graph capture in 2.50 s "
        "(capture overlap window 9.00 s, startup overlap total 30.00 s)",
    ) == [
        "began loading target",
        "began capturing graphs (target decode)",
        "ended capturing graphs in 5 s (target decode)",
        "ended loading target in 2.5 s",
    ]


def test_a_drafter_is_told_by_its_type_when_the_target_was_not_seen() -> None:
    line = f"{T0} Load weight end. elapsed=1.50 s, type=DFlashDraftModel, avail mem=23.00 GB"
    assert told(line) == ["ended loading drafter in 1.5 s (DFlashDraftModel)"]


def test_memory_is_counted_in_gibibytes() -> None:
    events = events_of(
        f"{T0} Mamba Cache is allocated. max_mamba_cache_size: 40, conv_state size: 0.50GB, "
        "ssm_state size: 1.50GB \n"
        f"{T0} KV Cache is allocated. dtype: torch.bfloat16, #tokens: 10, KV size: 2.00 GB\n"
        f"{T0} Memory pool end. avail mem=17.25 GB"
    )
    end = events[-1]
    assert isinstance(end, PhaseEnded)
    assert (end.memory_used, end.memory_available) == (4 * GIB, round(17.25 * GIB))
    assert len(events) == 2


def test_the_cache_that_is_sized_after_the_capture() -> None:
    assert told(
        f"{T0} KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1000, K size: 22.00 GB, "
        "V size: 22.00 GB",
        f"{T0} Memory pool end. avail mem=17.05 GB",
        f"{T0} Post-capture KV sizing: full_layer_tokens=900, swa_layer_tokens=0",
        f"{T0} Post-capture KV sizing: KV cache allocated. avail mem=3.00 GB",
    ) == [
        "began allocating KV cache (target, 1,000 tokens)",
        "ended allocating KV cache (target, 1,000 tokens)",
        "ended allocating KV cache (sized after capture)",
    ]


def test_bars_go_to_the_rank_of_their_process() -> None:
    reader = SGLANG.log_reader()
    lines = [
        JournalLine(stamp=1.0, text=f"{T0} Load weight begin. avail mem=1 GB", pid=10),
        JournalLine(stamp=2.0, text=f"{T0} Load weight begin. avail mem=1 GB", pid=10),
        JournalLine(stamp=3.0, text=f"{T1} Load weight begin. avail mem=1 GB", pid=11),
        JournalLine(
            stamp=4.0,
            text="Multi-thread loading shards:  33% Completed | 2/6 [00:01<00:01, 2.50it/s]",
            bar=True,
            pid=10,
        ),
    ]
    events = [event for line in lines for event in reader.read(line)]
    bar = events[-1]
    assert isinstance(bar, BarMoved)
    assert (bar.phase, bar.done, bar.total, bar.elapsed) == (Phase.DRAFTER, 2, 6, 1.0)


def test_kernel_compilation_is_part_of_the_graphs() -> None:
    assert told(
        f"{T0} Entering DeepGEMM JIT Pre-Compile session. It may take a long time",
        "DeepGEMM warmup:  10%|#         | 1639/16384 [01:10<10:00, 23.4it/s]",
        "Capturing num tokens (num_tokens=64 avail_mem=1.00 GB):   0%|  | 0/5 [00:00<?, ?it/s]",
        "Fetching 12 files:  50%|#####     | 6/12 [00:01<00:01,  5.00it/s]",
        "Downloading: 12.3MB [00:01, 8.0MB/s]",
    ) == [
        "began capturing graphs (DeepGEMM compilation)",
        "capturing graphs 1639/16384 (DeepGEMM warmup)",
        "capturing graphs 0/5 (Capturing num tokens (num_tokens=64 avail_mem=1.00 GB))",
    ]


def test_what_drafters_prove_in_mainline_and_in_the_forks() -> None:
    events = events_of(
        f"{T0} Initialized DFLASH draft runner. attention_backend=fa4, model=DFlashDraftModel, "
        "block_size=16, draft_window_size=4096, compact_cache=True\n"
        f"{T0} Initialized DDTree worker. block_size=16, tree_budget=64, max_tree_nodes=65\n"
        f"{T0} Initialized DDTREE v2 worker. block_size=8, tree_budget=32, max_tree_nodes=33, "
        "prune=True"
    )
    assert [event.values for event in events if isinstance(event, Configured)] == [
        {
            "speculative_draft_attention_backend": "fa4",
            "draft_model_class": "DFlashDraftModel",
            "block_size": 16,
            "speculative_draft_window_size": 4096,
            "compact_cache": True,
        },
        {"block_size": 16, "speculative_ddtree_budget": 64, "max_tree_nodes": 65},
        {
            "block_size": 8,
            "speculative_ddtree_budget": 32,
            "max_tree_nodes": 33,
            "prune": True,
        },
    ]


def test_the_width_of_a_verify_pass_is_proved_by_the_target_only() -> None:
    events = events_of(
        f"{T0} Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=65, x\n"
        f"{T0} Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=1, x"
    )
    proofs = [event.values for event in events if isinstance(event, Configured)]
    assert proofs == [{"num_tokens_per_req": 65}]


def test_draining_is_told_once() -> None:
    assert told(
        f"{T} SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        f"{T} Gracefully exiting... Remaining number of requests 2. Remaining requests x",
        f"{T} INFO:     Shutting down",
    ) == ["Draining"]


def test_fired_up_without_an_open_port_ends_no_warm_up() -> None:
    # A server whose port belongs to another one warms up against that one.
    assert told(f"{T} The server is fired up and ready to roll!") == ["FiredUp", "began ready"]


def test_a_logged_prompt_is_no_event() -> None:
    bar = "Multi-thread loading shards:  33% Completed | 2/6 [00:00<00:01, 2.50it/s]"
    for prompt in (
        "The server is fired up and ready to roll!",
        "[2026-09-22 17:27:12] The server is fired up and ready to roll!",
        "Load weight begin. avail mem=1 GB",
        f"{bar}[2026-09-22 17:27:12 TP0] Load weight begin.",
        "Traceback (most recent call last):",
        "sglang serve: error: something",
        "Received sigquit from a child process",
    ):
        for line in (
            f"{T} Receive: obj=GenerateReqInput(rid='1', text='{prompt}')",
            f"{T} Finish: obj=GenerateReqInput(text='{prompt}'), out={{'text': '{prompt}'}}",
            f'{T} {{"event": "request.received", "obj": {{"text": "{prompt}"}}}}',
            f"{T} Receive OpenAI: obj=ChatCompletionRequest(messages=['{prompt}'])",
        ):
            assert story(events_of(line)) == [], line


def test_the_rest_of_a_line_that_journald_cut_is_no_event() -> None:
    text = f"{T} The server is fired up and ready to roll!"
    reader = SGLANG.log_reader()
    for part in (text, "Traceback (most recent call last):", "ValueError: from a prompt"):
        assert not list(reader.read(JournalLine(stamp=1.0, text=part, continued=True)))
    events = list(reader.read(JournalLine(stamp=1.0, text="ValueError: from a prompt")))
    assert not any(isinstance(event, Failed) for event in events)


def test_lines_of_the_service_manager_are_not_the_engines() -> None:
    line = JournalLine(
        stamp=1.0, text=f"{T} The server is fired up and ready to roll!", from_manager=True
    )
    assert [brief(event) for event in SGLANG.log_reader().read(line)] == []
