"""Refuses a host that is neither configured nor known to the store: the name may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddtui.cli.output import clean
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import HostTarget, Reach, known_hosts

if TYPE_CHECKING:
    from ddtui.config.model import Config
    from ddtui.store import Store


def refuse_unknown(nothing: str, target: HostTarget, config: Config, store: Store) -> None:
    """Called where a verb has nothing to show; `nothing` is that in words, with the host's name.

    Raises ConfigError for a host that is neither configured nor has anything stored.
    """
    unknown = target.reach is Reach.SSH and not target.configured
    if unknown and not _has_anything(store, target.name):
        near = target.hint or f"(configured: {', '.join(known_hosts(config))})"
        gap = "; " if target.hint else " "
        raise ConfigError.of(f"{clean(nothing)}, and no host of this name is configured{gap}{near}")


def _has_anything(store: Store, host: str) -> bool:
    """Whether it was ever changed, measured, or had an experiment queued."""
    return bool(
        store.reconfigurations.history(host, most=1)
        or store.experiments.queue(host, simulated=False, cleared=True)
        or store.measurements.of_host(host, simulated=False)
    )
