"""Where a host stands after a change that failed: its unit, what runs, and what is on its disk."""

from __future__ import annotations

from ddtui.control.carrying_out import Watching, other_drop_ins
from ddtui.control.drop_in import text_hash
from ddtui.control.host_actions import ActionFailed, Facts, UnitActions
from ddtui.control.proof import deviation_words, deviations, running_command
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Launch
from ddtui.core.samples import is_auto_restart
from ddtui.core.snapshot import Snapshot


async def standing(
    record: ChangeRecord, as_before: str, actions: UnitActions, watching: Watching
) -> str:
    """Three facts in words, for a failed ending. Raises LinkDown, ProgramTimeout.

    `as_before` is the text of ddtui's drop-in that stands for how it was before the change.
    """
    try:
        facts = await actions.look()
    except ActionFailed as error:
        return f"where the host stands is not known: {error.what}"
    snapshot = watching.snapshot()
    state = f"{facts.active} ({facts.sub})" if facts.sub else facts.active or "in no known state"
    return "; ".join(
        [
            f"the unit is {state}",
            _running(record, facts, snapshot, watching),
            _on_disk(record, as_before, facts, snapshot),
        ]
    )


def _running(record: ChangeRecord, facts: Facts, snapshot: Snapshot, watching: Watching) -> str:
    """Which configuration runs."""
    if facts.active in {"inactive", "failed"} or is_auto_restart(facts.sub):
        return "THE ENGINE IS DOWN"
    if facts.invocation and facts.invocation == record.state.before:
        return "the engine runs the old configuration: it was not stopped"
    unit = snapshot.unit
    if unit is None or unit.invocation != facts.invocation:
        return "which configuration the engine runs is not known yet"
    if not running_command(snapshot, watching.engine):
        return "the host does not tell which configuration the engine runs"
    before = Launch(record.before_argv, record.before_environment)
    after = Launch(record.after_argv, record.after_environment)
    is_old, is_new = (
        deviations(each, snapshot, watching.engine, set(other.environment) - set(each.environment))
        for each, other in ((before, after), (after, before))
    )
    if not is_old:
        return "the engine runs the old configuration"
    if not is_new:
        return "the engine runs the new configuration"
    return f"the engine runs neither configuration: {deviation_words(is_old)}"


def _on_disk(record: ChangeRecord, as_before: str, facts: Facts, snapshot: Snapshot) -> str:
    """Which configuration the next start takes."""
    back = as_before if record.state.back is None else record.state.back
    if facts.drop_in in {text_hash(record.before_drop_in), text_hash(as_before)}:
        which = "the old configuration is on disk"
    elif facts.drop_in == record.drop_in_hash:
        which = "the new configuration is on disk, and the next start takes it"
    elif facts.drop_in == text_hash(back):
        which = "the configuration that was proved last is on disk"
    else:
        which = "a drop-in that is neither the old nor the new one is on disk"
    others = other_drop_ins(snapshot)
    return which + (f", beneath {', '.join(others)}" if others else "")
