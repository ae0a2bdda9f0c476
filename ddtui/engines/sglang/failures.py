"""Finds what failed in SGLang's log: tracebacks, refused arguments, wrappers.

A wrapper only reports that something else failed (`Received sigquit from a child process`); the
root is the exception before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ddtui.core.events import ExceptionAlone, Failed, FailureContinued
from ddtui.core.redact import safe_text
from ddtui.engines.sglang.log_lines import (
    CERTAIN_EXCEPTION,
    EXCEPTION_NAME,
    Message,
    without_torch_rank,
)

TRACEBACK = "Traceback (most recent call last):"
_LONGEST_TRACEBACK = 2000
_LONGEST_MESSAGE = 1000
_LONGEST_NAME = 200
_LONGEST_CODE = 200
_MOST_PROCESSES = 256
_ALONE_FOR = 30.0
"""Seconds from an exception without a traceback to the end that it brought about, at most."""
_HARMLESS_FOR = 5.0
"""Seconds between two lines of one such report, at most."""

WRAPPERS = (
    "Received sigquit from a child process",
    "SIGQUIT received",
    "Subprocess ",
    "Rank ",
    "Watchdog timeout",
)
"""Beginnings of stamped messages that report a failure whose cause is told elsewhere."""

_DOTTED = re.compile(r"(?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,80}: ")
"""An exception with its module, whatever it is called: `triton.runtime.errors.OutOfResources: `."""

_FRAME = re.compile(r"\s{0,8}(?:File \")?[^\"]{1,400}\", line \d{1,7}, in ")
"""A frame of a traceback, also pasted without its indentation, or cut: without a header before it,
it is of a traceback that was cut off."""

_KERNEL_FAILED = "triton.compiler.errors.CompilationError: at "
_WITHIN_KERNEL = re.compile(r"[A-Z]\w{0,80}(?:Error|Exception)\(")
"""What is wrong with a Triton kernel, told after the code that the exception's message quotes."""

_ORDERLY = ("KeyboardInterrupt", "SystemExit", "CancelledError", "GeneratorExit")
"""Exceptions by which a process that was told to stop ends."""

_PIPE_CLOSED = "EOFError"
"""Says no more than that the process at the other end of a pipe is gone."""

_REFUSED = re.compile(
    r"(?:usage: )?[\w./-]{1,200}(?: [\w-]{1,40}){0,2}: error: (?P<message>.+)", re.DOTALL
)
"""argparse: `sglang serve: error: unrecognized arguments: --x`; `launch_server.py: error: ...`."""

_KILLED = re.compile(r"(?:[\w./-]{1,200}: line \d+: +\d+ )?Killed(?:\s|$)|zsh: killed ")
"""A shell's word on a process that somebody ended with SIGKILL, the kernel out of memory say."""
_SAYS_NOTHING = (
    "CUDA kernel errors might",
    "HIP kernel errors might",
    "For debugging consider",
    "Compile with `TORCH_USE",
    "Device-side assertion tracking",
    "Search for `cuda",
    "Set TORCHDYNAMO_VERBOSE",
    "stdout:",
    "stderr:",
    "Possible solutions:",
    "1. set --mem",
    "2. set --cuda",
    "3. disable torch",
    "4. disable CUDA",
    "Open an issue on GitHub",
)
"""Beginnings of what torch or SGLang add to the message of every error of its kind."""
_MORE_LINES = 4
"""Lines after an exception's first that are taken for the rest of its message."""
_NO_MORE = re.compile(
    r"During handling|The above exception|Traceback|\s*File \"|\[|\("
    r"|[A-Z]+(?::| \d)|-{3}|={3}|\s*[~^]"
)
"""Beginnings of lines that are none of an exception's message."""

_OUTPUT_FOLLOWS = re.compile(
    r"ninja exited with status|[Nn]inja build failed|Error building extension"
    r"|returned non-zero exit status|PTX codegen error|(?:std(?:out|err)|output):\s*$"
)
"""In an exception's message: what another program printed stands in its next lines."""
_OUTPUT_LINES = 500
_OUTPUT_ENDS = re.compile(
    r"During handling|The above exception|Possible solutions:|Killed|-{3}|={3}"
)

_ASSERTION = re.compile(
    r".{0,400}:\s{1,4}Assertion [`'].{1,300}[`'] failed\.?\s*$"
    r"|Assertion failed: \S{1,300}:\d{1,6}, condition: "
)
"""What the C library says of a process that it aborts, and kernels of what they were given."""

_LEFT = re.compile(r"resource_tracker: There appear to be \d+ leaked")
"""Python's word on what processes that are gone have left."""


