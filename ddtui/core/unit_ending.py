"""How systemd says that a unit ended."""

from __future__ import annotations

from ddtui.core.cause_of_failure import shown
from ddtui.core.samples import UnitStatus

_SIGNALS = {6: "ABRT", 7: "BUS", 9: "KILL", 11: "SEGV", 15: "TERM"}


def unit_failed(unit: UnitStatus | None) -> bool:
    """Whether it has, or has just been started again for that reason."""
    if unit is None:
        return False
    return unit.active_state == "failed" or unit.is_auto_restarting


def ending_of(unit: UnitStatus | None) -> str:
    """How the unit ended, in the words of systemd's own log lines."""
    if unit is None:
        return ""
    words = f"{unit.name}: Result={unit.result or 'unknown'}"
    if unit.exit_code and unit.exit_status is not None:
        status = str(unit.exit_status)
        names = _SIGNALS if unit.exit_code != "exited" else {200: "CHDIR", 203: "EXEC"}
        name = names.get(unit.exit_status)
        words += f", code={unit.exit_code}, status={status}{f'/{name}' if name else ''}"
    return shown(words)
