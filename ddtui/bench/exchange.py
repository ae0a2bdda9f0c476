"""One streamed request: sent, its events stamped, and what came of it."""

from __future__ import annotations

import enum
from collections.abc import Callable

import httpx
import msgspec

from ddtui.bench.event_stream import EventSplitter, EventTooLong
from ddtui.bench.transport import TimedPiece, timed_reads
from ddtui.core.generation import Event, GenerationFormat, Speculation
from ddtui.core.redact import safe_text

REFUSAL_LIMIT = 64 << 10
"""Bytes read of an answer that refuses."""
TEXT_LIMIT = 4 << 20
"""Characters kept of an answer's text."""


class Outcome(enum.StrEnum):
    """How a request ended."""

    OK = "ok"
    FAILED = "failed"
    STALLED = "stalled"
    """Nothing came for too long; what had come is kept."""


class Exchange(msgspec.Struct, kw_only=True):
    """A request and what came of it. Times by the generator's clock, in seconds."""

    began: float
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
        self._any = False
        """Whether a token of any channel has come."""
        self.over = False
        """Whether the mark of the end has come."""

    def take(self, pieces: list[TimedPiece]) -> None:
        """Read what came. Raises ValueError for what is no stream of this endpoint."""
        for stamp, piece in pieces:
            for at, data in self._splitter.feed(stamp, piece):
                event = self._form.event(data)
                if event is None:
                    self.over = True
                else:
                    self._event(at, event)

    def _event(self, stamp: float, event: Event) -> None:
        exchange = self._exchange
        before = exchange.tokens or 0
        tokens = event.tokens
        if event.error:
            exchange.error = exchange.error or safe_text(event.error, 300)
        if tokens is not None and tokens >= before:
            exchange.tokens = tokens
        visible = bool(event.content) and not (event.cumulative_text and tokens == 0)
        # A list of counts alone, as the last one is, brings nothing new.
        fresh = bool(tokens is not None and tokens > before and (self._any or not event.finish))
        if visible or event.reasoning or event.other or fresh or (event.finish and tokens):
            self._tokens_came(stamp, visible=visible)
        if event.finish:
            exchange.finish = event.finish
            exchange.ended = stamp
        self._counts(event)
        if self._keep_text:
            self._keep(event)

    def _tokens_came(self, stamp: float, *, visible: bool) -> None:
        exchange, points = self._exchange, self._exchange.points
        self._any = True
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
        exchange = self._exchange
        for name in (
            "reasoning_tokens",
            "prompt_tokens",
            "cached_tokens",
            "speculation",
            "server_ttft",
        ):
            if (value := getattr(event, name)) is not None:
                setattr(exchange, name, value)

    def _keep(self, event: Event) -> None:
        if event.cumulative_text:
            self._parts = [event.content[:TEXT_LIMIT]]
            return
        self._kept += len(event.content) + len(event.reasoning)
        if self._kept <= TEXT_LIMIT:
            self._parts.append(event.content)
            self._thoughts.append(event.reasoning)

    def close(self) -> None:
        """The stream has ended, or was broken off."""
        exchange = self._exchange
        exchange.content, exchange.reasoning = "".join(self._parts), "".join(self._thoughts)
        if exchange.points:
            exchange.first_tokens = exchange.points[0][1]


def judge(exchange: Exchange, *, over: bool) -> None:
    """Whether a stream that ended in an orderly way is a whole answer."""
    if exchange.error or exchange.finish == "abort":
        exchange.error = exchange.error or "aborted by the engine"
    elif not exchange.finish and not over:
        exchange.error = "the stream ended before the answer did"
    elif exchange.first_token is None:
        exchange.error = "an answer without a token"
    elif not exchange.tokens:
        exchange.error = "the server does not say how many tokens it generated"
    else:
        exchange.outcome = Outcome.OK


async def exchange(
    client: httpx.AsyncClient,
    request: httpx.Request,
    form: GenerationFormat,
    clock: Callable[[], float],
    *,
    pause: float,
    keep_text: bool = False,
    watch: Callable[[Exchange], None] | None = None,
) -> Exchange:
    """Send a request and read its stream to the end; never raises for what goes wrong with it.

    `watch` is called each time that something was read, at least `pause` seconds apart.
    """
    done = Exchange(began=clock(), points=[])
    reader = Reader(form, done, keep_text=keep_text)
    try:
        response = await client.send(request, stream=True)
        try:
            done.status = response.status_code
            if response.status_code != 200:
                done.error = await _refusal(response, form)
            else:
                async for pieces in timed_reads(response, pause):
                    reader.take(pieces)
                    if watch is not None:
                        watch(done)
        finally:
            await response.aclose()
    except httpx.ReadTimeout as exc:
        done.outcome, done.error = Outcome.STALLED, str(exc)
    except (httpx.TransportError, httpx.InvalidURL) as exc:
        done.error = safe_text(str(exc) or type(exc).__name__, 300)
        done.lost = isinstance(exc, httpx.NetworkError | httpx.ConnectTimeout) or not done.status
    except (ValueError, EventTooLong) as exc:
        done.error = safe_text(str(exc), 300)
    reader.close()
    if not done.ended or done.outcome is Outcome.STALLED:
        done.ended = clock()
    if done.status == 200 and not done.error and done.outcome is Outcome.FAILED:
        judge(done, over=reader.over)
    elif done.status == 200 and done.outcome is Outcome.FAILED and reader.over and done.finish:
        judge(done, over=True)
    return done


async def _refusal(response: httpx.Response, form: GenerationFormat) -> str:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > REFUSAL_LIMIT:
            break
    said = safe_text(form.error(bytes(body)) or bytes(body).decode("utf-8", "replace"), 300)
    return f"{response.status_code}: {said or response.reason_phrase or 'no reason given'}"
