"""Which variables a unit's main process runs with, and whether the unit has changed since.

systemd tells what a unit is configured as now; a process keeps what it was started with. What the
unit was configured as at the start decides, where that was seen here, or nothing was changed since.
Else the environment of the process, where it may be read. That a file is newer than the process is
a doubt and no more: its text may be the same, or each start may write it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from ddtui.collect.unit_start import Start
from ddtui.core.redact import is_secret_name, redact_environment
from ddtui.core.text import clean, named_values

_NO_VARIABLES = re.compile(r"/run/systemd/generator|/systemd/(?:system|user)\.control(?:/|$)")
"""Files that every reload writes anew, and those of `systemctl set-property`: limits in force."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Configured(msgspec.Struct, frozen=True):
    """What systemd says of the unit now."""

    pairs: tuple[str, ...]
    """`NAME=value` of its variables, with secrets."""
    exec_start: tuple[str, ...]
    files: frozenset[str]
    """Its fragment and drop-ins; other files that were looked at are files of variables."""
    variable_files: str = ""
    needs_reload: bool = False


class Seen(msgspec.Struct, frozen=True):
    """What the unit was configured as when the present start was made."""

    unit: Configured
    witnessed: bool
    """The start itself was seen; else no file was changed since."""


class Starts:
    """Remembers what the unit was configured as when it was started last."""

    def __init__(self) -> None:
        self._invocation = ""
        self._seen: Seen | None = None
        self._watching = False

    def interrupted(self) -> None:
        """Nobody has looked for a while: a start may have been missed."""
        self._watching = False

    def of(self, invocation: str, unit: Configured, *, untouched: bool) -> Seen | None:
        """What is known of the start of this invocation, whose main process runs.

        `untouched`: no file of the unit was changed since.
        """
        if invocation and invocation != self._invocation:
            known = self._watching or untouched
            self._seen = Seen(unit, self._watching) if known else None
            self._invocation = invocation
        self._watching = True
        return self._seen if invocation else None

    def nothing_runs(self) -> None:
        """The unit was looked at, and has no main process: the next start is seen."""
        self._watching = True


class Environment(msgspec.Struct, frozen=True):
    """The variables of a unit, and what they are told by; secrets removed."""

    pairs: tuple[str, ...]
    """`NAME=value`."""
    read: bool = False
    """Whether they are those that the process was started with."""
    older: tuple[str, ...] = ()
    """What the process was started with otherwise than the unit has it now, one by one."""
    doubts: tuple[str, ...] = ()
    """Why it may run with an older configuration, where that is not known."""
    overridden: tuple[str, ...] = ()
    """`NAME=value`, or `NAME` for one that it lacks: what its program has made of them itself."""


def environment_of(
    unit: Configured,
    start: Start,
    command_line: Sequence[str],
    began: float | None,
    now: float | None,
    starts: tuple[Starts, str],
) -> Environment:
    """The variables with which the main process runs, as far as the unit sets them.

    `began` is when it was started, `now` the host's time; seconds on its clock. `starts` is what is
    remembered of starts, and the present invocation.
    """
    remembered, invocation = starts
    if began is None:
        remembered.nothing_runs()
        return Environment(redact_environment(unit.pairs))
    later = _later(start, began, now)
    folders = {str(PurePosixPath(path).parent) for path in unit.files}
    own = [path for path in later if path in unit.files | folders]
    doubts = [
        f"{clean(path, 200)} was changed after the start that reads it"
        for path in later
        if path not in own
    ]
    untouched = not own and not unit.needs_reload
    seen = remembered.of(invocation, unit, untouched=untouched)
    direct = _same_program(unit.exec_start, command_line)
    changed = f"{clean(own[0], 200)} was changed after the start" if own else ""
    if own and unit.needs_reload:
        doubts.append(f"{changed}, and systemd has not read it yet")
    if seen is not None:
        found = _by_the_unit(unit, seen, start, direct=direct)
    elif start.variables is None or not direct:
        why = "the variables of the process may not be read"
        if start.variables is not None:
            why = "what runs is not the program of ExecStart itself"
        said = (f"{changed}, and {why}",) if own else ()
        found = Environment(redact_environment(unit.pairs), doubts=said)
    else:
        found = _by_the_process(unit, start, start.variables)
    return msgspec.structs.replace(found, doubts=(*found.doubts, *doubts))


