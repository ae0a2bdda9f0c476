"""The rights to change a unit as a check of a plan: nothing is confirmed that cannot be done."""

from __future__ import annotations

import asyncio

from ddtui.control import rights
from ddtui.control.host_actions import ActionFailed, RightMissing, Rights, UnitActions
from ddtui.core.launch import Finding, Level

KEPT = 300.0
"""Seconds for which rights that are there are not asked for again."""
KEPT_MISSING = 15.0
"""Seconds for which missing ones are not: sudo writes a line into the host's log for each."""


class RightsCheck:
    """Asks for the rights of one unit, and not again with every plan."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, Rights]] = {}

    async def findings(self, actions: UnitActions) -> tuple[Finding, ...]:
        """What speaks against a change of the unit. Raises LinkDown, ProgramTimeout."""
        key = (actions.host.name, actions.unit)
        now = asyncio.get_running_loop().time()
        at, found = self._known.get(key, (0.0, None))
        if found is None or now - at > (KEPT_MISSING if found.missing else KEPT):
            try:
                found = await actions.rights()
            except ActionFailed as error:
                found = Rights(unknown=error.what)
            self._known[key] = (now, found)
        return _findings(actions.unit, found)


async def check_rights(actions: UnitActions) -> None:
    """Raises RightMissing for what sudo does not allow, before anything is touched."""
    found = await actions.rights()
    if found.missing:
        what = found.why or f"sudo does not allow what changing {actions.unit} takes"
        raise RightMissing(what, found.missing, no_sudo=bool(found.why))


def _findings(unit: str, found: Rights) -> tuple[Finding, ...]:
    if found.missing:
        every = len(rights.commands_for(unit))
        return (
            Finding(
                Level.ERROR,
                "right-missing",
                f"{found.why}, and changing {unit} takes {every} commands as root"
                if found.why
                else f"sudo does not allow what changing {unit} takes:"
                f" {len(found.missing)} of {every} commands",
                "they run as root, and nobody is there to type a password",
                rights.way_out(found.missing, no_sudo=bool(found.why)),
            ),
        )
    if found.unknown:
        return (
            Finding(
                Level.NOTE,
                "rights-unknown",
                f"whether sudo allows what changing {unit} takes is not known: {found.unknown}",
                "sudo does not list here what it allows; where a right is missing, the change ends"
                " before the engine is stopped, and names the lines for sudoers",
            ),
        )
    return ()
