"""What the core asks of an engine adapter, so that it needs to know none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from ddtui.core.events import AnyEvent, Phase
from ddtui.core.generation import GenerationFormat
from ddtui.core.measurement import Cell
from ddtui.core.samples import EngineCounters, JournalLine, ServerInfoSample
from ddtui.core.signatures import Signatures


class LogReader(Protocol):
    """Turns the lines of one invocation into events. Holds what it must remember between lines."""

    def read(self, line: JournalLine) -> Iterable[AnyEvent]:
        """Events of one line, in order; nothing for a line that says nothing."""
        ...


class LogLabels(Protocol):
    """What the log view filters by."""

    def rank(self, text: str) -> str:
        """Rank prefix of a line, or an empty string."""
        ...

    def severity(self, text: str, priority: int | None) -> str:
        """`error`, `warning`, `info` or `debug`: inferred where the engine writes no level."""
        ...


class LogDialect(Protocol):
    """What is needed to diagnose an engine's log."""

    name: str

    def log_reader(self) -> LogReader:
        """A new reader for one invocation of the unit."""
        ...

    def rank(self, text: str) -> str:
        """Rank prefix of a line, or an empty string."""
        ...

    def is_traffic(self, text: str) -> bool:
        """Whether a line tells of requests: it may hold a user's words, or nothing but figures."""
        ...

    def begins_run(self, text: str) -> bool:
        """Whether a line is among the first that a start of the engine writes."""
        ...

    def flags(self, command_line: Sequence[str]) -> dict[str, str]:
        """Flags of a command line: name without dashes to value as given, `true` for bare flags."""
        ...

    def signatures(self) -> Signatures:
        """What the engine's log, systemd and the kernel say when it fails."""
        ...


class Engine(LogDialect, LogLabels, Protocol):
    """An inference engine's own formats, as pure functions."""

    def announces(self, text: str) -> Phase | None:
        """WARMUP for a line that says that the port is open, READY for one that says so."""
        ...

    def port(self, command_line: Sequence[str]) -> int:
        """The HTTP port that a command line asks for, or the engine's default."""
        ...

    def bind_host(self, command_line: Sequence[str]) -> str:
        """The address that a command line binds to, or the engine's default."""
        ...

    def models(self, command_line: Sequence[str]) -> dict[str, str]:
        """`{"target": path, "drafter": path}`; the drafter only where there is one."""
        ...

    def knobs(
        self,
        values: dict[str, str | int | float | bool | None],
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Named knobs (`block size`, `budget`, ...) found in server arguments or flags.

        `environment` is the unit's own: some servers take a knob as a variable.
        """
        ...

    def arguments(self, command_line: Sequence[str]) -> Sequence[str]:
        """The engine's own arguments in a command line; all of it where it starts no engine."""
        ...

    def is_command(self, command_line: Sequence[str]) -> bool:
        """Whether a command line starts this engine (used to find its units)."""
        ...

    def parse_metrics(self, text: str) -> EngineCounters | None:
        """Figures of a Prometheus exposition; None when it is none of this engine's."""
        ...

    def parse_server_info(
        self, body: bytes, at: float, source: str
    ) -> tuple[ServerInfoSample, EngineCounters]:
        """The server's own report, secrets removed, and the figures in it.

        Raises ValueError when the body is none of this engine's.
        """
        ...

    def parse_loads(self, body: bytes) -> EngineCounters:
        """Figures of the engine's JSON endpoint for its load. Raises ValueError."""
        ...

    def generation(self, endpoint: Literal["chat", "generate"]) -> GenerationFormat:
        """The requests and events of an endpoint that generates text."""
        ...

    def flush_path(self, seconds: int) -> str:
        """What to POST to so that the prefix cache is emptied once nothing runs, within so long."""
        ...

    def parse_models(self, body: bytes) -> str:
        """The served model's name, or an empty string. Raises ValueError."""
        ...

    def parse_benchmark(self, line: bytes) -> Cell:
        """What a line of the engine's own serving benchmark says. Raises ValueError."""
        ...
