"""A thin HTTP/1.1 transport for httpx that stamps each read at the moment it comes.

What a streamed event costs is a matter of reads, not of bytes: waking a coroutine for each, and
handing it through the layers of a general client, is most of it. Here an event costs one call of
`data_received`, which takes the time, unwraps the chunk and keeps it. The coroutine that wants the
body is woken at its end, or each time that the pause of its choice is over, and takes what is there
(`timed_reads`); one coroutine a turn of the loop, so that it keeps no other stream from its stamp.
Through SSH it is the same, within the read of the SSH connection's socket.

httpx stays the interface: the transport goes into an AsyncClient like any other.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import httpx

from ddtui.bench.http1 import AnswerParser, Head, Malformed
from ddtui.bench.turns import Turns
from ddtui.hosts.base import HostError, Port, Receiver

_HELD_MOST = 4 << 20
"""Bytes held for a reader that does not come; then the connection waits."""
_BODY_MOST = 1 << 30
"""Bytes of one body; a longer one is refused."""
_BODY = "timed_body"
"""The response extension that holds the body: httpx wraps the response's stream."""
_SENT = "sent_at"
"""The response extension that holds when its request was sent."""

_PHASES = ((number * 0.618034) % 1.0 for number in itertools.count(1))
"""Where in its pause each stream begins: streams that begin together must not be looked at
together, for meanwhile nothing is stamped. Multiples of the golden ratio spread evenly."""

TimedPiece = tuple[float, bytes]
"""When it came, by the transport's clock, and a piece of the body."""


class Connector(Protocol):
    """What opens connections: a Host, or `ddtui.hosts.ports.DirectPorts`."""

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host."""
        ...


class _Connection:
    """One connection: a Receiver that parses one answer after the other."""

    def __init__(self, clock: Callable[[], float], turns: Turns) -> None:
        self._clock = clock
        self._turns = turns
        self.port: Port | None = None
        self.answered = 0
        """Answers that it has carried."""
        self.heard = False
        """Whether anything has come since the request."""
        self.ended = False
        self._parser: AnswerParser | None = None
        self._error: httpx.TransportError | None = None
        self._pieces: list[TimedPiece] = []
        self._held = self._total = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._eager = True
        """Whether the waiter is woken by any data, or by the head, the end and errors alone."""

    def begin(self, *, head_only: bool) -> None:
        """A request is sent: an answer will come."""
        self._parser = AnswerParser(head_only=head_only)
        self.heard, self._total = False, 0

    # ---- what comes -----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """See Receiver."""
        stamp, parser = self._clock(), self._parser
        if parser is None or self._error is not None:
            self.ended = True  # nobody asked: this connection is not to be used again
            return
        self.heard = True
        try:
            pieces = parser.feed(data)
        except Malformed as exc:
            self._fail(httpx.RemoteProtocolError(f"malformed answer: {exc}"))
            return
        for piece in pieces:
            self._pieces.append((stamp, piece))
            self._held += len(piece)
        if self._held > _HELD_MOST and not self._paused and self.port is not None:
            self._paused = True
            self.port.pause()
            self._wake()
        if self._eager or parser.complete:
            self._wake()

    def data_ended(self, error: str) -> None:
        """See Receiver."""
        self.ended = True
        if self._parser is None or self._parser.complete:
            return
        if error:
            self._fail(httpx.ReadError(f"the connection broke: {error}"))
            return
        try:
            self._parser.end()
        except Malformed as exc:
            self._fail(httpx.RemoteProtocolError(str(exc)))
        self._wake()

    def _fail(self, error: httpx.TransportError) -> None:
        self._error = self._error or error
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            self._turns.wake(waiter)

    # ---- what is waited for ---------------------------------------------------------------------

    async def _wait(self, seconds: float | None) -> None:
        """Return when woken, or after `seconds`."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_later(seconds, self._wake) if seconds is not None else None
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    async def head(self, timeout: float | None) -> Head:
        """Status and headers, once they are there. Raises httpx.TransportError."""
        self._eager = True
        deadline = None if timeout is None else self._clock() + timeout
        while self._parser is not None and self._parser.head is None:
            if self._error is not None:
                raise self._error
            left = None if deadline is None else deadline - self._clock()
            if left is not None and left <= 0:
                raise httpx.ReadTimeout(f"no answer within {timeout:g} s")
            await self._wait(left)
        if self._parser is None or self._parser.head is None:
            raise httpx.LocalProtocolError("no request was sent")
        return self._parser.head

    async def reads(self, pause: float, timeout: float | None) -> AsyncIterator[list[TimedPiece]]:
        """The pieces of the body in lists, at least so many seconds apart; 0 for at once.

        Raises httpx.TransportError, after all that came before was given.
        """
        self._eager = pause <= 0
        last, wait = self._clock(), pause * next(_PHASES)
        while True:
            if not self._pieces and self._complete:
                return
            if self._error is None and (pause > 0 or not self._pieces) and not self._complete:
                await self._wait(wait if pause > 0 else _left(timeout, last, self._clock()))
                wait = pause
            batch = self._take()
            if batch:
                last = batch[-1][0]
                yield batch
            elif self._error is not None:
                raise self._error
            elif timeout is not None and self._clock() - last >= timeout and not self._complete:
                raise httpx.ReadTimeout(f"no data for {timeout:g} s")

    async def ends_within(self, seconds: float) -> None:
        """Return once the body has ended, or after `seconds`."""
        self._eager = False
        if not self._complete and self._error is None:
            await self._wait(seconds)

    @property
    def _complete(self) -> bool:
        return self._parser is not None and self._parser.complete

    def _take(self) -> list[TimedPiece]:
        batch, self._pieces = self._pieces, []
        self._total += self._held
        self._held = 0
        if self._total > _BODY_MOST:
            self._fail(httpx.RemoteProtocolError(f"an answer of more than {_BODY_MOST >> 20} MiB"))
        if self._paused and self.port is not None:
            self._paused = False
            self.port.resume()
        return batch

    def finish(self) -> bool:
        """The answer is done with; whether the connection can carry another."""
        parser, self._parser = self._parser, None
        self._pieces, self._held, self._eager = [], 0, True
        self.answered += 1
        return parser is not None and parser.reusable and not self.ended and self._error is None

    def close(self) -> None:
        """End it."""
        self.ended = True
        if self.port is not None:
            self.port.close()


