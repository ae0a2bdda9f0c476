"""Mistakes in the configuration, each with its place and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One mistake."""

    message: str
    """What is wrong, and what is expected instead."""
    where: str = ""
    """The table and the key: `[hosts.ct200] port`."""
    line: int | None = None
    file: Path | None = None

    def __str__(self) -> str:
        place = "" if self.file is None else str(self.file)
        if self.line is not None:
            place += f":{self.line}"
        return ": ".join(part for part in (place, self.where, self.message) if part)


class ConfigError(Exception):
    """The configuration cannot be used. `problems` are all mistakes that were found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)

    @classmethod
    def of(cls, message: str, file: Path | None = None, where: str = "") -> ConfigError:
        """An error of a single problem."""
        return cls([Problem(message, where=where, file=file)])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'port'?`, or an empty string where nothing known is near."""
    by_lower = {item.lower(): item for item in known}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean '{by_lower[near[0]]}'?" if near else ""
