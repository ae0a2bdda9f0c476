"""What a rollback goes back to, and whether the unit is still the one that it was written for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from ddtui.control.drop_in import base_hash, header_of, sets_anything, stamp, text_hash
from ddtui.control.host_actions import UnitActions
from ddtui.control.journal import ChangeStore
from ddtui.control.unit_files import UnitText
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Finding, Level
from ddtui.core.text import clean


class Earlier(msgspec.Struct, frozen=True):
    """An earlier configuration."""

    drop_in: str
    """Text of ddtui's drop-in; empty for none."""
    findings: tuple[Finding, ...] = ()
    """What speaks against going back to it."""
    named: str = ""
    """Which change brought it into force: its id, time and what it was, in words."""
    undoes: str = ""
    """The same of the change that is undone; empty where the present one is of nobody here."""

    def forced(self) -> Earlier:
        """The same, wanted all the same: what forbids it only warns."""
        return msgspec.structs.replace(
            self,
            findings=tuple(
                msgspec.structs.replace(each, level=Level.WARNING)
                if each.level is Level.ERROR
                else each
                for each in self.findings
            ),
        )


ANOTHER_MACHINE = "the host is another machine than the one of that change, or installed anew"


def on_another_machine(record: ChangeRecord, text: UnitText) -> bool:
    """Whether a change was made on another installation than the host's present one."""
    known = record.state.machine
    return bool(known and text.machine) and known != text.machine


async def earlier(store: ChangeStore, actions: UnitActions, text: UnitText) -> Earlier | None:
    """The drop-in before the present one; None where no other is known. Raises StoreError.

    That of the change which wrote the present one is taken, or of a rollback to it that failed;
    else what was proved last.
    """
    host, unit, simulated = actions.host.name, actions.unit, actions.host.simulated
    records = await asyncio.to_thread(store.history, host, simulated=simulated, unit=unit)
    present = text_hash(text.own)
    for record in records:
        brought = record.kind == "apply" or (record.kind == "rollback" and not record.is_proved)
        if record.drop_in_hash == present and brought:
            back, base = record.before_drop_in, header_of(record.drop_in).base
            found = (*_elsewhere(record, text), *_replaced(text, back, base))
            return Earlier(back, found, _origin(back, records), named(record))
    last = await asyncio.to_thread(store.last_in_force, host, unit, simulated=simulated)
    if last is None or text_hash(last) == present:
        return None
    unknown = _unknown(text) if sets_anything(text.own) else ()
    replaced = _replaced(text, last, header_of(last).base)
    origin = next((each for each in records if _brought(each, last)), None)
    elsewhere = _elsewhere(origin, text) if origin is not None else ()
    return Earlier(last, (*elsewhere, *replaced, *unknown), _origin(last, records))


def named(record: ChangeRecord) -> str:
    """Which change it is: id, kind and preset, time, who, and its first changes."""
    what = " ".join(filter(None, (record.kind, clean(record.preset, 80))))
    values = [
        f"{each.get('knob') or each['name']} {_value(each['before'])} > {_value(each['after'])}"
        for each in record.changes[:3]
    ]
    more = [f"{len(record.changes) - 3} more"] if len(record.changes) > 3 else []
    changes = clean(", ".join([*values, *more]), 200)
    by = f"{stamp(record.began)} by {clean(record.who, 80)}"
    return f"change {record.id[:8]} ({what}, {by}{f': {changes}' if changes else ''})"


def _value(value: str | None) -> str:
    return "not set" if value is None else value


def _origin(drop_in: str, records: Sequence[ChangeRecord]) -> str:
    """What brought a text of ddtui's drop-in into force last, in words."""
    if not sets_anything(drop_in):
        return "the unit's own command (ddtui's drop-in sets nothing then)"
    for record in records:
        if record.is_proved and record.proved_drop_in == drop_in:
            return named(record)
    return "the drop-in that was there before (none that was made from this machine)"


def only_the_drop_in(present: str, back: str, path: str, *, same: bool, runs_so: bool) -> Finding:
    """What a rollback does where no flag and no variable of the unit changes by it.

    `present` and `back` are texts of ddtui's drop-in (empty for none), `path` is where it is;
    `same`: the command's words are the same as well; `runs_so`: the engine runs with them.
    """
    words = "stays the same" if same else "is written otherwise, with the same flags and variables"
    if sets_anything(back):
        becomes = "is replaced by the one before"
    else:
        becomes = "is emptied" if sets_anything(present) else "goes on setting nothing"
    return Finding(
        Level.WARNING,
        "same-command",
        f"the command {words}; {path} {becomes}; the engine is stopped, and started again",
        "what ddtui's drop-in sets is what the unit starts without it, or with the earlier one",
        "to keep the engine running, do not roll back: nothing that it runs with would change"
        if same and runs_so
        else "",
    )


def _brought(record: ChangeRecord, drop_in: str) -> bool:
    """Whether a change brought this text of ddtui's drop-in into force."""
    return record.is_proved and record.proved_drop_in == drop_in


def _elsewhere(record: ChangeRecord, text: UnitText) -> tuple[Finding, ...]:
    """Whether the earlier configuration is one of another installation."""
    if not on_another_machine(record, text):
        return ()
    return (
        Finding(
            Level.ERROR,
            "machine-replaced",
            f"{ANOTHER_MACHINE}: {named(record)}",
            "that it was in force there proves nothing here: models, drivers and the server may be"
            " others",
            "change what is configured now with `ddtui apply`; to take over the earlier command all"
            " the same, look at the differences and add --force",
        ),
    )


def _replaced(text: UnitText, back: str, base: str) -> tuple[Finding, ...]:
    """Whether the unit beneath was replaced since: `base` is what it was then, if that is known."""
    if not base or base == base_hash(text.files):
        return ()
    what = f"{text.files[0].path}, or another drop-in, is not the one that this was in force with"
    if not sets_anything(back):
        return (
            Finding(
                Level.WARNING,
                "unit-replaced",
                what,
                "going back takes ddtui's command away: the unit's own holds then, as it is now,"
                " and it is not the one that ran before",
                "look at the differences; they are all that will change",
            ),
        )
    return (
        Finding(
            Level.ERROR,
            "unit-replaced",
            what,
            "ddtui's earlier command would stand in front of the unit's new one: what was"
            " reinstalled or edited there would not be in force",
            "change what is configured now with `ddtui apply`; to bring the earlier command back"
            " all the same, look at the differences and add --force",
        ),
    )


def _unknown(text: UnitText) -> tuple[Finding, ...]:
    """The present drop-in is none that was made from here."""
    by = header_of(text.own).by
    return (
        Finding(
            Level.WARNING,
            "drop-in-not-ours",
            "the present drop-in was not written from this machine"
            + (f": by {by}" if by else ", or was edited since"),
            "what it sets is lost: no change that was made from here brings it back",
        ),
    )
