"""Compares what was asked for with what the server reports, change by change."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from ddtui.core.engine import Engine
from ddtui.core.launch import Change, ChangeKind, Finding, Launch
from ddtui.core.samples import ServerInfoSample

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
