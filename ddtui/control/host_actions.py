"""What a reconfiguration does on a host, one method a step. Each is bounded in time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from ddtui.collect.settings import Scope
from ddtui.collect.systemd_text import parse_span
from ddtui.control import rights
from ddtui.control.drop_in import text_hash
from ddtui.control.held import Held, parse_held
from ddtui.control.unit_files import UnitText, parse_unit_files
from ddtui.control.unit_programs import (
    END_PROCESS,
    HOLDERS,
    LOOK,
    RIGHTS,
    STOP_REQUESTS,
    SYSTEMCTL_RUN,
    UNIT_FILES,
    VERIFY_UNIT,
    WRITE_DROP_IN,
)
from ddtui.core.bounded import bounded_int
from ddtui.core.text import clean
from ddtui.hosts.base import Completed, Host, HostError, ProgramTimeout

SHORT = 20.0
"""Seconds for what only looks."""
SUDO_LIMIT = 5.0
"""Seconds for sudo to say what it allows; it may ask a directory that does not answer."""
RELOAD_LIMIT = 60.0
START_LIMIT = 100.0
"""Seconds for `systemctl start`: systemd's own limit for a notifying service is 90."""

Verb = Literal["start", "stop", "reset-failed", "daemon-reload"]


class ActionFailed(HostError):
    """A step could not be done on the host: what it said, and what to do."""


class RightMissing(ActionFailed):
    """The operator may not do it: `lines` for sudoers are what is missing."""

    def __init__(self, what: str, lines: Sequence[str], *, no_sudo: bool = False) -> None:
        super().__init__(what, rights.way_out(lines, no_sudo=no_sudo))
        self.lines = tuple(lines)


class Rights(msgspec.Struct, frozen=True):
    """What an operator may do as root on the host."""

    missing: tuple[str, ...] = ()
    """Lines for sudoers that are missing."""
    why: str = ""
    """Why nothing is allowed at all: there is no sudo; empty where single commands are missing."""
    unknown: str = ""
    """Why sudo does not tell what it allows, in its own words; empty where it does."""


class Facts(msgspec.Struct, frozen=True):
    """The unit as it is now."""

    load_state: str = ""
    active: str = ""
    sub: str = ""
    result: str = ""
    invocation: str = ""
    restarts: int = 0
    main_pid: int = 0
    needs_reload: bool = False
    control_group: str = ""
    drop_in: str = ""
    """Hash of ddtui's drop-in; empty where there is none."""
    boot: str = ""
    """Which boot of the host it is; empty where that is not known."""
    stop_timeout: float = 0.0
    """Seconds after which systemd kills what a stop has not ended; 0 for never, or not known."""


