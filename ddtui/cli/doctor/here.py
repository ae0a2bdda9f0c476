"""What the doctor looks at on this machine."""

from __future__ import annotations

import asyncio
import locale
import os
import platform
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from ddtui.cli.doctor.check import Check, fail, ok, skip, warn
from ddtui.config.errors import ConfigError
from ddtui.config.load import Loaded
from ddtui.config.paths import ConfigPath
from ddtui.hosts.ssh.target import SshTarget

SMALLEST = (80, 24)
"""Columns and rows under which the monitor leaves things out."""


def python() -> Check:
    """The interpreter."""
    return ok("python", f"{platform.python_version()} ({sys.executable})")


def configuration(path: ConfigPath, loaded: Loaded | None, error: ConfigError | None) -> Check:
    """The configuration file: its mistakes, and who else may write it."""
    name = "configuration"
    if error is not None:
        more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
        return fail(name, f"{error.problems[0]}{more}", "see `ddtui config validate`")
    if loaded is None or not loaded.exists:
        return ok(name, f"no file {path.file}: the defaults are in force")
    mode = path.file.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return warn(
            name,
            f"{path.file} can be written by others, and names programs that run as you",
            f"chmod go-w {path.file}",
        )
    return ok(name, str(path.file))


def terminal(env: Mapping[str, str] = os.environ) -> list[Check]:
    """Size, colours and characters of the terminal."""
    if not sys.stdout.isatty():
        return [skip("terminal", "standard output is no terminal")]
    name = env.get("TERM", "")
    if name in {"", "dumb"}:
        what = f"TERM is {name or 'not set'}: no screen can be drawn"
        return [fail("terminal", what, "set TERM to the terminal's type, such as xterm-256color")]
    return [_size(), _colours(name, env), _characters()]


def _size() -> Check:
    size = shutil.get_terminal_size()
    text = f"{size.columns} x {size.lines}"
    if size.columns < SMALLEST[0] or size.lines < SMALLEST[1]:
        return warn("terminal size", text, f"make it at least {SMALLEST[0]} x {SMALLEST[1]}")
    return ok("terminal size", text)


def _colours(name: str, env: Mapping[str, str]) -> Check:
    if env.get("NO_COLOR"):
        return ok("terminal colours", "off, as NO_COLOR asks")
    if env.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return ok("terminal colours", f"16 million ({name})")
    import curses

    try:
        curses.setupterm(name)
        count = curses.tigetnum("colors")
    except curses.error:
        return warn("terminal colours", f"nothing is known of TERM={name}", "set TERM to its type")
    if count >= 256:
        return ok("terminal colours", f"{count} ({name})")
    return warn(
        "terminal colours",
        f"{max(count, 0)} ({name}); themes are drawn for 256 or more",
        "try TERM=xterm-256color, or the theme for 16 colours",
    )


def _characters() -> Check:
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") == "utf8":
        return ok("terminal characters", encoding)
    return warn(
        "terminal characters",
        f"the locale's encoding is {encoding}: charts need UTF-8",
        "set LANG to a UTF-8 locale such as C.UTF-8, or `ascii = true` in [ui]",
    )


async def ssh_client() -> Check:
    """OpenSSH's client, which decides how a name leads to a host."""
    program = shutil.which("ssh")
    if program is None:
        return fail("ssh client", "no `ssh` on PATH", "install OpenSSH's client (openssh-client)")
    child = await asyncio.create_subprocess_exec(
        program,
        "-V",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await child.communicate()
    return ok("ssh client", said.decode(errors="replace").strip().partition(",")[0])


async def bubblewrap() -> list[Check]:
    """Whether code that a model wrote can be run here for the coding tasks, and judged."""
    from ddtui.bench.sandbox import probe

    found = await probe()
    if found.sandbox is not None:
        return [ok("bubblewrap", f"it isolates, and its walls hold ({found.python})")]
    return [
        warn("bubblewrap", f"{found.why}; the code of coding tasks is not run", found.remedy),
    ]


def address(target: SshTarget) -> Check:
    """Where the name leads."""
    hops = [leg.address for leg in target.legs()]
    via = f" through {', '.join(hops[:-1])}" if len(hops) > 1 else ""
    via += " by a ProxyCommand" if target.proxy_command else ""
    return ok("ssh address", f"{target.username}@{target.address}{via}")


async def keys(target: SshTarget) -> list[Check]:
    """What there is to log in with."""
    from ddtui.hosts.ssh.keys import gather_identities

    found = await gather_identities(target)
    try:
        mend = "mend it, or leave that key out of IdentityFile; other keys are tried all the same"
        checks = [warn("ssh keys", problem, mend) for problem in found.problems]
        if found.tried:
            more = f" and {len(found.tried) - 4} more" if len(found.tried) > 4 else ""
            checks.append(ok("ssh keys", ", ".join(found.tried[:4]) + more))
        elif found.locked:
            locked = ", ".join(map(str, found.locked))
            checks.append(fail("ssh keys", f"locked by a passphrase: {locked}", found.remedy))
        else:
            checks.append(
                fail(
                    "ssh keys",
                    "there is no key: not in an agent, and no IdentityFile exists",
                    "make one with ssh-keygen and bring it to the host with ssh-copy-id",
                )
            )
        if len(found.tried) > 5:
            checks.append(
                warn(
                    "ssh keys",
                    f"{len(found.tried)} keys are offered; a host allows 6 tries by default",
                    "name the right one: IdentityFile and IdentitiesOnly yes in your ssh_config",
                )
            )
        return checks + [_file_mode(path) for path in target.identity_files if _exposed(path)]
    finally:
        found.close()


def _exposed(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False


def _file_mode(path: Path) -> Check:
    return warn("ssh keys", f"{path} can be read by others: ssh refuses it", f"chmod 600 {path}")


def known_host(target: SshTarget) -> Check:
    """Whether the host's key is on record."""
    from ddtui.hosts.ssh.known_hosts import look_up

    found = look_up(target)
    records = [*found.trusted, *found.by_name_alone, *found.authorities]
    if records:
        more = f" and {len(records) - 1} more" if len(records) > 1 else ""
        return ok("host key", f"{records[0].place}{more}")
    return warn(
        "host key",
        f"{target.key_name} is in no known_hosts file",
        "`ddtui connect` shows its fingerprint and asks; or connect once with ssh",
    )
