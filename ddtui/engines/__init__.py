"""Engine adapters: all that is one inference server's own. Pure functions over text, no I/O."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.core.engine import Engine
from ddtui.engines.sglang import SGLANG

ENGINES: dict[str, Engine] = {SGLANG.name: SGLANG}
"""Every engine by the name that hosts are configured with."""


class UnknownEngine(ValueError):
    """No adapter has this name."""


def engine(name: str) -> Engine:
    """Return the adapter of an engine. Raises UnknownEngine, which names those that exist."""
    try:
        return ENGINES[name.strip().lower()]
    except KeyError:
        known = ", ".join(sorted(ENGINES))
        message = f"there is no engine {name!r}; set `engine` to one of: {known}"
        raise UnknownEngine(message) from None


def engine_of(command_line: Sequence[str]) -> Engine | None:
    """Return the adapter of the engine that a command line starts, if any."""
    return next((each for each in ENGINES.values() if each.is_command(command_line)), None)
