"""Snapshots of a host in every state that the screens must show, made with a frozen clock.

The host is an eight-GPU machine that serves a 548 GB model with a block-diffusion drafter; figures
are plausible, not measured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from msgspec.structs import replace

from ddtui.core.engine import Engine
from ddtui.core.events import Phase
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import (
    Collector,
    Gpu,
    GpuProcess,
    JournalLine,
    LinkSample,
    LinkState,
    SourceSample,
    SourceStatus,
    SystemSample,
    UnitStatus,
)
from ddtui.core.snapshot import (
    Alert,
    EngineView,
    Evidence,
    Figure,
    GpuView,
    History,
    LoadView,
    PhaseStatus,
    PhaseView,
    Readiness,
    ReadinessState,
    Severity,
    Snapshot,
    SystemView,
    Verdict,
)
from ddtui.engines.sglang import SGLANG

NOW = 1_790_000_000.0
STRAGGLER = "TP3 is clearly behind the other ranks"
GIB = 1 << 30
INVOCATION = "3f2a9c1e7b6d4f508a1c2d3e4f506172"


def past(now: float, seconds: int, value: Callable[[float], float], *, every: int = 1) -> History:
    """A history of `seconds`, one value each `every` seconds."""
    times = [float(int(now)) - back for back in range(seconds - 1, -1, -every)]
    return History(tuple(times), tuple(value(each) for each in times))


def wave(seed: int, low: float, high: float, period: float = 40.0) -> Callable[[float], float]:
    """A figure that wanders between two values, the same for the same seed."""

    def value(at: float) -> float:
        noise = random.Random(int(at) * 31 + seed).uniform(-0.5, 0.5)
        swing = math.sin(at / period + seed) * 0.35 + math.sin(at / 7.3 + 2 * seed) * 0.1
        return low + (high - low) * min(1.0, max(0.0, 0.55 + swing + noise * 0.25))

    return value


def gpu(index: int, now: float = NOW, *, busy: float = 95.0, used: float = 88.1) -> GpuView:
    utilization = wave(index, max(0.0, busy - 9), min(100.0, busy + 5 * (busy > 0)))
    reading = Gpu(
        index=index,
        uuid=f"GPU-0000000{index:x}-0000-4000-8000-00000000000{index % 10}",
        name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        memory_used=int((used + 0.31 * (index % 3)) * GIB),
        memory_total=int(95.59 * GIB),
        utilization=round(utilization(now)),
        power=round(wave(index + 50, 380, 470)(now)),
        power_limit=600.0,
        temperature=round(wave(index + 90, 61, 74, 400.0)(now)),
        sm_clock=2_287.0 - 15 * (index % 4),
        memory_clock=12_481.0,
        throttle_reasons=0x4 if index == 5 else 0,
        ecc_uncorrected=0,
        mig_enabled=False,
    )
    return GpuView(
        gpu=reading,
        at=now - 0.4,
        memory_history=past(now, 600, lambda _at: used * GIB),
        utilization_history=past(now, 600, utilization),
        unit_memory=int(used * GIB),
    )


LINES = (
    "[2026-09-21 14:13:12 TP0] Prefill batch, #new-seq: 2, #new-token: 8192, #cached-token: 18176, "
    "token usage: 0.31, #running-req: 10, #queue-req: 3, input throughput (token/s): 9120.11",
    "[2026-09-21 14:13:14 TP0] Decode batch, #running-req: 12, #token: 118533, token usage: 0.34, "
    "accept len: 4.21, accept rate: 0.46, cuda graph: True, "
    "gen throughput (token/s): 1241.39, #queue-req: 3",
    '[2026-09-21 14:13:14] INFO:     127.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "[2026-09-21 14:13:16 TP0] Decode batch, #running-req: 12, #token: 121869, token usage: 0.35, "
    "accept len: 4.20, accept rate: 0.46, cuda graph: True, "
    "gen throughput (token/s): 1239.17, #queue-req: 3",
    "[2026-09-21 14:13:18 TP0] Decode batch, #running-req: 11, #token: 114437, token usage: 0.33, "
    "accept len: 4.27, accept rate: 0.47, cuda graph: True, "
    "gen throughput (token/s): 1254.08, #queue-req: 2",
)


def log_of(lines: tuple[str, ...], now: float = NOW) -> LogBuffer:
    buffer = LogBuffer()
    buffer.extend(
        JournalLine(
            stamp=now - 2.0 * (len(lines) - index), text=text, invocation=INVOCATION, pid=4242
        )
        for index, text in enumerate(lines)
    )
    return buffer


def _engine(now: float) -> EngineView:
    speed, length = wave(7, 1_100, 1_330), wave(11, 3.9, 4.6)
    quiet = (now - 260, now - 215)

    def throughput(at: float) -> float:
        return 0.0 if quiet[0] < at < quiet[1] else speed(at)

    return EngineView(
        throughput=Figure(speed(now), "/metrics counter", now - 0.6, 5.0),
        prefill_throughput=Figure(9_120.0, "/metrics counter", now - 0.6, 5.0),
        acceptance_length=Figure(length(now), "decode line", now - 1.8, 8.0),
        running=Figure(12, "/v1/loads", now - 0.6, 5.0),
        queued=Figure(3, "/v1/loads", now - 0.6, 5.0),
        kv_usage=Figure(0.34, "/v1/loads", now - 0.6, 5.0),
        graph_in_use=True,
        throughput_history=past(now, 600, throughput),
        acceptance_history=past(now, 600, length, every=2),
        version="0.5.23",
        model="/models/Kimi-K2.6",
        knobs={
            "algorithm": "DFLASH",
            "block size": "8",
            "budget": "60",
            "top-k": "8",
            "window": "4096",
            "tp": "8",
        },
        knobs_source="/server_info",
    )


def _ready(now: float) -> Readiness:
    detail = {
        "unit": "active (running), main pid 4242",
        "log": "says it is ready, under this invocation",
        "port owner": "port 30000 is the unit's, pid 4242",
        "health": "/health 200",
        "configuration": "reports the unit's own command line",
    }
    evidence = tuple(
        Evidence(name, Verdict.PROVED, words, now - 12) for name, words in detail.items()
    )
    return Readiness(ReadinessState.READY, now - 7_980, "ready (proved)", evidence)


def _loaded(now: float) -> LoadView:
    began = now - 8_352
    spans = (21.0, 251.0, 14.0, 9.0, 62.0, 15.0)
    phases, at = [], began
    for phase, seconds in zip(Phase, spans, strict=False):
        phases.append(PhaseView(phase, PhaseStatus.DONE, at, at + seconds, 1.0))
        at += seconds
    return LoadView(
        INVOCATION, began, tuple(phases), Phase.READY, finished=True, ended=at, fraction=1.0
    )


def live(now: float = NOW) -> Snapshot:
    """Serving, everything well."""
    link = LinkSample(now - 9_000, "link", LinkState.LIVE, "ct200 as ops, OpenSSH 9.6")
    return Snapshot(
        at=now,
        host="ct200",
        simulated=False,
        link=link,
        last_heard=now - 0.4,
        sources={
            each: SourceSample(now - 9_000, str(each), each, SourceStatus.LIVE)
            for each in Collector
        },
        gpus=tuple(gpu(index, now) for index in range(8)),
        gpu_source="nvidia-smi",
        gpu_at=now - 0.4,
        gpu_interval=1.0,
        processes=(),
        system=SystemView(
            SystemSample(
                now - 0.7,
                "/proc",
                host_at=now - 0.5,
                cpu=12.4,
                cores=128,
                load_1m=14.2,
                memory_total=1_511 * GIB,
                memory_available=899 * GIB,
                page_cache=547 * GIB,
                disk_read=1.2e6,
                disk_write=4.5e5,
                model_disk_read=0.0,
                model_disk="nvme1n1",
                network_in=2.1e6,
                network_out=8.8e6,
                uptime=8.1e5,
            ),
            clock_skew=0.2,
        ),
        unit=UnitStatus(
            name="sglang-kimi.service",
            load_state="loaded",
            active_state="active",
            sub_state="running",
            result="success",
            main_pid=4242,
            invocation=INVOCATION,
            started_at=now - 8_352,
            restarts=0,
            memory=612 * GIB,
            tasks=1_204,
            drop_ins=("/etc/systemd/system/sglang-kimi.service.d/50-ddtui.conf",),
        ),
        unit_at=now - 3,
        listener=None,
        checkpoints=(),
        engine=_engine(now),
        load=_loaded(now),
        readiness=_ready(now),
        alerts=(),
        log=log_of(LINES * 6, now),
    )


def loading(now: float = NOW) -> Snapshot:
    """In the middle of the target's weights, with a straggler."""
    began = now - 181
    phases = (
        PhaseView(Phase.STARTING, PhaseStatus.DONE, began, began + 21, 1.0, expected_seconds=20),
        PhaseView(
            Phase.TARGET,
            PhaseStatus.RUNNING,
            began + 21,
            fraction=0.63,
            source="GPU memory",
            detail="345 of 548 GB",
            expected_seconds=254,
        ),
        PhaseView(Phase.DRAFTER, PhaseStatus.PENDING, expected_seconds=14),
        PhaseView(Phase.KV_CACHE, PhaseStatus.PENDING, expected_seconds=9),
        PhaseView(Phase.GRAPHS, PhaseStatus.PENDING, expected_seconds=63),
        PhaseView(Phase.WARMUP, PhaseStatus.PENDING, expected_seconds=15),
        PhaseView(Phase.READY, PhaseStatus.PENDING),
    )
    load = LoadView(
        INVOCATION,
        began,
        phases,
        Phase.TARGET,
        fraction=0.48,
        eta_seconds=194,
        eta_source="3 loads of this model, present rate",
        straggler="TP3",
    )
    snap = live(now)
    evidence = (
        Evidence("unit", Verdict.PROVED, "active (running), main pid 5150"),
        Evidence("log", Verdict.MISSING, "has not said that it is ready"),
        Evidence("port owner", Verdict.MISSING, "port 30000 is closed"),
        Evidence("health", Verdict.MISSING, "no answer yet"),
        Evidence("configuration", Verdict.MISSING, "not reported by the server yet"),
    )
    bar = "Loading safetensors checkpoint shards:  62% Completed | 40/64 [02:31<01:32,  3.9s/it]"
    log = log_of(("[2026-09-21 14:10:41 TP3] Load weight begin. avail mem=94.71 GB",), now)
    log.extend(
        JournalLine(stamp=now - 60 + each, text=bar, invocation=INVOCATION, bar=True)
        for each in range(50)
    )
    unit = snap.unit
    assert unit is not None
    assert snap.system is not None
    used = [55.3, 54.9, 55.8, 34.4, 55.2, 55.0, 54.7, 55.5]
    return replace(
        snap,
        gpus=tuple(gpu(each, now, busy=8.0, used=used[each]) for each in range(8)),
        unit=replace(unit, main_pid=5150, started_at=began, memory=351 * GIB),
        system=SystemView(replace(snap.system.sample, model_disk_read=2.31e9), clock_skew=0.2),
        engine=EngineView(knobs=snap.engine.knobs, knobs_source="log", model="/models/Kimi-K2.6"),
        load=load,
        readiness=Readiness(ReadinessState.LOADING_TARGET, now - 160, "loading target", evidence),
        alerts=(Alert("straggler", Severity.WARNING, STRAGGLER, now - 20),),
        log=log,
    )


