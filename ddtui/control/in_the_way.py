"""What stands in the way of a change of a unit: another one that has not ended."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ddtui.collect.settings import Scope
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Finding, Level
from ddtui.core.local_time import in_local_time


def carry_on(host: str, options: str = "") -> str:
    """The command that carries an interrupted change on; `options` name its unit."""
    return " ".join(filter(None, ("ddtui apply", shlex.quote(host), "--resume", options)))


def interrupted(left: ChangeRecord) -> str:
    """Why nothing else is possible until it has ended."""
    return f"a change of {left.unit} by {left.who} was interrupted and has not ended"


def left_elsewhere(known: Sequence[ChangeRecord], unit: str, scope: Scope) -> str:
    """How a change of another unit of the host is carried on that has not ended; or nothing."""
    newest = {(each.unit, each.scope): each for each in reversed(known)}
    for (name, manager), record in newest.items():
        if not record.ending and (name, manager) != (unit, scope):
            options = shlex.join(["--unit", name, f"--{manager}-unit"])
            return f"one of {name} was: {carry_on(record.host, options)}"
    return ""


def left_behind(left: ChangeRecord | None, command: str) -> tuple[Finding, ...]:
    """What forbids another change where one was interrupted; `command` carries that on."""
    if left is None:
        return ()
    remedy = f"carry it on: {command}"
    return (Finding(Level.ERROR, "unfinished-change", interrupted(left), "", remedy),)


def going_on(holder: str) -> tuple[Finding, ...]:
    """What is to say while somebody has the unit's lock: nothing can be begun before they end."""
    return (
        Finding(
            Level.WARNING,
            "being-changed",
            f"the unit is being changed by {in_local_time(holder)}",
            "this is worked out on what their change has made of the unit so far",
            "wait until that is done, and look again",
        ),
    )