def _later(start: Start, began: float, now: float | None) -> list[str]:
    """Files that were changed after the start; one second is as exact as systemd's times are."""
    return [
        path
        for at, path in start.written
        if int(began) < at <= (at if now is None else now) and not _NO_VARIABLES.search(path)
    ]


def _by_the_unit(unit: Configured, seen: Seen, start: Start, *, direct: bool) -> Environment:
    """By what the unit was at the start: what its program makes of that is its own affair."""
    then, now = named_values(seen.unit.pairs), named_values(unit.pairs)
    older = [
        f"{clean(name, 80)} was set by the unit at the start, and is no more"
        for name in then
        if name not in now
    ]
    older += [
        f"{clean(name, 80)} (a secret) is another one in the process than in the unit"
        for name, value in then.items()
        if name in now and now[name] != value and _is_secret(name, value, now[name])
    ]
    if seen.unit.exec_start != unit.exec_start:
        older.append("ExecStart is another one than at the start")
    if seen.unit.variable_files != unit.variable_files:
        older.append("the files of variables are others than at the start")
    variables = start.variables or {}
    made = {} if start.variables is None else {
        name: variables.get(name)
        for name, value in then.items()
        if name in now and name not in start.in_files and variables.get(name) != value
    }  # fmt: skip
    assigned = {word.partition("=")[0] for word in unit.exec_start if _ASSIGNMENT.match(word)}
    unsure = [name for name in made if name not in assigned] if direct else []
    return Environment(
        redact_environment(seen.unit.pairs),
        read=True,
        older=tuple(older),
        # systemd may have been told of an edit only after the start that it was made for.
        doubts=()
        if seen.witnessed or not unsure
        else (
            f"{clean(unsure[0], 80)} is another one in the process than in the unit, and no file"
            " was changed since the start: its program may have set it",
        ),
        overridden=redact_environment(
            name if value is None else f"{name}={value}" for name, value in made.items()
        ),
    )


def _by_the_process(unit: Configured, start: Start, variables: dict[str, str]) -> Environment:
    """By the process, where files were changed before anybody looked."""
    assigned = {word.partition("=")[0] for word in unit.exec_start if _ASSIGNMENT.match(word)}
    pairs, older = [], []
    for name, value in named_values(unit.pairs).items():
        if name in start.in_files or name in assigned:
            pairs.append(f"{name}={value}")
        elif (started := variables.get(name)) is not None:
            pairs.append(f"{name}={started}")
            if started != value and _is_secret(name, started, value):
                text = "(a secret) is another one in the process than in the unit"
                older.append(f"{clean(name, 80)} {text}")
    return Environment(redact_environment(pairs), read=True, older=tuple(older))


def _is_secret(name: str, *values: str) -> bool:
    pairs = [f"{name}={value}" for value in values]
    return is_secret_name(name) or list(redact_environment(pairs)) != pairs


def _same_program(exec_start: Sequence[str], command_line: Sequence[str]) -> bool:
    """Whether the process is what ExecStart names, and no script's child: the words before flags.

    A program that is a script itself runs behind its interpreter.
    """
    unit, process = _program(exec_start), _program(command_line)
    both = min(len(unit), len(process))
    return both > 0 and unit[-both:] == process[-both:] and both == len(unit)


def _program(words: Sequence[str]) -> list[str]:
    found = list(words)
    if found and PurePosixPath(found[0]).name == "env":
        del found[0]
        while found and _ASSIGNMENT.match(found[0]):
            del found[0]
    ends = (at for at, word in enumerate(found) if word.startswith("--") or "$" in word)
    return found[: next(ends, len(found))]
