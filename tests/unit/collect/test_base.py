from __future__ import annotations

import asyncio
import threading

import pytest

from ddtui.collect.base import (
    LONGEST_BACKOFF,
    Context,
    Lines,
    Nudge,
    Report,
    Restart,
    SourceTrouble,
    lines_of,
    supervise,
    wait_live,
)
from ddtui.collect.worker import Worker
from ddtui.core.samples import (
    Collector,
    LinkSample,
    LinkState,
    SourceSample,
    SourceStatus,
)
from ddtui.hosts.base import LinkDown, LinkRefused, ProgramTimeout
from tests.unit.collect.fakes import FakeHost, FakeStream, ImpatientNudge, Recorder, Script


@pytest.fixture
def report(recorder: Recorder) -> Report:
    return Report(Collector.GPU, "x", recorder, lambda: 1.0)


async def supervised(
    host: FakeHost, report: Report, ends: list[Exception | None], nudge: Nudge
) -> None:
    """Let work end as told, then be cancelled."""
    finished = asyncio.Event()

    async def work() -> None:
        if not ends:
            finished.set()
            await asyncio.Event().wait()
        end = ends.pop(0)
        if end is not None:
            raise end

    task = asyncio.create_task(supervise(host, report, work, nudge))
    async with asyncio.timeout(5):
        await finished.wait()
    task.cancel()
    assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], BaseException)


async def test_troubles_are_said_and_tried_again_less_and_less_often(
    host: FakeHost, report: Report, recorder: Recorder
) -> None:
    nudge = ImpatientNudge()
    troubles: list[Exception | None] = [SourceTrouble(f"t{n}", "remedy") for n in range(7)]
    await supervised(host, report, troubles, nudge)
    said = recorder.of(SourceSample)
    assert [sample.detail for sample in said] == ["", *(f"t{n}" for n in range(7))]
    assert nudge.waits == [1, 2, 4, 8, 16, LONGEST_BACKOFF, LONGEST_BACKOFF]


async def test_the_same_trouble_is_said_once(
    host: FakeHost, report: Report, recorder: Recorder
) -> None:
    same: list[Exception | None] = [SourceTrouble("no", status=SourceStatus.ABSENT)] * 3
    await supervised(host, report, same, ImpatientNudge())
    statuses = [sample.status for sample in recorder.of(SourceSample)]
    assert statuses == [SourceStatus.STARTING, SourceStatus.ABSENT]


async def test_a_broken_link_is_no_fault_of_the_source(
    host: FakeHost, report: Report, recorder: Recorder
) -> None:
    nudge = ImpatientNudge()
    await supervised(host, report, [LinkDown("cut"), Restart(), LinkDown("cut")], nudge)
    assert [sample.status for sample in recorder.of(SourceSample)] == [SourceStatus.STARTING]
    assert nudge.waits == []


