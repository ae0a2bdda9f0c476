"""Arguments and options that several verbs take."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from ddtui.config.errors import ConfigError
from ddtui.config.hosts import known_hosts
from ddtui.config.load import load


def _complete_host(incomplete: str) -> list[str]:
    """Host names for the shell's completion; a broken configuration completes nothing."""
    try:
        names = known_hosts(load().config)
    except ConfigError:
        return []
    return [name for name in names if name.startswith(incomplete)]


_Choice = TypeVar("_Choice", bound=enum.StrEnum)


def seconds(given: str | float) -> float:
    """A span that an option takes, or its default."""
    text = str(given)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (value >= 0 and math.isfinite(value)):
        raise typer.BadParameter(f"got {text[:80]!r}; expected seconds, such as 900")
    return value


def from_one_on(given: str | int) -> int:
    """A whole number that an option takes, or its default."""
    text = str(given)
    if not (text.isdecimal() and text.isascii() and len(text) <= 9 and int(text) >= 1):
        raise typer.BadParameter(f"got {text[:80]!r}; expected a whole number from 1 on, such as 8")
    return int(text)


def one_of(kind: type[_Choice]) -> Callable[[str], _Choice]:
    """What reads one of several words."""

    def read(text: str) -> _Choice:
        if text not in list(kind):
            words = ", ".join(kind)
            raise typer.BadParameter(f"got {text[:80]!r}; expected one of: {words}")
        return kind(text)

    return read


HostArgument = Annotated[
    str,
    typer.Argument(
        metavar="HOST",
        help="A configured host, an SSH alias, user@host, `local` or `demo`.",
        autocompletion=_complete_host,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UnitOption = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="The engine's systemd unit, if not as configured."),
]
UserUnitOption = Annotated[
    bool | None,
    typer.Option(
        "--user-unit/--system-unit", help="Which service manager has the unit.", show_default=False
    ),
]
