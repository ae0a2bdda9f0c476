"""Tells what a runner does: in words on standard error, or as JSON lines on standard output."""

from __future__ import annotations

from collections.abc import Callable

from ddtui.cli.output import clean, emit_json_line, say
from ddtui.experiments.report import OnEvent, RunEvent

_QUIET = {"planning", "recording"}
"""Steps that take no time worth a line."""


class RunNarration:
    """A listener of a runner."""

    def __init__(self, *, as_json: bool, also: OnEvent = lambda _: None) -> None:
        """`also` hears every event too."""
        self._as_json = as_json
        self._also = also
        self._began: float | None = None
        self._last = ""

    def __call__(self, event: RunEvent) -> None:
        """One event."""
        self._also(event)
        if self._as_json:
            emit_json_line(event)
        if self._began is None:
            self._began = event.at
        words = words_of(event)
        if words and words != self._last:
            self._last = words
            say(f"{max(0.0, event.at - self._began):6.0f} s  {clean(words)}")


def words_of(event: RunEvent) -> str:
    """An event in a line; empty where it is not worth one."""
    make = _WORDS.get(event.what)
    return event.text if make is None else make(event)


def _step(event: RunEvent) -> str:
    return "" if event.step in _QUIET else f"  {event.step}"


def _ended(event: RunEvent) -> str:
    why = f": {event.text}" if event.text else ""
    loaded = " (the engine was loaded for it)" if event.reloaded and not why else ""
    return f"{event.title} is {event.state}{why}{loaded}"


_WORDS: dict[str, Callable[[RunEvent], str]] = {
    "taken up": lambda event: f"{event.title}",
    "taken over": lambda event: f"{event.title}: {event.text}",
    "step": _step,
    "change": lambda event: f"    {event.text}",
    "cell": lambda event: f"    {event.text}",
    "waiting": lambda event: f"    {event.text}",
    "other base": lambda event: f"    ! {event.text}" if event.experiment else f"! {event.text}",
    "ended": _ended,
    "leaving": lambda event: f"leaving the unit in {event.text}",
    "left": lambda event: f"the unit is proved to be in {event.text}",
}