class Verified(msgspec.Struct, frozen=True):
    """What systemd-analyze said of the unit with its new drop-in."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class UnitActions:
    """Acts on one unit of one host. Methods raise LinkDown, ProgramTimeout, ActionFailed."""

    def __init__(self, host: Host, scope: Scope, unit: str, nvidia_smi: str = "") -> None:
        self.host = host
        self.scope = scope
        self.unit = unit
        self._smi = nvidia_smi
        self._login = ""

    async def read(self) -> UnitText:
        """The unit's files."""
        answer = await self.host.run(UNIT_FILES, self.scope, self.unit, timeout=SHORT)
        if b"@end" not in answer.stdout:
            raise ActionFailed(f"cannot read the files of {self.unit}: {_said(answer)}")
        text = parse_unit_files(answer.stdout, self.unit, self.scope)
        self._login = text.user
        return text

    async def look(self) -> Facts:
        """The unit's state and the hash of its drop-in."""
        answer = await self.host.run(LOOK, self.scope, self.unit, timeout=SHORT)
        lines = answer.stdout.decode("utf-8", "replace").splitlines()
        if "@end" not in lines:
            raise ActionFailed(f"cannot see the state of {self.unit}: {_said(answer)}")
        return parse_look(lines)

    async def rights(self) -> Rights:
        """The rights for what a reconfiguration runs as root.

        What sudo allows with a password only is missing as well: nobody is there to type it. Its
        list decides; it is asked for single commands only where that does not tell.
        """
        if self.scope == "user":
            return Rights()
        commands = rights.commands_for(self.unit)
        try:
            lines = await self._ask_sudo()
            user, uid = next(
                (line.split()[1:3] for line in lines if line.startswith("@user ")), ("USER", "")
            )
            if uid == "0":
                return Rights()
            if "@none" in lines:
                return Rights(
                    tuple(rights.sudoers_line(user, each) for each in commands),
                    why="sudo is not installed on the host",
                )
            listing = [each.removeprefix("@rule ") for each in lines if each.startswith("@rule ")]
            wants = {each: rights.wants_password(listing, each) for each in commands}
            untold = [each for each in commands if wants[each] is None]
            lines = await self._ask_sudo(*untold) if untold else []
        except ProgramTimeout:
            return Rights(unknown=f"sudo has not answered in {SUDO_LIMIT:.0f} s")
        refused = {each.removeprefix("@missing ") for each in lines if each.startswith("@missing ")}
        lacking = [each for each in commands if wants[each] or each in refused]
        unknown = next((line for line in lines if line.startswith("@unknown ")), "")
        if any(wants.values()) or (lacking and not unknown):
            return Rights(tuple(rights.sudoers_line(user, each) for each in lacking))
        if unknown:
            return Rights(unknown=clean(unknown.removeprefix("@unknown "), 200))
        if untold and not rights.never_asks(listing):
            return Rights(unknown="by its list, it may want a password")
        return Rights()

    async def _ask_sudo(self, *commands: str) -> list[str]:
        answer = await self.host.run(RIGHTS, *commands, timeout=SUDO_LIMIT)
        lines = answer.stdout.decode("utf-8", "replace").splitlines()
        if "@end" not in lines:
            raise ActionFailed(f"cannot ask for the rights on the host: {_said(answer)}")
        return lines

    async def verify(self, text: str) -> Verified:
        """What systemd-analyze says of the unit with this drop-in; nothing is changed."""
        answer = await self.host.run(
            VERIFY_UNIT, self.scope, self.unit, timeout=40.0, stdin=_bytes(text)
        )
        if answer.status:
            raise ActionFailed(f"cannot verify {self.unit}: {_said(answer)}")
        return parse_verify(answer.stdout.decode("utf-8", "replace"), self.unit)

    async def write(self, text: str, over: str) -> None:
        """Put the drop-in into place, whole, over the one of this hash (empty: over none)."""
        orders = (over or "-", text_hash(text))
        answer = await self.host.run(
            WRITE_DROP_IN, self.scope, self.unit, *orders, timeout=SHORT, stdin=_bytes(text)
        )
        said = answer.stdout.decode("utf-8", "replace").strip()
        if answer.status:
            raise self._failure("write its drop-in", answer)
        if said != f"@written {text_hash(text)}":
            raise ActionFailed("the drop-in does not hold what was written", "look at it by hand")

    async def systemctl(
        self, verb: Verb, limit: float = RELOAD_LIMIT, invocation: str = ""
    ) -> bool:
        """Run `systemctl VERB`. ProgramTimeout leaves the job going on the host.

        With an `invocation`, nothing is done where the unit is under another one: then False.
        """
        answer = await self.host.run(
            SYSTEMCTL_RUN, self.scope, self.unit, verb, invocation, timeout=limit
        )
        if answer.status:
            raise self._failure(verb, answer)
        return not answer.stdout.startswith(b"@other")

    async def held(self, control_group: str, port: int, known: Sequence[int]) -> Held:
        """Who holds the port, the GPUs and the unit's control group."""
        answer = await self.host.run(
            HOLDERS, self._smi, control_group, str(port), " ".join(map(str, known)), timeout=40.0
        )
        text = answer.stdout.decode("utf-8", "replace")
        if "@end" not in text:
            raise ActionFailed(f"cannot see who holds what: {_said(answer)}")
        return parse_held(text, own_group=f"/{self.unit}")

    async def stopped_on_request(self) -> list[str]:
        """Invocations that systemd was told to stop, by the unit's journal, the latest last."""
        answer = await self.host.run(STOP_REQUESTS, self.scope, self.unit, timeout=SHORT)
        lines = answer.stdout.decode("utf-8", "replace").splitlines()
        if "@end" not in lines:
            raise ActionFailed(f"cannot read who stopped {self.unit}: {_said(answer)}")
        return [line.removeprefix("@stop ") for line in lines if line.startswith("@stop ")]

    async def end_process(self, pid: int, begun: str, signal: Literal["TERM", "KILL"]) -> None:
        """Signal a process, if it still is the one that began then."""
        answer = await self.host.run(END_PROCESS, str(pid), begun, signal, timeout=SHORT)
        if answer.status:
            raise ActionFailed(
                f"cannot end process {pid}: {_said(answer)}",
                f"on the host: sudo kill -s {signal} {pid}",
            )

    def _failure(self, what: str, answer: Completed) -> ActionFailed:
        said = _said(answer)
        if _refused(said) and self.scope != "user":
            command = {
                "write its drop-in": rights.commands_for(self.unit)[-3:],
                "daemon-reload": [f"{rights.SYSTEMCTL} daemon-reload"],
            }.get(what, [f"{rights.SYSTEMCTL} {what} {self.unit}"])
            user = self._login or _user(said)
            lines = [rights.sudoers_line(user, each) for each in command]
            if rights.wants_terminal(said):
                lines = [rights.without_terminal(user)]
            no_sudo = re.search(r"\bsudo: (command )?not found", said) is not None
            why = f"no right to {what} for {self.unit}: {said}"
            return RightMissing(why, lines, no_sudo=no_sudo)
        return ActionFailed(f"{what} of {self.unit} failed: {said}")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _said(answer: Completed) -> str:
    text = (answer.stderr or answer.stdout).decode("utf-8", "replace").strip()
    return clean(text, 400) or f"exit status {answer.status}"


