"""HTTP to the host's own ports through SSH, without a local port that others could reach."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

import asyncssh
import httpcore
import httpx

from ddtui.hosts.base import HostError
from ddtui.hosts.ssh.connection import Connection
from ddtui.hosts.ssh.failures import FORBIDDEN

_ERRORS: dict[type[Exception], type[httpx.TransportError]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
}


@contextmanager
def _httpx_errors(request: httpx.Request) -> Iterator[None]:
    """Raise errors of httpcore as the httpx errors of the same names."""
    try:
        yield
    except tuple(_ERRORS) as exc:
        raise _ERRORS[type(exc)](str(exc), request=request) from exc


class _ChannelStream(httpcore.AsyncNetworkStream):
    """A direct-tcpip channel as the connection of an HTTP client."""

    def __init__(
        self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]
    ) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as exc:
            raise httpcore.ReadTimeout(f"no data within {timeout:g} s") from exc
        except (asyncssh.Error, OSError) as exc:
            raise httpcore.ReadError(f"the SSH connection broke: {exc}") from exc

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as exc:
            raise httpcore.WriteTimeout(f"not sent within {timeout:g} s") from exc
        except (asyncssh.Error, OSError) as exc:
            raise httpcore.WriteError(f"the SSH connection broke: {exc}") from exc

    async def aclose(self) -> None:
        self._writer.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,  # noqa: ARG002 - the interface's
        server_hostname: str | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        self._writer.close()
        raise httpcore.ConnectError("https is not supported through SSH, which encrypts: use http")

    def get_extra_info(self, info: str) -> object:
        # The pool asks before it uses a kept connection again: at the end of the data it is dead.
        return self._reader.at_eof() if info == "is_readable" else None


class _SshBackend(httpcore.AsyncNetworkBackend):
    """Opens channels instead of sockets."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the interface's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                return _ChannelStream(*await self._connection.open_port(host, port))
        except TimeoutError as exc:
            raise httpcore.ConnectTimeout(
                f"{host}:{port} on the host did not answer within {timeout:g} s"
            ) from exc
        except asyncssh.ChannelOpenError as exc:
            raise httpcore.ConnectError(_refusal(exc, host, port)) from exc
        except HostError as exc:
            raise httpcore.ConnectError(f"the SSH link is down: {exc.what}") from exc

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _refusal(exc: asyncssh.ChannelOpenError, host: str, port: int) -> str:
    if exc.code == FORBIDDEN:
        return (
            "the host's sshd forbids forwarding to "
            f"{host}:{port} (AllowTcpForwarding or PermitOpen in its sshd_config)"
        )
    return f"{host}:{port} on the host: {exc.reason.lower()}"


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: AsyncIterable[bytes], request: httpx.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors(self._request):
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        if close := getattr(self._stream, "aclose", None):
            await close()


class SshTransport(httpx.AsyncBaseTransport):
    """An httpx transport on whatever connection is live; a new connection gets a new pool."""

    def __init__(self, live: Callable[[], Connection], channels: int = 10) -> None:
        """`live` returns the present connection, or raises LinkDown or LinkRefused.

        `channels` is how many are open at once; further requests wait.
        """
        self._live = live
        self._channels = channels
        self._connection: Connection | None = None
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def _present_pool(self, request: httpx.Request) -> httpcore.AsyncConnectionPool:
        try:
            connection = self._live()
        except HostError as exc:
            raise httpx.ConnectError(f"the SSH link is down: {exc.what}", request=request) from exc
        if self._pool is None or connection is not self._connection:
            stale, self._connection = self._pool, connection
            self._pool = httpcore.AsyncConnectionPool(
                network_backend=_SshBackend(connection),
                max_connections=self._channels,
                keepalive_expiry=5.0,
            )
            if stale is not None:
                await stale.aclose()
        return self._pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises httpx.TransportError."""
        pool = await self._present_pool(request)
        with _httpx_errors(request):
            response = await pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=cast(AsyncIterable[bytes], request.stream),
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(cast(AsyncIterable[bytes], response.stream), request),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close what is kept open."""
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None
