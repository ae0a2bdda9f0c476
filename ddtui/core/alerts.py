"""What the operator should see without looking for it."""

from __future__ import annotations

from collections.abc import Iterator

from ddtui.core.gpus import throttle_words
from ddtui.core.load_stall import stall_words
from ddtui.core.samples import Gpu, LinkState
from ddtui.core.snapshot import Alert, ReadinessState, Severity, Snapshot

SKEW_LIMIT = 2.0
"""Seconds by which the host's clock may differ before it is said."""
HOT = 90.0
KV_FULL = 0.97
FOREIGN_MEMORY = 512 * 1024**2

_SIMULATED = ("SGLANG_SIMULATE_ACC_LEN", "SGLANG_SIMULATE_ACC_METHOD")

_Found = tuple[str, Severity, str]


class AlertBook:
    """Remembers since when each alert holds."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def update(self, snapshot: Snapshot) -> tuple[Alert, ...]:
        """Alerts of a snapshot, the gravest first, then the oldest."""
        found = {key: (severity, text) for key, severity, text in _find(snapshot)}
        self._since = {key: self._since.get(key, snapshot.at) for key in found}
        alerts = [
            Alert(key, severity, text, self._since[key]) for key, (severity, text) in found.items()
        ]
        grave = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
        return tuple(sorted(alerts, key=lambda alert: (grave[alert.severity], alert.since)))


def _find(snapshot: Snapshot) -> Iterator[_Found]:
    if snapshot.link.state is LinkState.REFUSED:
        yield "link", Severity.CRITICAL, snapshot.link.detail
    yield from _readiness(snapshot)
    for view in snapshot.gpus:
        yield from _gpu(view.gpu)
    yield from _foreign_processes(snapshot)
    yield from _engine(snapshot)
    yield from _unit(snapshot)
    skew = snapshot.system.clock_skew if snapshot.system else None
    if skew is not None and abs(skew) > SKEW_LIMIT:
        yield "skew", Severity.WARNING, f"the host's clock differs by {skew:+.1f} s"


def _readiness(snapshot: Snapshot) -> Iterator[_Found]:
    readiness, load = snapshot.readiness, snapshot.load
    if readiness.state in {
        ReadinessState.FAILED,
        ReadinessState.CRASH_LOOP,
        ReadinessState.DEGRADED,
    }:
        remedy = f". {snapshot.diagnosis.remedy}" if snapshot.diagnosis is not None else ""
        yield "readiness", Severity.CRITICAL, f"engine {readiness.summary}{remedy}"
    up = readiness.state is ReadinessState.READY  # a load whose log may not be read never ends
    if load is not None and load.stalled_for is not None and not load.finished and not up:
        yield "stall", Severity.CRITICAL, stall_words(load, snapshot)
    if load is not None and load.straggler and not load.finished:
        yield "straggler", Severity.WARNING, f"{load.straggler} is clearly behind the other ranks"


def _gpu(gpu: Gpu) -> Iterator[_Found]:
    name = f"GPU {gpu.index}"
    if gpu.lost:
        yield f"lost-{gpu.index}", Severity.CRITICAL, f"{name} lost: {gpu.lost}"
    if gpu.ecc_uncorrected:
        text = f"{name}: {gpu.ecc_uncorrected} uncorrected ECC errors"
        yield f"ecc-{gpu.index}", Severity.CRITICAL, text
    slow = [word for word in throttle_words(gpu.throttle_reasons) if word.startswith("hw")]
    if slow:
        yield f"slow-{gpu.index}", Severity.WARNING, f"{name} slowed down: {', '.join(slow)}"
    if gpu.temperature is not None and gpu.temperature >= HOT:
        yield f"hot-{gpu.index}", Severity.WARNING, f"{name} at {gpu.temperature:.0f} °C"


def _foreign_processes(snapshot: Snapshot) -> Iterator[_Found]:
    foreign = [
        process
        for process in snapshot.processes
        if process.in_unit is False and (process.memory or 0) >= FOREIGN_MEMORY
    ]
    if foreign:
        pids = sorted({process.pid for process in foreign})
        total = sum(process.memory or 0 for process in foreign) / 1024**3
        named = ", ".join(str(pid) for pid in pids[:4]) + (" ..." if len(pids) > 4 else "")
        text = f"{total:.0f} GiB of GPU memory held outside the unit (pid {named})"
        yield "foreign", Severity.WARNING, text


def _engine(snapshot: Snapshot) -> Iterator[_Found]:
    engine = snapshot.engine
    if engine.graph_in_use is False and not engine.idle and engine.throughput is not None:
        yield (
            "graph",
            Severity.WARNING,
            "decode runs without CUDA graphs (batch above the captured sizes?)",
        )
    kv = engine.kv_usage
    if kv is not None and kv.value >= KV_FULL and not kv.stale(snapshot.at):
        yield "kv", Severity.WARNING, f"KV cache {kv.value:.0%} full"


def _unit(snapshot: Snapshot) -> Iterator[_Found]:
    unit = snapshot.unit
    if unit is None:
        return
    for pair in unit.environment:
        if pair.split("=", 1)[0] in _SIMULATED:
            text = f"acceptance is simulated by the engine ({pair.split('=', 1)[0]} is set)"
            yield "simulated-acceptance", Severity.WARNING, text
            break
    if unit.older and unit.is_up:
        text = f"the process runs with an older configuration ({unit.older[0]}): restart due"
        yield "older", Severity.WARNING, text
    if unit.needs_daemon_reload:
        yield "reload", Severity.INFO, "unit files changed on disk: systemctl daemon-reload is due"
