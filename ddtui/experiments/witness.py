"""Watches a host while it is measured: clocks, heat, other people's requests, restarts, sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ddtui.bench.transport import Connector
from ddtui.core.gpus import Concern, throttle_reasons
from ddtui.core.snapshot import Snapshot
from ddtui.hosts.base import Port, Receiver

ASLEEP = 10.0
"""Seconds by which the two clocks may part before this machine counts as having slept."""
FRESH = 5.0
"""Seconds for which a gauge counts as of now."""


class CountedPorts:
    """Opens connections, and counts the requests that are sent over them."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.sent = 0
        """Requests that generate."""

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host."""
        return _CountedPort(await self._connector.open_port(address, port, receiver), self)


class _CountedPort:
    """A Port that looks at what is written: one request is one write, and begins with its line."""

    def __init__(self, port: Port, count: CountedPorts) -> None:
        self._port = port
        self._count = count
        self.drain = port.drain
        self.pause = port.pause
        self.resume = port.resume
        self.close = port.close

    def write(self, data: bytes) -> None:
        """See Port."""
        if data.startswith((b"POST /generate ", b"POST /v1/")):
            self._count.sent += 1
        self._port.write(data)


class Witness:
    """What was seen of the host since it was made. `look` is given every snapshot."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        """`most`: requests of ours in flight at most. `clock` goes on while the machine sleeps."""
        self._most = most
        self._clock = clock
        self._began = clock()
        self._apart = self._gap()
        self.lowest: float | None = None
        self.highest: float | None = None
        self.hottest: float | None = None
        self.reasons: dict[str, None] = {}
        self.beside = 0
        """Requests in flight at once beside ours, at most."""

    def _gap(self) -> float:
        """How far the clock that goes on in sleep is before the one that does not."""
        return self._clock() - asyncio.get_running_loop().time()

    def slept(self) -> float:
        """Seconds for which this machine slept since this was asked last; 0 for none."""
        apart = self._gap()
        slept, self._apart = apart - self._apart, apart
        return slept if slept > ASLEEP else 0.0

    def look(self, snapshot: Snapshot) -> None:
        """Take in what is known now."""
        for view in snapshot.gpus:
            if view.at < self._began:
                continue
            clock, heat = view.gpu.sm_clock, view.gpu.temperature
            if clock is not None:
                self.lowest = clock if self.lowest is None else min(self.lowest, clock)
                self.highest = clock if self.highest is None else max(self.highest, clock)
            if heat is not None:
                self.hottest = heat if self.hottest is None else max(self.hottest, heat)
            for reason in throttle_reasons(view.gpu.throttle_reasons):
                if reason.concern is not Concern.NONE:
                    self.reasons[reason.word] = None
        figures = (snapshot.engine.running, snapshot.engine.queued)
        fresh = [each.value for each in figures if each is not None and self._is_new(each.at)]
        self.beside = max(self.beside, round(sum(fresh)) - self._most)

    def _is_new(self, at: float) -> bool:
        return at >= self._began and self._clock() - at <= FRESH

    @property
    def clocks(self) -> tuple[float, float] | None:
        """Lowest and highest SM clock, MHz."""
        if self.lowest is None or self.highest is None:
            return None
        return self.lowest, self.highest

    def foreign(self, before: float | None, after: float | None, sent: int) -> int:
        """Requests of others: by the engine's count of finished ones, and by those in flight."""
        counted = 0 if before is None or after is None else round(after - before) - sent
        return max(counted, self.beside, 0)
