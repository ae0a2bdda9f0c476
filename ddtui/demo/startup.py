"""One start of the simulated engine: what it prints and holds at each moment, known in advance.

The order and the texts of the lines are SGLang 0.5.23's. Durations are those of 548 GB read at
1.3 GB/s by 8 ranks, divided by `speed`; figures inside the lines ("elapsed=") are of the
accelerated start, so that they agree with the time stamps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ddtui.core.events import Phase
from ddtui.demo.bars import graph_bar, shard_bar
from ddtui.demo.config import EngineConfig
from ddtui.demo.failures import FAILURES, Exit, Failure

GIB = 1 << 30
GPU_MEMORY = 97_887 << 20
"""Bytes of one GPU."""
TARGET_BYTES = 548_000_000_000
"""Size of the target's checkpoint."""
TARGET_SHARDS = 64
DRAFTER_BYTES = 6_600_000_000
"""Size of the drafter's checkpoint."""
DRAFTER_SHARDS = 2
DISK_RATE = 1.3e9
"""Bytes per second that the model's disk gives."""

_DURATIONS = {
    Phase.STARTING: 40.0,
    Phase.TARGET: TARGET_BYTES / DISK_RATE,
    Phase.DRAFTER: 15.0,
    Phase.KV_CACHE: 10.0,
    Phase.GRAPHS: 60.0,
    Phase.WARMUP: 20.0,
}
"""Seconds at speed 1."""
_CONTEXT = 0.74 * GIB
_GRAPHS = 1.9 * GIB
_LIBRARIES = 0.9e9
_BATCH_SIZES = (16, 12, 8, 4, 2, 1)

FULL_LOAD_SECONDS = sum(_DURATIONS.values())
"""Seconds from start to ready at speed 1."""


@dataclass(frozen=True)
class Step:
    """Text that one process writes at one moment of a start."""

    at: float
    """Seconds since the start."""
    role: str
    """`main`, `TP0` ... or `detokenizer`."""
    text: str
    stamped: bool = True
    """With the logger's time stamp and a newline; else exactly as given."""


