"""Snapshots of a host that serves, rests, loads, or fails to."""

from __future__ import annotations

from msgspec.structs import replace

from ddtui.core.events import Phase
from ddtui.core.samples import (
    Collector,
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
from tests.ui.scene_parts import (
    GIB,
    INVOCATION,
    LINES,
    NOW,
    engine,
    gpu,
    loaded,
    log_of,
    past,
    ready,
    wave,
)

STRAGGLER = "TP3 is clearly behind the other ranks"


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
        engine=engine(now),
        load=loaded(now),
        readiness=ready(now),
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


def many_gpus(now: float = NOW, count: int = 16) -> Snapshot:
    """Sixteen GPUs (or more)."""
    return replace(live(now), gpus=tuple(gpu(index, now) for index in range(count)))
