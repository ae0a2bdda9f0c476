"""How far a bench is, for whoever watches it."""

from __future__ import annotations

import enum

import msgspec


class Step(enum.StrEnum):
    """What a bench does now."""

    PREPARING = "preparing"
    """Reading prompts, asking the engine for its model, flushing its cache."""
    WARMING_UP = "warming up"
    MEASURING = "measuring"
    COMMAND = "external command"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a running bench."""

    step: Step
    concurrency: int = 0
    cell: int = 0
    """Number of the cell, from 1."""
    cells: int = 0
    batch: int = 0
    """Number of the warm-up batch or of the repeat, from 1."""
    batches: int = 0
    """Repeats, or warm-up batches at most."""
    done: int = 0
    """Requests of this batch that have ended."""
    requests: int = 0
    """Requests of this batch."""
    rate: float | None = None
    """Tokens per second of all streams now; None before there are any."""
    series: tuple[tuple[float, float], ...] = ()
    """(Seconds since this batch began, tok/s of all streams), a point each quarter of a second or
    more."""
    elapsed: float = 0.0
    """Seconds since the bench began."""
    note: str = ""
