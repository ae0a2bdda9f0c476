"""HTTP through a real SSH connection to a real HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest

from ddtui.core.samples import LinkState
from ddtui.hosts.ssh import SshHost
from tests.unit.hosts.server import SshLab
from tests.unit.hosts.waiting import eventually


@dataclass
class Web:
    """A small HTTP/1.1 server."""

    port: int = 0
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await self.answer(head.split()[1], writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        if path == "/slow":
            return
        if path == "/close":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx")
            writer.close()
        elif path == "/stream":
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            writer.write(b"7\r\ndata: 1\r\n")
            await writer.drain()
        elif path == "/garbage":
            writer.write(b"SSH-2.0-not-http\r\n\r\n")
        else:
            body = b"x" * 300_000 if path == "/big" else path.encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    yield web
    server.close()


@asynccontextmanager
async def client_of(lab: SshLab, web: Web) -> AsyncIterator[tuple[SshHost, httpx.AsyncClient]]:
    host = SshHost("lab", lab.target())
    await host.start()
    await host.wait_live()
    url = f"http://127.0.0.1:{web.port}"
    try:
        async with httpx.AsyncClient(transport=host.transport(), base_url=url) as client:
            yield host, client
    finally:
        await host.close()


async def test_requests_share_a_channel(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (_, client):
        assert (await client.get("/health")).text == "/health"
        assert len((await client.get("/big")).content) == 300_000
        assert web.connections == 1
        assert (await client.get("/close")).text == "x"
        await asyncio.sleep(0.05)
        assert (await client.get("/health")).text == "/health"
        assert web.connections == 2


async def test_a_response_streams(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (_, client), client.stream("GET", "/stream") as response:
        async for part in response.aiter_bytes():
            assert part == b"data: 1"
            break


async def test_a_link_that_breaks_in_the_middle_is_an_error_of_the_transport(
    lab: SshLab, web: Web
) -> None:
    async with client_of(lab, web) as (host, client):
        async with client.stream("GET", "/stream", timeout=5) as response:
            parts = response.aiter_bytes()
            assert await anext(parts) == b"data: 1"
            lab.cut()
            with pytest.raises(httpx.TransportError):
                await anext(parts)
        async with asyncio.timeout(10):
            await host.wait_live()
        assert (await client.get("/health")).text == "/health", "the new connection has a new pool"


async def test_nobody_listens(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (_, client):
        with pytest.raises(httpx.ConnectError, match=r"refused|failed"):
            await client.get("http://127.0.0.1:1/")


async def test_forwarding_is_forbidden(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (_, client):
        lab.forwarding = False
        with pytest.raises(httpx.ConnectError, match="AllowTcpForwarding"):
            await client.get("/health")


async def test_the_link_is_down(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (host, client):
        await lab.stop()
        lab.cut()
        assert await eventually(lambda: host.link.state is not LinkState.LIVE)
        with pytest.raises(httpx.ConnectError, match="the SSH link is down: connection"):
            await client.get("/health")


async def test_timeouts_are_kept(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (_, client):
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/slow", timeout=0.2)


async def test_what_is_not_http_is_told(lab: SshLab, web: Web) -> None:
    async with client_of(lab, web) as (_, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/garbage")
        with pytest.raises(httpx.ConnectError, match="https is not supported"):
            await client.get(f"https://127.0.0.1:{web.port}/")
        with pytest.raises(httpx.UnsupportedProtocol):
            await client.get("ftp://127.0.0.1/")
