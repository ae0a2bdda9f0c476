"""One look right after the login: does the account run commands at all?

A shell that ends in its start-up files, /sbin/nologin and a ForceCommand accept the login and run
nothing of what they are asked to; every program would then fail in its own obscure way.
"""

from __future__ import annotations

import asyncio

from ddtui.core.text import clean
from ddtui.hosts.base import LinkDown, LinkRefused, Program
from ddtui.hosts.ssh.connection import Connection
from ddtui.hosts.ssh.target import SshTarget

TOKEN = "ddtui 42 answers"  # noqa: S105 - no secret
PROBE = Program("ddtui:probe", 'echo "ddtui $((6 * 7)) answers"\n')
"""Prints TOKEN, which its own text does not hold: a ForceCommand may print what it was given."""
PATIENCE = 10.0
"""Seconds for a login shell to start; slow ones take two."""


async def probe(connection: Connection, target: SshTarget) -> None:
    """Return when the account runs commands; what its start-up files print is kept apart.

    Raises LinkRefused when it runs none, LinkDown when it does not come to it in time, HostError
    when there is no session for it.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            done = await connection.complete(PROBE)
    except TimeoutError as exc:
        raise LinkDown(
            f"logged in, but the account's shell has run no command within {PATIENCE:g} s",
            f"`ssh {target.name} true` should end at once: look at the start-up files of "
            f"{target.username}'s shell (~/.bashrc), and whether the machine is overloaded",
        ) from exc
    if TOKEN not in done.stdout.decode(errors="replace"):
        said = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
        first = clean(said.partition("\n")[0], 200) or "it prints nothing"
        raise LinkRefused(
            "the account's shell or ForceCommand does not run commands: "
            f"{first} (status {done.status})",
            f"`ssh {target.name} echo hello` must print hello: look at {target.username}'s shell "
            "(`getent passwd`), its start-up files (an `exit` in ~/.bashrc), and at ForceCommand "
            "in sshd_config and command= in authorized_keys",
        )
    connection.is_talkative = (done.stdout.strip(), done.stderr.strip()) != (TOKEN.encode(), b"")
