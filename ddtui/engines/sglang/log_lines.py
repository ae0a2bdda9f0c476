"""The shape of SGLang's log lines: stamp, rank prefix, and a severity where no level is written.

Scheduler processes write `[2026-09-22 17:27:12 TP0] message` (with `.123` after the seconds when
SGLANG_LOG_MS is set) and no level; uvicorn's lines carry `INFO:` and the like behind the same
stamp, and some versions write `INFO engine.py:156: ` there. Progress bars, Python warnings,
tracebacks, argparse and C++ write bare lines.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ddtui.core.events import Phase
from ddtui.core.journal_text import BAR

_RANK = re.compile(r"(?:[.,]\d+)?((?: (?:[A-Z_]+\d+|[A-Z]\w{1,40}\.[A-Z_]{1,40}))*)")
"""Forks put the mode before the rank: `DisaggregationMode.DECODE TP1`."""
_TORCH_RANK = re.compile(r"\[(rank\d+)\]:\s?")

EXCEPTION_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*|\w*error|timeout)")
"""What the last line of a traceback begins with: a class name with its module."""
CERTAIN_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.){0,12}\w{0,80}(?:Error|Exception|Interrupt|ExceptionGroup)(?:: |$)"
)
"""The same without a traceback's header before it, where only the usual names are believed."""

_SYSLOG = {0: "error", 1: "error", 2: "error", 3: "error", 4: "warning", 7: "debug"}

_HEAD = 400
"""Characters of a line that are looked at for its severity."""

_NOISE = (
    "Ignore import error",
    "Health check request received during shutdown",
    "Using fallback token IDs",
    "Using default HuggingFace chat template",
)
_BARE_NOISE = ("nanobind:", " - leaked ", " - ... skipped", "See https://nanobind")
_REQUESTS = ("Receive: ", "Finish: ", "Receive OpenAI: ", "Decode batch", "Prefill batch")
"""Lines that may hold a user's words, or nothing but figures."""
_FAILURES = (
    "Received sigquit",
    "SIGQUIT received",
    "Initialization failed",
    "Subprocess ",
    "Health check failed",
    "Capture cuda graph failed",
    "Port is already in use",
    "Watchdog timeout",
)
_FAILURE_PARTS = (
    " hit an exception",
    " died during initialization",
    " crashed with exit code",
    " watchdog timeout (",
    "CUDA out of memory",
    "CUDA error",
    "NCCL error",
)
_BARE_FAILURES = (
    "Traceback (most recent call last)",
    "  File ",
    "terminate called",
    "  what():",
    "Fatal Python error",
    "Killed",
    "The above exception was the direct cause",
    "During handling of the above exception",
)
_WARNING = re.compile(
    r"deprecated|fall(?:ing)? ?back|overrid(?:ing|den)|is reset to|mismatch|not supported"
    r"|unsupported|is disabled|[Ff]ail(?:ed)? to|unavailable|[Ww]arning|out of memory"
    r"|Retract requests|unbalanced|will be ignored|ignored because|less than|NCCL WARN"
)
_POLLED = re.compile(
    r'"GET /(?:health|health_generate|ready|metrics|model_info|get_model_info|server_info'
    r'|get_server_info|v1/models|v1/loads)[ ?/][^"]*" [235]'
)


FIRED_UP = ("The server is fired up", "INFO:     The server is fired up")
"""The second where several tokenizer processes serve."""

PLAIN_START = 22
"""Where the message begins in a line without fractions of a second and without a rank."""


_LEVELS = {"DEBU", "INFO", "WARN", "ERRO", "CRIT", "[DEB", "[INF", "[WAR", "[ERR", "[CRI"}
_LEVEL_NAMES = "DEBUG|INFO|WARNING|ERROR|CRITICAL"
_LEVEL = re.compile(
    rf"(?P<level>{_LEVEL_NAMES}) [\w.]{{1,80}}\.py:\d{{1,6}}: "
    rf"|\[(?P<own>{_LEVEL_NAMES})\](?: ?\[[^\]]{{1,120}}\]){{0,4}}(?: ?(?:>>>|[-:|]))? ?"
)
"""What some versions write behind the stamp: `[...] INFO engine.py:156: server_args=...`; and a
logging configuration of the user's own: `[...] [INFO] [PID-7] [sglang.srt] >>> server_args=...`."""


class Message(NamedTuple):
    """A stamped line, taken apart."""

    text: str
    """What follows the stamp."""
    stamp: float
    """The journal's stamp: Unix seconds on the host's clock."""
    rank: str
    pid: int | None


_SERVER_ERROR = re.compile(r'HTTP/[\d.]{1,4}" 5\d\d')


