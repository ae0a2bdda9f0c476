"""What the results screen needs of whoever keeps measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ddtui.experiments.results import ResultsView
from ddtui.experiments.results_files import Form


class Asked(msgspec.Struct, frozen=True):
    """Which results are wanted; everything may be left to choose."""

    baseline: str = ""
    """Id of a measurement of what the others are compared with."""
    sweep: str = ""
    concurrency: int | None = None


class Found(msgspec.Struct, frozen=True):
    """Results as they were read."""

    view: ResultsView
    sweeps: tuple[str, ...] = ()
    """Names of all sweeps of the host, the newest first."""


class ResultsSource(Protocol):
    """Measurements of one host. Methods raise ControlProblem, and work off the event loop."""

    async def version(self) -> int:
        """A number that grows whenever something of the results may have changed. Cheap."""
        ...

    async def read(self, asked: Asked) -> Found:
        """Everything that was measured, compared. Takes its time."""
        ...

    async def there_already(self, view: ResultsView, form: Form, file: Path) -> Sequence[Path]:
        """Which of the files that an export would write exist."""
        ...

    async def export(self, view: ResultsView, form: Form, file: Path) -> Sequence[Path]:
        """Write the results; what is there is replaced. Returns the files written."""
        ...
