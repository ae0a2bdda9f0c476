"""Differences between two launches, and between a unit's drop-ins, for where no plan names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from ddtui.control import drop_in
from ddtui.control.by_hand import by_hand
from ddtui.control.exec_start import ExecError
from ddtui.control.proof import deviations, restart_due
from ddtui.control.unit_command import DROP_IN_NAME, CommandRefused, UnitCommand
from ddtui.control.unit_files import UnitText
from ddtui.control.unit_text import UnitFile, assignments
from ddtui.core.engine import Engine
from ddtui.core.knobs import knob_name
from ddtui.core.launch import Change, ChangeKind, Finding, Launch, Level, Request
from ddtui.core.redact import (
    MASK,
    is_secret_name,
    redact_argv,
    redact_environment,
    redact_mapping,
    redact_text,
)
from ddtui.core.snapshot import Snapshot
from ddtui.core.text import clean, named_values
from ddtui.engines.sglang.dialects import named


def differences(
    before: Launch, after: Launch, flags: Callable[[Sequence[str]], dict[str, str]]
) -> list[Change]:
    """Every flag and variable in which two launches differ, secrets removed."""
    found: list[Change] = []
    for kind, was, now in (
        (ChangeKind.FLAG, flags(before.argv), flags(after.argv)),
        (ChangeKind.ENVIRONMENT, before.environment, after.environment),
    ):
        for name in [*was, *(each for each in now if each not in was)]:
            if was.get(name) != now.get(name):
                found.append(
                    Change(kind, name, _safe(name, was.get(name)), _safe(name, now.get(name)))
                )
    return found


def otherwise_before(found: Sequence[Change], request: Request) -> tuple[Change, ...]:
    """What ran otherwise than written before a change, and is none of its doing.

    What the request names is: it counts as in force only where the engine runs with it.
    """
    flags = {name.removeprefix("--") for name in request.flags}
    knobs = {knob_name(name) for name in request.knobs}

    def is_asked(change: Change) -> bool:
        if change.kind is ChangeKind.ENVIRONMENT and change.name in request.environment:
            return True
        return change.name in flags or (named(change).knob or None) in knobs - {None}

    return tuple(each for each in found if not is_asked(each))


def safe_environment(values: Mapping[str, str | None]) -> dict[str, Any]:
    """Variables with their secrets removed; None stays None."""
    pairs = redact_environment(f"{name}={value}" for name, value in values.items() if value)
    safe = named_values(pairs)
    return {name: safe.get(name, value) for name, value in values.items()}


def safe_request(request: Request) -> dict[str, Any]:
    """What was asked for with its secrets removed, as it may be kept."""
    plain: dict[str, Any] = msgspec.to_builtins(request)
    plain["environment"] = safe_environment(plain["environment"])
    for part in ("knobs", "flags"):
        plain[part] = redact_mapping(plain[part])
    return plain


def safe_launch(launch: Launch) -> Launch:
    """A launch with its secrets removed, as it may be kept."""
    return Launch(redact_argv(launch.argv), safe_environment(launch.environment))


def set_by(change: Change, files: Sequence[UnitFile]) -> str:
    """The unit's file that decides over a flag or a variable; empty where none sets it."""
    last = ""
    for each in assignments(files):
        if change.kind is ChangeKind.FLAG and each.name == "ExecStart" and each.value:
            last = each.path
        elif change.kind is ChangeKind.ENVIRONMENT and each.name == "Environment":
            last = each.path if re.search(rf"\b{change.name}=", each.value) else last
    return last


