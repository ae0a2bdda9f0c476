"""vLLM's log, in brief: enough to diagnose a start (formats of 0.33.0, and of 0.9 to 0.12).

Lines are `(EngineCore pid=12) INFO 11-29 17:20:47 [core.py:140] message`, without the process in
the API server of older versions; a traceback is written line by line behind the same prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from ddtui.core.engine import LogReader
from ddtui.core.events import (
    AnyEvent,
    Configured,
    Decoded,
    Draining,
    Failed,
    FiredUp,
    Phase,
    PhaseBegan,
    PhaseEnded,
    PortOpened,
)
from ddtui.core.samples import JournalLine
from ddtui.core.signatures import Signatures, parse_signatures
from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.arguments import safe
from ddtui.engines.sglang.failures import TRACEBACK, Failures, failed
from ddtui.engines.sglang.flags import flags as read_flags

PREFIX = re.compile(
    r"(?:\((?P<process>[A-Za-z][\w.-]{0,60}(?: rank=\d{1,5})?) pid=(?P<pid>\d{1,9})\) ?)?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d"
    r" \[[^\]]{1,120}\] ?)?"
)
"""Process, level, time and place; each part may be missing."""

_RANK = re.compile(r"(?:TP|PP|DP|EP)\d+")
_VERSION = re.compile(r"\(v(\d[\w.+-]{0,40})\)|version (\d+\.\d[\w.+-]{0,40})")
_NUMBER = r"(\d{1,12}(?:\.\d{1,20})?)"
_GENERATION = re.compile(
    rf"Avg generation throughput: {_NUMBER} tokens/s"
    r", Running: (\d{1,9}) reqs, Waiting: (\d{1,9}) reqs"
    rf"(?:.{{0,80}}?KV cache usage: {_NUMBER}%)?"
)
_ACCEPTANCE = re.compile(rf"Mean acceptance length: {_NUMBER}")
_SECONDS = re.compile(rf"(?:took|and|in) {_NUMBER} s")
_GIB = re.compile(rf"took {_NUMBER} GiB memory")
_ARGUMENT = re.compile(r"'?(\w{2,60})'?[=:] ?('[^']{0,400}'|\"[^\"]{0,400}\"|[\w./+-]{1,200})")

_WRAPPERS = (
    "Engine core initialization failed",
    "EngineCore failed to start",
    "WorkerProc failed to start",
    "EngineCore encountered a fatal error",
)


class VllmLogReader:
    """Reads the log of one invocation, oldest line first."""

    def __init__(self) -> None:
        self._failures = Failures()

    def read(self, line: JournalLine) -> Iterable[AnyEvent]:
        """Events of one line, in order."""
        if line.from_manager or line.continued or line.bar:
            return ()
        prefix = PREFIX.match(line.text)
        assert prefix is not None  # noqa: S101  # it may match nothing
        text = line.text[prefix.end() :]
        rank = _rank(prefix["process"] or "")
        pid = int(prefix["pid"]) if prefix["pid"] else line.pid
        if prefix["level"] in (None, "ERROR"):
            return self._error(text, line.stamp, rank, pid)
        return _said(text, line.stamp, rank)

    def _error(self, text: str, stamp: float, rank: str, pid: int | None) -> Iterable[AnyEvent]:
        if text.startswith(TRACEBACK):
            self._failures.began(pid, rank)
            return ()
        if text.startswith(_WRAPPERS):
            return (failed(text, stamp, rank, wrapper=True),)
        told = self._failures.bare(text, stamp, pid)
        if isinstance(told, Failed):
            return (told,)
        said = _said(text, stamp, rank)
        return (told, *said) if told is not None else said


def _rank(process: str) -> str:
    return " ".join(_RANK.findall(process))


def _said(text: str, stamp: float, rank: str) -> Iterable[AnyEvent]:
    for phrase, phase, begins in _PHASES:
        if text.startswith(phrase):
            if begins:
                return (PhaseBegan(stamp=stamp, rank=rank, phase=phase),)
            return (_ended(text, stamp, rank, phase),)
    if text.startswith(("Initializing a V1 LLM engine", "Initializing an LLM engine")):
        values = {key: value.strip("'\"") for key, value in _ARGUMENT.findall(text)}
        return (_version(text, stamp, values),)
    if text.startswith("vLLM API server version"):
        return (_version(text, stamp, {}),)
    if text.startswith(("Starting vLLM ", "INFO:     Uvicorn running on ")):
        return (PortOpened(stamp=stamp, rank=rank, url=text.rpartition(" on ")[2]),)
    if text.startswith("INFO:     Application startup complete"):
        return (FiredUp(stamp=stamp), PhaseBegan(stamp=stamp, phase=Phase.READY))
    if text.startswith("INFO:     Shutting down"):
        return (Draining(stamp=stamp),)
    return _figures(text, stamp)


def _figures(text: str, stamp: float) -> Iterable[AnyEvent]:
    if text.startswith("SpecDecoding metrics"):
        found = _ACCEPTANCE.search(text)
        if found is not None:
            return (Decoded(stamp=stamp, acceptance_length=float(found[1])),)
    elif "throughput: " in text[:120]:
        found = _GENERATION.search(text)
        if found is not None:
            usage = float(found[4]) / 100 if found[4] else None
            return (
                Decoded(
                    stamp=stamp,
                    throughput=float(found[1]),
                    running=int(found[2]),
                    queued=int(found[3]),
                    kv_usage=usage,
                ),
            )
    return ()


_PHASES: tuple[tuple[str, Phase, bool], ...] = (
    ("Starting to load model", Phase.TARGET, True),
    ("Loading drafter model", Phase.DRAFTER, True),
    ("Model loading took", Phase.TARGET, False),
    ("Available KV cache memory", Phase.KV_CACHE, True),
    ("GPU KV cache size", Phase.KV_CACHE, False),
    ("Graph capturing finished", Phase.GRAPHS, False),
)


def _ended(text: str, stamp: float, rank: str, phase: Phase) -> PhaseEnded:
    seconds, memory = _SECONDS.search(text), _GIB.search(text)
    return PhaseEnded(
        stamp=stamp,
        rank=rank,
        phase=phase,
        seconds=float(seconds[1]) if seconds is not None else None,
        memory_used=round(float(memory[1]) * 1024**3) if memory is not None else None,
    )


def _version(text: str, stamp: float, values: dict[str, str]) -> Configured:
    found = _VERSION.search(text)
    version = {"version": found[1] or found[2]} if found is not None else {}
    return Configured(stamp=stamp, values=safe({**values, **version}))


class Vllm:
    """`ddtui.core.engine.LogDialect` for vLLM. Holds nothing."""

    name = "vllm"

    def log_reader(self) -> LogReader:
        """A new reader for one invocation."""
        return VllmLogReader()

    def rank(self, text: str) -> str:
        """Rank in the process name of a line (`Worker_TP0`), or an empty string."""
        prefix = PREFIX.match(text)
        return _rank(prefix["process"] or "") if prefix is not None else ""

    def is_traffic(self, text: str) -> bool:
        """Whether a line tells of requests, or lists the arguments."""
        prefix = PREFIX.match(text)
        start = prefix.end() if prefix is not None else 0
        return text.startswith(_TRAFFIC, start)

    def begins_run(self, text: str) -> bool:
        """Whether a line is among the first of a start."""
        return "vLLM API server version" in text[:200]

    def flags(self, command_line: Sequence[str]) -> dict[str, str]:
        """Flags of a command line by name without dashes."""
        return read_flags(command_line)

    def signatures(self) -> Signatures:
        """SGLang's table and what only vLLM writes. Raises `SignatureError`."""
        return _signatures()


_TRAFFIC = (
    "INFO:     ",
    "Received request ",
    "Engine 0",
    "SpecDecoding metrics",
    "Initializing a V1 LLM engine",
    "non-default args",
    "Added request ",
)


@cache
def _signatures() -> Signatures:
    file = files(__package__).joinpath("signatures.toml")
    own = parse_signatures(file.read_text(encoding="utf-8"), f"{__package__}/signatures.toml")
    return SGLANG.signatures().with_more(own)


VLLM = Vllm()
