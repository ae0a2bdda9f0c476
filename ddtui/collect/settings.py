"""What the collectors need to know of a host: its section of the configuration, resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

Scope = Literal["system", "user"]


def _no_key() -> str | None:
    return None


class HostSettings(msgspec.Struct, frozen=True):
    """How one host is watched. Intervals are seconds."""

    unit: str | None = None
    """The engine's service; None: look for it."""
    scope: Scope = "system"
    port: int | None = None
    """The engine's HTTP port; None: as its command line says."""
    bind_host: str | None = None
    """The address to reach the engine at, seen from the host; None: as its command line says."""
    nvidia_smi: str = ""
    """Path of nvidia-smi on the host; empty: as its PATH says."""
    gpu_interval: float = 1.0
    system_interval: float = 1.0
    engine_interval: float = 1.0
    processes_interval: float = 10.0
    """Each look starts an nvidia-smi, which costs 30 ms of CPU."""
    hub_cache: str | None = None
    api_key: Callable[[], str | None] = _no_key
    """Gives the engine's API key when it is needed; the key itself is kept nowhere."""
    journal_lines: int = 2000
    """Lines of the present invocation that are read at first."""