def _safe(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    return MASK if is_secret_name(name) else redact_text(value)


def of_the_unit(text: UnitText) -> tuple[Finding, ...]:
    """What each change of the unit, and a restart, has to say of its files and its surroundings."""
    return (
        *edited_beneath(text),
        *not_yet_read(text),
        *not_to_be_read(text),
        *ends_with_the_login(text),
        *stopped_with_it(text),
    )


def not_to_be_written(command: UnitCommand, after: Launch) -> tuple[Finding, ...]:
    """What keeps the unit from being written so."""
    try:
        command.lines(after)
    except CommandRefused as error:
        return (Finding(Level.ERROR, "unit-command", error.what, "", error.way_out),)
    except ExecError as error:
        return (Finding(Level.ERROR, "unit-command", str(error)),)
    return ()


def edited_beneath(text: UnitText) -> tuple[Finding, ...]:
    """Whether somebody has edited the unit beneath ddtui's drop-in since that was written."""
    base = drop_in.header_of(text.own).base
    if not base or not drop_in.sets_anything(text.own) or base == drop_in.base_hash(text.files):
        return ()
    return (
        Finding(
            Level.WARNING,
            "unit-edited",
            f"{text.files[0].path} or another drop-in was changed after ddtui's was written",
            "ddtui's drop-in stands in front of the unit's own command: what was changed there is"
            " not in force",
            "take over what is wanted with --set, or go back to the unit's own: ddtui rollback",
        ),
    )


def not_yet_read(text: UnitText) -> tuple[Finding, ...]:
    """Whether there are drop-ins that systemd takes up with the reload of the next change."""
    if not text.unread:
        return ()
    return (
        Finding(
            Level.WARNING,
            "drop-in-not-read",
            f"systemd has not read {', '.join(text.unread[:3])} yet, and will with this change",
            "a change needs a daemon-reload, which takes up all files of the unit",
            "look at what it sets; take it away if it is not wanted",
        ),
    )


def not_to_be_read(text: UnitText) -> tuple[Finding, ...]:
    """Which drop-ins of the unit may not be read; that they set no command is known by then."""
    if not text.closed:
        return ()
    return (
        Finding(
            Level.NOTE,
            "drop-in-closed",
            f"{', '.join(text.closed[:3])} may not be read by {text.user}",
            "by systemd's own word it sets no command; variables that it sets are left to it",
        ),
    )


def ends_with_the_login(text: UnitText) -> tuple[Finding, ...]:
    """Whether the engine will end once nobody is logged in: that is no proof that lasts."""
    if not text.passing:
        return ()
    return (
        Finding(
            Level.WARNING,
            "no-linger",
            f"the engine ends with the last login of {text.user}, which may be this one",
            "lingering is off: the service manager of a user lives as long as a login of that user",
            f"loginctl enable-linger {text.user}",
        ),
    )


def stopped_with_it(text: UnitText) -> tuple[Finding, ...]:
    """Which other units a stop takes down; ddtui may start none but its own."""
    if not (names := text.stopped_with_it):
        return ()
    return (
        Finding(
            Level.WARNING,
            "others-stop",
            f"{', '.join(names[:5])}{' and more' if names[5:] else ''} will be stopped with it,"
            " and not started again",
            "by their Requires=, BindsTo= or PartOf= systemd stops them with the engine's unit",
            f"afterwards: {by_hand(text.scope, 'start', *names[:5])}",
        ),
    )


def not_running_as_written(
    written: Launch, snapshot: Snapshot, engine: Engine, opaque: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Whether the unit's engine runs with other flags or variables than the unit's files say.

    `opaque` are words of its command that the host expands.
    """
    return (
        *_other_flags(written, snapshot, engine, opaque),
        *_other_variables(written, snapshot, engine),
    )


def _other_variables(written: Launch, snapshot: Snapshot, engine: Engine) -> tuple[Finding, ...]:
    due = restart_due(written, snapshot, engine, of_flags=False)
    if not due:
        return _doubts(snapshot)
    return (
        Finding(
            Level.WARNING,
            "older-variables",
            f"{due}; a restart is needed",
            "a process keeps the variables that it was started with, whatever systemd says since",
            "each change restarts the engine; without one: ddtui restart",
        ),
    )


def _doubts(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What raises a doubt whether the process is as its unit: nothing is done for that alone."""
    unit = snapshot.unit
    if unit is None or not unit.doubts or not unit.is_up:
        return ()
    return (
        Finding(
            Level.NOTE,
            "perhaps-older",
            f"whether the process is as its unit is not known: {'; '.join(unit.doubts[:3])}",
            "a file may be written anew with the same text, or by each start; no difference is"
            " known",
            "if it was changed: ddtui restart",
        ),
    )


def _other_flags(
    written: Launch, snapshot: Snapshot, engine: Engine, opaque: Collection[str]
) -> tuple[Finding, ...]:
    unit = snapshot.unit
    if unit is None or not unit.is_up:
        return ()
    found = deviations(Launch(written.argv), snapshot, engine, opaque=opaque)
    if not found:
        return ()
    words = [
        f"{each.name} is {each.after if each.after is not None else 'not set'}, and is written as "
        f"{each.before if each.before is not None else 'not set'}"
        for each in found
    ]
    return (
        Finding(
            Level.WARNING,
            "unit-not-running-as-written",
            f"the engine does not run as {unit.name} is written: {clean('; '.join(words), 600)}",
            "the unit was changed and not restarted since; what is written has not been seen to"
            " run, and a failed change is not known to have a way back to it",
            "look at the unit's files before you go on; changes are worked out from what is"
            " written",
        ),
    )


def with_drop_in(text: UnitText, unit: str, content: str) -> UnitText:
    """A unit's files with another text in ddtui's drop-in."""
    ours = next((file.path for file in text.files if file.path.endswith(DROP_IN_NAME)), "")
    path = ours or f"/etc/systemd/system/{unit}.d/{DROP_IN_NAME}"
    fragment, *others = [file for file in text.files if file.path != ours]
    drop_ins = sorted(
        [*others, UnitFile(path, content)], key=lambda file: file.path.rpartition("/")[2]
    )
    return msgspec.structs.replace(text, files=(fragment, *drop_ins), own=content)
