"""How the store fails."""

from __future__ import annotations


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
