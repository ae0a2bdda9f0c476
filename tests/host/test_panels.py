"""Every panel is live on a real host: GPUs, machine, unit, journal, engine, readiness."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ddtui.core.events import Phase
from ddtui.core.samples import Collector, SourceStatus
from ddtui.core.snapshot import PhaseStatus, ReadinessState, Snapshot, Verdict
from tests.host.gpuhost import DFLASH, ENGINE, GpuHost, engine_command
from tests.host.measured import measured
from tests.host.watching import Watcher


@pytest.fixture(scope="module")
def engine(gpuhost: GpuHost) -> Iterator[GpuHost]:
    """The host with a simulated engine that serves traffic, run by the user that ddtui is too."""
    gpuhost.nvidia_smi(state="loaded")
    command = engine_command("--simulate-traffic", *DFLASH)
    with gpuhost.unit(ENGINE, command, user="ops"):
        yield gpuhost
    gpuhost.nvidia_smi()


def verdicts(snapshot: Snapshot) -> dict[str, Verdict]:
    return {each.name: each.verdict for each in snapshot.readiness.evidence}


async def test_a_load_is_followed_from_start_to_ready(engine: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(ENGINE)
    await watching.until_state(ReadinessState.READY)
    since = time.time()
    with engine.held(after="Load weight begin"):
        engine.systemctl("restart", "--no-block", ENGINE)
        await watching.until_state(ReadinessState.LOADING_TARGET)
    snapshot = await watching.until_state(ReadinessState.READY)
    states = [state for at, state in watching.readiness if at >= since]
    assert ReadinessState.LOADING_TARGET in states
    assert states[-1] is ReadinessState.READY
    assert states.count(ReadinessState.READY) == 1
    load = snapshot.load
    assert load is not None
    assert load.finished
    assert load.invocation == engine.show(ENGINE, "InvocationID")
    done = [each.phase for each in load.phases if each.status is PhaseStatus.DONE]
    assert done == [
        *(Phase.STARTING, Phase.TARGET, Phase.DRAFTER, Phase.KV_CACHE),
        *(Phase.GRAPHS, Phase.WARMUP, Phase.READY),
    ]


async def test_readiness_is_proved_piece_by_piece(engine: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(ENGINE)
    snapshot = await watching.until(
        lambda known: set(verdicts(known).values()) == {Verdict.PROVED}, what="all evidence"
    )
    assert set(verdicts(snapshot)) == {"unit", "log", "port owner", "health", "configuration"}
    assert snapshot.readiness.state is ReadinessState.READY


async def test_every_panel_has_figures(engine: GpuHost, watcher: Watcher) -> None:
    engine.nvidia_smi(state="loaded", pids=str(engine.main_pid(ENGINE)))
    began = time.time()
    watching = await watcher.watch(ENGINE)
    await watching.until(lambda known: known.gpus, what="GPU rows")
    measured("start to first GPU row", time.time() - began)

    def complete(known: Snapshot) -> bool:
        figures = known.engine
        wanted = (figures.throughput, figures.acceptance_length, figures.running, figures.kv_usage)
        owners = {process.in_unit for process in known.processes}
        return all(wanted) and owners == {True} and bool(known.system and known.system.sample.cpu)

    snapshot = await watching.until(complete, what="figures in every panel")
    measured("start to figures in every panel", time.time() - began)
    assert [view.gpu.name for view in snapshot.gpus] == ["NVIDIA H200", "NVIDIA H200"]
    assert [view.gpu.memory_used for view in snapshot.gpus] == [41843 << 20] * 2
    system, unit = snapshot.system, snapshot.unit
    assert system is not None
    assert unit is not None
    assert (system.sample.memory_total or 0) > 1 << 30
    assert abs(system.clock_skew or 0) < 2
    assert (unit.active_state, unit.sub_state) == ("active", "running")
    assert unit.main_pid == engine.main_pid(ENGINE)
    assert unit.invocation == engine.show(ENGINE, "InvocationID")
    figures = snapshot.engine
    assert figures.throughput is not None
    assert figures.acceptance_length is not None
    assert figures.throughput.value > 1
    assert 1 < figures.acceptance_length.value <= 8
    assert figures.knobs["block size"] == "8"
    assert figures.knobs_source == "/server_info"
    assert any("ready to roll" in text for text in watching.texts())


async def test_every_source_says_that_it_is_live(engine: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(ENGINE)

    def live(known: Snapshot) -> bool:
        states = {each: source.status for each, source in known.sources.items()}
        return set(states) == set(Collector) and set(states.values()) == {SourceStatus.LIVE}

    snapshot = await watching.until(live, what="every source live")
    sizes = {each.role: (each.size or 0) >> 30 for each in snapshot.checkpoints}
    assert sizes == {"target": 4, "drafter": 1}


async def test_the_unit_is_found_by_its_command_line(engine: GpuHost, watcher: Watcher) -> None:
    watching = await watcher.watch(None)
    snapshot = await watching.until(lambda known: known.unit, what="the unit")
    assert snapshot.unit is not None
    assert snapshot.unit.name == ENGINE


async def test_an_engine_of_another_user_is_ready_by_consistent_evidence(
    gpuhost: GpuHost, watcher: Watcher
) -> None:
    gpuhost.remove_unit(ENGINE)
    with gpuhost.unit(ENGINE, engine_command(*DFLASH)):
        watching = await watcher.watch(ENGINE)
        snapshot = await watching.until_state(ReadinessState.READY)
        assert verdicts(snapshot)["port owner"] is Verdict.CONSISTENT
        assert Verdict.AGAINST not in verdicts(snapshot).values()
