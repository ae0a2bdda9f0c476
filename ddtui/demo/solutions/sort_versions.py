"""Versions in order of precedence."""

from __future__ import annotations

from typing import Any


def _key(version: str) -> tuple[Any, ...]:
    core, _, pre = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".") if pre
    )
    return numbers, not pre, parts


def sort_versions(versions: list[str]) -> list[str]:
    """Sort, and keep the order of those that are equal."""
    return sorted(versions, key=_key)
