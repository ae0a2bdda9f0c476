"""Rules about what the host has: graphs, GPU memory, ports, disks, and what falsifies figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddtui.core.launch import Finding
from ddtui.core.samples import ListenerOwner
from ddtui.engines.sglang import flags
from ddtui.engines.sglang.check_context import GIB, Say, View, fraction, rule

GROWTH = 2.0
"""Times more verified tokens a pass, from which memory and speed are another matter."""
LITTLE_DISK = 2 * GIB
NO_DISK = GIB // 16
_FULL = 0.98
"""Share of a GPU's memory beyond which an estimate does not fit."""
_BUCKETS = "speculative-ddtree-cuda-graph-buckets"


def graph_widths(view: View) -> tuple[int, ...]:
    """Verify widths that graphs are captured for, where a flag names them."""
    return tuple(int(word) for word in re.findall(r"\d{1,9}", view.text(_BUCKETS)))


@rule("width-beyond-graphs", "a pass wider than every captured graph runs without one, slowly")
def width_beyond_graphs(view: View, say: Say) -> Iterator[Finding]:
    """A verify width, or a batch, that no captured CUDA graph covers."""
    budget = view.budget
    if view.algorithm and any(map(view.on, ("disable-cuda-graph", "disable-decode-cuda-graph"))):
        yield say.warning("CUDA graphs are off: each verification is launched kernel by kernel")
        return
    buckets = graph_widths(view)
    if buckets and budget is not None and budget + 1 > max(buckets):
        yield say.warning(
            f"verify width {budget + 1} (budget {budget} and the root) is beyond the largest graph"
            f" of {max(buckets)}",
            f"add {budget + 1} to --{_BUCKETS}",
        )
    sizes = [int(word) for word in view.text("cuda-graph-bs-decode").split() if word.isdecimal()]
    largest = view.number("cuda-graph-max-bs-decode", "cuda-graph-max-bs") or max(sizes, default=0)
    running = view.max_running(view.values)
    if largest and running is not None and running > largest:
        yield say.warning(
            f"{running} requests may run at once, and graphs are captured up to {largest}",
            f"set graph_max_batch to {running}, or max_running to {largest}",
        )
    branches = view.verifies_tree and budget and view.block and budget > view.block - 1
    if branches and view.dialect.id == "ddtree":
        yield say.note(
            "piecewise CUDA graphs are off with a budget beyond block size - 1",
            reason="sgl-project/sglang pull request 27509 turns them off for real trees",
        )


@rule("verify-growth", "KV cache, graphs and sampling buffers grow with budget + 1 and requests")
def verify_growth(view: View, say: Say) -> Iterator[Finding]:
    """Much more to verify a pass than before."""
    before, after = view.verified_at_once(view.before), view.verified_at_once(view.values)
    if before and after and after > GROWTH * before:
        yield say.warning(
            f"a full pass verifies {after} tokens instead of {before}, {after / before:.1f} times"
            " as many",
            "lower max_running or the budget if memory does not suffice",
        )


@rule("memory-estimate", "an estimate from the last load: weights, and what was outside the pool")
def memory_estimate(view: View, say: Say) -> Iterator[Finding]:
    """GPU memory, by what the last load took."""
    load, share = view.context.last_load, view.static_fraction
    totals = [gpu.memory_total for gpu in view.context.gpus if gpu.memory_total]
    if load is None or not totals or share is None or not _comparable(view):
        return
    total, pool = min(totals), share * min(totals)
    weights = max(load.memory_drafter or load.memory_target, default=0)
    if weights > pool:
        yield say.warning(
            f"estimate: weights took {_gib(weights)} a GPU at the last load, and mem_fraction"
            f" {share:g} leaves {_gib(pool)} for them and the KV cache",
            "raise mem_fraction",
            "the server would stop: Not enough memory. Please try to increase"
            " --mem-fraction-static",
        )
        return
    earlier = fraction(load.flags.get("mem-fraction-static"))
    ready = max(load.memory_ready, default=0)
    if earlier is None or not ready:
        return
    before, after = view.verified_at_once(view.before), view.verified_at_once(view.values)
    growth = max(1.0, after / before) if before and after else 1.0
    outside = max(0.0, ready - earlier * total)
    needed = pool + outside * growth
    if needed > _FULL * total:
        yield say.warning(
            f"estimate: {_gib(needed)} of {_gib(total)} a GPU (the pool {_gib(pool)}, and"
            f" {_gib(outside * growth)} for graphs and buffers, after {_gib(outside)} at the last"
            " load)",
            "lower mem_fraction, max_running or the budget",
            "the server would stop while it captures graphs: Capture cuda graph failed",
        )