def failed(now: float = NOW) -> Snapshot:
    """Died while capturing graphs."""
    base = loading(now)
    assert base.load is not None
    assert base.unit is not None
    words = (
        "torch.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 2.50 GiB. GPU 3 has 1.1 GiB free"
    )
    done = [
        replace(each, status=PhaseStatus.DONE, began=now - 300, ended=now - 200, fraction=1.0)
        for each in base.load.phases[:4]
    ]
    phases = (
        *done,
        replace(
            base.load.phases[4],
            status=PhaseStatus.FAILED,
            began=now - 70,
            ended=now - 44,
            fraction=0.4,
            detail="14 of 35 batch sizes",
        ),
        *base.load.phases[5:],
    )
    load = LoadView(
        INVOCATION, now - 391, phases, Phase.GRAPHS, failed=True, finished=True, ended=now - 44
    )
    summary = f"failed (exit-code, exited, status 1): {words}"
    unit = replace(
        base.unit,
        active_state="failed",
        sub_state="failed",
        result="exit-code",
        exit_code="exited",
        exit_status=1,
        main_pid=0,
        restarts=0,
        memory=None,
        tasks=None,
    )
    evidence = (Evidence("unit", Verdict.AGAINST, "failed (failed)"),)
    log = log_of(
        ("Traceback (most recent call last):", '  File "/opt/x.py", line 1', words), now - 40
    )
    return replace(
        base,
        unit=unit,
        gpus=tuple(gpu(each, now, busy=0.0, used=0.6) for each in range(8)),
        load=load,
        readiness=Readiness(ReadinessState.FAILED, now - 44, summary, evidence),
        alerts=(Alert("readiness", Severity.CRITICAL, f"engine {summary}", now - 44),),
        log=log,
    )


