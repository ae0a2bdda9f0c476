"""Streams as servers and what stands before them really send them, in virtual time.

What is sent and when is written here byte by byte; the figures are worked out by hand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from ddtui.bench.bench import Bench
from ddtui.bench.errors import BenchError, EngineBusy, NothingSucceeded
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.generation import Prompt
from ddtui.core.measurement import Cell
from ddtui.engines.sglang import SGLANG
from tests.support.stub_engine import PORT, MemoryConnector, StubEngine, chunk, plain
from tests.support.virtual_time import in_virtual_time

Send = Callable[[bytes], None]
Script = Callable[[Send], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = chunk(b"data: [DONE]\n\n")
FIRST, GAP, EVENTS, PER_EVENT = 0.1, 0.02, 10, 4
TOKENS = EVENTS * PER_EVENT
TPOT = GAP / PER_EVENT
"""The first event's tokens are known: what came after them is nine gaps of four tokens."""
LASTS = FIRST + (EVENTS - 1) * GAP


class Scripted(StubEngine):
    """Every request is answered by a script."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    async def _generate(self, path: str, body: dict[str, Any], send: Send) -> None:
        self.requests.append(body)
        await self.script(send)


def event(
    content: str | None = None,
    reasoning: str | None = None,
    *,
    count: int | None = None,
    finish: str | None = None,
    line: bytes = b"\n",
) -> bytes:
    delta = {"content": content, "reasoning_content": reasoning}
    said: dict[str, Any] = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    if count is not None:
        said["usage"] = {"completion_tokens": count, "prompt_tokens": 5}
    return b"data: " + json.dumps(said, ensure_ascii=False).encode() + line + line


def at_end(count: int) -> bytes:
    said = {"choices": [], "usage": {"completion_tokens": count, "prompt_tokens": 5}}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


async def events(send: Send, make: Callable[[int], bytes], split: int = 0) -> None:
    """EVENTS of them, the first after FIRST, each in pieces of `split` bytes."""
    for number in range(1, EVENTS + 1):
        await asyncio.sleep(FIRST if number == 1 else GAP)
        data = make(number)
        pieces = [data[at : at + split] for at in range(0, len(data), split)] if split else [data]
        for piece in pieces:
            send(chunk(piece))


def run(script: Script, **changes: Any) -> Cell:
    plain_plan = BenchPlan(
        concurrency=(4,), requests=8, output_tokens=64, repeats=2, warmup_batches=0,
        stall_seconds=30.0,
    )  # fmt: skip

    async def work() -> Cell:
        clock = asyncio.get_running_loop().time
        reached = MemoryConnector(Scripted(script))
        bench = Bench(reached, "127.0.0.1", PORT, SGLANG, clock=clock)
        (cell,) = await bench.run(msgspec.structs.replace(plain_plan, **changes))
        assert reached.open == 0
        return cell

    return in_virtual_time(work())


def refused(script: Script) -> BenchError:
    with pytest.raises(BenchError) as caught:
        run(script)
    return caught.value


async def comments_and_returns(send: Send) -> None:
    send(HEAD + chunk(b": ping\r\n\r\n"))
    await events(send, lambda at: b": c\r\n" + event("x", count=PER_EVENT * at, line=b"\r\n"))
    send(chunk(event(finish="stop", count=TOKENS, line=b"\r\n")))
    send(chunk(b"data: [DONE]\r\n\r\n") + END)


async def cut_within_characters(send: Send) -> None:
    send(HEAD)
    await events(send, lambda at: event("日本語🎉", count=PER_EVENT * at), split=1)
    send(chunk(event(finish="stop", count=TOKENS)) + DONE + END)


async def only_reasoning(send: Send) -> None:
    send(HEAD + chunk(event("", count=0)))
    await events(send, lambda at: event(None, "hm", count=PER_EVENT * at))
    send(chunk(event(finish="length", count=TOKENS)) + DONE + END)


async def empty_events_between(send: Send) -> None:
    send(HEAD + chunk(event("")))
    await events(
        send,
        lambda at: event("x", count=PER_EVENT * at) + event("", count=PER_EVENT * at),
    )
    send(chunk(event(finish="stop", count=TOKENS)) + DONE + END)


async def without_the_mark_of_the_end(send: Send) -> None:
    send(HEAD)
    await events(send, lambda at: event("x", count=PER_EVENT * at))
    send(chunk(event(finish="stop")) + chunk(at_end(TOKENS)) + END)


@pytest.mark.parametrize("concurrency", [1, 16, 256])
@pytest.mark.parametrize(
    "script",
    [
        comments_and_returns,
        cut_within_characters,
        only_reasoning,
        empty_events_between,
        without_the_mark_of_the_end,
    ],
)
def test_figures_are_those_of_what_was_sent(script: Script, concurrency: int) -> None:
    cell = run(script, concurrency=(concurrency,), requests=concurrency, repeats=1)
    assert (cell.requests, cell.failed, cell.stalled) == (concurrency, 0, 0)
    assert cell.output_tokens == concurrency * TOKENS
    assert cell.ttft
    assert cell.tpot
    assert cell.itl
    assert cell.total_rate
    assert cell.ttft.median == pytest.approx(FIRST, rel=0.01)
    assert cell.tpot.median == pytest.approx(TPOT, rel=0.01)
    assert cell.itl.median == pytest.approx(TPOT, rel=0.01)
    assert cell.total_rate.median == pytest.approx(concurrency * TOKENS / LASTS, rel=0.01)
    assert (cell.ttfo is None) == (script is only_reasoning)


def test_counts_that_come_with_the_end_alone_leave_the_first_event_at_one_token() -> None:
    async def script(send: Send) -> None:
        send(HEAD)
        await events(send, lambda _: event("x"))
        send(chunk(event(finish="stop")) + chunk(at_end(TOKENS)) + END)

    cell = run(script)
    assert cell.tpot
    assert cell.tpot.median == pytest.approx((EVENTS - 1) * GAP / (TOKENS - 1), rel=0.01)
    assert any("the first event is taken for one token" in note for note in cell.notes)


def test_a_body_that_goes_on_after_the_mark_of_the_end_holds_no_place() -> None:
    async def script(send: Send) -> None:
        send(HEAD)
        await events(send, lambda at: event("x", count=PER_EVENT * at))
        send(chunk(event(finish="stop", count=TOKENS)) + DONE)
        await asyncio.sleep(1e6)

    cell = run(script)
    assert (cell.requests, cell.stalled) == (16, 0)
    assert cell.seconds < 2 * 2 * (LASTS + 0.4)  # two batches of two answers each


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":{"message":"model overloaded"}}', "200, but model overloaded"),
        (b'{"object":"error","message":"no such model"}', "200, but no such model"),
        (b"<html>a proxy's page</html>", "200, but no stream: <html>a proxy's page</html>"),
        (b'{"choices":[{"message":{"content":"hi"}}]}', "200, but no stream: {"),
    ],
)
@pytest.mark.parametrize("chunked", [True, False])
def test_an_answer_that_is_no_stream_is_told(body: bytes, said: str, chunked: bool) -> None:
    async def script(send: Send) -> None:
        await asyncio.sleep(FIRST)
        send(HEAD + chunk(body) + END if chunked else plain(200, body))

    assert said in refused(script).why


@pytest.mark.parametrize("status", [429, 503])
def test_an_engine_that_is_busy_does_not_refuse_for_ever(status: int) -> None:
    async def script(send: Send) -> None:
        await asyncio.sleep(FIRST)
        send(plain(status, b'{"error":{"message":"The request queue is full."}}'))

    found = refused(script)
    assert isinstance(found, EngineBusy)
    assert found.why == f"{status}: The request queue is full."


def test_a_busy_engine_refuses_no_coding_tasks() -> None:
    async def script(send: Send) -> None:
        send(plain(429, b'{"error":"Too many requests"}'))

    async def work() -> None:
        bench = Bench(MemoryConnector(Scripted(script)), "127.0.0.1", PORT, SGLANG)
        with pytest.raises(EngineBusy, match="429: Too many requests"):
            await bench.ask([Prompt.of("one"), Prompt.of("two")], output_tokens=8)

    in_virtual_time(work())


def test_fewer_tokens_than_reads_that_brought_some_are_not_believed() -> None:
    async def script(send: Send) -> None:
        send(HEAD)
        for _ in range(10):
            await events(send, lambda _: event("x"))
        send(chunk(event(finish="stop")) + chunk(at_end(3)) + DONE + END)

    found = refused(script)
    assert isinstance(found, NothingSucceeded)
    assert found.why == "the server counts 3 tokens, and 100 reads brought some"
