"""From a host's options to the host itself, its engine, and how it is to be watched."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ddtui.collect.settings import HostSettings
from ddtui.config.api_key import api_key
from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.hosts import HostTarget, Reach, full_unit_name
from ddtui.config.model import DEMO, is_unit_name
from ddtui.core.engine import Engine
from ddtui.hosts.base import Host

if TYPE_CHECKING:
    from ddtui.hosts.ssh.target import SshTarget


class Overrides(msgspec.Struct, frozen=True):
    """Options of the command line that go before those of the configuration."""

    unit: str | None = None
    user_unit: bool | None = None
    scenario: str | None = None


def engine_for(target: HostTarget) -> Engine:
    """The engine adapter that the host's options name."""
    from ddtui.engines import ENGINES

    return ENGINES[target.options.engine]


async def host_for(target: HostTarget, scenario: str | None = None) -> Host:
    """The host itself, not yet connected. Raises ConfigError for an unknown scenario."""
    checked_scenario(scenario, target.name)
    if target.reach is Reach.LOCAL:
        from ddtui.hosts.local import LocalHost

        return LocalHost(target.name)
    if target.reach is Reach.DEMO:
        from ddtui.demo.host import DemoHost
        from ddtui.demo.scenarios import DEFAULT_SCENARIO

        return await DemoHost.create(name=target.name, scenario=scenario or DEFAULT_SCENARIO)
    from ddtui.hosts.ssh.host import SshHost
    from ddtui.hosts.ssh.resolve import resolve

    return SshHost(target.name, partial(resolve, target.ssh, ssh_config=_ssh_config(target)))


async def ssh_target(target: HostTarget) -> SshTarget:
    """Where OpenSSH says that the host's name leads. Raises LinkRefused, LinkDown."""
    from ddtui.hosts.ssh.resolve import resolve

    return await resolve(target.ssh, ssh_config=_ssh_config(target))


def _ssh_config(target: HostTarget) -> Path | None:
    config = target.options.ssh_config
    return None if config is None else Path(config).expanduser()


def checked_scenario(name: str | None, host: str) -> str | None:
    """A scenario from the command line. Raises ConfigError for what is none, or not for `host`."""
    if name is None:
        return None
    if host != DEMO:
        raise ConfigError.of("--scenario is for the host 'demo' only")
    from ddtui.demo.scenarios import SCENARIOS

    if name not in SCENARIOS:
        known = "".join(f"\n       {each}: {what}" for each, what in SCENARIOS.items())
        raise ConfigError.of(
            f"no such scenario: {name}{did_you_mean(name, SCENARIOS)}; known:{known}"
        )
    return name


def settings_for(target: HostTarget, overrides: Overrides) -> HostSettings:
    """How the host is watched: its options, with those of the command line before them."""
    options = target.options
    user_unit = options.user_unit if overrides.user_unit is None else overrides.user_unit
    unit = options.unit if overrides.unit is None else checked_unit(overrides.unit)
    return HostSettings(
        unit=None if unit is None else full_unit_name(unit),
        scope="user" if user_unit else "system",
        port=options.port,
        bind_host=options.bind_host,
        nvidia_smi=options.nvidia_smi or "",
        gpu_interval=options.gpu_interval,
        system_interval=options.system_interval,
        hub_cache=options.hub_cache,
        api_key=partial(api_key, options),
    )


def checked_unit(name: str) -> str:
    """A unit's name from the command line. Raises ConfigError for what is none."""
    if not is_unit_name(name):
        raise ConfigError.of(f"--unit: {name[:80]!r} is no name of a service, such as llm.service")
    return name
