"""A program in a pseudo-terminal, watched from outside: bytes, processor time, memory."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

import psutil


class Terminal:
    """Runs a program in a terminal; what it writes is read as it comes and counted."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 40,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.began = time.perf_counter()
        pid, descriptor = pty.fork()
        if pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor"})
            os.environ.update(environment or {})
            os.execvp(argv[0], list(argv))
        self.pid = pid
        self._descriptor = descriptor
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        self.written = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def read(self, seconds: float) -> bytes:
        """Everything written within `seconds`."""
        until = time.perf_counter() + seconds
        chunks = []
        while (left := until - time.perf_counter()) > 0:
            chunk = self._read_some(left)
            if chunk is None:
                break
            chunks.append(chunk)
        return b"".join(chunks)

    def until(self, marks: Sequence[bytes], limit: float) -> float | None:
        """Seconds until all `marks` were written, in any order; None after `limit` seconds."""
        began, seen, missing = time.perf_counter(), b"", list(marks)
        while (left := limit - (time.perf_counter() - began)) > 0:
            chunk = self._read_some(left)
            if chunk is None:
                return None
            seen += chunk
            missing = [mark for mark in missing if mark not in seen]
            if not missing:
                return time.perf_counter() - began
        return None

    def _read_some(self, limit: float) -> bytes | None:
        ready, _, _ = select.select([self._descriptor], [], [], limit)
        if not ready:
            return b""
        try:
            chunk = os.read(self._descriptor, 1 << 16)
        except OSError:  # how Linux tells that the other end is closed
            return None
        self.written += len(chunk)
        return chunk or None

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._descriptor, keys.encode())

    def cost(self, seconds: float) -> dict[str, float]:
        """What the program and its children take over `seconds`: share of a core, memory, bytes."""
        before, written = _processor_seconds(self.pid), self.written
        began = time.perf_counter()
        self.read(seconds)
        spent = time.perf_counter() - began
        return {
            "cpu_percent": round(100 * (_processor_seconds(self.pid) - before) / spent, 2),
            "resident_mb": round(_resident(self.pid) / 1e6, 1),
            "terminal_kb_per_s": round((self.written - written) / spent / 1000, 2),
        }

    def end(self) -> None:
        """End the program and wait for it."""
        deadline = time.perf_counter() + 5
        os.kill(self.pid, signal.SIGTERM)
        while time.perf_counter() < deadline:
            self._read_some(0.05)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._descriptor)


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _processor_seconds(pid: int) -> float:
    """Of the program, its children, and those of them that have ended."""
    total = 0.0
    for process in _family(pid):
        times = process.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _resident(pid: int) -> int:
    return sum(process.memory_info().rss for process in _family(pid))
