"""An engine that streams by a known schedule: several tokens an event, cut at any byte.

The same answers go out through memory (any event loop, virtual time included) and through real
sockets. What it counts and when it sent is kept, so that figures can be held against the truth.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ddtui.hosts.base import Port, PortClosed, Receiver

PORT = 30000
MODEL = "stub-model"


@dataclass(frozen=True)
class Schedule:
    """How one request is answered. Seconds."""

    ttft: float = 0.2
    gap: float = 0.02
    """Between two events."""
    steps: tuple[int, ...] = (4, 1, 3, 2)
    """Tokens of the events after the first, over and over: drafts accepted + 1."""
    tokens: int = 101
    first: int = 1
    """Tokens of the first event."""
    reasoning: int = 0
    """Tokens of the beginning that are reasoning."""
    beyond: int = 0
    """Tokens that the last pass decodes beyond the answer's end: counted, and never sent."""

    def events(self) -> Iterator[tuple[float, int, int]]:
        """(Seconds since the request, new tokens, tokens so far)."""
        at, count = self.ttft, min(self.first, self.tokens)
        yield at, count, count
        number = 0
        while count < self.tokens:
            new = min(self.steps[number % len(self.steps)], self.tokens - count)
            at, count, number = at + self.gap, count + new, number + 1
            yield at, new, count

    @property
    def histogram(self) -> list[int]:
        """Verifications by accepted drafts."""
        found = [0] * (max(self.steps) + 1)
        for _, new, count in list(self.events())[1:]:
            found[new - 1 + self.beyond * (count >= self.tokens)] += 1
        return found[: max(self.steps)]

    @property
    def speculation(self) -> dict[str, Any]:
        """As SGLang 0.5.23 names it."""
        histogram = self.histogram
        accepted = sum(index * count for index, count in enumerate(histogram))
        return {
            "spec_verify_ct": sum(histogram),
            "spec_num_correct_drafts": accepted,
            "spec_num_proposed_drafts": 7 * sum(histogram),
            "spec_correct_drafts_histogram": histogram,
        }

    @property
    def duration(self) -> float:
        """From the request to the last event."""
        return list(self.events())[-1][0]

    @property
    def tpot(self) -> float:
        """By its definition."""
        return (self.duration - self.ttft) / (self.tokens - self.first)

    @property
    def acceptance(self) -> float:
        """By its definition."""
        spoken = self.speculation
        return 1 + spoken["spec_num_correct_drafts"] / spoken["spec_verify_ct"]


@dataclass
class StubEngine:
    """Answers requests. `schedule` is asked for each one, by its number from 0."""

    schedule: Callable[[int], Schedule] = lambda _: Schedule()
    clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()
    pieces: int = 3
    """Into how many reads an event is cut."""
    counts_on_the_way: bool = True
    """Whether chat events tell how many tokens there are so far."""
    api_key: str = ""
    fault: Callable[[int], str] = lambda _: ""
    """`stall`, `cut`, `refuse`, `error`, `abort` for a request by its number."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the requests that generate."""
    sent: list[list[tuple[float, int]]] = field(default_factory=list)
    """(Moment, tokens so far) of each event, by request."""
    flushed: int = 0
    running: int = 0
    most_running: int = 0
    decoded: int = 0
    generated: int = 0
    verified: int = 0
    first_seconds: float = 0.0
    firsts: int = 0
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    async def answer(self, message: bytes, send: Callable[[bytes], None]) -> None:
        """Answer one request, whole in `message`."""
        head, _, body = message.partition(b"\r\n\r\n")
        line, *headers = head.decode().split("\r\n")
        method, target, _ = line.split(" ")
        path = target.partition("?")[0]
        fields = dict(each.lower().split(": ", 1) for each in headers)
        if self.api_key and fields.get("authorization") != f"bearer {self.api_key}".lower():
            return send(plain(401, b'{"error":"Unauthorized"}'))
        if path in ("/generate", "/v1/chat/completions"):
            return await self._generate(path, json.loads(body), send)
        if path == "/flush_cache":
            self.flushed += method == "POST"
            return send(plain(400 if self.running else 200, b"Cache flushed.\n"))
        if path == "/v1/models":
            return send(plain(200, json.dumps({"data": [{"id": MODEL}]}).encode()))
        if path == "/metrics":
            return send(plain(200, self.metrics().encode()))
        return send(plain(404, b'{"detail":"Not Found"}'))

    def metrics(self) -> str:
        """As SGLang's."""
        streaming = '{is_streaming="true"}'
        return (
            f'sglang:realtime_tokens_total{{mode="decode"}} {self.decoded}\n'
            f"sglang:generation_tokens_total{streaming} {self.generated}\n"
            f"sglang:spec_verify_calls_total {self.verified}\n"
            f"sglang:time_to_first_token_seconds_sum{streaming} {self.first_seconds}\n"
            f"sglang:time_to_first_token_seconds_count{streaming} {self.firsts}\n"
        )

    async def _generate(
        self, path: str, body: dict[str, Any], send: Callable[[bytes], None]
    ) -> None:
        number = len(self.requests)
        self.requests.append(body)
        self.sent.append([])
        fault, plan = self.fault(number), self.schedule(number)
        if fault == "refuse":
            return send(plain(400, b'{"object":"error","message":"too long for this model"}'))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self._stream(path, number, plan, fault, send)
        finally:
            self.running -= 1
        return None

    async def _stream(
        self, path: str, number: int, plan: Schedule, fault: str, send: Callable[[bytes], None]
    ) -> None:
        began = self.clock()
        send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
             b"transfer-encoding: chunked\r\n\r\n")  # fmt: skip
        events = list(plan.events())
        write = _chat if path.startswith("/v1") else _native
        for at, new, count in events:
            await asyncio.sleep(max(0.0, began + at - self.clock()))
            last = count >= plan.tokens
            if fault and count > plan.tokens // 2:
                if fault == "stall":
                    await asyncio.sleep(1e6)
                if fault == "error":
                    self._send(send, [{"error": {"message": "CUDA out of memory", "code": 500}}])
                    return send(b"0\r\n\r\n")
                if fault == "cut":
                    raise ConnectionError
                last = True
            self._count(began, new, count)
            self.sent[number].append((self.clock(), count))
            self._send(send, write(self, plan, new, count, last, fault))
            if last:
                break
        self.generated += plan.tokens
        self.decoded += plan.beyond
        self.verified += plan.speculation["spec_verify_ct"]
        send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        return None

    def _count(self, began: float, new: int, count: int) -> None:
        if count == new:
            self.firsts += 1
            self.first_seconds += self.clock() - began
            new -= 1
        self.decoded += new

    def _send(self, send: Callable[[bytes], None], values: list[dict[str, Any]]) -> None:
        data = b"".join(chunk(b"data: %s\n\n" % json.dumps(value).encode()) for value in values)
        cuts = sorted(self.rng.randrange(len(data)) for _ in range(self.pieces - 1))
        for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
            if start < stop:
                send(data[start:stop])