def _refused(said: str) -> bool:
    return (
        re.search(r"\bsudo: |Sorry, user|Access denied|authentication required", said) is not None
    )


def _user(said: str) -> str:
    match = re.search(r"user (\S+) is not allowed", said)
    return match[1] if match is not None else "USER"


# ---- what the programs print ---------------------------------------------------------------------


def parse_look(lines: Sequence[str]) -> Facts:
    """Read the answer of the program LOOK."""
    values = dict(line.partition("=")[::2] for line in lines if "=" in line)
    return Facts(
        load_state=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        sub=values.get("SubState", ""),
        result=values.get("Result", ""),
        invocation=values.get("InvocationID", ""),
        restarts=_number(values.get("NRestarts", "")),
        main_pid=_number(values.get("MainPID", "")),
        needs_reload=values.get("NeedDaemonReload") == "yes",
        control_group=values.get("ControlGroup", ""),
        stop_timeout=parse_span(values.get("TimeoutStopUSec", "")) or 0.0,
        drop_in=values.get("DropIn", ""),
        boot=values.get("Boot", ""),
    )


def _number(text: str) -> int:
    return bounded_int(text) or 0


def parse_verify(text: str, unit: str) -> Verified:
    """Read the answer of VERIFY_UNIT: only what is said of this unit counts.

    What was wrong with the unit before keeps nobody from changing it, or from rolling it back.
    """
    lines = text.splitlines()
    if lines and lines[0].startswith("@absent"):
        return Verified(warnings=("systemd-analyze could not be asked on the host",))
    folder = next((each.removeprefix("@folder ") for each in lines if each[:8] == "@folder "), "")
    status = next((each.removeprefix("@status ") for each in lines if each[:8] == "@status "), "0")
    split = lines.index("@before") if "@before" in lines else len(lines)

    def said_in(part: Sequence[str]) -> list[str]:
        return [
            clean(line.replace(f"{folder}/", ""), 300)
            for line in part
            if line[:1] != "@" and line.strip() and (folder in line or unit in line)
        ]

    said = said_in(lines[:split])
    if status == "0":
        return Verified(warnings=tuple(said))
    before = {_without_place(line) for line in said_in(lines[split:])}
    fatal = [each for each in said if not _harmless(each) and _without_place(each) not in before]
    return Verified(errors=tuple(fatal), warnings=tuple(each for each in said if each not in fatal))


def _without_place(line: str) -> str:
    """A message without its line number, which a change moves."""
    return re.sub(r"^(\S+):\d+: ", r"\1: ", line)


def _harmless(line: str) -> bool:
    """What systemd passes over, or the operator's own user may not see, stops no start."""
    return (
        re.search(r"\bignoring\b(\.?$|: )", line) is not None
        or "Permission denied" in line
        or "Failed to create " in line
    )
