"""The course of an examination: here, the way to the host, the host, its unit and engine."""

from __future__ import annotations

import asyncio
from functools import partial

from ddtui.app.live import Watched, watched
from ddtui.app.reaching import Overrides, ssh_target
from ddtui.cli.context import Options
from ddtui.cli.doctor import engine, facts, forwarding, here, on_host, rights
from ddtui.cli.doctor.check import AGAIN, Check, bounded, fail, ok, skip
from ddtui.cli.doctor.printing import Printer
from ddtui.cli.first_contact import PATIENCE, reach
from ddtui.cli.look import collected
from ddtui.config.api_key import ApiKeyError
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import HostTarget, Reach, find_host
from ddtui.config.load import Loaded
from ddtui.config.model import Config
from ddtui.config.paths import find_config
from ddtui.core.snapshot import Snapshot
from ddtui.hosts.base import HostError

CONNECT_LIMIT = 20.0


async def examine(options: Options, name: str, overrides: Overrides, printer: Printer) -> None:
    """Look at everything, one after the other; no failure ends the others."""
    loaded, error = _load(options)
    target = find_host(loaded.config if loaded else Config(), name)
    printer.heading("here")
    printer.show([here.python(), here.configuration(find_config(options.config), loaded, error)])
    printer.show(here.terminal())
    printer.show(await bounded("bubblewrap", here.bubblewrap))
    if target.reach is Reach.SSH:
        await _way_to(target, printer)
    printer.heading(f"on {target.name}")
    source = await watched(target, overrides)
    try:
        checks = await bounded("link", partial(_connect, source), CONNECT_LIMIT)
        printer.show(checks)
        if any(check.verdict == "FAIL" for check in checks):
            printer.show([skip("everything else", "there is no connection to look through")])
            return
        await _on_host(source, printer)
    finally:
        await source.close()


def _load(options: Options) -> tuple[Loaded | None, ConfigError | None]:
    try:
        return options.load(), None
    except ConfigError as error:
        return None, error


async def _way_to(target: HostTarget, printer: Printer) -> None:
    """What OpenSSH makes of the name, and what there is to prove oneself with."""

    async def client() -> list[Check]:
        return [await here.ssh_client()]

    printer.show(await bounded("ssh client", client))
    try:
        address = await ssh_target(target)
    except HostError as error:
        printer.show([fail("ssh address", error.what, error.remedy or AGAIN)])
        return

    async def known() -> list[Check]:
        return [here.known_host(address)]

    printer.show([here.address(address)])
    printer.show(await bounded("ssh keys", partial(here.keys, address)))
    printer.show(await bounded("host key", known))


async def _connect(source: Watched) -> list[Check]:
    await source.host.start()
    reached = await reach(source.host, ask=False)
    link = source.host.link
    if reached:
        return [ok("link", link.detail or "connected")]
    what = link.detail or f"no answer within {PATIENCE:g} s"
    return [fail("link", what, link.remedy or AGAIN)]


async def _on_host(source: Watched, printer: Printer) -> None:
    """Facts and quality of the link first, then a few seconds of watching."""
    settings = source.settings
    found: list[facts.Facts] = []

    async def ask() -> list[Check]:
        answer, asked, answered = await on_host.ask_facts(
            source.host, settings.unit or "", settings.nvidia_smi
        )
        found.append(answer)
        checks = facts.check_facts(
            answer, unit=settings.unit or "", user_unit=settings.scope == "user"
        )
        return [*checks, facts.check_clock(answer, asked, answered)]

    printer.show(await bounded("facts", ask))
    printer.show(await bounded("latency", partial(on_host.latency, source.host)))
    printer.show(await bounded("channels", partial(on_host.channels, source.host)))
    seen: list[Snapshot] = []

    async def watch() -> list[Check]:
        snapshot = await _watched_for_a_while(source)
        seen.append(snapshot)
        return engine.check_snapshot(snapshot, settings.scope)

    printer.show(await bounded("sources", watch))
    # By the name that systemd has for it: an alias has other rights.
    unit = (seen[0].unit.name if seen and seen[0].unit else "") or settings.unit or ""
    if found and unit:
        printer.show(await bounded("rights to act", partial(_rights, source, found[0], unit)))
    else:
        printer.show([skip("rights to act", "no unit is known")])
    printer.show(await bounded("engine http", partial(_engine, source)))


async def _rights(source: Watched, found: facts.Facts, unit: str) -> list[Check]:
    user_unit = source.settings.scope == "user"
    missing = set() if user_unit else await rights.ask_rights(source.host, unit)
    return [rights.check_rights(found, missing, unit=unit, user_unit=user_unit)]


async def _watched_for_a_while(source: Watched) -> Snapshot:
    await source.start()
    return await collected(source)


async def _engine(source: Watched) -> list[Check]:
    address, port = source.engine_address()
    try:
        key = await asyncio.to_thread(source.settings.api_key)
    except ApiKeyError as error:
        return [fail("api key", str(error), "mend what gives it (api_key_...)")]
    return await forwarding.reach_engine(source.host, source.engine, address, port, key)
