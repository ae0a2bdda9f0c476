"""Compares what was asked for with what the server reports, change by change."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Sequence

import msgspec

from ddtui.control.shell_command import script_index
from ddtui.core.engine import Engine
from ddtui.core.launch import OVERRIDING_RULES, Change, ChangeKind, Finding, Launch
from ddtui.core.redact import MASK, redact_argv, redact_environment
from ddtui.core.reported_command import compared
from ddtui.core.samples import Collector, SourceStatus, UnitStatus
from ddtui.core.snapshot import Snapshot, Verdict
from ddtui.core.text import ELLIPSIS, clean

REFUSALS = 2
"""Refusals of the server's report after which none is waited for: one may be a passing fault."""


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
    snapshot: Snapshot,
    engine: Engine,
    findings: Sequence[Finding] = (),
) -> tuple[Proof, ...]:
    """What became of each change, by the unit's process and the server's own report."""
    told = _Told(after, snapshot, engine)
    proofs = []
    for change in changes:
        if change.kind is ChangeKind.ENVIRONMENT:
            proofs.append(_variable(change, snapshot.unit))
        else:
            proofs.append(_flag(change, told, findings))
    return tuple(proofs)


class _Told:
    """What is told of the engine's flags, and by whom."""

    def __init__(self, after: Launch, snapshot: Snapshot, engine: Engine) -> None:
        self.info = snapshot.server_info
        self.otherwise: dict[str, str | None] | None = None
        """Flags that the engine was started with otherwise than asked; None where nobody tells."""
        if running_command(snapshot, engine):
            found = _flag_deviations(after.argv, snapshot, engine)
            self.otherwise = {each.name: each.after for each in found}
        self.is_reported = self.info is not None and bool(self.info.launch_command)

    def resolved(self, name: str) -> str | None:
        """What the server says that it has made of a flag."""
        value = None if self.info is None else self.info.arguments.get(name.replace("-", "_"))
        if value is None:
            return None
        return str(value).lower() if isinstance(value, bool) else str(value)


def _variable(change: Change, unit: UnitStatus | None) -> Proof:
    now = unit.variables.get(change.name) if unit is not None else None
    if change.after is None:
        taken = now is None
    else:
        taken = now == change.after or (now is not None and MASK in now)
    outcome = Outcome.IN_FORCE if taken else Outcome.UNREPORTED
    reason = "" if taken else "the unit's environment does not show it"
    if not taken and now is not None and unit is not None and unit.environment_read:
        outcome, reason = Outcome.NOT_TAKEN, f"the process was started with {clean(now, 200)}"
    if taken and change.after is not None and MASK in f"{change.after}{now}":
        outcome, reason = Outcome.UNREPORTED, NOT_COMPARED
    own = {each.partition("=")[0]: each for each in unit.overridden} if unit is not None else {}
    if taken and change.name in own:
        now = own[change.name].partition("=")[2] if "=" in own[change.name] else None
        outcome = Outcome.OVERRIDDEN
        reason = "the program has set it itself after the start"
    return Proof(change.kind, change.name, change.after, now, outcome, reason, change.knob)


def _flag(change: Change, told: _Told, findings: Sequence[Finding]) -> Proof:
    name, wanted = change.name, change.after
    resolved = told.resolved(name)

    def proof(outcome: Outcome, reason: str = "") -> Proof:
        return Proof(change.kind, name, wanted, resolved, outcome, reason, change.knob)

    if told.otherwise is not None and name in told.otherwise:
        started = told.otherwise[name]
        value = "no such flag" if started is None else clean(started, 200)
        return proof(Outcome.NOT_TAKEN, f"the server was started with {value}")
    if wanted is not None and MASK in wanted and told.otherwise is not None:
        return proof(Outcome.UNREPORTED, NOT_COMPARED)
    if wanted is None or resolved is None:
        if told.is_reported:
            return proof(Outcome.IN_FORCE)
        runs = told.otherwise is not None
        why = "the server does not report what it made of it"
        if told.info is None:
            why = "the server's own report could not be read"
        return proof(Outcome.UNREPORTED, f"the engine was started so, but {why}" if runs else why)
    if same(wanted, resolved):
        return proof(Outcome.IN_FORCE)
    reasons = [
        each.reason or each.text
        for each in findings
        if each.rule in OVERRIDING_RULES and f"--{name} " in each.text
    ]
    reason = reasons[0] if reasons else f"the server has resolved it to {resolved}"
    return proof(Outcome.OVERRIDDEN, reason)


def not_taken(change: Change, path: str) -> Proof:
    """The proof that something runs otherwise than expected; `path` is the file that decides."""
    reason = f"{path} decides over it" if path else "the unit runs with it"
    return Proof(change.kind, change.name, change.before, change.after, Outcome.NOT_TAKEN, reason)


def same(one: str, other: str) -> bool:
    """Whether two values mean the same: numbers by value, words whatever their case."""
    try:
        return float(one) == float(other)
    except ValueError:
        return one.strip("'\"").casefold() == other.strip("'\"").casefold()


def all_taken(proofs: Sequence[Proof]) -> bool:
    """Whether the server was started with every change (what it resolves otherwise is shown)."""
    return all(each.outcome is not Outcome.NOT_TAKEN for each in proofs)


NOT_COMPARED = "it is set; the values of secrets are not compared"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_LONGEST = 100_000
"""Characters of a value that are compared."""


def running_command(snapshot: Snapshot, engine: Engine) -> tuple[str, ...]:
    """The engine's command line as it runs; empty where nobody tells it."""
    info = snapshot.server_info
    return process_command(snapshot, engine) or (info.launch_command if info is not None else ())


