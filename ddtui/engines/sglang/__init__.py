"""SGLang: its command lines, log grammar, metrics and endpoints, versions 0.4.6 to 0.5.23."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from ddtui.core.engine import LogReader
from ddtui.core.events import Phase
from ddtui.core.generation import GenerationFormat
from ddtui.core.measurement import Cell
from ddtui.core.samples import EngineCounters, ServerInfoSample
from ddtui.core.signatures import Signatures, parse_signatures
from ddtui.engines.sglang import (
    endpoints,
    flags,
    generation,
    knobs,
    log_lines,
    metrics,
    serving_benchmark,
)
from ddtui.engines.sglang.log_reader import SGLangLogReader


class SGLang:
    """`ddtui.core.engine.Engine` for SGLang. Holds nothing; every method is a pure function."""

    name = "sglang"

    def log_reader(self) -> LogReader:
        """A new reader for one invocation of the unit."""
        return SGLangLogReader()

    def rank(self, text: str) -> str:
        """Rank prefix of a line (`TP0`, `DP0 TP1 EP1`), or an empty string."""
        return log_lines.rank_of(text)

    def severity(self, text: str, priority: int | None) -> str:
        """`error`, `warning`, `info` or `debug`; SGLang writes no level itself."""
        return log_lines.severity(text, priority)

    def is_traffic(self, text: str) -> bool:
        """Whether a line tells of requests: prompts, access log, batches, the arguments."""
        return log_lines.is_traffic(text)

    def begins_run(self, text: str) -> bool:
        """Whether a line is among the first of a start: the launcher's hint, the arguments."""
        return log_lines.begins_run(text)

    def announces(self, text: str) -> Phase | None:
        """WARMUP for the line of the HTTP server that listens, READY for `fired up`."""
        return log_lines.announces(text)

    def signatures(self) -> Signatures:
        """The table `signatures.toml` beside this file. Raises `SignatureError`."""
        return _signatures()

    def port(self, command_line: Sequence[str]) -> int:
        """The HTTP port that a command line asks for, or 30000."""
        return flags.port(command_line)

    def bind_host(self, command_line: Sequence[str]) -> str:
        """The address that a command line binds to, or 127.0.0.1."""
        return flags.bind_host(command_line)

    def models(self, command_line: Sequence[str]) -> dict[str, str]:
        """`{"target": path, "drafter": path}`, each only where it is given."""
        return flags.models(command_line)

    def flags(self, command_line: Sequence[str]) -> dict[str, str]:
        """Flags by name without dashes, values as given, `true` for bare flags."""
        return flags.flags(command_line)

    def knobs(
        self,
        values: dict[str, str | int | float | bool | None],
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Named knobs found in server arguments or flags and the unit's variables, for display."""
        return knobs.knobs(values, environment)

    def arguments(self, command_line: Sequence[str]) -> Sequence[str]:
        """SGLang's own arguments in a command line; all of it where it does not start SGLang."""
        found = flags.engine_arguments(command_line)
        return command_line if found is None else found

    def is_command(self, command_line: Sequence[str]) -> bool:
        """Whether a command line starts SGLang."""
        return flags.is_command(command_line)

    def parse_metrics(self, text: str) -> EngineCounters | None:
        """Figures of `/metrics`; None when it is not SGLang's."""
        return metrics.parse_metrics(text)

    def parse_server_info(
        self, body: bytes | str, at: float, source: str = "/server_info"
    ) -> tuple[ServerInfoSample, EngineCounters]:
        """The server's report and its figures. Raises `endpoints.NotUnderstood`."""
        return endpoints.parse_server_info(body, at, source)

    def parse_loads(self, body: bytes | str) -> EngineCounters:
        """Figures of `/v1/loads`. Raises `endpoints.NotUnderstood`."""
        return endpoints.parse_loads(body)

    def parse_models(self, body: bytes | str) -> str:
        """The first model's name of `/v1/models`. Raises `endpoints.NotUnderstood`."""
        return endpoints.parse_models(body)

    def generation(self, endpoint: Literal["chat", "generate"]) -> GenerationFormat:
        """The formats of `/v1/chat/completions` or `/generate`."""
        return generation.FORMATS[endpoint]

    def flush_path(self, seconds: int) -> str:
        """`/flush_cache`, which also resets the lifetime counts of speculation."""
        return f"/flush_cache?timeout={seconds}"

    def parse_benchmark(self, line: bytes) -> Cell:
        """A line of `sglang.bench_serving`'s results. Raises `ValueError`."""
        return serving_benchmark.parse_result(line)


@cache
def _signatures() -> Signatures:
    file = files(__package__).joinpath("signatures.toml")
    return parse_signatures(file.read_text(encoding="utf-8"), f"{__package__}/signatures.toml")


SGLANG = SGLang()