async def test_our_own_fault_is_said_and_logged(
    host: FakeHost,
    report: Report,
    recorder: Recorder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await supervised(host, report, [ZeroDivisionError("by zero")], ImpatientNudge())
    said = recorder.of(SourceSample)[-1]
    assert said.status is SourceStatus.FAILED
    assert said.detail == "ZeroDivisionError: by zero"
    assert "fault in ddtui" in said.remedy
    assert "Traceback" in caplog.text


async def test_a_program_that_takes_too_long(
    host: FakeHost, report: Report, recorder: Recorder
) -> None:
    await supervised(host, report, [ProgramTimeout("slow", "wait")], ImpatientNudge())
    said = recorder.of(SourceSample)[-1]
    assert (said.detail, said.remedy) == ("slow", "wait")


async def test_an_end_without_a_reason_is_an_end(
    host: FakeHost, report: Report, recorder: Recorder
) -> None:
    await supervised(host, report, [None], ImpatientNudge())
    assert recorder.of(SourceSample)[-1].status is SourceStatus.FAILED


async def test_a_source_that_was_live_is_tried_soon(host: FakeHost, recorder: Recorder) -> None:
    nudge = ImpatientNudge()
    report = Report(Collector.GPU, "x", recorder, lambda: 1.0)
    runs = 0
    done = asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 4:
            report.live()
        if runs == 6:
            done.set()
            await asyncio.Event().wait()
        raise SourceTrouble(f"t{runs}")

    task = asyncio.create_task(supervise(host, report, work, nudge))
    await done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert nudge.waits == [1, 2, 4, 1, 2]


async def test_a_refused_link_is_waited_for(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def refuse_twice() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise LinkRefused("unknown key", "accept it")

    monkeypatch.setattr("ddtui.collect.base.LINK_POLL", 0.0)
    monkeypatch.setattr(host, "wait_live", refuse_twice)
    await wait_live(host)
    assert tries == 3


async def test_nothing_is_said_while_the_link_is_down(
    host: FakeHost, report: Report, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddtui.collect.base.LINK_POLL", 0.0)
    ends: list[Exception | None] = [SourceTrouble("channel closed")]
    host.link = LinkSample(0.0, "link", LinkState.RETRYING)
    await supervised(host, report, ends, ImpatientNudge())
    assert len(recorder.of(SourceSample)) == 1


class TestNudge:
    async def test_it_ends_a_wait(self) -> None:
        nudge = Nudge()
        waiting = asyncio.create_task(nudge.wait(60))
        await asyncio.sleep(0)
        nudge.fire()
        assert await waiting is True

    async def test_a_wait_ends_by_itself(self) -> None:
        assert await Nudge().wait(0.001) is False


class TestLines:
    async def test_a_time_out_loses_no_line(self) -> None:
        gate = asyncio.Event()
        async with lines_of(FakeStream(Script(["1", gate, "2", "3"]))) as lines:
            assert await lines.batch(5) == [b"1"]
            assert await lines.batch(0.001) == []
            gate.set()
            assert await lines.batch(5) == [b"2", b"3"]
            assert await lines.batch(5) is None

    async def test_a_broken_link_comes_after_the_last_line(self) -> None:
        async with lines_of(FakeStream(Script(["1"], breaks=True))) as lines:
            assert await lines.batch(5) == [b"1"]
            with pytest.raises(LinkDown):
                await lines.batch(5)

    async def test_the_reader_waits_for_the_taker(self) -> None:
        stream = FakeStream(Script([str(number) for number in range(100)]))
        async with lines_of(stream, most=10) as lines:
            sizes = []
            while (batch := await lines.batch(5)) is not None:
                sizes.append(len(batch))
        assert sum(sizes) == 100
        assert max(sizes) == 10

    async def test_a_slow_taker_keeps_what_has_come(self) -> None:
        lines = Lines(FakeStream(Script(["1", "2"])), 10)
        await lines.pump()
        assert await lines.batch(0) == [b"1", b"2"]
        assert await lines.batch(0) is None


class TestWorker:
    async def test_calls_run_in_one_other_thread(self) -> None:
        with Worker("test") as worker:
            first = await worker.call(threading.get_ident)
            assert first == await worker.call(threading.get_ident)
            assert first != threading.get_ident()

    async def test_what_is_raised_comes_back(self) -> None:
        def fail() -> None:
            raise ValueError("no")

        with Worker("test") as worker:
            with pytest.raises(ValueError, match="no"):
                await worker.call(fail)
            assert await worker.call(lambda: 1) == 1

    async def test_one_that_never_returns_can_be_left(self) -> None:
        gate = threading.Event()
        with Worker("test") as worker:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await worker.call(gate.wait)
            gate.set()
            assert await worker.call(lambda: 1) == 1


def test_the_context_has_a_clock_and_a_nudge() -> None:
    context = Context()
    assert context.clock() > 1_700_000_000
    assert isinstance(context.nudge, Nudge)


def test_secrets_in_what_a_source_says_are_masked(report: Report, recorder: Recorder) -> None:
    report(SourceStatus.FAILED, "ran x --api-key hush --tp 8", "set HF_TOKEN=hush")
    # A secret is told by what follows it, so that the text is cut after it was looked for.
    report(SourceStatus.FAILED, "x" * 380 + " https://me:hushhushhushhushhush@host/")
    first, second = recorder.of(SourceSample)
    assert first.detail == "ran x --api-key <redacted> --tp 8"
    assert first.remedy == "set HF_TOKEN=<redacted>"
    assert "hush" not in second.detail
    assert len(second.detail) <= 400
