"""Reaching a host before the screen opens: a first contact is asked about in plain words."""

from __future__ import annotations

import asyncio
import sys
from asyncio import FIRST_COMPLETED

from ddtui.cli.output import clean, say
from ddtui.cli.streams import typed_line
from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import Host, HostKeyUnknown, LinkDown, LinkRefused

PATIENCE = 15.0
"""Seconds for the first connection before the screen opens without it."""


async def reach(host: Host, *, patience: float = PATIENCE, ask: bool = True) -> bool:
    """Wait until the host, once started, is connected. False as soon as it cannot be reached now.

    An unknown host key is shown and must be accepted by typing `yes` in full; it is refused where
    nobody is to be asked. Raises LinkRefused when the operator must act first.
    """
    down, tried = asyncio.Event(), asyncio.Event()

    def listen(link: LinkSample) -> None:
        if link.state is LinkState.RETRYING:
            down.set()
        elif link.state is LinkState.CONNECTING:
            tried.set()

    host.on_link(listen)
    if host.link.state is LinkState.RETRYING:
        down.set()
    while True:
        live = asyncio.create_task(host.wait_live())
        failed = asyncio.create_task(down.wait())
        try:
            await asyncio.wait({live, failed}, timeout=patience, return_when=FIRST_COMPLETED)
            if not live.done():
                return False
            await live
        except HostKeyUnknown as unknown:
            if not ask:
                unknown.remedy = how_to_accept(host)
                raise
            tried.clear()
            await accept(host, unknown)
            await tried.wait()
        except LinkDown:
            return False
        else:
            return True
        finally:
            live.cancel()
            failed.cancel()
            await asyncio.gather(live, failed, return_exceptions=True)


def how_to_accept(host: Host) -> str:
    """What to do about an unknown key where nobody can be asked."""
    return (
        f"compare the fingerprint with one that you got from the host itself, then accept the key:"
        f" `ddtui connect {host.name}` asks in a terminal; so does ssh"
    )


async def accept(host: Host, unknown: HostKeyUnknown) -> None:
    """Ask whether an unknown key is the host's, and record it. Raises LinkRefused if not."""
    say(f"The host {clean(host.name)} is not known yet.")
    say(f"  address      {clean(unknown.address)}")
    say(f"  key type     {clean(unknown.key_type)}")
    say(f"  fingerprint  {clean(unknown.fingerprint)}")
    if not sys.stdin.isatty():
        raise LinkRefused(
            f"the key of {unknown.address} is unknown, and there is no terminal to ask on",
            "connect once with ssh, or run `ddtui connect` in a terminal",
        )
    say("Compare the fingerprint with one that you got from the host itself:")
    kind = next((kind for kind in ("ecdsa", "rsa") if kind in unknown.key_type), "ed25519")
    say(f"  ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub   (typed on the host)")
    say("Is it the same? Type yes to trust this key from now on: ", end="")
    if (await typed_line()).strip() != "yes":
        raise LinkRefused(f"the key of {unknown.address} was not accepted", "nothing was recorded")
    from ddtui.hosts.ssh.host import SshHost

    if not isinstance(host, SshHost):
        raise unknown
    host.accept_host_key(unknown.fingerprint)
    say(f"Recorded in {clean(unknown.known_hosts_file)}.")
