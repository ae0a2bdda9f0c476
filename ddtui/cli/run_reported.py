"""How a detached runner tells the one that started it whether it runs, and where its log is."""

from __future__ import annotations

import os
from types import TracebackType

import msgspec

from ddtui.experiments.report import RunEvent

LOG_VARIABLE = "DDTUI_RUN_LOG"


class Report(msgspec.Struct, frozen=True):
    """What the starter is told, once."""

    running: bool
    pid: int


class Reported:
    """Writes one line to a pipe as soon as the runner has what it needs; nothing without a pipe."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self.log_file = "" if descriptor is None else os.environ.get(LOG_VARIABLE, "")

    def heard(self, event: RunEvent) -> None:
        """An event of the runner: the first one says that it has all its locks."""
        if event.what == "started":
            self._tell(True)

    def _tell(self, running: bool) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        line = msgspec.json.encode(Report(running, os.getpid()))
        try:
            os.write(descriptor, line + b"\n")
        except BrokenPipeError:
            pass  # who started it has not waited
        finally:
            os.close(descriptor)

    def __enter__(self) -> Reported:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._tell(False)
