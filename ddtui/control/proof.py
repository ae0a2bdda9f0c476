"""Compares what was asked for with what the server reports, change by change."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence

import msgspec

from ddtui.control.shell_command import script_index
from ddtui.core.engine import Engine
from ddtui.core.launch import Change, ChangeKind, Finding, Launch
from ddtui.core.redact import MASK, redact_argv
from ddtui.core.samples import ServerInfoSample
from ddtui.core.snapshot import Snapshot
from ddtui.core.text import ELLIPSIS, clean

Scalar = str | int | float | bool | None


class Outcome(enum.StrEnum):
    """What became of one change."""

    IN_FORCE = "in force"
    OVERRIDDEN = "overridden"  # the server was asked for it and has resolved it otherwise
    NOT_TAKEN = "not taken"  # the server was not started with it
    UNREPORTED = "not reported"  # nothing contradicts it


class Proof(msgspec.Struct, frozen=True):
    """One change: requested, resolved, and whether it is in force."""

    kind: ChangeKind
    name: str
    requested: str | None
    resolved: str | None
    outcome: Outcome
    reason: str = ""
    knob: str = ""


def prove(
    changes: Sequence[Change],
    after: Launch,
    info: ServerInfoSample | None,
    environment: Sequence[str],
    engine: Engine,
    findings: Sequence[Finding] = (),
) -> tuple[Proof, ...]:
    """What became of each change.

    `environment` is what systemd says that the unit sets, secrets removed.
    """
    variables = dict(pair.partition("=")[::2] for pair in environment)
    told = engine.flags(info.launch_command) if info is not None and info.launch_command else None
    arguments = info.arguments if info is not None else {}
    asked = engine.flags(after.argv)
    proofs = []
    for change in changes:
        if change.kind is ChangeKind.ENVIRONMENT:
            proofs.append(_variable(change, variables))
        else:
            proofs.append(_flag(change, asked, told, arguments, findings))
    return tuple(proofs)


def _variable(change: Change, variables: Mapping[str, str]) -> Proof:
    now = variables.get(change.name)
    if change.after is None:
        taken = now is None
    else:
        taken = now == change.after or (now is not None and "redacted" in now)
    outcome = Outcome.IN_FORCE if taken else Outcome.UNREPORTED
    reason = "" if taken else "the unit's environment does not show it"
    return Proof(change.kind, change.name, change.after, now, outcome, reason, change.knob)


def _flag(
    change: Change,
    asked: Mapping[str, str],
    told: Mapping[str, str] | None,
    arguments: Mapping[str, Scalar],
    findings: Sequence[Finding],
) -> Proof:
    name, wanted = change.name, change.after
    resolved = _resolved(name, arguments)

    def proof(outcome: Outcome, reason: str = "") -> Proof:
        return Proof(change.kind, name, wanted, resolved, outcome, reason, change.knob)

    if told is not None and told.get(name) != asked.get(name):
        return proof(
            Outcome.NOT_TAKEN,
            f"the server was started with {told.get(name, 'no such flag')}",
        )
    if wanted is None:
        return proof(Outcome.IN_FORCE if told is not None else Outcome.UNREPORTED)
    if resolved is None:
        taken = told is not None
        why = "the server does not report what it made of it"
        return proof(Outcome.IN_FORCE if taken else Outcome.UNREPORTED, "" if taken else why)
    if same(wanted, resolved):
        return proof(Outcome.IN_FORCE)
    reasons = [
        each.reason or each.text
        for each in findings
        if name in each.text and "overrid" in each.rule
    ]
    reason = reasons[0] if reasons else f"the server has resolved it to {resolved}"
    return proof(Outcome.OVERRIDDEN, reason)


def _resolved(name: str, arguments: Mapping[str, Scalar]) -> str | None:
    value = arguments.get(name.replace("-", "_"))
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def same(one: str, other: str) -> bool:
    """Whether two values mean the same: numbers by value, words whatever their case."""
    try:
        return float(one) == float(other)
    except ValueError:
        return one.strip("'\"").casefold() == other.strip("'\"").casefold()


def all_taken(proofs: Sequence[Proof]) -> bool:
    """Whether the server was started with every change (what it resolves otherwise is shown)."""
    return all(each.outcome is not Outcome.NOT_TAKEN for each in proofs)


_LONGEST = 100_000
"""Characters of a value that are compared."""


def running_command(snapshot: Snapshot, engine: Engine) -> tuple[str, ...]:
    """The engine's command line as it runs; empty where nobody tells it."""
    unit, info = snapshot.unit, snapshot.server_info
    told = unit.command_line if unit is not None else ()
    if engine.is_command(told) and script_index(told) is None:
        return told
    return info.launch_command if info is not None else ()


def deviations(
    expected: Launch,
    snapshot: Snapshot,
    engine: Engine,
    unwanted: Collection[str] = (),
) -> tuple[Change, ...]:
    """What runs otherwise than expected: flags, and variables of the unit; empty where untold.

    `before` of each is what was expected, `after` what runs. Variables named in `unwanted` are
    ones that must not be set. Values that are secret, shortened or expanded later are not compared.
    """
    found: list[Change] = []
    if running := running_command(snapshot, engine):
        wanted, told = engine.flags(redact_argv(expected.argv)), engine.flags(redact_argv(running))
        for name in [*wanted, *(each for each in told if each not in wanted)]:
            if _differ(wanted.get(name), told.get(name)):
                found.append(Change(ChangeKind.FLAG, name, wanted.get(name), told.get(name)))
    variables = snapshot.unit.environment if snapshot.unit is not None else ()
    for name, now in (pair.partition("=")[::2] for pair in variables):
        value = expected.environment.get(name)
        if (value is not None or name in unwanted) and _differ(value, now):
            found.append(Change(ChangeKind.ENVIRONMENT, name, value, now))
    return tuple(found)


def _differ(expected: str | None, running: str | None) -> bool:
    if expected is None or running is None:
        return expected != running
    if "$" in expected or "%" in expected or running.endswith(ELLIPSIS):
        return False
    if MASK in expected or MASK in running:
        return False
    return clean(expected, _LONGEST) != clean(running, _LONGEST)


def deviation_words(found: Sequence[Change]) -> str:
    """`block-size is 12, expected 8`, for the first of them."""
    words = [
        f"{each.name} is {_shown(each.after)}, expected {_shown(each.before)}" for each in found[:3]
    ]
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(words) + more


def _shown(value: str | None) -> str:
    return "not set" if value is None else clean(value, 80)
