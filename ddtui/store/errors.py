"""How the store fails."""

from __future__ import annotations

from ddtui.core.experiment import Experiment


class StoreError(Exception):
    """The database cannot be used. ddtui goes on without it: nothing is kept, and no history known.

    Attributes:
        what: What could not be done.
        why: The reason, as far as it is known.
        remedy: What the operator can do.
    """

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(f"{what}: {why}. {remedy}")
        self.what = what
        self.why = why
        self.remedy = remedy


class Stale(Exception):
    """An experiment is no longer what it was taken for; nothing was changed.

    Attributes:
        id: The experiment's id.
        now: The experiment as it is; None where there is none, or none that can be read.
    """

    def __init__(self, experiment_id: str, now: Experiment | None, detail: str = "") -> None:
        is_now = "is not there" if now is None else f"is {now.state}"
        super().__init__(f"experiment {experiment_id[:8]} {detail or is_now}")
        self.id = experiment_id
        self.now = now