def _comparable(view: View) -> bool:
    """Whether the last load says anything of this one: same models on as many GPUs."""
    load = view.context.last_load
    models = flags.models(view.line.argv)
    ranks = view.number("tp-size", "tensor-parallel-size", "tp") or 1
    return load is not None and (load.model, load.drafter, load.tp) == (
        models.get("target", ""),
        models.get("drafter"),
        ranks,
    )


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


@rule("port-range", "the server binds its port only after minutes of loading, and fails there")
def port_range(view: View, say: Say) -> Iterator[Finding]:
    """A port that there is not."""
    port = view.number("port")
    if port is not None and not 0 < port < 65536:
        yield say.error(f"there is no port {port:g}", "choose one from 1 to 65535")


@rule("port-held", "the server binds its port only after minutes of loading, and fails there")
def port_held(view: View, say: Say) -> Iterator[Finding]:
    """A port that something else listens on."""
    listener, port = view.context.listener, flags.port(view.line.argv)
    if listener is None or listener.port != port or listener.owner is not ListenerOwner.FOREIGN:
        return
    who = listener.detail or (f"pid {listener.pid}" if listener.pid else "another process")
    yield say.error(
        f"port {port} is held outside the unit: {who}",
        "end it, or choose another --port",
    )


@rule("gpu-memory-held", "the server finds less memory than it expects, or unbalanced GPUs")
def gpu_memory_held(view: View, say: Say) -> Iterator[Finding]:
    """GPU memory of processes outside the unit, named."""
    names = {gpu.uuid: gpu.index for gpu in view.context.gpus if gpu.uuid}
    for process in view.context.processes or ():
        if process.in_unit is not False or process.memory == 0:
            continue
        held = "memory" if process.memory is None else _gib(process.memory)
        where = f"GPU {names[process.gpu_uuid]}" if process.gpu_uuid in names else "a GPU"
        yield say.warning(
            f"pid {process.pid} ({process.name or 'unknown'}) outside the unit holds {held} of"
            f" {where}",
            "end it if the engine needs that memory",
        )


@rule("disk-room", "logs, compiled kernels and downloads need room: No space left on device")
def disk_room(view: View, say: Say) -> Iterator[Finding]:
    """Disks that are full, or nearly."""
    for folder, free in view.context.disk_free.items():
        text = f"{folder} has {free / 2**20:.0f} MiB free"
        if free < NO_DISK:
            yield say.error(text, "make room first")
        elif free < LITTLE_DISK:
            yield say.warning(text)


@rule("simulated-acceptance", "the server then makes acceptance up: its figures mean nothing")
def simulated_acceptance(view: View, say: Say) -> Iterator[Finding]:
    """SGLang's own test switches in the unit's environment."""
    for name, value in view.environment.items():
        if name.startswith("SGLANG_SIMULATE_ACC") and value not in ("", "0", "-1"):
            yield say.warning(f"{name}={value} is set in the unit", f"take {name} out of the unit")


@rule("trtllm-on-sm120", "its kernels are for SM100 only: Unsupported architecture")
def trtllm_on_sm120(view: View, say: Say) -> Iterator[Finding]:
    """A backend that workstation Blackwell does not have."""
    boards = [gpu.name for gpu in view.context.gpus if re.search(r"RTX (?:PRO|50\d\d)", gpu.name)]
    for name in ("attention-backend", "speculative-draft-attention-backend"):
        if boards and view.text(name).startswith("trtllm"):
            yield say.warning(
                f"--{name} {view.text(name)} does not run on {boards[0]}",
                "use triton or flashinfer",
            )
