"""What a runner tells of itself: events as they happen, and a view of where it stands."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ddtui.bench.progress import Progress
from ddtui.core.experiment import Experiment
from ddtui.store.lock_wait import Held


class RunEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened in a run."""

    at: float
    """Unix seconds on the operator's clock."""
    what: str
    """`started`, `taken up`, `taken over`, `other base`, `step`, `change`, `cell`, `ended`,
    `waiting`, `stopping`, `leaving`, `left`, `finished`."""
    experiment: str = ""
    title: str = ""
    step: str = ""
    text: str = ""
    """In words."""
    state: str = ""
    """`done`, `failed` or `cancelled`, of an experiment that ended."""
    measurement: str = ""
    reloaded: bool = False


class RunnerView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a runner stands; frozen, for whoever shows it."""

    host: str
    who: str
    since: float | None = None
    """Unix seconds; None before it was started."""
    running: bool = False
    experiment: Experiment | None = None
    """The one under way."""
    step: str = ""
    """Of the experiment, or `leaving` at the end of the queue."""
    detail: str = ""
    """What goes on within the step, in words."""
    progress: Progress | None = None
    """Of the bench, while it runs."""
    done: int = 0
    failed: int = 0
    waiting: str = ""
    """Why nothing goes on: the queue is paused, the host or the database is waited for."""
    eta_seconds: float | None = None
    """Until the step under way ends; None where nothing can be said."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    done: int = 0
    failed: int = 0
    cancelled: int = 0
    held: int = 0
    """Experiments that still wait, as they are held."""
    stopped: bool = False
    """Whether it was asked to stop before the queue was empty."""
    left: str = ""
    """Which configuration the unit was left in, in words; empty where it was left as it was."""
    trouble: str = ""
    """Why the unit could not be left as it should be."""

    @property
    def words(self) -> str:
        """All of that in a line."""
        parts = [f"{self.done} done"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.cancelled} cancelled"] if self.cancelled else []
        parts += [f"{self.held} held, and not run"] if self.held else []
        parts += [f"the unit is left in {self.left}"] if self.left else []
        parts += [f"the unit could not be left as it should be: {self.trouble}"] * bool(
            self.trouble
        )
        return "; ".join([*parts, *(["stopped before the end"] if self.stopped else [])])


OnEvent = Callable[[RunEvent], None]


def database_words(held: Held | None) -> str:
    """That another process keeps the database locked, or for None that it does no more."""
    if held is None:
        return "the database is free again"
    by, since = held.by or "another process", time.strftime("%H:%M:%S", time.localtime(held.since))
    longest = f"{held.seconds / 60:.0f} min" if held.seconds >= 120 else f"{held.seconds:.0f} s"
    return f"the database is held by {by} since {since}; waiting for it, {longest} at most"


def time_left(progress: Progress | None) -> float | None:
    """Seconds until a bench ends, from how far it is; None while that cannot be said."""
    if progress is None or not progress.cells or not progress.elapsed:
        return None
    batch = progress.done / progress.requests if progress.requests else 0.0
    within = (max(0, progress.batch - 1) + batch) / max(1, progress.batches)
    # The warm-up is shorter than the batches that count, and nobody knows how much.
    share = (max(0, progress.cell - 1) + min(1.0, within)) / progress.cells
    return progress.elapsed * (1.0 - share) / share if share > 0.05 else None