def stale(now: float = NOW) -> Snapshot:
    """The link holds, but GPUs and the engine have said nothing for a while."""
    snap = live(now)
    old = live(now - 34).engine
    return replace(
        snap,
        gpu_at=now - 34,
        engine=replace(old, running=snap.engine.running, queued=snap.engine.queued),
    )


def disconnected(now: float = NOW) -> Snapshot:
    """The link is down; everything known is 95 s old."""
    return replace(
        live(now - 95),
        at=now,
        link=LinkSample(
            now - 83,
            "link",
            LinkState.RETRYING,
            "no answer to keepalives for 15 s",
            "is the host up? ssh ct200 shows more",
            attempt=3,
            retry_at=now + 11,
        ),
    )


def refused(now: float = NOW) -> Snapshot:
    """Never connected: the host's key is not known."""
    snap = empty(now)
    return replace(
        snap,
        link=LinkSample(
            now - 5, "link", LinkState.REFUSED, "the host's key is not known", "accept it with K"
        ),
    )


def empty(now: float = NOW) -> Snapshot:
    """Just started: nothing is known."""
    snap = live(now)
    return replace(
        snap,
        link=LinkSample(now, "link", LinkState.CONNECTING),
        last_heard=None,
        sources={},
        gpus=(),
        gpu_source="",
        gpu_at=None,
        system=None,
        unit=None,
        unit_at=None,
        engine=EngineView(),
        load=None,
        readiness=Readiness(ReadinessState.UNKNOWN),
        log=LogBuffer(),
    )


