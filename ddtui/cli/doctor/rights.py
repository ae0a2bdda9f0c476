"""The rights to act on a unit: whether the host grants them already. Watching needs none."""

from __future__ import annotations

import re

from ddtui.cli.doctor.check import Check, ok, warn
from ddtui.cli.doctor.facts import Facts
from ddtui.control.rights import (
    commands_for,
    granted,
    sudoers_line,
    wants_terminal,
    way_out,
    without_terminal,
)
from ddtui.control.unit_programs import RIGHTS
from ddtui.hosts.base import Host, HostError


async def ask_rights(host: Host, unit: str) -> set[str]:
    """The commands for the unit that sudo does not allow, asked of sudo itself. Raises HostError.

    Rules are not compared here: they may hold patterns, aliases and groups.
    """
    answer = await host.run(RIGHTS, *commands_for(unit))
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    if "@end" not in lines:
        raise HostError("the host did not say which rights there are")
    return {line.removeprefix("@missing ") for line in lines if line.startswith("@missing ")}


def check_rights(facts: Facts, missing: set[str], *, unit: str, user_unit: bool) -> Check:
    """Whether the operator may act on the unit. Only changing things needs it.

    `missing`: the commands that sudo does not allow.
    """
    name = "rights to act"
    user, _, uid = facts.one("user").partition(" ")
    if user_unit:
        return ok(name, f"{unit} belongs to {user}: no sudo needed")
    if uid == "0":
        return ok(name, "logged in as root")
    wanted = commands_for(unit)
    lacking = [each for each in wanted if each in missing]
    if any(map(wants_terminal, facts.all("sudo_rule"))):
        return _lacking(name, "sudo wants a terminal", way_out([without_terminal(user)]))
    if not facts.one("sudo"):
        return _lacking(name, "sudo is not installed", way_out([], no_sudo=True))
    if lacking:
        detail = f"sudo does not allow {len(lacking)} of {len(wanted)} commands for {unit}"
    else:
        lacking = _perhaps_with_a_password(facts.all("sudo_rule"), wanted)
        detail = (
            f"sudo allows all {len(wanted)} commands for {unit}; some of this user's rules ask for"
            f" a password, perhaps those for {len(lacking)} of them"
        )
    if not lacking:
        return ok(name, f"sudo allows all {len(wanted)} commands for {unit} without a password")
    return _lacking(name, detail, way_out([sudoers_line(user, each) for each in lacking]))


def _lacking(name: str, detail: str, remedy: str) -> Check:
    more = "watching works without, changing the unit's configuration needs the rights"
    return warn(name, f"{detail}; {more}", remedy)


def _perhaps_with_a_password(rules: list[str], commands: list[str]) -> list[str]:
    """Commands that sudo may allow with a password only, which it does not tell when it is asked.

    None where no rule asks for one, or where a rule without one names the command itself.
    """
    asks = any(re.match(r"\((?:root|ALL)\b[^)]*\)(?!.*NOPASSWD)", rule.strip()) for rule in rules)
    named = granted(rules)
    if not asks or "ALL" in named:
        return []
    return [each for each in commands if each not in named]
