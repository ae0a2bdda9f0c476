"""Failures that the simulated engine can be asked for: where they strike, what they print.

The last lines of the tracebacks are SGLang's, FlashInfer's and torch's own words; the frames above
are abridged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ddtui.core.events import Phase

_SITE = "/opt/llm/venv/lib/python3.11/site-packages"


class Exit(NamedTuple):
    """How a process ended, in systemd's words."""

    code: str
    """`exited`, `killed` or `dumped`."""
    status: int
    """Exit status, or the signal's number."""


_KILLED = Exit("killed", 9)


@dataclass(frozen=True)
class Failure:
    """One way to fail during a start."""

    description: str
    phase: Phase
    progress: float
    """How far into the phase it strikes, 0 to 1."""
    message: str = ""
    """The last line of the traceback; empty when nothing is printed."""
    frames: tuple[tuple[str, int, str], ...] = ()
    """File under site-packages, line and function, outermost first."""
    in_scheduler: bool = True
    """Whether it happens in a scheduler process, so that the launcher kills itself."""
    exits: Exit | None = _KILLED
    """How the main process ends; None when it does not end."""
    trailer: str = ""
    """Lines printed after the message."""

    def traceback(self) -> str:
        """The traceback as printed, without a final newline."""
        lines = ["Traceback (most recent call last):"]
        for file, line, function in self.frames:
            lines.append(f'  File "{_SITE}/{file}", line {line}, in {function}')
        lines.append(self.message)
        if self.trailer:
            lines.append(self.trailer)
        return "\n".join(lines)


_SCHEDULER = ("sglang/srt/managers/scheduler.py", 6340, "run_scheduler_process")
_RUNNER = ("sglang/srt/model_executor/model_runner.py", 612, "initialize")
_CAPTURE = ("sglang/srt/model_executor/runner/decode_cuda_graph_runner.py", 1338, "capture")

FAILURES: dict[str, Failure] = {
    "sm120": Failure(
        "an attention kernel that RTX PRO Blackwell (SM120) does not have",
        Phase.GRAPHS,
        0.1,
        "RuntimeError: Error in function 'TllmGenFmhaRunner' at "
        "/workspace/include/flashinfer/trtllm/fmha/fmhaRunner.cuh:30: Unsupported architecture",
        (
            _SCHEDULER,
            _RUNNER,
            _CAPTURE,
            ("sglang/srt/layers/attention/trtllm_mla_backend.py", 871, "forward_extend"),
            ("flashinfer/mla.py", 702, "trtllm_batch_decode_with_kv_cache_mla"),
        ),
    ),
    "oom": Failure(
        "GPU memory is full before the weights are loaded",
        Phase.TARGET,
        0.7,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 3 has a "
        "total capacity of 95.59 GiB of which 301.44 MiB is free. Process 2951 has 50.12 GiB "
        "memory in use. Including non-PyTorch memory, this process has 45.17 GiB memory in use.",
        (_SCHEDULER, _RUNNER, ("sglang/srt/model_loader/loader.py", 655, "load_model")),
    ),
    "kv-memory": Failure(
        "nothing is left for the KV cache inside the static fraction",
        Phase.KV_CACHE,
        0.1,
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        "Current value: 0.68",
        (_SCHEDULER, _RUNNER, ("sglang/srt/mem_cache/pool_configurator.py", 96, "resolve")),
    ),
    "graph-oom": Failure(
        "no room for the CUDA graphs outside the static fraction",
        Phase.GRAPHS,
        0.6,
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.21 GiB.",
        (_SCHEDULER, _RUNNER, _CAPTURE),
        trailer="Possible solutions:\n"
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
        "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)",
    ),
    "nccl-shm": Failure(
        "no room in the shared memory that NCCL uses",
        Phase.STARTING,
        0.8,
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system "
        "error (run with NCCL_DEBUG=INFO for details). Last error: Error while creating shared "
        "memory segment /dev/shm/nccl-Xq3lVd (size 9637888)",
        (_SCHEDULER, ("sglang/srt/distributed/parallel_state.py", 1840, "init_world_group")),
    ),
    "ddtree-unknown": Failure(
        "this SGLang does not know DDTree",
        Phase.STARTING,
        0.2,
        "ValueError: Unknown speculative algorithm name: DDTREE",
        (
            ("sglang/srt/server_args.py", 277, "resolve_once"),
            ("sglang/srt/arg_groups/speculative_hook.py", 242, "handle_speculative_decoding"),
            ("sglang/srt/speculative/spec_info.py", 65, "from_string"),
        ),
        in_scheduler=False,
        exits=Exit("exited", 1),
    ),
    "missing-model": Failure(
        "the model's folder is not there",
        Phase.STARTING,
        0.3,
        "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
        "'/models/Kimi-K2.6'. Use `repo_type` argument if needed.",
        (
            ("sglang/srt/utils/hf_transformers/config.py", 387, "get_config"),
            ("transformers/utils/hub.py", 595, "cached_files"),
        ),
        in_scheduler=False,
        exits=Exit("exited", 1),
    ),
    "port-in-use": Failure(
        "the HTTP port is taken, which is only noticed after the load",
        Phase.WARMUP,
        0.0,
        in_scheduler=False,
        exits=None,
    ),
    "hang": Failure(
        "the load stops half-way through the weights and says nothing",
        Phase.TARGET,
        0.5,
        exits=None,
    ),
}
"""Failures by name."""
