"""One streamed request: sent, its events stamped, and what came of it."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from contextlib import suppress

import httpx
import msgspec

from ddtui.bench.event_stream import EventSplitter, EventTooLong
from ddtui.bench.transport import TimedPiece, ends_within, sent_at, timed_reads
from ddtui.core.generation import Event, GenerationFormat, Speculation
from ddtui.core.redact import safe_text

REFUSAL_LIMIT = 64 << 10
"""Bytes read of an answer that refuses."""
TEXT_LIMIT = 4 << 20
"""Characters kept of an answer's text."""
_REFUSAL_SECONDS = 15.0
"""In which an answer that refuses must have come."""
_SLACK = 64
"""Tokens beyond twice those asked for: engines count the end of an answer in their own ways."""
_END_SECONDS = 0.05
"""For which the end of a body is waited for once the mark of the stream's end has come."""
_NO_STREAM = 200
"""Characters of an answer that is no stream which are told."""

_LOST = (httpx.NetworkError, httpx.ConnectTimeout, httpx.RemoteProtocolError)
"""What says that the engine, or the way to it, may be gone."""


class Outcome(enum.StrEnum):
    """How a request ended."""

    OK = "ok"
    FAILED = "failed"
    STALLED = "stalled"
    """No token came for too long; what had come is kept."""
    OVERRUN = "overrun"
    """It went on far beyond the tokens that were asked for; what had come is kept."""


class Limits(msgspec.Struct, frozen=True):
    """When a stream is ended that does not end."""

    output_tokens: int
    """Asked for: an answer of far more goes on for ever."""
    stall_seconds: float
    """Without a token, whatever else comes."""


class Exchange(msgspec.Struct, kw_only=True):
    """A request and what came of it. Times by the generator's clock, in seconds."""

    began: float
    """When it was sent; where no answer came, when it was to be sent."""
    ended: float = 0.0
    """When the last token came, or the stream broke off."""
    outcome: Outcome = Outcome.FAILED
    error: str = ""
    status: int = 0
    """Of HTTP; 0 where none came."""
    lost: bool = False
    """Whether the connection could not be made, or broke."""
    first_token: float | None = None
    """First event with a token of any channel."""
    first_output: float | None = None
    """First visible content."""
    first_tokens: int | None = None
    """Tokens in the first of those events; None where the server does not say."""
    tokens: int | None = None
    """Tokens generated, by the server's count."""
    points: list[tuple[float, int | None]] = []
    """(Stamp, tokens so far) of the reads that brought tokens; None where the server does not
    say."""
    finish: str = ""
    reasoning_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    speculation: Speculation | None = None
    server_ttft: float | None = None
    content: str = ""
    reasoning: str = ""

    @property
    def ok(self) -> bool:
        """Whether it counts."""
        return self.outcome is Outcome.OK


