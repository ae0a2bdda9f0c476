"""Reads what the program `ddtui:facts` prints: `@NAME VALUE`, one a line, `@end` at the end."""

from __future__ import annotations

import re

import msgspec

from ddtui.cli.doctor.check import Check, fail, ok, skip, warn
from ddtui.core.text import clean

OLDEST_SYSTEMD = 239
OLDEST_BASH = (5, 0)
"""Its EPOCHREALTIME is what the programs take the time from."""


class Facts(msgspec.Struct, frozen=True):
    """What a host says of itself; a name may come several times."""

    values: dict[str, list[str]]
    complete: bool

    def one(self, name: str) -> str:
        """The first value, or an empty string."""
        return next(iter(self.values.get(name, [])), "")

    def all(self, name: str) -> list[str]:
        """All values."""
        return self.values.get(name, [])


def parse_facts(output: bytes) -> Facts:
    """Facts from the program's output; lines that are none (a login's greeting) are passed over."""
    values: dict[str, list[str]] = {}
    complete = False
    for line in output.decode("utf-8", errors="replace").splitlines():
        if line.strip() == "@end":
            complete = True
        elif line.startswith("@"):
            name, _, value = line[1:].partition(" ")
            values.setdefault(name, []).append(clean(value.strip(), 500))
    return Facts(values, complete)


def check_facts(facts: Facts, *, unit: str, user_unit: bool) -> list[Check]:
    """All checks that the facts alone can decide."""
    return [
        _login(facts),
        _bash(facts),
        _systemd(facts),
        _cgroup(facts),
        _journal(facts, unit, user_unit=user_unit),
        *_gpus(facts),
    ]


def _login(facts: Facts) -> Check:
    user, _, uid = facts.one("user").partition(" ")
    return ok("login", f"{user} (uid {uid}) on {facts.one('hostname')}, {facts.one('kernel')}")


def _bash(facts: Facts) -> Check:
    found = re.match(r"(\d+)\.(\d+)", facts.one("bash"))
    if found and (int(found[1]), int(found[2])) >= OLDEST_BASH:
        return ok("bash", facts.one("bash"))
    return fail(
        "bash",
        facts.one("bash") or "no version was given",
        "ddtui's programs on the host need bash 5.0 or newer",
    )


def _systemd(facts: Facts) -> Check:
    text = facts.one("systemd")
    found = re.match(r"systemd (\d+)", text)
    if found is None:
        return fail("systemd", text or "not found", "ddtui needs a host that runs systemd")
    state = facts.one("state")
    if int(found[1]) < OLDEST_SYSTEMD:
        return fail("systemd", text, f"ddtui needs systemd {OLDEST_SYSTEMD} or newer")
    if state == "offline" or "not been booted" in state:
        return fail(
            "systemd",
            f"{text}: installed, but the host was not started with it",
            "name the host that runs the engine as a service; GPU and system figures need none",
        )
    return ok("systemd", f"{text}, {state or 'state unknown'}")


def _cgroup(facts: Facts) -> Check:
    kind = facts.one("cgroup")
    if kind == "cgroup2fs":
        return ok("control groups", "version 2")
    return warn(
        "control groups",
        f"not version 2 ({kind or 'none'}): which processes are the unit's is not known, nor what"
        " they have read",
        "start the host with systemd.unified_cgroup_hierarchy=1 on its kernel command line",
    )


def _journal(facts: Facts, unit: str, *, user_unit: bool) -> Check:
    name = "journal"
    if not facts.one("journalctl"):
        return fail(name, "no journalctl on the host", "ddtui reads the engine's log from it")
    if facts.one("journal_entries") not in {"", "0"} or user_unit:
        return ok(name, f"{unit or 'the journal'} can be read")
    groups = set(facts.one("groups").split())
    may_read = bool(groups & {"systemd-journal", "adm", "wheel"})
    if may_read or facts.one("user").endswith(" 0"):
        return warn(
            name,
            f"no entries of {unit or 'any unit'} yet; the right to read them is there",
            "start the engine, or name its unit; a journal that is kept in memory alone is empty"
            " after a boot (Storage= in journald.conf)",
        )
    user = facts.one("user").partition(" ")[0]
    hint = facts.one("journal")
    return fail(
        name,
        f"no entries can be seen{': ' + hint if hint else ''}",
        f"on the host: sudo usermod -aG systemd-journal {user}   (then log in again)",
    )


def _gpus(facts: Facts) -> list[Check]:
    program, status = facts.one("nvidia_smi"), facts.one("nvidia_smi_status")
    rows = facts.all("gpu")
    if not program:
        return [
            warn(
                "nvidia-smi",
                "not found on the host's PATH: no GPU figures",
                "install the driver's utilities, or set nvidia_smi in the host's section",
            )
        ]
    if status != "0" or not rows:
        said = next(iter(rows), f"status {status}")
        return [fail("nvidia-smi", f"{program}: {said}", "try `nvidia-smi` on the host itself")]
    cells = [[cell.strip() for cell in row.split(",")] for row in rows]
    names = dict.fromkeys(row[1] for row in cells if len(row) > 2)
    drivers = dict.fromkeys(row[2] for row in cells if len(row) > 2)
    return [
        ok("nvidia-smi", f"{program}, driver {', '.join(drivers) or 'unknown'}"),
        ok("gpus", f"{len(rows)} x {', '.join(names) or 'unknown'}"),
    ]


def check_clock(facts: Facts, asked: float, answered: float) -> Check:
    """The host's clock against ours; the facts were asked for and answered at these times."""
    try:
        theirs = float(facts.one("time"))
    except ValueError:
        return skip("clock", "the host gave no time")
    margin = (answered - asked) / 2
    skew = theirs - (asked + margin)
    if abs(skew) <= margin + 1.0:
        return ok("clock", f"differs by {skew:+.2f} s, measured to ±{margin:.2f} s")
    return warn(
        "clock",
        f"differs by {skew:+.1f} s (±{margin:.1f} s)",
        "keep both clocks right with NTP; ddtui corrects for it, other tools may not",
    )