def idle(now: float = NOW) -> Snapshot:
    """Ready, and nobody asks."""
    snap = live(now)
    engine = replace(
        snap.engine,
        throughput=Figure(0.0, "/metrics counter", now - 0.6, 5.0),
        prefill_throughput=Figure(0.0, "/metrics counter", now - 0.6, 5.0),
        acceptance_length=Figure(4.31, "decode line", now - 400, 8.0),
        running=Figure(0, "/v1/loads", now - 0.6, 5.0),
        queued=Figure(0, "/v1/loads", now - 0.6, 5.0),
        kv_usage=Figure(0.0, "/v1/loads", now - 0.6, 5.0),
        throughput_history=past(now, 600, lambda at: 1_200.0 if at < now - 380 else 0.0),
        acceptance_history=past(now - 390, 210, wave(11, 3.9, 4.6)),
        idle=True,
    )
    return replace(
        snap,
        engine=engine,
        gpus=tuple(gpu(each, now, busy=0.0) for each in range(8)),
        simulated=True,
    )


def no_nvidia_smi(now: float = NOW) -> Snapshot:
    """A host without the driver's tool."""
    snap = live(now)
    sources = {
        **snap.sources,
        Collector.GPU: SourceSample(
            now - 60,
            "gpu",
            Collector.GPU,
            SourceStatus.ABSENT,
            "there is no nvidia-smi on this host",
            "install the NVIDIA driver, or set nvidia_smi to its path in the host's section",
        ),
    }
    return replace(snap, gpus=(), gpu_source="", gpu_at=None, sources=sources)


def many_gpus(now: float = NOW, count: int = 16) -> Snapshot:
    """Sixteen GPUs (or more)."""
    return replace(live(now), gpus=tuple(gpu(index, now) for index in range(count)))


def lost_gpu(now: float = NOW) -> Snapshot:
    """One GPU lost, one with errors, one silent; a stranger holds memory; the clock is off."""
    snap = live(now)
    assert snap.system is not None
    views = list(snap.gpus)
    lost = replace(views[2].gpu, lost="GPU is lost. Reboot the system to recover this GPU")
    views[2] = replace(views[2], gpu=lost)
    views[4] = replace(
        views[4],
        gpu=replace(views[4].gpu, ecc_uncorrected=3, throttle_reasons=0x48, temperature=93.0),
    )
    views[6] = replace(
        views[6], gpu=Gpu(index=6, uuid=views[6].gpu.uuid, name=views[6].gpu.name, mig_enabled=True)
    )
    processes = (
        GpuProcess(4242, views[0].gpu.uuid, "python", 88 * GIB, in_unit=True),
        GpuProcess(9191, views[7].gpu.uuid, "/usr/bin/jupyter-lab", 5 * GIB, in_unit=False),
    )
    return replace(
        snap,
        gpus=tuple(views),
        processes=processes,
        system=SystemView(snap.system.sample, clock_skew=-7.4),
        alerts=(
            Alert("lost-2", Severity.CRITICAL, f"GPU 2 lost: {lost.lost}", now - 60),
            Alert("ecc-4", Severity.CRITICAL, "GPU 4: 3 uncorrected ECC errors", now - 60),
            Alert("hot-4", Severity.WARNING, "GPU 4 at 93 °C", now - 6),
            Alert("skew", Severity.WARNING, "the host's clock differs by -7.4 s", now - 6),
        ),
    )