class Reader:
    """Turns the pieces of one stream into an Exchange."""

    def __init__(self, form: GenerationFormat, exchange: Exchange, *, keep_text: bool) -> None:
        self._form = form
        self._exchange = exchange
        self._splitter = EventSplitter()
        self._keep_text = keep_text
        self._parts: list[str] = []
        self._thoughts: list[str] = []
        self._kept = 0
        self._text = ""
        self.news = exchange.began
        """When a token, the finish or the mark of the end came last: comments keep no stream alive,
        nor do events that bring nothing."""
        self.brought = 0
        """Events with a token."""
        self.over = False
        """Whether the mark of the end has come."""
        self.error = ""
        """What the engine said in the stream that went wrong."""
        self.events = 0
        self._before = bytearray()
        """What came before the first event: all there is of an answer that is no stream."""

    def take(self, pieces: list[TimedPiece]) -> None:
        """Read what came. Raises ValueError for what is no stream of this endpoint."""
        for stamp, piece in pieces:
            if not self.events and len(self._before) < REFUSAL_LIMIT:
                self._before += piece
            for at, data in self._splitter.feed(stamp, piece):
                self.events += 1
                event = self._form.event(data)
                if event is None:
                    self.over, self.news = True, at
                else:
                    self._event(at, event)

    def _event(self, stamp: float, event: Event) -> None:
        exchange = self._exchange
        before, tokens = exchange.tokens or 0, event.tokens
        if event.error:
            self.error = self.error or safe_text(event.error, 300)
        if tokens is not None and tokens >= before:
            exchange.tokens = tokens
        if not event.summary:
            visible = bool(event.content)
            new = visible and not (event.cumulative_text and event.content == self._text)
            counted = tokens is not None and tokens > before
            if visible or event.reasoning or event.other or counted:
                self._tokens_came(stamp, visible=visible)
            if new or event.reasoning or event.other or counted:
                self.news, self.brought = stamp, self.brought + 1
            if event.cumulative_text:
                self._text = event.content
        if event.finish and not exchange.finish:
            self.news = stamp
        if event.finish:
            exchange.finish = event.finish
            exchange.ended = stamp
        self._counts(event)
        if self._keep_text:
            self._keep(event)

    def _tokens_came(self, stamp: float, *, visible: bool) -> None:
        exchange, points = self._exchange, self._exchange.points
        if visible and exchange.first_output is None:
            exchange.first_output = stamp
        if exchange.first_token is None:
            exchange.first_token = stamp
        if points and points[-1][0] == stamp:
            points[-1] = (stamp, exchange.tokens)
        else:
            points.append((stamp, exchange.tokens))
        exchange.ended = stamp

    def _counts(self, event: Event) -> None:
        exchange = self._exchange  # written out: a loop over names costs a twentieth of an event
        if event.reasoning_tokens is not None:
            exchange.reasoning_tokens = event.reasoning_tokens
        if event.prompt_tokens is not None:
            exchange.prompt_tokens = event.prompt_tokens
        if event.cached_tokens is not None:
            exchange.cached_tokens = event.cached_tokens
        if event.speculation is not None:
            exchange.speculation = event.speculation
        if event.server_ttft is not None:
            exchange.server_ttft = event.server_ttft

    def _keep(self, event: Event) -> None:
        if event.cumulative_text:
            self._parts = [event.content[:TEXT_LIMIT]]
            return
        self._kept += len(event.content) + len(event.reasoning)
        if self._kept <= TEXT_LIMIT:
            self._parts.append(event.content)
            self._thoughts.append(event.reasoning)

    def overrun(self, asked: int) -> str:
        """What is said of an answer that is far longer than was asked for; else empty.

        Each event that brings text has at least one token in it, whatever the server counts.
        """
        tokens = self._exchange.tokens or 0
        came = max(tokens, self.brought)
        if came <= 2 * asked + _SLACK:
            return ""
        # A number of thousands of digits would not even be printed.
        many = str(came) if came < 10**15 else "more than 10^15"
        said = "the server counts" if tokens == came else "there are at least"
        return f"{said} {many} tokens where at most {asked} were asked for"

    @property
    def no_stream(self) -> str:
        """What an answer without a single event says; empty for a stream."""
        body = bytes(self._before)
        if self.events or not body.strip():
            return ""
        said = self._form.error(body) or f"no stream: {body.decode('utf-8', 'replace')}"
        return safe_text(said, _NO_STREAM)

    @property
    def miscounted(self) -> bool:
        """Whether more reads have brought tokens than the server counts: each brought one."""
        return len(self._exchange.points) > 2 * (self._exchange.tokens or 0) + _SLACK

    def close(self) -> None:
        """The stream has ended, or was broken off."""
        exchange = self._exchange
        exchange.content, exchange.reasoning = "".join(self._parts), "".join(self._thoughts)
        if exchange.points:
            exchange.first_tokens = exchange.points[0][1]