def _left(timeout: float | None, last: float, now: float) -> float | None:
    return None if timeout is None else max(0.0, last + timeout - now)


class TimedBody(httpx.AsyncByteStream):
    """The body of an answer, with the time of each piece for those who ask for it."""

    def __init__(
        self, connection: _Connection, timeout: float | None, release: Callable[[bool], None]
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._release: Callable[[bool], None] | None = release

    async def reads(self, pause: float) -> AsyncIterator[list[TimedPiece]]:
        """See `timed_reads`."""
        async for batch in self._connection.reads(pause, self._timeout):
            yield batch

    async def ends_within(self, seconds: float) -> None:
        """See the function of this name."""
        await self._connection.ends_within(seconds)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for batch in self.reads(0):
            for _, piece in batch:
                yield piece

    async def aclose(self) -> None:
        """Give the connection back; it is closed when the answer was not read to its end."""
        release, self._release = self._release, None
        if release is not None:
            release(self._connection.finish())


def timed_reads(response: httpx.Response, pause: float) -> AsyncIterator[list[TimedPiece]]:
    """What comes, in lists: each once `pause` seconds have passed, the last at the body's end.

    The first pause is shorter, by another part of it for each stream.

    The stamps are those of the reads, whenever they are fetched; a long pause costs less. Raises
    httpx.ReadTimeout when nothing has come for the request's read timeout, and other
    httpx.TransportError, each after everything that came before was given. TypeError for the
    response of another transport.
    """
    body = response.extensions.get(_BODY)
    if not isinstance(body, TimedBody):
        raise TypeError("this response did not come through a ThinTransport")
    return body.reads(pause)


async def ends_within(response: httpx.Response, seconds: float) -> None:
    """Return once the body has ended, or after `seconds`; what still comes is not read.

    An answer that was read to its end leaves its connection to the next request.
    """
    body = response.extensions.get(_BODY)
    if isinstance(body, TimedBody):
        await body.ends_within(seconds)


def sent_at(response: httpx.Response) -> float:
    """When its request was sent, by the transport's clock: once it had a connection.

    KeyError for the response of another transport.
    """
    sent: float = response.extensions[_SENT]
    return sent


class ThinTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 without TLS, redirects or proxies, over the connections of `connector`.

    It opens as many connections as there are requests at once, and keeps them for the next ones.
    """

    def __init__(
        self, connector: Connector, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """`clock` stamps the reads."""
        self._connector = connector
        self._clock = clock
        self._turns = Turns()
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._all: set[_Connection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; returns once the head of its answer is there.

        Raises httpx.TransportError: ConnectError with the HostError that was its cause.
        """
        if request.url.scheme != "http":
            raise httpx.UnsupportedProtocol(
                f"{request.url.scheme} is not supported here: use http", request=request
            )
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        content = b"".join([part async for part in _parts(request)])
        message = _head(request, content) + content
        try:
            while True:
                connection = await self._connection(request.url, timeouts.get("connect"))
                used = connection.answered > 0
                try:
                    return await self._exchange(connection, request, message, timeouts)
                except (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError):
                    # A kept connection may have been ended by its server while it was not used.
                    if not used or connection.heard:
                        raise
        except httpx.TransportError as exc:
            exc.request = request
            raise

    async def _exchange(
        self,
        connection: _Connection,
        request: httpx.Request,
        message: bytes,
        timeouts: dict[str, float | None],
    ) -> httpx.Response:
        released = False
        try:
            connection.begin(head_only=request.method == "HEAD")
            sent = self._clock()
            await _send(connection, message, timeouts.get("write"))
            head = await connection.head(timeouts.get("read"))
            released = True
        finally:
            if not released:
                self._discard(connection)
        place = _place(request.url)

        def release(reusable: bool) -> None:
            if reusable:
                self._idle.setdefault(place, []).append(connection)
            else:
                self._discard(connection)

        body = TimedBody(connection, timeouts.get("read"), release)
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": head.reason, _BODY: body}
        extensions[_SENT] = sent
        return httpx.Response(
            status_code=head.status,
            headers=list(head.headers),
            stream=body,
            extensions=extensions,
        )

    async def _connection(self, url: httpx.URL, timeout: float | None) -> _Connection:
        idle = self._idle.get(_place(url), [])
        while idle:
            connection = idle.pop()
            if not connection.ended:
                return connection
            self._discard(connection)
        connection = _Connection(self._clock, self._turns)
        address, port = _place(url)
        try:
            async with asyncio.timeout(timeout):
                connection.port = await self._connector.open_port(address, port, connection)
        except TimeoutError as exc:
            raise httpx.ConnectTimeout(
                f"{address}:{port} did not answer within {timeout:g} s"
            ) from exc
        except HostError as exc:
            raise httpx.ConnectError(exc.what) from exc
        self._all.add(connection)
        return connection

    def _discard(self, connection: _Connection) -> None:
        connection.close()
        self._all.discard(connection)

    async def aclose(self) -> None:
        """Close every connection."""
        for connection in list(self._all):
            self._discard(connection)
        self._idle.clear()


async def _send(connection: _Connection, message: bytes, timeout: float | None) -> None:
    if connection.port is None:
        raise httpx.LocalProtocolError("the connection is not open")
    try:
        connection.port.write(message)
        async with asyncio.timeout(timeout):
            await connection.port.drain()
    except TimeoutError as exc:
        raise httpx.WriteTimeout(f"not sent within {timeout:g} s") from exc
    except OSError as exc:
        raise httpx.WriteError(f"the connection broke: {exc}") from exc


async def _parts(request: httpx.Request) -> AsyncIterator[bytes]:
    stream = request.stream
    if not isinstance(stream, httpx.AsyncByteStream):
        raise TypeError("only asynchronous requests")
    async for part in stream:
        yield part


def _place(url: httpx.URL) -> tuple[str, int]:
    return url.host, url.port or 80


def _head(request: httpx.Request, content: bytes) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if name.lower() == b"transfer-encoding":  # the content is sent in one piece
            name, value = b"content-length", b"%d" % len(content)  # noqa: PLW2901
        lines.append(b"%s: %s" % (name, value))
    return b"\r\n".join([*lines, b"", b""])
