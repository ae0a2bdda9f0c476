"""Streams that do not end by themselves are ended, told apart, and keep what came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ddtui.bench.bench import Bench, TextAnswer
from ddtui.bench.errors import NothingSucceeded, ServerRefused
from ddtui.core.generation import Prompt
from ddtui.engines.sglang import SGLANG
from tests.support.stub_engine import PORT, MemoryConnector, Schedule, StubEngine, chunk
from tests.support.virtual_time import in_virtual_time
from tests.unit.bench.test_bench import measure, plan

Send = Callable[[bytes], None]
Tell = Callable[[Any], Awaitable[None]]

BEGIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Endless(StubEngine):
    """Answers the requests that `wrong` names with `event` of 0, 1, 2, ..., every `gap` seconds."""

    gap = 1.0
    event: Callable[[int], bytes]
    wrong: Callable[[int], bool] = staticmethod(lambda _: True)

    async def _stream(self, path: str, number: int, plan: Schedule, fault: str, send: Send) -> None:
        if not self.wrong(number):
            return await super()._stream(path, number, plan, fault, send)
        send(BEGIN)
        for count in range(100_000):
            await asyncio.sleep(self.gap)
            send(chunk(self.event(count)))
        raise AssertionError("nobody ended the stream")


def data(value: Any) -> bytes:
    return b"data: %s\n\n" % json.dumps(value).encode()


def native(count: int) -> bytes:
    return data({"text": "x" * count, "meta_info": {"completion_tokens": count}})


def chat(text: str) -> bytes:
    return data({"choices": [{"index": 0, "delta": {"content": text}}]})


@pytest.mark.parametrize(
    ("endpoint", "event"),
    [
        ("chat", lambda _: b": ping\n\n"),
        ("chat", lambda _: chat("")),
        ("chat", lambda count: chat("" if count else "word")),
        ("generate", lambda _: native(3)),
        ("generate", lambda _: data({"text": "the same", "meta_info": {}})),
    ],
    ids=["comments", "empty events", "one token", "same count", "same text"],
)
def test_stream_that_is_alive_without_a_new_token_stalls(
    endpoint: str, event: Callable[[int], bytes]
) -> None:
    engine = Endless()
    engine.event, engine.gap = event, 10.0
    with pytest.raises(NothingSucceeded, match=r"all . streams stalled") as told:
        measure(engine, plan(endpoint=endpoint, stall_seconds=60.0))
    assert "no token for 60 s, though the stream is alive" in told.value.why


def test_slow_stream_with_comments_between_its_tokens_is_whole() -> None:
    class Slow(StubEngine):
        async def _stream(
            self, path: str, number: int, plan: Schedule, fault: str, send: Send
        ) -> None:
            send(BEGIN)
            for count in range(1, 5):
                for _ in range(5):
                    await asyncio.sleep(10)
                    send(chunk(b": ping\n\n"))
                send(chunk(native(count)))
            last = {"completion_tokens": 5, "finish_reason": {"type": "length"}}
            send(chunk(data({"text": "xxxxx", "meta_info": last})) + chunk(b"data: [DONE]\n\n"))
            send(b"0\r\n\r\n")

    (cell,) = measure(Slow(), plan(endpoint="generate", stall_seconds=60.0, warmup_batches=0))
    assert (cell.failed, cell.stalled, cell.output_tokens) == (0, 0, 12 * 5)


@pytest.mark.parametrize(
    ("endpoint", "event", "said"),
    [
        ("generate", native, "the server counts 85 tokens where at most 10 were asked for"),
        ("chat", lambda _: chat("w"), "there are at least 85 tokens where at most 10"),
        ("generate", lambda _: native(0)[:-2] + b"\n\n", "no token for 60 s"),
    ],
)
def test_answer_far_beyond_what_was_asked_for_is_ended(
    endpoint: str, event: Callable[[int], bytes], said: str
) -> None:
    engine = Endless()
    engine.event = event
    with pytest.raises(NothingSucceeded) as told:
        measure(engine, plan(endpoint=endpoint, output_tokens=10, stall_seconds=60.0))
    assert said in told.value.why


def test_one_of_them_is_counted_as_failed_beside_the_others() -> None:
    engine = Endless()
    engine.event, engine.wrong = native, lambda number: number == 9
    (cell,) = measure(engine, plan(endpoint="generate", output_tokens=101))
    assert (cell.requests, cell.failed, cell.stalled) == (11, 1, 0)
    assert cell.errors == {"the server counts 267 tokens where at most 101 were asked for": 1}


def test_some_tokens_more_than_asked_for_are_none_too_many() -> None:
    """The last pass may bring more, and engines count the end in their own ways."""
    (cell,) = measure(StubEngine(lambda _: Schedule(tokens=110)), plan(output_tokens=101))
    assert (cell.requests, cell.failed, cell.notes) == (12, 0, ())
    (cell,) = measure(StubEngine(lambda _: Schedule(tokens=201)), plan(output_tokens=101))
    assert any("up to 201 tokens an answer, where at most 101" in note for note in cell.notes)


def test_text_of_an_answer_that_was_cut_off_is_kept() -> None:
    engine = Endless()
    engine.event = native

    async def work() -> tuple[TextAnswer, ...]:
        clock = asyncio.get_running_loop().time
        bench = Bench(MemoryConnector(engine), "127.0.0.1", PORT, SGLANG, clock=clock)
        return await bench.ask([Prompt.of("one")], output_tokens=10)

    engine.event = lambda _: chat("w")
    (answer,) = in_virtual_time(work())
    assert answer.finish == "length"
    assert answer.text == "w" * 85
    assert "85 tokens" in answer.error


def test_refusal_that_does_not_end_is_read_for_a_while() -> None:
    class Drip(StubEngine):
        async def _stream(
            self, path: str, number: int, plan: Schedule, fault: str, send: Send
        ) -> None:
            send(b"HTTP/1.1 400 Bad\r\ncontent-length: 100000\r\n\r\ntoo long")
            while True:
                await asyncio.sleep(10)
                send(b"!")

    with pytest.raises(ServerRefused) as told:
        measure(Drip(), plan(stall_seconds=60.0))
    assert told.value.why.startswith("400: too long!")