def _judge(exchange: Exchange, reader: Reader) -> None:
    """Whether a stream that came to its end is a whole answer."""
    exchange.outcome = Outcome.FAILED
    if reader.error or exchange.finish == "abort":
        exchange.error = reader.error or "aborted by the engine"
    elif said := reader.no_stream:
        exchange.error = f"{exchange.status}, but {said}"
    elif not exchange.finish and not reader.over:
        exchange.error = "the stream ended before the answer did"
    elif exchange.first_token is None:
        exchange.error = "an answer without a token"
    elif not exchange.tokens:
        exchange.error = "the server does not say how many tokens it generated"
    elif reader.miscounted:
        reads = len(exchange.points)
        exchange.error = (
            f"the server counts {exchange.tokens} tokens, and {reads} reads brought some"
        )
    else:
        exchange.outcome, exchange.error = Outcome.OK, ""


async def exchange(
    client: httpx.AsyncClient,
    request: httpx.Request,
    form: GenerationFormat,
    clock: Callable[[], float],
    *,
    pause: float,
    limits: Limits,
    keep_text: bool = False,
    watch: Callable[[Exchange], None] | None = None,
) -> Exchange:
    """Send a request and read its stream to the end; never raises for what goes wrong with it.

    `watch` is called each time that something was read, at least `pause` seconds apart.
    """
    done = Exchange(began=clock(), points=[])
    reader, whole = Reader(form, done, keep_text=keep_text), False
    try:
        response = await client.send(request, stream=True)
        try:
            done.began, done.status = sent_at(response), response.status_code
            coding = response.headers.get("content-encoding", "identity")
            if response.status_code != 200:
                done.error = await _refusal(response, form)
            elif coding.lower() != "identity":
                done.error = f"the answer is compressed ({safe_text(coding, 40)}), unasked"
            else:
                whole = await _read(response, reader, done, clock, pause, limits, watch)
        finally:
            await response.aclose()
    except httpx.ReadTimeout as exc:
        done.outcome, done.error = Outcome.STALLED, str(exc)
    except (httpx.TransportError, httpx.InvalidURL) as exc:
        done.error = safe_text(str(exc) or type(exc).__name__, 300)
        done.lost = isinstance(exc, _LOST)
    except (ValueError, EventTooLong) as exc:
        done.error = safe_text(str(exc), 300)
    reader.close()
    if done.outcome is not Outcome.OVERRUN and (whole or reader.over):
        _judge(done, reader)
    if done.outcome is Outcome.FAILED and reader.overrun(limits.output_tokens):
        done.outcome = Outcome.OVERRUN  # what it counts is not believed, however it ended
    if not done.ok:
        done.ended = clock()
    return done


async def _read(
    response: httpx.Response,
    reader: Reader,
    done: Exchange,
    clock: Callable[[], float],
    pause: float,
    limits: Limits,
    watch: Callable[[Exchange], None] | None,
) -> bool:
    """Read a stream; whether it came to the end of its body."""
    async for pieces in timed_reads(response, pause):
        reader.take(pieces)
        if watch is not None:
            watch(done)
        if ended := _ended_early(reader, clock(), limits):
            done.outcome, done.error = ended
            return False
        if reader.over:  # whether or not the body ends: its place is free
            await ends_within(response, _END_SECONDS)
            return False
    return True


def _ended_early(reader: Reader, now: float, limits: Limits) -> tuple[Outcome, str] | None:
    if said := reader.overrun(limits.output_tokens):
        return Outcome.OVERRUN, said
    if now - reader.news >= limits.stall_seconds:
        return (
            Outcome.STALLED,
            f"no token for {limits.stall_seconds:g} s, though the stream is alive",
        )
    return None


async def _refusal(response: httpx.Response, form: GenerationFormat) -> str:
    """What an answer that refuses says: as much of it as comes in time."""
    body = bytearray()
    with suppress(TimeoutError):  # what came until then is read
        async with asyncio.timeout(_REFUSAL_SECONDS):
            async for part in response.aiter_bytes():
                body += part
                if len(body) > REFUSAL_LIMIT:
                    break
    said = safe_text(form.error(bytes(body)) or bytes(body).decode("utf-8", "replace"), 300)
    return f"{response.status_code}: {said or response.reason_phrase or 'no reason given'}"
