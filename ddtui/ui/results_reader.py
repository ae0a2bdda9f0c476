"""Reads results when something has changed, and not too often."""

from __future__ import annotations

import time

from ddtui.ui.results_source import Asked, Found, ResultsSource
from ddtui.ui.source import ControlProblem

REST = 4.0
"""Times that reading took last, which passes before it is read again: a queue that moves fast must
not keep a core busy."""


class ResultsReader:
    """What was read last, and what was asked for then."""

    def __init__(self, source: ResultsSource) -> None:
        self._source = source
        self._version: int | None = None
        self._not_before = 0.0
        self._busy = False
        self.asked = Asked()
        self.found: Found | None = None
        self.trouble = ""
        """Why the last look failed; what was read before is kept."""

    async def look(self) -> bool:
        """Read if there is something new; whether anything is to be shown anew."""
        if self._busy or time.monotonic() < self._not_before:
            return False
        self._busy = True
        try:
            return await self._look()
        finally:
            self._busy = False

    async def ask(self, asked: Asked) -> None:
        """Read with another baseline, sweep or concurrency.

        Raises:
            ControlProblem: It cannot be had; what was read before is kept.
        """
        await self._read(asked)

    async def _look(self) -> bool:
        before = self.trouble
        try:
            version = await self._source.version()
            if version == self._version and not before:
                return False
            try:
                await self._read(self.asked)
            except ControlProblem:
                if self.asked == Asked():
                    raise
                # What it was compared with may be gone: the usual results are better than none.
                await self._read(Asked())
            self._version, self.trouble = version, ""
        except ControlProblem as problem:
            self.trouble = f"{problem.what}. {problem.remedy}".strip()
            return self.trouble != before
        return True

    async def _read(self, asked: Asked) -> None:
        began = time.monotonic()
        found = await self._source.read(asked)
        self._not_before = time.monotonic() + REST * (time.monotonic() - began)
        self.asked, self.found = asked, found