Told = Failed | FailureContinued | ExceptionAlone
"""What a line without a stamp may tell."""


@dataclass
class _Process:
    """Where one process stands in what it writes about exceptions."""

    open: bool = False
    """Between a traceback's header and its last line."""
    is_headless: bool = False
    """The header was not seen: only the usual names of exceptions are believed."""
    code: str = ""
    """The line of code that the traceback quoted last."""
    indent: int = 0
    """How far it stands from the edge."""
    lines: int = 0
    rank: str = ""
    harmless_until: float = 0.0
    """Tracebacks before this tell of one request, or of an object's finalizer."""
    is_consequence: bool = False
    """The next traceback is said to be caused by the one before it."""
    printed_usage: bool = False
    of_kernel: bool = False
    """Within the message of an exception that quotes a Triton kernel."""
    more: int = 0
    """Lines that may follow as the rest of the last exception's message."""
    output: int = 0
    """Lines that may follow as what another program printed, of which that message tells."""

    def begin(self, rank: str = "", *, is_headless: bool = False) -> None:
        """A traceback begins."""
        self.open, self.is_headless, self.lines, self.code, self.indent = (
            True,
            is_headless,
            0,
            "",
            0,
        )
        self.rank, self.output = rank, 0

    def unindented(self, text: str) -> str:
        """The exception in a line of a traceback that was pasted with indentation; else nothing."""
        inner = text.strip(" ~^")
        indent = len(text) - len(text.lstrip(" "))
        if not inner:
            return ""
        if indent < self.indent and CERTAIN_EXCEPTION.match(inner) is not None:
            return inner
        if indent >= 4 and not inner.startswith('File "'):
            self.code, self.indent = inner[:_LONGEST_CODE], indent
        return ""

    def is_harmless(self, stamp: float) -> bool:
        """Whether this is about something that does not end the engine. A chain keeps it so."""
        if stamp >= self.harmless_until:
            return False
        self.harmless_until = stamp + _HARMLESS_FOR
        return True


class Failures:
    """Follows the tracebacks of every process of one invocation."""

    def __init__(self) -> None:
        self._processes: dict[int | None, _Process] = {}
        self._alone, self._alone_at = "", 0.0

    def _process(self, pid: int | None) -> _Process:
        if len(self._processes) >= _MOST_PROCESSES and pid not in self._processes:
            self._processes.clear()
        return self._processes.setdefault(pid, _Process())

    def began(self, pid: int | None, rank: str = "") -> None:
        """A stamped line ended in a traceback's header."""
        process = self._process(pid)
        process.begin(rank)
        process.harmless_until, process.is_consequence = 0.0, False

    def expect_harmless(self, pid: int | None, stamp: float) -> None:
        """The tracebacks that a process writes right after this are no failures of the engine."""
        self._process(pid).harmless_until = stamp + _HARMLESS_FOR

    def alone(self, stamp: float) -> str:
        """The exception that stood without its traceback shortly before; empty for none."""
        return self._alone if stamp - self._alone_at <= _ALONE_FOR else ""

    def bare(self, text: str, stamp: float, pid: int | None) -> Told | None:
        """Take a line without a stamp."""
        text = without_torch_rank(text)
        process = self._process(pid)
        more, process.more = process.more, 0
        if text.startswith(TRACEBACK):
            process.begin(process.rank if process.open else "")
        elif process.open:
            return self._within(text, stamp, process)
        elif process.output and _OUTPUT_ENDS.match(text) is None:
            return _output(text, stamp, process, more)
        elif process.of_kernel and _WITHIN_KERNEL.match(text) is not None:
            process.of_kernel = False
            return failed(text, stamp)
        elif '", line ' in text[:500] and _FRAME.match(text) is not None:
            process.begin(is_headless=True)
        elif text.startswith("The above exception was the direct cause"):
            process.is_consequence = True
        elif text.startswith("Exception ignored in"):
            self.expect_harmless(pid, stamp)
        elif text.startswith("usage: "):
            process.printed_usage = True
        elif ": error: " in text[:260]:
            return self._refused(text, stamp, process)
        else:
            return _last_words(text, stamp) or self._aside(text, stamp, process, more)
        return None

    def _aside(self, text: str, stamp: float, process: _Process, more: int) -> Told | None:
        """The rest of an exception's message, or an exception whose traceback is not there."""
        if text.startswith(_KERNEL_FAILED):
            process.of_kernel = True
        if _is_exception(text):
            if process.is_harmless(stamp):
                return None
            process.more = _MORE_LINES
            self._alone, self._alone_at = text, stamp
            return ExceptionAlone(stamp=stamp, message=_shown(text))
        if not more or _NO_MORE.match(text) is not None:
            return None
        says_nothing = text.startswith(_SAYS_NOTHING)
        process.more = more if says_nothing else more - 1
        return FailureContinued(stamp=stamp, message="" if says_nothing else _shown(text))

    def _within(self, text: str, stamp: float, process: _Process) -> Failed | None:
        process.lines += 1
        if process.lines > _LONGEST_TRACEBACK:
            process.open = False
        if not text or text[0].isspace():
            inner = process.unindented(text)
            if not inner:
                return None
            text = inner
        name = text[:_LONGEST_NAME].partition(":")[0]
        if EXCEPTION_NAME.fullmatch(name) is None:
            return None  # another process's line, written into the middle
        if process.is_headless and not _is_exception(text):
            return None
        process.open = False
        if text.strip() in ("AssertionError", "AssertionError:") and process.code:
            text = f"AssertionError: {process.code}"  # it says nothing itself
        is_consequence, process.is_consequence = process.is_consequence, False
        rank, process.rank = process.rank, ""
        process.of_kernel = text.startswith(_KERNEL_FAILED)
        if process.is_harmless(stamp) or name.rpartition(".")[2] in _ORDERLY:
            return None
        process.more = 0 if process.of_kernel else _MORE_LINES
        process.output = _OUTPUT_LINES if _OUTPUT_FOLLOWS.search(text[:_LONGEST_MESSAGE]) else 0
        wrapper = is_consequence or process.of_kernel or text.strip() == _PIPE_CLOSED
        return failed(text, stamp, rank, wrapper=wrapper)

    def _refused(self, text: str, stamp: float, process: _Process) -> Failed | None:
        match = _REFUSED.match(text)
        if match is None:
            return None
        own = text.startswith(("sglang", "launch_server", "__main__"))
        if not own and not process.printed_usage:
            return None
        return failed(match["message"], stamp)


