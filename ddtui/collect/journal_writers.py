"""Whose lines stand in a journal that holds those of a whole machine.

journalctl's text forms name the program that wrote a line, not its unit: what another program says
of its own failure, and systemd of another unit's, must not be taken for the engine's. An engine's
lines are known by their looks, and all lines of the same name with them; its unit is one of those
that systemd started shortly before.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

_LOOKS = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?: [A-Z_]{1,40}\d{1,5}){0,8}\] "
    r"|(?:\([^)]{1,80}\) ?){0,2}(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \["
    r"|.{0,400}[/.](?:sglang|vllm)/"
)
"""The engine's own stamp, or a path in its code."""
_CONTROL = re.compile(r"Control process exited, code=")
"""What a unit runs before and after its main process has failed: its words count too."""
_HELD = 200


class Held(NamedTuple):
    """A line of which it is not known yet whether the engine wrote it."""

    writer: str
    stamp: float
    pid: int | None
    text: str


class Writers:
    """Sorts the lines by who wrote them. Until an engine is known, all may be of one."""

    def __init__(self) -> None:
        self._engines: set[str] = set()
        self._held: deque[Held] = deque(maxlen=_HELD)

    def settle(self, writer: str) -> None:
        """This one is the engine's."""
        if writer:
            self._engines.add(writer)

    def of_engine(self, line: Held) -> list[Held]:
        """What may be taken now that this line has come: it, with those before it, or nothing."""
        if not self._engines or line.writer in self._engines:
            return [line]
        if _LOOKS.match(line.text) is None:
            self._held.append(line)
            return []
        self._engines.add(line.writer)
        ready = [*(each for each in self._held if each.writer == line.writer), line]
        self._held.clear()
        return ready

    def of_manager(self, text: str) -> list[Held]:
        """Lines that count now that systemd has said this."""
        if _CONTROL.search(text) is None:
            return []
        ready = list(self._held)
        self._held.clear()
        return ready


_BEGAN = re.compile(r"Start(?:ing|ed) (?P<unit>\S{1,255}\.service)\b")
_OVER = re.compile(
    r"(?:Finished|Stopped|Failed to start) (?P<named>\S{1,255}\.service)\b"
    r"|(?P<unit>\S{1,255}\.service): (?:Deactivated successfully|Succeeded|Failed with result)"
)
_SILENT = 300.0
"""Seconds that an engine may take to its first line: it imports its libraries first."""
_MOST = 256


class Units:
    """Which units the engine may be: those that ran when it began to speak."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._candidates: set[str] = set()

    def of_manager(self, text: str, stamp: float) -> bool:
        """Whether what systemd says may be of the engine's unit. Older ones say no names."""
        began = _BEGAN.match(text)
        over = _OVER.match(text)
        if began is not None:
            self._began.pop(began["unit"], None)
            self._began[began["unit"]] = stamp
            if len(self._began) > _MOST:
                self._began.pop(next(iter(self._began)))
        elif over is not None:
            self._began.pop(over["named"] or over["unit"], None)
        if not self._candidates or ".service" not in text:
            return True
        return began is not None or any(unit in text for unit in self._candidates)

    def began_to_speak(self, stamp: float) -> None:
        """An engine begins: its unit is among those that were started shortly before."""
        self._candidates |= {
            unit for unit, began in self._began.items() if 0 <= stamp - began <= _SILENT
        }
