"""Snapshots of a host that is not well, or wants to break the screen."""

from __future__ import annotations

import math

from msgspec.structs import replace

from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import (
    Collector,
    Gpu,
    GpuProcess,
    LinkSample,
    LinkState,
    SourceSample,
    SourceStatus,
)
from ddtui.core.snapshot import (
    Alert,
    EngineView,
    Evidence,
    Figure,
    Readiness,
    ReadinessState,
    Severity,
    Snapshot,
    SystemView,
    Verdict,
)
from tests.ui.scene_parts import (
    GIB,
    NOW,
    log_of,
)
from tests.ui.scenes_of_health import live


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
