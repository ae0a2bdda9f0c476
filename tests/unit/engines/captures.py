"""Reads the captured output of real servers (SGLang 0.5.23 on a CPU) as the journal gives it."""

from __future__ import annotations

from pathlib import Path

from ddtui.core.events import (
    AnyEvent,
    BarMoved,
    Configured,
    Decoded,
    ExceptionAlone,
    Failed,
    FailureContinued,
    PhaseBegan,
    PhaseEnded,
    PortOpened,
    Prefilled,
)
from ddtui.core.journal_text import split_message
from ddtui.core.samples import JournalLine
from ddtui.engines.sglang import SGLANG

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "sglang"


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def journal(text: str, pid: int | None = None) -> list[JournalLine]:
    """The lines of a log, stamped with their number in it, from 1."""
    return [
        JournalLine(stamp=float(number), text=part, bar=bar, pid=pid)
        for number, line in enumerate(text.split("\n"), 1)
        for part, bar in split_message(line)
    ]


def events_of(text: str) -> list[AnyEvent]:
    reader = SGLANG.log_reader()
    return [event for line in journal(text) for event in reader.read(line)]


def brief(event: AnyEvent) -> str:
    """An event in a few words: its line, its kind and what it says."""
    where = f"{event.stamp:g}{' ' + event.rank if event.rank else ''}"
    match event:
        case PhaseBegan():
            return f"{where}: began {event.phase}{_more(event.detail)}"
        case PhaseEnded():
            seconds = "" if event.seconds is None else f" in {event.seconds:g} s"
            return f"{where}: ended {event.phase}{seconds}{_more(event.detail)}"
        case BarMoved():
            return f"{where}: {event.phase} {event.done}/{event.total} ({event.label})"
        case Configured():
            return f"{where}: configured {len(event.values)}"
        case Failed() | FailureContinued() | ExceptionAlone():
            return f"{where}: {_kind(event)} {event.message}"
        case PortOpened():
            return f"{where}: port {event.url}"
        case _:
            return f"{where}: {type(event).__name__}"


def _kind(event: Failed | FailureContinued | ExceptionAlone) -> str:
    if isinstance(event, Failed):
        return "wrapper" if event.wrapper else "failed"
    return "more" if isinstance(event, FailureContinued) else "alone"


def _more(detail: str) -> str:
    return f" ({detail})" if detail else ""


def story(events: list[AnyEvent]) -> list[str]:
    """The events without the periodic ones."""
    return [brief(event) for event in events if not isinstance(event, (Decoded, Prefilled))]


def told(*lines: str) -> list[str]:
    """The story of a few lines, without their numbers."""
    return [entry.partition(": ")[2] for entry in story(events_of("\n".join(lines)))]