def _output(text: str, stamp: float, process: _Process, more: int) -> FailureContinued:
    """A line of another program's output within an exception's message: the first few are told."""
    process.output -= 1
    is_told = more and not text.startswith(_SAYS_NOTHING) and _NO_MORE.match(text) is None
    process.more = more - 1 if is_told else more
    return FailureContinued(stamp=stamp, message=_shown(text) if is_told else "")


def _is_exception(text: str) -> bool:
    """Whether a line without a traceback's header is an exception's last one."""
    forms = (CERTAIN_EXCEPTION, _DOTTED, _WITHIN_KERNEL)
    return any(form.match(text) is not None for form in forms)


def _last_words(text: str, stamp: float) -> Failed | None:
    """What C++, the interpreter or a shell say of a process that ends."""
    if text.startswith(("terminate called", "Fatal Python error:")) or _KILLED.match(text):
        last = failed(text, stamp, wrapper=not text.startswith("Fatal"))
        return msgspec.structs.replace(last, ends_process=True)
    if "Assertion " in text[:500] and _ASSERTION.match(text) is not None:
        return failed(text, stamp)
    if text[:16].lstrip().startswith("what():"):
        return failed(text.partition("what():")[2].strip(), stamp)
    if _LEFT.search(text[:_LONGEST_MESSAGE]) is not None:
        return failed(text, stamp, wrapper=True)
    return None


class StampedTracebacks:
    """Tracebacks of which every line has the stamp and the rank prefix of a log line.

    Loggers that split messages write so, and then those of several ranks stand mixed.
    """

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._keys: dict[str, int] = {}
        """Stand-ins for the process of each rank: negative, so that they are no real ones."""
        self.open: set[str] = set()
        """Ranks between a header and its last line."""

    def read(self, line: Message) -> Iterable[Told]:
        """Take a stamped line that is nothing else."""
        key = self._keys.setdefault(line.rank, -1 - len(self._keys))
        if line.text.startswith(TRACEBACK):
            self.open.add(line.rank)
            self._failures.began(key, line.rank)
        elif line.rank in self.open:
            failure = self._failures.bare(line.text, line.stamp, key)
            if failure is not None:
                self.open.discard(line.rank)
                return (failure,)
        return ()


def failed(message: str, stamp: float, rank: str = "", *, wrapper: bool = False) -> Failed:
    """A failure with its message made safe to show."""
    return Failed(stamp=stamp, rank=rank, message=_shown(message), wrapper=wrapper)


def _shown(message: str) -> str:
    return safe_text(message.strip(), _LONGEST_MESSAGE)
