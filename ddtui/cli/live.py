"""Puts together what watches a host: the way to reach it, its collectors, and what is known of it.

Every verb that looks at a host starts here, so that all of them see the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ddtui.collect.monitor import Monitor
from ddtui.collect.settings import HostSettings
from ddtui.config.api_key import api_key
from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.hosts import HostTarget, Reach, full_unit_name
from ddtui.config.model import is_unit_name
from ddtui.core.clock import Clock, system_clock
from ddtui.core.engine import Engine
from ddtui.core.host_state import HostState
from ddtui.core.snapshot import Snapshot
from ddtui.hosts.base import Host

if TYPE_CHECKING:
    from ddtui.hosts.ssh import SshTarget


class Overrides(msgspec.Struct, frozen=True):
    """Options of the command line that go before those of the configuration."""

    unit: str | None = None
    user_unit: bool | None = None
    scenario: str | None = None


def engine_for(target: HostTarget) -> Engine:
    """The engine adapter that the host's options name."""
    from ddtui.engines.sglang import SGLANG

    return {"sglang": SGLANG}[target.options.engine]


async def host_for(target: HostTarget, scenario: str | None = None) -> Host:
    """The host itself, not yet connected. Raises ConfigError for an unknown scenario."""
    if scenario is not None and target.reach is not Reach.DEMO:
        raise ConfigError.of("--scenario is for the host 'demo' only")
    if target.reach is Reach.LOCAL:
        from ddtui.hosts.local import LocalHost

        return LocalHost(target.name)
    if target.reach is Reach.DEMO:
        from ddtui.demo.host import DemoHost

        return await DemoHost.create(name=target.name, scenario=_scenario(scenario))
    from ddtui.hosts.ssh import SshHost, resolve

    return SshHost(target.name, partial(resolve, target.ssh, ssh_config=_ssh_config(target)))


async def ssh_target(target: HostTarget) -> SshTarget:
    """Where OpenSSH says that the host's name leads. Raises LinkRefused, LinkDown."""
    from ddtui.hosts.ssh import resolve

    return await resolve(target.ssh, ssh_config=_ssh_config(target))


def _ssh_config(target: HostTarget) -> Path | None:
    config = target.options.ssh_config
    return None if config is None else Path(config).expanduser()


def _scenario(name: str | None) -> str:
    from ddtui.demo.scenarios import DEFAULT_SCENARIO, SCENARIOS

    if name is None:
        return DEFAULT_SCENARIO
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


class Watched:
    """A host that is watched: what the screens ask of it (`ddtui.ui.source.LiveSource`), and verbs."""

    def __init__(
        self, target: HostTarget, host: Host, settings: HostSettings, clock: Clock = system_clock
    ) -> None:
        self.target = target
        self.name = target.name
        self.host = host
        self.settings = settings
        self.engine = engine_for(target)
        self._clock = clock
        self._state = HostState(
            target.name,
            self.engine,
            simulated=host.simulated,
            gpu_interval=settings.gpu_interval,
        )
        self._monitor = Monitor(host, self.engine, settings, self._state.apply, clock=clock)

    def snapshot(self, now: float) -> Snapshot:
        """What is known at `now` (Unix seconds)."""
        return self._state.snapshot(now)

    def snapshot_now(self) -> Snapshot:
        """What is known now."""
        return self.snapshot(self._clock())

    async def start(self) -> None:
        """Begin connecting and collecting; a second call changes nothing."""
        await self._monitor.start()

    async def close(self) -> None:
        """End collecting and the connection. Safe to call twice."""
        await self._monitor.close()

    def retry_now(self) -> None:
        """Try to connect at once instead of waiting for the backoff."""
        self._monitor.retry_now()

    def engine_address(self, command_line: Sequence[str]) -> tuple[str, int]:
        """Address and port to reach the engine at, seen from the host."""
        address = self.settings.bind_host or self.engine.bind_host(command_line)
        return _ANY.get(address, address), self.settings.port or self.engine.port(command_line)


_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104
"""Addresses that mean all of them: the loopback one answers."""


async def watched(target: HostTarget, overrides: Overrides) -> Watched:
    """A host, ready to be started. Raises ConfigError for options that cannot be."""
    settings = settings_for(target, overrides)
    return Watched(target, await host_for(target, overrides.scenario), settings)
