"""HTTP to the engine, as seen from its host: small answers, no proxies, no redirects."""

from __future__ import annotations

import asyncio
import time

import httpx
import msgspec

from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.core.redact import safe_text
from ddtui.core.samples import LinkState
from ddtui.hosts.base import Host, LinkDown

BODY_LIMIT = 2 << 20
"""Most bytes of an answer."""
TIMEOUT = 5.0
TOO_LONG_PAUSES = (2.0, 60.0)
"""Seconds, at least and at most, before an endpoint is asked again whose answer was too long."""
KEY_AGAIN = 30.0
"""Seconds after which a key that was refused is asked for again."""


class NoAnswer(Exception):
    """The engine did not answer. `closed`: nobody listens on the port."""

    def __init__(self, error: str, *, closed: bool = False, seconds: float = 0.0) -> None:
        super().__init__(error)
        self.error = error
        self.closed = closed
        self.seconds = seconds


class TooLong(NoAnswer):
    """An endpoint answers with more than BODY_LIMIT; it is not asked again for a while."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(
            f"{endpoint} answers with more than {BODY_LIMIT >> 20} MiB: thrown away, and asked "
            "less and less often"
        )
        self.endpoint = endpoint


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    body: bytes
    seconds: float


class EngineClient:
    """Asks the engine's endpoints. The API key is sent only where it is asked for (401)."""

    def __init__(self, host: Host, settings: HostSettings, observed: Observed) -> None:
        self._host = host
        self._settings = settings
        self._observed = observed
        self._http = httpx.AsyncClient(
            transport=host.transport(),
            trust_env=False,
            follow_redirects=False,
            headers={"user-agent": "ddtui", "accept-encoding": "identity"},
        )
        self._with_key: set[str] = set()
        self._key: str | None = None
        self._key_at = -KEY_AGAIN
        self._too_long: dict[tuple[str, str], tuple[float, float]] = {}
        """Until when an invocation's endpoint is not asked, and the length of that pause."""

    def __repr__(self) -> str:
        return f"EngineClient({self._host.name})"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def url(self, path: str) -> str:
        """The address of an endpoint."""
        address = self._observed.address
        name = f"[{address}]" if ":" in address else address
        return f"http://{name}:{self._observed.port}{path}"

    async def get(self, path: str, timeout: float = TIMEOUT) -> Answer:
        """Ask once. Raises NoAnswer, LinkDown, and whatever reading the key raises."""
        endpoint = path.partition("?")[0]
        place = (self._observed.invocation, endpoint)
        until, pause = self._too_long.get(place, (0.0, 0.0))
        if time.monotonic() < until:
            raise TooLong(endpoint)
        try:
            answer = await self._ask(path, endpoint, timeout)
        except TooLong:
            shortest, longest = TOO_LONG_PAUSES
            pause = min(max(shortest, 2 * pause), longest)
            self._too_long[place] = (time.monotonic() + pause, pause)
            raise
        self._too_long.pop(place, None)
        return answer

    async def _ask(self, path: str, endpoint: str, timeout: float) -> Answer:
        """Ask, with the key where that is needed."""
        if endpoint in self._with_key:
            return await self._get(path, timeout, self._key)
        answer = await self._get(path, timeout, None)
        if answer.status == 401 and (key := await self._read_key()) is not None:
            answer = await self._get(path, timeout, key)
            if answer.status != 401:
                self._with_key.add(endpoint)
        return answer

    async def _read_key(self) -> str | None:
        """The key; read again after KEY_AGAIN seconds. A program that prints it may be slow."""
        now = time.monotonic()
        if now - self._key_at >= KEY_AGAIN:
            self._key_at = now
            self._key = await asyncio.to_thread(self._settings.api_key)
        return self._key

    async def _get(self, path: str, timeout: float, key: str | None) -> Answer:
        headers = {"authorization": f"Bearer {key}"} if key is not None else {}
        began = time.monotonic()
        try:
            async with (
                asyncio.timeout(timeout),
                self._http.stream(
                    "GET", self.url(path), headers=headers, timeout=timeout
                ) as response,
            ):
                body = await _body(response, path)
                return Answer(response.status_code, body, time.monotonic() - began)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as exc:
            if self._host.link.state is not LinkState.LIVE:
                raise LinkDown("the link broke") from exc
            seconds = time.monotonic() - began
            if isinstance(exc, (TimeoutError, httpx.TimeoutException)):
                raise NoAnswer(f"no answer within {timeout:g} s", seconds=seconds) from exc
            said = safe_text(str(exc) or f"no HTTP answer ({type(exc).__name__})", 200)
            closed = isinstance(exc, httpx.ConnectError) and "forbid" not in said
            raise NoAnswer(said, closed=closed, seconds=seconds) from exc


async def _body(response: httpx.Response, path: str) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise TooLong(path.partition("?")[0])
    return bytes(body)
