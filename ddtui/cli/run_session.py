"""Whether what is begun in a login goes on after it has ended."""

from __future__ import annotations

import getpass
import logging
import re
import subprocess
from pathlib import Path

from ddtui.cli.output import clean, say

SESSION = re.compile(r"/session-[^/\n]+\.scope(?:/|$)", re.MULTILINE)
"""The control group in which logind keeps what a login has begun."""
ASKED = (
    *("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1"),
    *("org.freedesktop.login1.Manager", "KillUserProcesses", "KillOnlyUsers", "KillExcludeUsers"),
)
_PATIENCE = 3.0

log = logging.getLogger(__name__)


def ends_with_login(groups: Path = Path("/proc/self/cgroup")) -> bool:
    """Whether logind ends this process's children when its login ends.

    A session of one's own does not help where KillUserProcesses is set, nor lingering by itself:
    all that is in the login's control group is ended. False where it cannot be told.
    """
    try:
        if not SESSION.search(groups.read_text(encoding="utf-8", errors="replace")):
            return False
        told = subprocess.run(
            ASKED, capture_output=True, text=True, timeout=_PATIENCE, check=True, errors="replace"
        )
        kills, only, excluded = told.stdout.splitlines()
        me = f'"{getpass.getuser()}"'
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        log.info("whether logind ends what a login has begun is not known: %s", error)
        return False
    return kills == "b true" and (only == "as 0" or me in only) and me not in excluded


def warn_of_logout(host: str) -> None:
    """Say how a runner that has begun outlives the login, where it does not by itself."""
    if ends_with_login():
        say("warning: this system ends it when you log out (KillUserProcesses=yes of logind)")
        say("         it goes on if you call `loginctl enable-linger` once and begin it anew:")
        say(f"         ddtui run {clean(host)} --stop")
        say(f"         systemd-run --user --scope ddtui run {clean(host)} --detach")