def chunk(data: bytes) -> bytes:
    """A chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def plain(status: int, body: bytes) -> bytes:
    """A whole answer."""
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)


def _chat(
    engine: StubEngine, plan: Schedule, new: int, count: int, last: bool, fault: str
) -> list[dict[str, Any]]:
    thinking = count <= plan.reasoning
    text = " word" * new
    delta = {"reasoning_content": text} if thinking else {"content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": count, "reasoning_tokens": plan.reasoning}
    event: dict[str, Any] = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if engine.counts_on_the_way:
        event["usage"] = usage
    values = [event]
    if count == new:
        values.insert(0, {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    if last:
        finish = "abort" if fault == "abort" else "length"
        values.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        values.append({"choices": [], "sglext": {"spec_tokens_details": plan.speculation}})
        values.append({"choices": [], "usage": usage})
    return values


def _native(
    _engine: StubEngine, plan: Schedule, _new: int, count: int, last: bool, fault: str
) -> list[dict[str, Any]]:
    finish = {"type": "abort" if fault == "abort" else "length", "length": count}
    meta: dict[str, Any] = {"completion_tokens": count, "finish_reason": finish if last else None}
    if last:
        meta |= plan.speculation | {"first_token_latency": plan.ttft}
    return [{"text": " word" * count, "output_ids": [1] * count, "meta_info": meta}]


# ---- how it is reached --------------------------------------------------------------------------


class _MemoryPort:
    """Both ends of a connection in memory, `away` seconds apart."""

    def __init__(self, engine: StubEngine, receiver: Receiver, away: float) -> None:
        self._engine = engine
        self._receiver = receiver
        self._away = away
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._way: deque[bytes] = deque()
        self.closed = False

    def write(self, data: bytes) -> None:
        self._loop.call_later(self._away, self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        task = self._loop.create_task(self._serve(data))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, data: bytes) -> None:
        try:
            await self._engine.answer(data, self._send)
        except ConnectionError:
            await asyncio.sleep(self._away + 1e-6)  # after what was sent before
            self._receiver.data_ended("")

    def _send(self, data: bytes) -> None:
        # Timers of one moment fire in any order: each delivers what is next.
        self._way.append(data)
        self._loop.call_later(self._away, self._deliver)

    def _deliver(self) -> None:
        data = self._way.popleft()
        if not self.closed:
            self._receiver.data_received(data)

    async def drain(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
        for task in self._tasks:
            task.cancel()


class MemoryConnector:
    """Reaches the engine without sockets. One request is one write, as the bench sends it."""

    def __init__(self, engine: StubEngine, away: float = 0.0) -> None:
        self.engine = engine
        self.away = away
        """Seconds one way."""
        self.ports: list[_MemoryPort] = []
        self.down = ""

    @property
    def open(self) -> int:
        """Connections that are open."""
        return sum(not port.closed for port in self.ports)

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        if self.down:
            raise PortClosed(self.down)
        await asyncio.sleep(2 * self.away)
        self.ports.append(_MemoryPort(self.engine, receiver, self.away))
        return self.ports[-1]


async def serve(engine: StubEngine) -> asyncio.Server:
    """The same on a socket of 127.0.0.1."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lengths = [
                    line for line in head.lower().split(b"\r\n") if b"content-length" in line
                ]
                length = int(lengths[0].partition(b":")[2]) if lengths else 0
                await engine.answer(head + await reader.readexactly(length), writer.write)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    return await asyncio.start_server(connection, "127.0.0.1", 0, backlog=512)
