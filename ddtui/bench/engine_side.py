"""The engine's side of a bench: its model, its counters, its cache, and how far away it is."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from statistics import median

import httpx
import msgspec

from ddtui.bench.errors import ConnectionLost, ServerRefused
from ddtui.core.engine import Engine
from ddtui.core.redact import safe_text
from ddtui.core.samples import EngineCounters

_METRICS = "/metrics"
_MODELS = "/v1/models"
_FLUSH_SECONDS = 30
_BODY_LIMIT = 8 << 20
_TIMEOUT = 15.0
_ROUND_TRIPS = 5


class Reading(msgspec.Struct, frozen=True):
    """The engine's counters at one moment."""

    at: float
    """By the generator's clock: half-way between asking and the answer."""
    counters: EngineCounters


class EngineSide:
    """Asks the engine, over the connections that the requests use."""

    def __init__(
        self, client: httpx.AsyncClient, engine: Engine, clock: Callable[[], float]
    ) -> None:
        self._client = client
        self._engine = engine
        self._clock = clock
        self._metered: bool | None = None

    async def model(self) -> str:
        """The served model's name; empty where the engine does not say.

        Raises ConnectionLost, and ServerRefused for a missing or wrong API key.
        """
        response = await self._get(_MODELS)
        if response.status_code in {401, 403}:
            raise ServerRefused(
                "the engine refuses the requests",
                f"{response.status_code}: it wants an API key, or another one",
                "name it with api_key_env or api_key_command in this host's section",
            )
        try:
            return self._engine.parse_models(response.content)
        except ValueError:  # no such endpoint: any name will do
            return ""

    async def reachable(self) -> bool:
        """Whether the engine still answers."""
        try:
            await self._get(_MODELS)
        except ConnectionLost:
            return False
        return True

    async def flush(self) -> str:
        """Empty the prefix cache; what went wrong, or an empty string."""
        path = self._engine.flush_path(_FLUSH_SECONDS)
        try:
            async with asyncio.timeout(_FLUSH_SECONDS + _TIMEOUT):
                response = await self._client.post(path, timeout=_FLUSH_SECONDS + _TIMEOUT)
        except (httpx.TransportError, TimeoutError) as exc:
            return safe_text(str(exc) or type(exc).__name__, 200)
        if response.status_code == 200:
            return ""
        return safe_text(f"{response.status_code}: {response.text}".strip(), 200)

    async def round_trip(self) -> float | None:
        """Seconds of a small request and its answer: the median of a few."""
        seconds = []
        for _ in range(_ROUND_TRIPS):
            began = self._clock()
            try:
                await self._get(_MODELS)
            except ConnectionLost:
                return None
            seconds.append(self._clock() - began)
        return median(seconds)

    async def counters(self) -> Reading | None:
        """The counters now; None for an engine without them, or one that does not answer now."""
        if self._metered is False:
            return None
        began = self._clock()
        try:
            response = await self._get(_METRICS)
        except ConnectionLost:
            return None
        found = None
        if response.status_code == 200 and len(response.content) <= _BODY_LIMIT:
            found = self._engine.parse_metrics(response.text)
        self._metered = found is not None
        return None if found is None else Reading((began + self._clock()) / 2, found)

    async def _get(self, path: str) -> httpx.Response:
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await self._client.get(path, timeout=_TIMEOUT)
        except (httpx.TransportError, TimeoutError) as exc:
            raise ConnectionLost(
                "the engine does not answer",
                safe_text(str(exc) or f"nothing within {_TIMEOUT:g} s", 200),
                "see that the unit runs and is ready, and that the link is up",
            ) from exc


class ServerFigures(msgspec.Struct, frozen=True):
    """What the counters say of the time between two readings."""

    rate: float | None = None
    acceptance: float | None = None
    ttft: float | None = None
    tokens: float = 0.0
    """Generated meanwhile, for whomever."""


class Readings(msgspec.Struct, frozen=True):
    """The counters before a batch, at the end of its window, and after its last request."""

    first: Reading | None
    drained: Reading | None
    last: Reading | None


def between(
    readings: Readings, began: float, ended: float, first_tokens: Sequence[float], away: float
) -> ServerFigures:
    """The engine's figures of one batch.

    The batch ran from `began` to `ended` by the generator's clock, `away` seconds (half a round
    trip) from the engine: what ran there ran from `began + away` to `ended - away`. `first_tokens`
    are the moments of those tokens that prefills gave: the counter of decoded ones leaves them out,
    and no verification brought them.
    """
    first, drained, last = readings.first, readings.drained, readings.last
    if first is None or drained is None or last is None:
        return ServerFigures()
    until = min(drained.at, ended - away)
    seconds = until - (began + away)
    decoded = _delta(first, drained, "decode_tokens_total")
    all_decoded = _delta(first, last, "decode_tokens_total")
    generated = _delta(first, last, "generation_tokens_total")
    verifications = _delta(first, last, "verify_calls_total")
    waited = _delta(first, last, "first_token_seconds_total")
    arrivals = _delta(first, last, "first_tokens_total")
    if generated and drained.at >= ended - away:
        tokens = generated  # all of the batch, and without what was decoded beyond an answer's end
    elif decoded:
        tokens = decoded + sum(moment - away <= until for moment in first_tokens)
    else:
        tokens = 0.0
    by_passes = (generated or 0.0) - len(first_tokens)
    return ServerFigures(
        tokens / seconds if tokens and seconds > 0 else None,
        by_passes / verifications if verifications and by_passes > 0 else None,
        waited / arrivals if arrivals and waited is not None else None,
        max(generated or 0.0, all_decoded or 0.0),
    )


def _delta(first: Reading, last: Reading, name: str) -> float | None:
    """Growth of a counter; None where it is none, or began anew (the engine restarted)."""
    before, after = getattr(first.counters, name), getattr(last.counters, name)
    if before is None or after is None or not before <= after < math.inf:
        return None
    grown: float = after - before
    return grown if grown < math.inf else None
