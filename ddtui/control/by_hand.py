"""Commands that an operator is told to type on the host."""

from __future__ import annotations

import shlex

from ddtui.collect.settings import Scope


def by_hand(scope: Scope, verb: str, *units: str) -> str:
    """A systemctl command that does something: as root, or to the user's own manager."""
    manager = "sudo systemctl" if scope == "system" else "systemctl --user"
    return f"{manager} {shlex.join([verb, *units])}"


def looked_at(scope: Scope, verb: str, unit: str) -> str:
    """A systemctl command that only looks, for which nobody needs to be root."""
    manager = "systemctl" if scope == "system" else "systemctl --user"
    return f"{manager} {shlex.join([verb, unit])}"
