"""What collectors need to know of each other's findings, kept current from the samples."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import PurePosixPath

from ddtui.core.engine import Engine
from ddtui.core.events import Phase
from ddtui.core.samples import (
    CheckpointSample,
    EngineSample,
    JournalSample,
    Sample,
    UnitSample,
    UnitStatus,
)

PORT_UNKNOWN = "port not known yet"
"""What is said where neither the configuration nor a command line names the engine's port."""


class Observed:
    """The latest of what matters to more than one collector. Written by `apply`, read by all."""

    def __init__(
        self,
        engine: Engine,
        *,
        unit_name: str | None = None,
        port: int | None = None,
        bind_host: str | None = None,
    ) -> None:
        self._engine = engine
        self._port = port
        self._bind_host = bind_host
        self.unit_name = unit_name
        """The unit to watch; None until it is found."""
        self.unit: UnitStatus | None = None
        self.model_disk = ""
        """Device (or file system) that holds the target model; empty while unknown."""
        self.running: float | None = None
        """Requests running now by the engine's own figures."""
        self.announced = 0
        """How often the present invocation's log has said that it can be asked."""
        self.said_ready = ""
        """The last invocation whose log said that it is ready."""
        self._changed = asyncio.Event()

    def apply(self, sample: Sample) -> None:
        """Take what this sample says; others are told when something changed."""
        match sample:
            case UnitSample() if sample.unit != self.unit:
                if self.invocation and sample.unit.invocation != self.invocation:
                    self.running = None
                self.unit = sample.unit
                self.notify()
            case CheckpointSample() if sample.role == "target" and sample.disk != self.model_disk:
                self.model_disk = sample.disk
                self.notify()
            case JournalSample() if announced := self._announcements(sample):
                self.announced += 1
                if Phase.READY in announced:
                    self.said_ready = self.invocation
                self.notify()
            case EngineSample():
                self.running = sample.counters.running
            case _:
                pass

    def _announcements(self, sample: JournalSample) -> set[Phase]:
        invocation = self.invocation
        found = {
            self._engine.announces(line.text)
            for line in sample.lines
            if invocation and line.invocation == invocation and not line.from_manager
        }
        return {phase for phase in found if phase is not None}

    def found_unit(self, name: str | None) -> None:
        """The unit has been found (or lost)."""
        if name != self.unit_name:
            self.unit_name = name
            self.notify()

    def notify(self) -> None:
        """Wake everyone who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def invocation(self) -> str:
        """The present invocation, or an empty string."""
        return self.unit.invocation if self.unit is not None else ""

    @property
    def control_group(self) -> str:
        """The unit's control group while it has processes, or an empty string."""
        return self.unit.control_group if self.unit is not None else ""

    @property
    def command_line(self) -> tuple[str, ...]:
        """The unit's command line, secrets removed; empty while unknown."""
        return self.unit.command_line if self.unit is not None else ()

    @property
    def in_container(self) -> bool:
        """Whether the unit starts a container, whose processes are in another control group."""
        name = PurePosixPath(self.command_line[0]).name if self.command_line else ""
        return name in {"docker", "podman", "nerdctl"}

    @property
    def port(self) -> int:
        """The engine's HTTP port: as configured, else as its command line says."""
        return self._port if self._port is not None else self._engine.port(self.command_line)

    @property
    def port_is_guessed(self) -> bool:
        """Whether nothing names the port, so that it is the one that such an engine usually has."""
        return self._port is None and self.unit is None

    @property
    def port_known(self) -> bool:
        """Whether the port is configured, or there is a command line that names it."""
        return self._port is not None or bool(self.command_line)

    @property
    def address(self) -> str:
        """Where the engine is reached on its host. Addresses that mean `any` become loopback."""
        host = self._bind_host or self._engine.bind_host(self.command_line)
        return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host)  # noqa: S104

    async def wait_change(self, timeout: float) -> bool:
        """Wait until something changed; False when nothing did for `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait until `condition` holds; returns whether it does after at most `timeout` seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while not condition():
            left = end - loop.time()
            if left <= 0 or not await self.wait_change(left):
                return condition()
        return True
