"""The rights to act on a unit: which sudo rules that takes, and which the host grants already.

Rules are read from `sudo -n -l` (format: sudo(8)); nothing is run with them here.
Watching needs none.
"""

from __future__ import annotations

import re

from ddtui.cli.doctor.check import Check, ok, warn
from ddtui.cli.doctor.facts import Facts

SYSTEMCTL = "/usr/bin/systemctl"
DROP_IN = "50-ddtui.conf"


def commands_for(unit: str) -> list[str]:
    """The commands that changing a unit's configuration runs as root."""
    folder = f"/etc/systemd/system/{unit}.d"
    return [
        *(f"{SYSTEMCTL} {verb} {unit}" for verb in ("start", "stop", "restart", "reset-failed")),
        f"{SYSTEMCTL} daemon-reload",
        f"/usr/bin/mkdir -p {folder}",
        f"/usr/bin/tee {folder}/{DROP_IN}",
    ]


def sudoers_lines(user: str, unit: str) -> list[str]:
    """Lines for a file in /etc/sudoers.d that grant exactly those commands."""
    return [f"{user} ALL=(root) NOPASSWD: {_escaped(command)}" for command in commands_for(unit)]


def _escaped(command: str) -> str:
    r"""With a backslash before what sudoers reads as its own, `\` included (sudoers(5))."""
    return re.sub(r"([\\,:=])", r"\\\1", command)


def granted(rules: list[str]) -> set[str]:
    """Commands that `sudo -n -l` lists as allowed to root without a password; `ALL` for all."""
    found: set[str] = set()
    for rule in _unfolded(rules):
        match = re.match(r"\s*\((root|ALL)(?:\s*:\s*[^)]*)?\)\s*(.*)", rule)
        if match is None:
            continue
        without_password = False
        for part in re.split(r"(?<!\\),\s*", match[2]):
            tags, command = _tags(part.strip())
            without_password = (without_password or "NOPASSWD" in tags) and "PASSWD" not in tags
            if without_password:
                found.add(re.sub(r"\\([\\,:=])", r"\1", command))
    return found


def _unfolded(rules: list[str]) -> list[str]:
    """Sudo folds long rules to the terminal's width: those that do not begin with `(` go on."""
    whole: list[str] = []
    for rule in rules:
        if whole and whole[-1].startswith("(") and rule and not rule.startswith("("):
            whole[-1] += " " + rule
        else:
            whole.append(rule)
    return whole


def _tags(text: str) -> tuple[set[str], str]:
    tags = set()
    while match := re.match(r"([A-Z_]+):\s*", text):
        tags.add(match[1])
        text = text[match.end() :]
    return tags, text


def check_rights(facts: Facts, *, unit: str, user_unit: bool) -> Check:
    """Whether the operator may act on the unit. Only changing things needs it."""
    name = "rights to act"
    user, _, uid = facts.one("user").partition(" ")
    if user_unit:
        return ok(name, f"{unit} belongs to {user}: no sudo needed")
    if uid == "0":
        return ok(name, "logged in as root")
    allowed = granted(facts.all("sudo_rule"))
    wanted = commands_for(unit)
    missing = [] if "ALL" in allowed else [each for each in wanted if each not in allowed]
    if not missing:
        return ok(name, f"sudo allows all {len(wanted)} commands for {unit} without a password")
    why = "sudo is not installed" if not facts.one("sudo") else ""
    detail = why or f"sudo does not allow {len(missing)} of {len(wanted)} commands for {unit}"
    lines = [line for line in sudoers_lines(user, unit) if _command(line) in map(_escaped, missing)]
    return warn(
        name,
        f"{detail}; watching works without, changing the unit's configuration needs them",
        "\n".join(["on the host, with `sudo visudo -f /etc/sudoers.d/ddtui`, add:", *lines]),
    )


def _command(line: str) -> str:
    return line.partition("NOPASSWD: ")[2]
