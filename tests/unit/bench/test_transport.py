"""The thin transport on real sockets, and through the simulated host's SSH server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from ddtui.bench.bench import Bench
from ddtui.bench.transport import Connector, ThinTransport, timed_reads
from ddtui.core.bench_plan import BenchPlan
from ddtui.demo.host import DemoHost
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.ports import DirectPorts
from tests.support.stub_engine import Schedule, StubEngine, serve

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(talk: Talk) -> AsyncIterator[int]:
    """A server that says what `talk` says after each request's head."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(connection, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


def saying(*parts: bytes, then_close: bool = False) -> Talk:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then_close:
            writer.close()

    return talk


def client(
    port: int, connector: Connector | None = None, timeout: float = 5.0
) -> httpx.AsyncClient:
    transport = ThinTransport(connector or DirectPorts())
    return httpx.AsyncClient(
        transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=timeout
    )


class Counting(DirectPorts):
    """Counts connections."""

    opened = 0

    async def open_port(self, address, port, receiver):  # type: ignore[no-untyped-def]
        self.opened += 1
        return await super().open_port(address, port, receiver)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


async def test_connection_is_kept_and_used_again() -> None:
    ports = Counting()
    async with server(saying(OK)) as port, client(port, ports) as http:
        for _ in range(3):
            assert (await http.get("/")).text == "hi"
        assert ports.opened == 1
        await asyncio.gather(*(http.get("/") for _ in range(5)))
        assert ports.opened <= 5


async def test_kept_connection_that_its_server_ended_is_opened_anew() -> None:
    ports = Counting()
    async with server(saying(OK, then_close=True)) as port, client(port, ports) as http:
        for _ in range(3):
            assert (await http.get("/")).text == "hi"
        assert ports.opened == 3


async def test_reads_come_with_their_times_and_a_long_pause_loses_none() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(5):
            sent.append(time.perf_counter())
            writer.write(b"1\r\n%d\r\n" % number)
            await writer.drain()
            await asyncio.sleep(0.03)
        writer.write(b"0\r\n\r\n")

    sent: list[float] = []
    async with server(talk) as port, client(port) as http, http.stream("GET", "/") as response:
        lists = [pieces async for pieces in timed_reads(response, 60.0)]
    assert len(lists) == 1, "it is woken by the end, not by each read"
    assert b"".join(piece for _, piece in lists[0]) == b"01234"
    for (stamp, _), moment in zip(lists[0], sent, strict=True):
        assert stamp >= moment
        assert stamp - moment < 0.03 + 0.5  # of a busy machine; the order is what counts
    async with server(saying(OK)) as port, client(port) as http:
        plain = httpx.Response(200)
        with pytest.raises(TypeError, match="ThinTransport"):
            timed_reads(plain, 1.0)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ((b"SSH-2.0-OpenSSH\r\n",), httpx.RemoteProtocolError, "not an answer of HTTP/1"),
        ((OK[:-1],), httpx.RemoteProtocolError, "in the middle"),
        ((), httpx.RemoteProtocolError, "before an answer came"),
    ],
)
async def test_malformed_answers(
    parts: tuple[bytes, ...], error: type[Exception], said: str
) -> None:
    async with server(saying(*parts, then_close=True)) as port, client(port) as http:
        with pytest.raises(error, match=said):
            await http.get("/")


async def test_silence_ends_in_a_read_timeout_after_what_came() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome")
        await asyncio.sleep(60)

    async with server(talk) as port, client(port, timeout=2.0) as http:
        async with http.stream("GET", "/") as response:
            reads = timed_reads(response, 0.05)
            assert [piece for _, piece in await anext(reads)] == [b"some"]
            with pytest.raises(httpx.ReadTimeout, match="no data for 2 s"):
                await anext(reads)
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/")


async def test_refused_connections_and_https() -> None:
    async with server(saying(OK)) as port:
        pass
    async with client(port) as http:
        with pytest.raises(httpx.ConnectError, match="cannot be reached"):
            await http.get("/")
        with pytest.raises(httpx.UnsupportedProtocol, match="use http"):
            await http.get("https://127.0.0.1/")


async def test_reader_that_does_not_come_holds_the_sender_back() -> None:
    size, sent = 64 << 20, list[int]()

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _part in range(64):
            writer.write(b"x" * (1 << 20))
            await writer.drain()
            sent.append(1)

    async with server(talk) as port, client(port) as http, http.stream("GET", "/") as response:
        await asyncio.sleep(0.5)
        assert len(sent) < 40
        assert len(await response.aread()) == size


# ---- the whole bench over sockets and SSH --------------------------------------------------------


PLAN = BenchPlan(requests=8, concurrency=(8,), repeats=2, warmup_batches=1, output_tokens=41)
SCHEDULE = Schedule(ttft=0.25, gap=0.03, tokens=41)


def check(engine: StubEngine, measured: float) -> None:
    """Against the moments at which the engine really sent: it runs in this same busy process."""
    seconds = sum(moments[-1][0] - moments[0][0] for moments in engine.sent[-16:])
    tokens = sum(moments[-1][1] - moments[0][1] for moments in engine.sent[-16:])
    assert measured == pytest.approx(seconds / tokens, rel=0.05)


async def test_bench_over_sockets() -> None:
    engine = StubEngine(lambda _: SCHEDULE)
    async with await serve(engine) as listening:
        port = listening.sockets[0].getsockname()[1]
        (cell,) = await Bench(DirectPorts(), "127.0.0.1", port, SGLANG).run(PLAN)
    assert (cell.requests, cell.output_tokens) == (16, 16 * 41)
    assert cell.acceptance_length
    assert cell.acceptance_length.median == pytest.approx(SCHEDULE.acceptance)
    assert cell.tpot
    check(engine, cell.tpot.median)


@pytest.mark.parametrize("endpoint", ["chat", "generate"])
async def test_bench_through_ssh_against_the_simulated_engine(endpoint: str) -> None:
    host = DemoHost(speed=2000.0)
    await host.start()
    try:
        await host.wait_live()
        bench = Bench(host, "127.0.0.1", 30000, SGLANG)
        await _serving(host)
        plan = BenchPlan(
            requests=4, repeats=2, warmup_batches=1, output_tokens=48, concurrency=(1, 4),
            endpoint="chat" if endpoint == "chat" else "generate",
        )  # fmt: skip
        cells = await bench.run(plan, budget=12)
    finally:
        await host.close()
    for cell in cells:
        assert (cell.requests, cell.failed, cell.output_tokens) == (8, 0, 8 * 48)
        assert cell.acceptance_length
        assert 3 < cell.acceptance_length.median < 7
        assert cell.node_use == pytest.approx((cell.acceptance_length.median - 1) / 12)
        assert cell.positions == tuple(sorted(cell.positions, reverse=True))
        assert cell.link_rtt
        # Greedy answers to the same prompts accept the same drafts.
        assert len(set(cell.acceptance_length.values)) == 1


async def _serving(host: DemoHost) -> None:
    async with client(30000, host) as http, asyncio.timeout(30):
        while True:
            try:
                if (await http.get("/ready")).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)
