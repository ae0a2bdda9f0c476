"""The rights to act on a unit: which commands that runs as root, and what grants them.

Rules are read from `sudo -n -l` (format: sudo(8)); nothing is run with them here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from ddtui.control.unit_command import DROP_IN_NAME

SYSTEMCTL = "/usr/bin/systemctl"
MKDIR = "/usr/bin/mkdir"
TEE = "/usr/bin/tee"
MV = "/usr/bin/mv"
SUDOERS_FILE = "/etc/sudoers.d/ddtui"


def commands_for(unit: str) -> list[str]:
    """The commands that changing a unit's configuration runs as root."""
    folder = f"/etc/systemd/system/{unit}.d"
    file = f"{folder}/{DROP_IN_NAME}"
    return [
        *(f"{SYSTEMCTL} {verb} {unit}" for verb in ("start", "stop", "reset-failed")),
        f"{SYSTEMCTL} daemon-reload",
        f"{MKDIR} -p {folder}",
        # Written beside it and renamed: a cut link never leaves half a file in force.
        f"{TEE} {file}.new",
        f"{MV} -T {file}.new {file}",
    ]


def sudoers_lines(user: str, unit: str) -> list[str]:
    """Lines for a file in /etc/sudoers.d that grant exactly those commands."""
    return [sudoers_line(user, command) for command in commands_for(unit)]


def sudoers_line(user: str, command: str) -> str:
    """The line that grants one command."""
    return f"{user} ALL=(root) NOPASSWD: {escaped(command)}"


def without_terminal(user: str) -> str:
    """The line that lets a user run sudo without a terminal: ddtui's programs have none."""
    return f"Defaults:{user} !requiretty"


def wants_terminal(said: str) -> bool:
    """Whether sudo refuses for want of a terminal (`requiretty`), by its own words."""
    return "must have a tty" in said


def way_out(lines: Sequence[str], *, no_sudo: bool = False) -> str:
    """What to do on the host so that these lines are granted."""
    if no_sudo:
        return "on the host: install sudo, or log in as root"
    return "\n".join([f"on the host, with `sudo visudo -f {SUDOERS_FILE}`, add:", *lines])


def escaped(command: str) -> str:
    r"""With a backslash before what sudoers reads as its own (sudoers(5)).

    One of the command's own (`llm@gpu\x2d0.service`) is four: what is left of them is a pattern,
    in which a backslash takes away what the next character means.
    """
    return re.sub(r"[,:=]", r"\\\g<0>", command.replace("\\", "\\" * 4))


def _unescaped(pattern: str) -> str:
    """What a listed pattern means; wildcards that are escaped stay so."""
    return re.sub(r"\\([^*?\[\]!^])", r"\1", pattern)


def granted(rules: list[str]) -> set[str]:
    """Commands that `sudo -n -l` lists as allowed to root without a password; `ALL` for all."""
    found: set[str] = set()
    for rule in _unfolded(rules):
        match = re.match(r"\s*\((root|ALL)(?:\s*:\s*[^)]*)?\)\s*(.*)", rule)
        if match is None:
            continue
        without_password = False
        for part in re.split(r"(?<!\\),\s*", match[2]):
            tags, command = _tags(part.strip())
            without_password = (without_password or "NOPASSWD" in tags) and "PASSWD" not in tags
            if without_password:
                found.add(_unescaped(command))
    return found


def wants_password(listing: list[str], command: str) -> bool | None:
    """Whether sudo wants a password for a command that it allows, by `sudo -n -l`.

    The last rule that matches decides (sudoers(5)). None where the listing does not tell: no rule
    matches, one is not understood here, or defaults may do without a password.
    """
    lines = [line.strip() for line in listing]
    begin = next((at + 1 for at, line in enumerate(lines) if "may run the following" in line), 0)
    general, _, special = " ".join(lines[:begin]).partition("Runas and Command-specific")
    last = _last_word(_unfolded([line for line in lines[begin:] if line]), command)
    if last and re.findall(r"!?\bauthenticate\b", general)[-1:] == ["!authenticate"]:
        return False
    open_ways = r"exempt_group|timestamp_type"
    if last and (re.search(open_ways, general + special) or "!authenticate" in special):
        return None
    return last


def never_asks(listing: list[str]) -> bool:
    """Whether every rule for root goes without a password, by `sudo -n -l`: so does any command.

    It tells of commands whose rule is not understood here, such as a regular expression.
    """
    lines = [line.strip() for line in listing]
    begin = next((at + 1 for at, line in enumerate(lines) if "may run the following" in line), 0)
    found = False
    for rule in _unfolded([line for line in lines[begin:] if line]):
        match = re.match(r"\(([^)]*)\)\s*(.*)", rule)
        if match is None:
            return False
        if _is_root(match[1]) is False:
            continue
        wants = True
        for part in re.split(r"(?<!\\),\s*", match[2]):
            tags, _ = _tags(part.strip())
            wants = (wants or "PASSWD" in tags) and "NOPASSWD" not in tags
            if wants:
                return False
        found = True
    return found


def _last_word(rules: list[str], command: str) -> bool | None:
    last: bool | None = None
    for rule in rules:
        match = re.match(r"\(([^)]*)\)\s*(.*)", rule)
        as_root = _is_root(match[1]) if match is not None else None
        if as_root is False:
            continue
        wants = True
        for part in re.split(r"(?<!\\),\s*", match[2] if match is not None else rule):
            tags, pattern = _tags(part.strip())
            wants = (wants or "PASSWD" in tags) and "NOPASSWD" not in tags
            fits = _fits(_unescaped(pattern), command)
            if fits is False:
                continue
            told = "=" not in tags and not pattern.startswith("!")
            last = wants if told and ((fits and as_root) or last is wants) else None
    return last


def _is_root(run_as: str) -> bool | None:
    """Whether a rule's list of users (before its groups) holds root; None where nobody can tell."""
    found = False
    for each in run_as.partition(":")[0].split(","):
        name = each.strip().removeprefix("!")
        if name in {"ALL", "root", "#0"}:
            found = name == each.strip()
        elif name and not re.fullmatch(r"[a-z_][a-z0-9_.-]*\$?", name):
            return None  # a group, a number, an alias
    return found


def _fits(pattern: str, command: str) -> bool | None:
    """Whether a rule's command is the given one; None where that is not told here."""
    if pattern.startswith("!"):  # what it takes away, sudo itself says
        return None if _fits(pattern[1:].strip(), command) is not False else False
    if pattern.startswith(("^", "sha2")) or " ^" in pattern:
        return None
    if pattern == "ALL":
        return True
    path, _, arguments = pattern.partition(" ")
    program, _, given = command.partition(" ")
    if path.endswith("/"):
        path += "*"
    if not fnmatchcase(program, path) or path.count("/") != program.count("/"):
        return False
    return not arguments or fnmatchcase(given, "" if arguments == '""' else arguments)


def _unfolded(rules: list[str]) -> list[str]:
    """Sudo folds long rules to the terminal's width: those that do not begin with `(` go on."""
    whole: list[str] = []
    for rule in rules:
        if whole and whole[-1].startswith("(") and rule and not rule.startswith("("):
            whole[-1] += " " + rule
        else:
            whole.append(rule)
    return whole


def _tags(text: str) -> tuple[set[str], str]:
    """The tags before a command, `=` for options like `CWD=/`; and the command."""
    tags = set()
    while match := re.match(r"([A-Z_]+):\s*|[A-Z_]+(=)\S+\s+", text):
        tags.add(match[1] or match[2])
        text = text[match.end() :]
    return tags, text
