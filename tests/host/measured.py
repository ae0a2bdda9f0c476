"""Figures that tests measure: printed at the end of the run, never asserted tightly."""

from __future__ import annotations

RESULTS: list[str] = []


def measured(what: str, seconds: float) -> None:
    """Note how long something took."""
    RESULTS.append(f"{what}: {seconds:.2f} s")