class StartPlan:
    """A whole start: phases, lines, memory, bytes read, and its end if it fails."""

    def __init__(
        self, config: EngineConfig, *, speed: float, rng: random.Random, failure: str | None = None
    ) -> None:
        self.config = config
        self.failure: Failure | None = FAILURES[failure] if failure else None
        self.ranks = config.tp
        self._lags = [1.0 - rng.uniform(0.0, 0.03) for _ in range(self.ranks)]
        self._spread = 0.04 / max(20.0, speed)
        """Seconds by which each rank is later than the one before it."""
        self.windows: dict[Phase, tuple[float, float]] = {}
        begin = 0.0
        for phase, seconds in _DURATIONS.items():
            skipped = phase is Phase.DRAFTER and not config.algorithm
            end = begin + (0.0 if skipped else seconds * rng.uniform(0.98, 1.02) / speed)
            self.windows[phase] = (begin, end)
            begin = end
        self.port_opens_at = self.windows[Phase.WARMUP][0]
        self.ready_at = begin
        self.stops_at = self._moment(self.failure) if self.failure else None
        self.weights_per_rank = TARGET_BYTES / self.ranks
        self.drafter_per_rank = DRAFTER_BYTES / self.ranks if config.algorithm else 0.0
        fraction = config.arguments["mem_fraction_static"]
        static = GPU_MEMORY * (fraction if isinstance(fraction, float) else 0.9)
        self.kv_per_rank = max(
            GIB, static - _CONTEXT - self.weights_per_rank - self.drafter_per_rank - 1.5 * GIB
        )
        self.kv_tokens = int(self.kv_per_rank / 70_272)

    def _moment(self, failure: Failure) -> float:
        begin, end = self.windows[failure.phase]
        return begin + (end - begin) * failure.progress

    def seconds(self, phase: Phase) -> float:
        """How long a phase takes."""
        begin, end = self.windows[phase]
        return end - begin

    def fraction(self, phase: Phase, elapsed: float) -> float:
        """How much of a phase is done after `elapsed` seconds, 0 to 1."""
        if self.stops_at is not None:
            elapsed = min(elapsed, self.stops_at)
        begin, end = self.windows[phase]
        return 1.0 if elapsed >= end else max(0.0, (elapsed - begin) / max(end - begin, 1e-9))

    def memory(self, elapsed: float, rank: int) -> int:
        """Bytes of GPU memory that a rank holds after `elapsed` seconds."""
        started = self.fraction(Phase.STARTING, elapsed)
        context = _CONTEXT if started > 0.7 else 0.0
        weights = min(1.0, self.fraction(Phase.TARGET, elapsed) / self._lags[rank])
        total = context + weights * self.weights_per_rank
        total += self.fraction(Phase.DRAFTER, elapsed) * self.drafter_per_rank
        total += self.fraction(Phase.KV_CACHE, elapsed) * self.kv_per_rank
        return int(total + self.fraction(Phase.GRAPHS, elapsed) * _GRAPHS)

    def read_bytes(self, elapsed: float) -> int:
        """Bytes that all ranks together have read from disk after `elapsed` seconds."""
        total = self.fraction(Phase.STARTING, elapsed) * _LIBRARIES
        total += self.fraction(Phase.TARGET, elapsed) * TARGET_BYTES
        return int(total + self.fraction(Phase.DRAFTER, elapsed) * DRAFTER_BYTES)

    def available(self, elapsed: float, rank: int = 0) -> float:
        """GiB of GPU memory that SGLang finds free."""
        return (GPU_MEMORY - self.memory(elapsed, rank)) / GIB

    @property
    def exits(self) -> Exit | None:
        """How a failing start ends; None when it does not end by itself."""
        return self.failure.exits if self.failure else None

    def steps(self) -> list[Step]:
        """Everything that is printed, in order; cut off where the start fails."""
        planned = sorted(
            (step for part in self._parts() for step in part), key=lambda step: step.at
        )
        if self.failure is None or self.stops_at is None:
            return planned
        return [step for step in planned if step.at < self.stops_at] + list(self._failing())

    def _parts(self) -> tuple[Iterator[Step], ...]:
        return (
            self._starting(),
            self._weights(Phase.TARGET, TARGET_SHARDS, "KimiK25ForConditionalGeneration"),
            self._drafter(),
            self._kv_cache(),
            self._graphs(),
            self._http(),
        )

    def _everywhere(self, at: float, text: str) -> Iterator[Step]:
        """The same line from every rank, within a few milliseconds."""
        for rank in range(self.ranks):
            yield Step(at + rank * self._spread, f"TP{rank}", text)

    def _starting(self) -> Iterator[Step]:
        span = self.seconds(Phase.STARTING)
        site = "/opt/llm/venv/lib/python3.11/site-packages/sglang"
        yield Step(
            0.0,
            "main",
            f"{site}/launch_server.py:71: UserWarning: 'python -m sglang.launch_server' is still "
            "supported, but 'sglang serve' is the recommended entrypoint.\n"
            "  Example: sglang serve --model-path <model> [options]\n  warnings.warn(\n",
            stamped=False,
        )
        yield Step(span * 0.3, "main", f"server_args={self.config.arguments!r}")
        yield Step(
            span * 0.32,
            "main",
            "Using default HuggingFace chat template with detected content format: openai",
        )
        yield from self._everywhere(span * 0.65, "Init parallel begin.")
        yield from self._everywhere(span * 0.94, f"Init parallel ends. elapsed={span * 0.29:.2f} s")
        yield from self._everywhere(
            span * 0.95, f"Memory baseline taken. mem usage={_CONTEXT / GIB:.2f} GB"
        )
        yield from self._everywhere(
            span * 0.96,
            "Custom allreduce is disabled because it's not supported on more than two PCIe-only "
            "GPUs. To silence this warning, specify disable_custom_all_reduce=True explicitly.",
        )

    def _weights(self, phase: Phase, shards: int, kind: str) -> Iterator[Step]:
        begin, end = self.windows[phase]
        span = end - begin
        for rank in range(self.ranks):
            available = self.available(begin, rank)
            yield Step(
                begin + rank * self._spread,
                f"TP{rank}",
                f"Load weight begin. avail mem={available:.2f} GB",
            )
        bar_begin, bar_span = begin + 0.01 * span, 0.97 * span
        for done in range(shards + 1):
            elapsed = bar_span * done / shards
            text = shard_bar("Multi-thread loading shards", done, shards, elapsed)
            yield Step(bar_begin + elapsed, "TP0", "\r" + text, stamped=False)
        yield Step(bar_begin + bar_span, "TP0", "\n", stamped=False)
        usage = self.weights_per_rank if phase is Phase.TARGET else self.drafter_per_rank
        quant = "quant=compressed-tensors, " if phase is Phase.TARGET else ""
        for rank in range(self.ranks):
            # A rank that is ahead writes into rank 0's unfinished bar, as the real ones do.
            at = begin + span * max(self._lags[rank], 0.985 if rank == 0 else 0.0) - 1e-4
            yield Step(
                at,
                f"TP{rank}",
                f"Load weight end. elapsed={at - begin:.2f} s, type={kind}, {quant}"
                f"avail mem={self.available(end, rank):.2f} GB, mem usage={usage / GIB:.2f} GB.",
            )

    def _drafter(self) -> Iterator[Step]:
        config = self.config
        if not config.algorithm:
            return
        yield from self._weights(Phase.DRAFTER, DRAFTER_SHARDS, "DFlashDraftModel")
        end = self.windows[Phase.DRAFTER][1]
        backend = config.text("speculative_draft_attention_backend", "flashinfer")
        window = config.window
        yield from self._everywhere(
            end,
            f"Initialized DFLASH draft runner. attention_backend={backend}, "
            f"model=DFlashDraftModel, block_size={config.block_size}, draft_window_size={window}, "
            f"compact_cache={window is not None}",
        )
        yield from self._everywhere(
            end + 1e-4,
            "DFLASH draft runner ready. mask_token=<|MASK|>, mask_token_id=163838, "
            "mask_token_id_override=163838, noise_embed_scale=1.0",
        )
        if config.algorithm == "DDTREE":
            yield from self._everywhere(
                end + 2e-4,
                f"Initialized DDTree worker. block_size={config.block_size}, "
                f"tree_budget={config.budget}, max_tree_nodes={config.budget + 1}",
            )

    def _kv_cache(self) -> Iterator[Step]:
        begin, end = self.windows[Phase.KV_CACHE]
        size = self.kv_per_rank / GIB
        yield from self._everywhere(
            begin + (end - begin) * 0.7,
            f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {self.kv_tokens}, "
            f"KV size: {size:.2f} GB",
        )
        available = self.available(end)
        yield from self._everywhere(
            end - 0.01 * (end - begin), f"Memory pool end. avail mem={available:.2f} GB"
        )

    def _graphs(self) -> Iterator[Step]:
        begin, end = self.windows[Phase.GRAPHS]
        middle = begin + (end - begin) * 0.65
        verify = "target verify" if self.config.algorithm else "target decode"
        width = self.config.budget + 1 if self.config.algorithm else 1
        yield from self._capture(begin, middle, verify, width)
        if self.config.algorithm:
            yield from self._capture(middle, end, "draft decode", self.config.block_size)
        arguments = self.config.arguments
        yield Step(
            end,
            "TP0",
            f"max_total_num_tokens={self.kv_tokens}, "
            f"chunked_prefill_size={arguments['chunked_prefill_size']}, "
            f"max_prefill_tokens={arguments['max_prefill_tokens']}, "
            f"max_running_requests={arguments['max_running_requests']}, "
            f"context_len={self.context_length}, available_gpu_mem={self.available(end):.2f} GB",
        )

    @property
    def context_length(self) -> int:
        """Longest request, in tokens."""
        return self.config.number("context_length", 262_144)

    def _capture(self, begin: float, end: float, name: str, width: int) -> Iterator[Step]:
        total, free = len(_BATCH_SIZES), self.available(begin)
        yield from self._everywhere(
            begin,
            f"Capture {name} CUDA graph begin. backend=full, num_tokens_per_req={width}, "
            f"avail mem={free:.2f} GB",
        )
        for done in range(total + 1):
            elapsed = (end - begin) * 0.95 * done / total
            size = _BATCH_SIZES[min(done, total - 1)]
            text = graph_bar(size, self.available(begin + elapsed), done, total, elapsed)
            yield Step(begin + 0.03 * (end - begin) + elapsed, "TP0", "\r" + text, stamped=False)
        yield Step(begin + 0.981 * (end - begin), "TP0", "\n", stamped=False)
        free_after = self.available(end)
        yield from self._everywhere(
            end - 0.01 * (end - begin),
            f"Capture {name} CUDA graph end. bs={list(reversed(_BATCH_SIZES))}, "
            f"elapsed={end - begin:.2f} s, mem usage={free - free_after:.2f} GB, "
            f"avail mem={free_after:.2f} GB.",
        )

    def _http(self) -> Iterator[Step]:
        at = self.port_opens_at
        draft_share = 0.35 if self.config.algorithm else 0.0
        graphs = self.seconds(Phase.GRAPHS)
        yield Step(
            at - 1e-4,
            "main",
            f"Engine startup timings (s): load_weight={self.seconds(Phase.TARGET):.2f}, "
            f"kv_cache_allocation={self.seconds(Phase.KV_CACHE):.2f}, scheduler_e2e={at:.2f}, "
            f"cuda_graph={{prefill=0.00, decode=0.00, target_verify={graphs * 0.65:.2f}, "
            f"draft_prefill=0.00, draft_decode={graphs * draft_share:.2f}, draft_extend=0.00}}, "
            f"tokenizer_e2e={at:.2f}",
        )
        yield Step(at, "main", "INFO:     Started server process [{pid}]")
        yield Step(at, "main", "INFO:     Waiting for application startup.")
        yield Step(at + 1e-4, "main", "INFO:     Application startup complete.")
        address = f"http://{self.config.bind_host}:{self.config.port}"
        yield Step(
            at + 2e-4, "main", f"INFO:     Uvicorn running on {address} (Press CTRL+C to quit)"
        )
        warm = self.seconds(Phase.WARMUP)
        access = f'INFO:     {self.config.bind_host}:40112 - "{{call}} HTTP/1.1" 200 OK'
        yield Step(at + warm * 0.2, "main", access.replace("{call}", "GET /model_info"))
        yield Step(
            at + warm * 0.4,
            "TP0",
            "Prefill batch, #new-seq: 1, #new-token: 13, #cached-token: 0, token usage: 0.00, "
            "#running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, "
            f"input throughput (token/s): {13 / max(warm * 0.4, 0.01):.2f}",
        )
        yield Step(self.ready_at - 2e-4, "main", access.replace("{call}", "POST /generate"))
        yield Step(self.ready_at - 1e-4, "main", access.replace("{call}", "POST /freeze_gc"))
        yield Step(self.ready_at, "main", "The server is fired up and ready to roll!")

    def _failing(self) -> Iterator[Step]:
        failure, at = self.failure, self.stops_at or 0.0
        if failure is None or (not failure.message and failure.phase is not Phase.WARMUP):
            return
        if failure.phase is Phase.WARMUP:
            address = f"('{self.config.bind_host}', {self.config.port})"
            message = f"error while attempting to bind on address {address}: address already in use"
            yield Step(at, "main", f"ERROR:    [Errno 98] {message}")
            yield Step(at, "main", "INFO:     Waiting for application shutdown.")
            return
        if not failure.in_scheduler:
            yield Step(at, "main", failure.traceback() + "\n", stamped=False)
            return
        rank = f"TP{min(3, self.ranks - 1)}"
        yield Step(at, rank, f"Scheduler hit an exception: {failure.traceback()}\n")
        quit_line = "Received sigquit from a child process. It usually means the child failed."
        yield Step(at + 0.05, "main", quit_line)
        killing = "kill_process_tree called: parent_pid={pid}, include_parent=True, pid={pid}"
        yield Step(at + 0.051, "main", killing)
