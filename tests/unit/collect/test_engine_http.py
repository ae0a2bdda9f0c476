from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from ddtui.collect import engine_http
from ddtui.collect.base import Context
from ddtui.collect.engine_client import BODY_LIMIT
from ddtui.collect.engine_http import EngineHttpCollector
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.core import readiness
from ddtui.core.samples import (
    EngineSample,
    HealthSample,
    JournalLine,
    JournalSample,
    ReportRefusedSample,
    ServerInfoSample,
    SourceSample,
    SourceStatus,
    UnitSample,
    UnitStatus,
)
from ddtui.engines.sglang import SGLANG
from tests.unit.collect.fakes import FakeHost, Recorder, StepNudge, collecting, unit

CAPTURES = Path(__file__).resolve().parents[2] / "fixtures" / "sglang"
METRICS = (CAPTURES / "sglang-fresh-dflash.during.metrics.txt").read_bytes()
LOADS = (CAPTURES / "sglang-fresh-dflash.after.v1_loads.txt").read_bytes()
INFO = (CAPTURES / "sglang-fresh-dflash.after.server_info.txt").read_bytes()

FIRED_UP = "[2026-11-29 12:00:00] The server is fired up and ready to roll!"

Handler = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers by path; what is not there is 404."""

    def __init__(self, **answers: bytes | int) -> None:
        self.answers: dict[str, bytes | int] = dict(answers)
        self.open = True
        self.key = ""
        self.asked: list[str] = []
        self.headers: list[httpx.Headers] = []
        self.hosts: set[str] = set()
        self.hanging: set[str] = set()

    def __setitem__(self, path: str, answer: bytes | int) -> None:
        self.answers[path] = answer

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked.append(path)
        self.headers.append(request.headers)
        self.hosts.add(request.url.netloc.decode())
        if not self.open:
            raise httpx.ConnectError("All connection attempts failed", request=request)
        if path in self.hanging:
            await asyncio.Event().wait()
        open_to_all = path in {"/health", "/ready", "/metrics"}
        if self.key and not open_to_all and request.headers.get("authorization") != self.key:
            return httpx.Response(401, json={"error": "Unauthorized"})
        answer = self.answers.get(path, 404)
        if isinstance(answer, int):
            return httpx.Response(answer)
        return httpx.Response(200, content=answer)

    def count(self, path: str) -> int:
        return self.asked.count(path)


@pytest.fixture
def server(host: FakeHost) -> Server:
    server = Server()
    server.answers = {
        "/health": b"",
        "/metrics": METRICS,
        "/server_info": INFO,
        "/v1/loads": LOADS,
    }
    host.http = httpx.MockTransport(server)
    return server


class Run:
    """A collector that goes on when it is told to."""

    def __init__(self, host: FakeHost, observed: Observed, **settings: object) -> None:
        self.nudge = StepNudge()
        context = Context(clock=lambda: 1000.0, nudge=self.nudge)
        options = HostSettings(**settings)  # type: ignore[arg-type]
        self.collector = EngineHttpCollector(options, SGLANG, observed, context)
        self.host = host

    async def __call__(self, recorder: Recorder, steps: int = 4) -> None:
        async with collecting(self.collector, self.host, recorder):
            await self.nudge.step(steps)


def last_word(recorder: Recorder) -> tuple[SourceStatus, str]:
    said = recorder.of(SourceSample)[-1]
    return said.status, said.detail


async def test_a_ready_engine(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    await Run(host, observed)(recorder, 10)
    assert recorder.of(HealthSample)[0].status == 200
    assert server.count("/health") == 1  # it costs the engine a generation
    assert server.count("/metrics") >= 8
    assert server.count("/server_info") == 1
    assert {sample.source for sample in recorder.of(EngineSample)} == {"/metrics"}
    assert recorder.of(ServerInfoSample)[0].version == "0.5.23"
    assert last_word(recorder) == (SourceStatus.LIVE, "")
    assert server.hosts == {"127.0.0.1:30000"}


async def test_while_it_warms_up_health_is_asked_again(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server["/health"] = 503
    await Run(host, observed)(recorder, 5)
    assert {sample.status for sample in recorder.of(HealthSample)} == {503}
    assert server.count("/health") >= 5


async def test_a_closed_port_is_waited_for(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server.open = False
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(3)
        assert last_word(recorder) == (SourceStatus.WAITING, "port 30000 is closed")
        assert recorder.of(HealthSample)[-1].error == "port closed"
        assert set(server.asked) == {"/health"}
        server.open = True
        await run.nudge.step(3)
    assert last_word(recorder)[0] is SourceStatus.LIVE
    assert recorder.of(EngineSample)


async def test_the_next_invocation_is_asked_anew(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(4)
        observed.apply(unit("2"))
        await run.nudge.step(4)
    assert server.count("/health") == 2
    assert server.count("/server_info") == 2


async def test_without_metrics_the_loads_are_read(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    del server.answers["/metrics"]
    await Run(host, observed)(recorder, 6)
    status, detail = last_word(recorder)
    assert status is SourceStatus.LIVE
    assert detail == "--enable-metrics is off; figures from /v1/loads"
    assert {sample.source for sample in recorder.of(EngineSample)} == {"/v1/loads"}
    assert server.count("/metrics") == 1


async def test_an_old_engine_has_its_own_report_only(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server.answers = {"/health": b"", "/get_server_info": INFO}
    await Run(host, observed)(recorder, 8)
    assert recorder.of(ServerInfoSample)[0].source == "/get_server_info"
    sample = recorder.of(EngineSample)[-1]
    assert sample.source == "/get_server_info"
    assert sample.counters.draft_tokens == 8


async def test_a_key_is_asked_for(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server.key = "Bearer k"
    await Run(host, observed)(recorder)
    assert last_word(recorder) == (SourceStatus.FAILED, "API key needed (401)")
    assert "api_key" in recorder.of(SourceSample)[-1].remedy


async def test_a_refused_report_is_asked_for_twice_then_seldom(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server.key = "Bearer k"
    await Run(host, observed)(recorder, 8)
    assert [each.status for each in recorder.of(ReportRefusedSample)] == [401, 401]
    assert server.count("/server_info") == 2


async def test_the_key_is_sent_only_where_it_is_asked_for_and_kept_out_of_sight(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server.key = "Bearer topsecret"
    run = Run(host, observed, api_key=lambda: "topsecret")
    async with collecting(run.collector, host, recorder):
        while not recorder.of(ServerInfoSample):
            await run.nudge.step()
            await asyncio.sleep(0.01)  # the key is read in a thread
    with_key = {
        path
        for path, headers in zip(server.asked, server.headers, strict=True)
        if "authorization" in headers
    }
    assert with_key == {"/server_info"}
    assert "topsecret" not in repr(recorder.samples)
    assert last_word(recorder)[0] is SourceStatus.LIVE


async def test_a_hanging_health_request_holds_nothing_up(
    host: FakeHost,
    server: Server,
    observed: Observed,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_http, "HEALTH_SLOW", 0.01)
    server.hanging = {"/health"}
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder), asyncio.timeout(5):
        while not recorder.of(EngineSample):
            await run.nudge.step()
            await asyncio.sleep(0.01)
    assert server.count("/health") == 1
    assert recorder.of(HealthSample) == []


async def test_another_program_on_the_port(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server.answers = {}
    await Run(host, observed)(recorder, 6)
    status, detail = last_word(recorder)
    assert status is SourceStatus.FAILED
    assert "404" in detail
    assert recorder.of(EngineSample) == []


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff\xfe", b"[1]", b"<html>", b"{" * 100_000])
async def test_answers_that_make_no_sense(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder, body: bytes
) -> None:
    server.answers = dict.fromkeys(server.answers, body)
    await Run(host, observed)(recorder, 5)
    assert recorder.of(HealthSample)[0].status == 200
    assert all(sample.collector == "engine" for sample in recorder.of(SourceSample))
    assert not any("fault in ddtui" in sample.remedy for sample in recorder.of(SourceSample))


async def test_an_answer_that_is_too_long_is_told_and_the_loads_are_read(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server["/metrics"] = b"x" * (BODY_LIMIT + 1)
    await Run(host, observed)(recorder, 6)
    status, detail = last_word(recorder)
    assert status is SourceStatus.FAILED
    assert "/metrics answers with more than 2 MiB" in detail
    assert detail.endswith("figures from /v1/loads")
    assert server.count("/metrics") == 1
    assert recorder.of(HealthSample)[0].status == 200


async def test_a_port_that_nobody_named_is_not_asked(
    host: FakeHost, server: Server, recorder: Recorder
) -> None:
    observed = Observed(SGLANG)
    observed.apply(UnitSample(0.0, "x", UnitStatus("a", load_state="not-found")))
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(3)
        assert last_word(recorder) == (SourceStatus.WAITING, "port not known yet")
        assert server.asked == []
        observed.apply(unit("1", "--port", "8000"))
        await run.nudge.step(3)
    assert server.hosts == {"127.0.0.1:8000"}
    assert last_word(recorder)[0] is SourceStatus.LIVE


@pytest.mark.parametrize(
    "text",
    [
        "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
        FIRED_UP,
    ],
)
async def test_it_is_asked_as_soon_as_it_says_so(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder, text: str
) -> None:
    server["/health"] = 503
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(2)
        before = server.count("/health")
        server["/health"] = b""
        for invocation, manager in (("0", False), ("1", True)):  # not of this start; not its own
            line = JournalLine(1.0, text, invocation, from_manager=manager)
            observed.apply(JournalSample(1.0, "journal", (line,), "c"))
            await run.nudge.step(0)
        assert observed.announced == 0
        observed.apply(JournalSample(1.0, "journal", (JournalLine(1.0, text, "1"),), "c"))
        await recorder.until(lambda: recorder.of(HealthSample)[-1].status == 200, 5)
    assert server.count("/health") == before + 1


async def test_ready_is_believed_before_health_has_generated_its_token(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder
) -> None:
    server["/ready"] = b""
    server.hanging = {"/health"}
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(5)
        assert server.count("/ready") == 0  # the log does not say so yet
        observed.apply(JournalSample(1.0, "journal", (JournalLine(1.0, FIRED_UP, "1"),), "c"))
        await recorder.until(lambda: bool(recorder.of(HealthSample)), 5)
    said = [(sample.endpoint, sample.status) for sample in recorder.of(HealthSample)]
    assert said == [("/ready", 200)]
    assert server.count("/ready") == server.count("/health") == 1


@pytest.mark.parametrize("ready", [b"", 404, 503])
async def test_ready_is_not_believed_against_health(
    host: FakeHost, server: Server, observed: Observed, recorder: Recorder, ready: bytes | int
) -> None:
    server["/ready"], server["/health"] = ready, 503
    observed.apply(JournalSample(1.0, "journal", (JournalLine(1.0, FIRED_UP, "1"),), "c"))
    run = Run(host, observed)
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(4)
        await asyncio.sleep(2 * engine_http.OBJECTION)
    assert {sample.endpoint for sample in recorder.of(HealthSample)} == {"/health"}
    assert server.count("/ready") == 1


@pytest.mark.parametrize(("running", "pause"), [(0.0, 60.0), (1.0, 120.0)])
async def test_a_ready_engine_is_asked_seldom_also_while_it_works(
    host: FakeHost,
    server: Server,
    observed: Observed,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    running: float,
    pause: float,
) -> None:
    del server.answers["/metrics"], server.answers["/v1/loads"]
    observed.running = running
    recorder.forward = lambda _: None
    run = Run(host, observed)
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(2)
        monkeypatch.setattr(loop, "time", lambda: real() + ahead)
        assert server.count("/health") == 1
        ahead = pause - 10
        await run.nudge.step(2)
        assert server.count("/health") == 1
        ahead = pause + 10
        await run.nudge.step(2)
        assert server.count("/health") == 2


async def test_an_engine_that_answers_nothing_but_health_is_asked_before_it_counts_as_silent(
    host: FakeHost,
    server: Server,
    observed: Observed,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All else needs a key: between two requests nothing would say that it lives."""
    server.key = "Bearer k"
    server["/metrics"] = 404
    recorder.forward = lambda _: None
    run = Run(host, observed)
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    async with collecting(run.collector, host, recorder):
        await run.nudge.step(2)
        monkeypatch.setattr(loop, "time", lambda: real() + ahead)
        asked = server.count("/health")
        ahead = readiness.SIGN_OF_LIFE - 5
        await run.nudge.step(2)
        assert server.count("/health") == asked + 1
