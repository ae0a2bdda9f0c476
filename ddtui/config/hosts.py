"""A host's name made into what is needed to reach it."""

from __future__ import annotations

import msgspec

from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.model import BUILT_IN_HOSTS, DEMO, LOCAL, Config, HostOptions, is_host_name
from ddtui.core.reach import Reach

__all__ = ["HostTarget", "Reach", "find_host", "full_unit_name", "known_hosts"]


class HostTarget(msgspec.Struct, frozen=True):
    """A host with its options."""

    name: str
    reach: Reach
    options: HostOptions
    configured: bool
    """Whether the configuration has a section for it."""
    hint: str = ""
    """A configured host with a similar name, where this one is not configured."""

    @property
    def ssh(self) -> str:
        """What to give to ssh: the alias or `user@host`. Empty for hosts without ssh."""
        return "" if self.reach is not Reach.SSH else self.options.ssh or self.name

    @property
    def unit(self) -> str:
        """Full name of the unit, or an empty string where none is known."""
        return "" if self.options.unit is None else full_unit_name(self.options.unit)


def find_host(config: Config, name: str) -> HostTarget:
    """The host called `name`; one that is not configured is taken as an SSH alias or `user@host`.

    Raises ConfigError for a name that ssh could not take.
    """
    if not is_host_name(name):
        raise ConfigError.of(
            f"{name[:80]!r} is not a host's name: give a configured host, an SSH alias or user@host"
            f" (configured: {', '.join(known_hosts(config))})"
        )
    options = config.hosts.get(name)
    reach = {LOCAL: Reach.LOCAL, DEMO: Reach.DEMO}.get(name, Reach.SSH)
    hint = ""
    if options is None and reach is Reach.SSH:
        hint = did_you_mean(name, known_hosts(config)).removeprefix("; ")
    return HostTarget(name, reach, options or HostOptions(), options is not None, hint)


def known_hosts(config: Config) -> list[str]:
    """Names of all hosts that need no SSH alias: the configured ones, then the built-in ones."""
    return [*config.hosts, *(name for name in BUILT_IN_HOSTS if name not in config.hosts)]


def full_unit_name(name: str) -> str:
    """`llm` is `llm.service`, as systemctl takes it."""
    return name if name.endswith(".service") else f"{name}.service"
