from __future__ import annotations

import asyncio

import httpx
import pytest

from ddtui.collect import programs
from ddtui.collect.monitor import Monitor
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.core.host_state import HostState
from ddtui.core.samples import (
    AnySample,
    Collector,
    EngineCounters,
    EngineSample,
    GpuSample,
    JournalSample,
    LinkSample,
    ListenerSample,
    SystemSample,
    UnitSample,
    UnitStatus,
)
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from tests.unit.collect.fakes import FakeHost, Recorder, Script
from tests.unit.collect.test_gpu import row
from tests.unit.collect.test_journal import entry
from tests.unit.collect.test_system import FRAME
from tests.unit.collect.test_unit import RUNNING

SETTINGS = HostSettings(unit="llm.service", gpu_interval=0.1)


def answer(text: str, status: int = 0) -> Completed:
    return Completed(status, text.encode(), b"")


@pytest.fixture
def whole(host: FakeHost) -> FakeHost:
    """A host on which every source answers."""
    host.scripts = {
        programs.UNIT.label: [Script(RUNNING.splitlines(), stays=True)],
        programs.GPU.label: [Script([row(0), row(1), row(0), row(1)], stays=True)],
        programs.SYSTEM.label: [Script([*FRAME.splitlines(), "@end"], stays=True)],
        programs.JOURNAL.label: [Script([entry(2, "now")], stays=True)],
    }
    host.answers = {
        programs.JOURNAL_INVOCATION.label: lambda *_: Completed(0, entry(1, "before"), b""),
        programs.GPU_PROCESSES.label: lambda *_: answer("91, GPU-0, 10, python\n@unit\n91\n"),
        programs.LISTENER.label: lambda *_: answer("@socket 0 7\n@process 91 0 readable\n@end\n"),
        programs.CHECKPOINT.label: lambda *_: answer("", 3),
    }
    host.http = httpx.MockTransport(lambda _: httpx.Response(503))
    return host


async def test_every_source_reaches_the_state_and_the_listeners(
    whole: FakeHost, recorder: Recorder
) -> None:
    state = HostState("fake", SGLANG, simulated=True)
    monitor = Monitor(whole, SETTINGS, SGLANG, state, clock=lambda: 1795984880.0)
    monitor.add_listener(recorder)
    await monitor.start()
    kinds: tuple[type[AnySample], ...] = (
        *(LinkSample, UnitSample, GpuSample, SystemSample, JournalSample, ListenerSample),
    )
    await recorder.until(lambda: all(recorder.of(kind) for kind in kinds))
    await monitor.close()
    snapshot = state.snapshot(1795984880.0)
    assert snapshot.unit is not None
    assert snapshot.unit.main_pid == 91
    assert [view.gpu.index for view in snapshot.gpus] == [0, 1]
    assert snapshot.log.tail(9)[0].text == "before"
    assert set(snapshot.sources) >= {Collector.UNIT, Collector.GPU, Collector.JOURNAL}
    assert monitor.observed.port == 30002
    assert monitor.observed.control_group == "/system.slice/llm.service"


async def test_nothing_runs_after_close(whole: FakeHost) -> None:
    before = asyncio.all_tasks()
    monitor = Monitor(whole, SETTINGS, SGLANG, HostState("fake", SGLANG))
    await monitor.start()
    await asyncio.sleep(0)
    await monitor.close()
    await monitor.close()
    assert asyncio.all_tasks() == before


class TestObserved:
    async def test_a_change_ends_a_wait(self) -> None:
        observed = Observed(SGLANG)
        waiting = asyncio.create_task(observed.wait_for(lambda: observed.invocation == "2", 10))
        await asyncio.sleep(0)
        observed.apply(UnitSample(0.0, "x", UnitStatus("a", invocation="1")))
        await asyncio.sleep(0)
        assert not waiting.done()
        observed.apply(UnitSample(0.0, "x", UnitStatus("a", invocation="2")))
        assert await waiting is True
        assert await observed.wait_for(lambda: False, 0.001) is False

    def test_what_runs_belongs_to_an_invocation(self) -> None:
        observed = Observed(SGLANG)
        observed.apply(UnitSample(0.0, "x", UnitStatus("a", invocation="1")))
        observed.apply(EngineSample(0.0, "x", EngineCounters(running=3)))
        assert observed.running == 3
        observed.apply(UnitSample(0.0, "x", UnitStatus("a", invocation="2")))
        assert observed.running is None

    def test_the_port_is_the_configured_one_first(self) -> None:
        assert Observed(SGLANG).port == 30000
        assert Observed(SGLANG, port=8000).port == 8000

    @pytest.mark.parametrize(("program", "inside"), [("/usr/bin/docker", True), ("python", False)])
    def test_containers(self, program: str, inside: bool) -> None:
        observed = Observed(SGLANG)
        unit = UnitStatus("a", command_line=(program, "run", "x"))
        observed.apply(UnitSample(0.0, "x", unit))
        assert observed.in_container is inside


def test_the_settings_show_no_key() -> None:
    settings = HostSettings(api_key=lambda: "topsecret")
    assert "topsecret" not in repr(settings)