def message_start(text: str) -> int:
    """Offset of the message behind the stamp and what follows it, or -1 for a line without one."""
    close = _stamp_end(text)
    if close < 0:
        return -1
    start = close + 2
    if text[start : start + 4] in _LEVELS and (level := _LEVEL.match(text, start)) is not None:
        return level.end()
    return start


def _stamp_end(text: str) -> int:
    """Where the stamp's closing bracket stands, or -1 for a line without one."""
    if len(text) < PLAIN_START or text[0] != "[":
        return -1
    if text[5] == "-" and text[14] == ":":
        seconds = 20
    elif text[3] == ":" and text[6] == ":" and text[1:3].isdigit():
        seconds = 9  # before 0.4 there was no date
    else:
        return -1
    if text[seconds] == "]":
        return seconds
    close = text.find("]", seconds, seconds + 100)
    return close if close >= 0 and _rank(text[seconds:close]) is not None else -1


def rank_of(text: str) -> str:
    """Rank prefix of a line (`TP0`, `DP0 TP1 EP1`, torch's `rank0`), or an empty string."""
    close = _stamp_end(text)
    if close >= 0:
        return _rank(text[20 if text[5] == "-" else 9 : close]) or ""
    if text.startswith("[rank"):
        match = _TORCH_RANK.match(text)
        return match.group(1) if match is not None else ""
    return ""


@lru_cache(maxsize=1024)
def _rank(between: str) -> str | None:
    """The rank in what stands between the seconds and the closing bracket; None for other text."""
    match = _RANK.fullmatch(between)
    return match.group(1).strip() if match is not None else None


_TRAFFIC = (*_REQUESTS, "INFO:     ", "server_args=")


def is_traffic(text: str) -> bool:
    """Whether a line tells of requests, or lists the arguments: never of a failure."""
    start = message_start(text)
    return start >= 0 and text.startswith(_TRAFFIC, start)


def begins_run(text: str) -> bool:
    """Whether a line is among the first that a start writes."""
    start = message_start(text)
    if start >= 0:
        return text.startswith("server_args=", start)
    return "sglang/launch_server.py:" in text[:300] and "UserWarning" in text[:400]


def announces(text: str) -> Phase | None:
    """WARMUP for the line of the HTTP server that listens, READY for `fired up`."""
    if text.startswith("INFO:     Uvicorn running on "):
        return Phase.WARMUP
    start = message_start(text)
    if start >= 0 and text.startswith(FIRED_UP, start):
        return Phase.READY
    return None


def without_torch_rank(text: str) -> str:
    """A bare line without the `[rank0]: ` that torch puts before tracebacks of its workers."""
    if not text.startswith("[rank"):
        return text
    match = _TORCH_RANK.match(text)
    return text[match.end() :] if match is not None else text


def severity(text: str, priority: int | None) -> str:
    """`error`, `warning`, `info` or `debug`.

    `priority` is the journal's (syslog levels). What a process writes to its standard streams
    always arrives as 6, so that only other values decide; the rest is inferred from the text.
    """
    if priority is not None and priority != 6:
        return _SYSLOG.get(priority, "info")
    start = message_start(text)
    if start < 0:
        return _bare_severity(without_torch_rank(text))
    level = _LEVEL.match(text, _stamp_end(text) + 2)
    name = (level["level"] or level["own"]) if level is not None else "INFO"
    if name != "INFO":
        return name.lower().replace("critical", "error")
    return _stamped_severity(text[start : start + _HEAD])


def _stamped_severity(head: str) -> str:
    if head.startswith(_REQUESTS):
        return "info"
    if head[:6] == "INFO: ":
        if _POLLED.search(head):
            return "debug"
        return "warning" if _SERVER_ERROR.search(head) else "info"
    if head.startswith(_NOISE):
        return "debug"
    if head.startswith(("ERROR:", "CRITICAL:", *_FAILURES)) or _holds(head, _FAILURE_PARTS):
        return "error"
    if head.startswith("WARNING:") or _WARNING.search(head):
        return "warning"
    return "debug" if head.startswith("DEBUG:") else "info"


def _bare_severity(text: str) -> str:
    head = text[:_HEAD]
    if head.startswith(_BARE_NOISE) or BAR.match(head):
        return "debug"
    if head.startswith(_BARE_FAILURES) or CERTAIN_EXCEPTION.match(head) or ": error: " in head:
        return "error"
    if head[:2] in ("[E", "[F") and head[2:6].isdigit():
        return "error"
    if head[:1] == " ":
        return "info"
    return "warning" if _WARNING.search(head) or head[:2] == "[W" else "info"


def _holds(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)