def process_command(snapshot: Snapshot, engine: Engine) -> tuple[str, ...]:
    """The words of the unit's main process, if that is the engine; empty where it is a shell."""
    unit = snapshot.unit
    is_exact = unit is not None and unit.main_pid and not unit.command_line_printed
    told = unit.command_line if unit is not None and is_exact else ()
    return told if engine.is_command(told) and script_index(told) is None else ()


def unreported(snapshot: Snapshot, engine: Engine) -> str:
    """What an ending is not proved by; empty where the server's own report proves it.

    The unit's process and the server's report each tell the command line; what the server has made
    of it only the report does.
    """
    if snapshot.server_info is not None:
        told = running_command(snapshot, engine)
        return "" if told else "neither the host nor the server tells the command line"
    source = snapshot.sources.get(Collector.ENGINE)
    why = source.detail if source is not None and source.status is SourceStatus.FAILED else ""
    report = f"the server's own report could not be read{f': {why}' if why else ''}"
    if process_command(snapshot, engine):
        return f"command line proved; {report}"
    return f"the command line could not be read either; {report}"


def report_is_refused(snapshot: Snapshot, engine: Engine) -> bool:
    """Whether the server's own report will not come, and everything else is proved.

    The port must be known to be the unit's: what another program answers says nothing.
    """
    others = [each for each in snapshot.readiness.evidence if each.name != "configuration"]
    proved = bool(others) and all(each.verdict is Verdict.PROVED for each in others)
    settled = snapshot.report_refusals >= REFUSALS
    return settled and proved and bool(process_command(snapshot, engine))


def deviations(
    expected: Launch,
    snapshot: Snapshot,
    engine: Engine,
    unwanted: Collection[str] = (),
    opaque: Collection[str] | None = None,
) -> tuple[Change, ...]:
    """What runs otherwise than expected: flags, and variables of the unit; empty where untold.

    `before` of each is what was expected, `after` what runs. Variables named in `unwanted` are
    ones that must not be set. Values that are secret, shortened or expanded later are not compared;
    `opaque` are words of the expected command that the host itself expands.
    """
    flags = _flag_deviations(expected.argv, snapshot, engine, opaque)
    return (*flags, *variable_deviations(expected, snapshot.unit, unwanted))


def variable_deviations(
    expected: Launch, unit: UnitStatus | None, unwanted: Collection[str] = ()
) -> list[Change]:
    """The variables among the deviations; secrets removed."""
    if unit is None:
        return []
    variables = unit.variables
    names = [name for name in variables if name in expected.environment or name in unwanted]
    if unit.environment_read:
        names += [name for name in expected.environment if name not in variables]
    # `env NAME=value ...` sets it over the unit's own.
    within = {word.partition("=")[0] for word in expected.argv if _ASSIGNMENT.match(word)}
    pairs = [(name, expected.environment.get(name), variables.get(name)) for name in names]
    return [
        Change(ChangeKind.ENVIRONMENT, name, _safe(name, value), now)
        for name, value, now in pairs
        if name not in within and _differ(value, now)
    ]


def _safe(name: str, value: str | None) -> str | None:
    """A variable's value without secrets."""
    return value and redact_environment([f"{name}={value}"])[0].partition("=")[2]


def restart_due(
    written: Launch,
    snapshot: Snapshot,
    engine: Engine,
    opaque: Collection[str] | None = None,
    *,
    of_flags: bool = True,
) -> str:
    """Why a unit that is configured as `written` must be restarted for that, in words.

    Its engine runs with older flags or variables, or may do so; empty where it does not.
    """
    unit = snapshot.unit
    if unit is None or not unit.is_up:
        return ""
    found = _flag_deviations(written.argv, snapshot, engine, opaque) if of_flags else []
    flags = f"the process runs with older flags: {_told_of(found, '--')}" if found else ""
    found = variable_deviations(written, unit)
    where = "process" if unit.environment_read else "unit as systemd has read it"
    told = _told_of(found, where=where)
    variables = f"the process runs with older variables: {told}" if found else ""
    reasons = "; ".join(clean(each, 300) for each in unit.older[:3])
    older = f"the process runs with an older configuration: {reasons}" if reasons else ""
    return "; ".join(each for each in (flags, variables, older) if each)


def _told_of(found: Sequence[Change], dashes: str = "", where: str = "process") -> str:
    words = [
        f"{dashes}{each.name} is {_shown(each.after)} in the {where}, "
        f"{_shown(each.before)} in the unit"
        for each in found[:3]
    ]
    return "; ".join(words) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _flag_deviations(
    argv: Sequence[str],
    snapshot: Snapshot,
    engine: Engine,
    opaque: Collection[str] | None = None,
) -> list[Change]:
    """Flags that the engine runs with otherwise than `argv` has them."""
    wanted_argv = redact_argv(argv)
    info = snapshot.server_info
    if running := process_command(snapshot, engine):
        wanted, told = engine.flags(wanted_argv), engine.flags(redact_argv(running))
        names = [*wanted, *(each for each in told if each not in wanted)]
        pairs = [(name, wanted.get(name), told.get(name)) for name in names]
    elif info is not None and info.launch_command:
        different = compared(wanted_argv, info, engine).different
        pairs = [(each.name, each.asked, each.told) for each in different]
    else:
        pairs = []
    return [
        Change(ChangeKind.FLAG, name, expected, now)
        for name, expected, now in pairs
        if _differ(expected, now, opaque)
    ]


def _differ(
    expected: str | None, running: str | None, opaque: Collection[str] | None = None
) -> bool:
    if expected is None or running is None:
        return expected != running
    if running.endswith(ELLIPSIS):
        return False
    # Without a word on what is expanded later, all that may be counts for it.
    later = ("$", "%") if opaque is None else opaque
    if any(each and each in expected for each in later):
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
