"""The rights to act on a unit: whether the host grants them already. Watching needs none."""

from __future__ import annotations

from ddtui.cli.doctor.check import Check, ok, warn
from ddtui.cli.doctor.facts import Facts
from ddtui.control.rights import SUDOERS_FILE, commands_for, escaped, granted, sudoers_lines

__all__ = ["check_rights", "commands_for", "granted", "sudoers_lines"]


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
    lines = [line for line in sudoers_lines(user, unit) if _command(line) in map(escaped, missing)]
    return warn(
        name,
        f"{detail}; watching works without, changing the unit's configuration needs them",
        "\n".join([f"on the host, with `sudo visudo -f {SUDOERS_FILE}`, add:", *lines]),
    )


def _command(line: str) -> str:
    return line.partition("NOPASSWD: ")[2]