HOSTILE = (
    "[/usr/bin] [/] [b]bold[/i] [unclosed [[",
    "[@click=app.quit]x[/]",
    "\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m \x1b]52;c;aGk=\x07",
    "right to left: \u202egnp.exe\u202c \u05d0\u05d1\u05d2 zero\u200bwidth",
    "wide: 日本語のログ出力 漢字 한국어 and e\u0301 combining",
    "x" * 90_000,
    "[@click=app.quit]" * 500,
)


def hostile(now: float = NOW) -> Snapshot:
    """Every text from the host tries to break the screen."""
    snap = live(now)
    assert snap.unit is not None
    evil = " ".join(HOSTILE[:5])
    views = [
        replace(view, gpu=replace(view.gpu, name=evil, lost=evil if view.gpu.index == 1 else ""))
        for view in snap.gpus
    ]
    unit = replace(
        snap.unit,
        name=evil,
        sub_state=HOSTILE[1],
        drop_ins=(f"/etc/{evil}",),
        active_state=HOSTILE[0],
        result=evil,
        invocation=HOSTILE[2],
    )
    figure = Figure(1e18, evil, now, 5.0, evil)
    engine = replace(
        snap.engine,
        throughput=figure,
        acceptance_length=Figure(math.nan, evil, now),
        kv_usage=Figure(math.inf, evil, now),
        model=evil,
        version=evil,
        knobs={evil: evil, "budget": HOSTILE[5]},
        knobs_source=evil,
    )
    processes = (GpuProcess(1, views[0].gpu.uuid, evil, 10 * GIB, in_unit=False),)
    return replace(
        snap,
        host=evil,
        gpus=tuple(views),
        gpu_source=evil,
        unit=unit,
        engine=engine,
        processes=processes,
        readiness=Readiness(
            ReadinessState.DEGRADED,
            now - 9,
            HOSTILE[5],
            tuple(Evidence(text, Verdict.AGAINST, text) for text in HOSTILE[:5]),
        ),
        alerts=tuple(
            Alert(f"a{index}", Severity.CRITICAL, text, now) for index, text in enumerate(HOSTILE)
        ),
        log=log_of(HOSTILE, now),
    )


SCENES: dict[str, Callable[[float], Snapshot]] = {
    "live": live,
    "loading": loading,
    "failed": failed,
    "stale": stale,
    "disconnected": disconnected,
    "refused": refused,
    "empty": empty,
    "idle": idle,
    "no-nvidia-smi": no_nvidia_smi,
    "16-gpus": many_gpus,
    "64-gpus": lambda now: many_gpus(now, 64),
    "lost-gpu": lost_gpu,
    "hostile": hostile,
}


class SceneSource:
    """A source that always shows one scene: frozen, or moving with the clock."""

    def __init__(self, scene: str | Callable[[float], Snapshot], *, frozen: bool = True) -> None:
        self._make = SCENES[scene] if isinstance(scene, str) else scene
        self._frozen = frozen
        self._made = self._make(NOW)
        self.name = "ct200"  # the operator's word for it, not the host's
        self.engine: Engine = SGLANG
        self.started = self.closed = False
        self.retries = 0

    def show(self, snapshot: Snapshot) -> None:
        """Give this snapshot from now on."""
        self._made = snapshot

    def snapshot(self, now: float) -> Snapshot:
        if not self._frozen:
            if int(now * 4) != int(self._made.at * 4):
                self._made = self._make(now)
            return self._made
        return self._made

    async def start(self) -> None:
        self.started = True

    async def close(self) -> None:
        self.closed = True

    def retry_now(self) -> None:
        self.retries += 1
