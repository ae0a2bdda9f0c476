"""The one file that ddtui writes: a drop-in with the engine's command, and who wrote it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from ddtui.control.exec_start import quoted_assignment
from ddtui.control.unit_command import DROP_IN_NAME, Lines
from ddtui.control.unit_text import UnitFile
from ddtui.core.text import clean

_FIELD = re.compile(r"# (when|by|preset|id|base|previous): (.*)")


class Header(msgspec.Struct, frozen=True):
    """What the comment at a drop-in's head says."""

    when: str = ""
    """UTC, ISO 8601."""
    by: str = ""
    """user@machine."""
    preset: str = ""
    id: str = ""
    """Of the reconfiguration that wrote it."""
    base: str = ""
    """Hash of the unit's own settings that it stands in front of."""
    previous: str = ""
    """Hash of the drop-in that it replaced; empty where there was none."""


def text_hash(text: str) -> str:
    """A text's identity: SHA-256, hexadecimal. Empty for an empty text (no file)."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() if text else ""


def base_hash(files: Sequence[UnitFile]) -> str:
    """Identity of a unit's own settings: all its files but ddtui's drop-in."""
    others = [each for each in files if not each.path.endswith(f"/{DROP_IN_NAME}")]
    return text_hash("\0".join(f"{each.path}\0{each.text.strip()}" for each in others))


def stamp(at: float) -> str:
    """Unix seconds as the header writes them."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render(lines: Lines, header: Header) -> str:
    """The file's text."""
    fields = {name: clean(value, 200) for name, value in msgspec.structs.asdict(header).items()}
    out = [
        "# Made by ddtui, which replaces it whole: changes made here by hand are lost.",
        *(f"# {name}: {value}" for name, value in fields.items() if value),
        "[Service]",
        *(
            f"Environment={quoted_assignment(name, value)}"
            for name, value in sorted(lines.environment.items())
        ),
        *(f"UnsetEnvironment={name}" for name in lines.unset),
        "ExecStart=",
        *(f"ExecStart={_folded(command)}" for command in lines.exec_start),
    ]
    return "\n".join(out) + "\n"


def _folded(command: str) -> str:
    """A long command, one flag a line. Only blanks outside of quotes before `--` are touched."""
    if len(command) < 100:
        return command
    out, quote, escaped = "", "", False
    for index, char in enumerate(command):
        if not quote and not escaped and char == " " and command.startswith("--", index + 1):
            out += " \\\n    "
            continue
        out += char
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return out


def nothing(header: Header) -> str:
    """A drop-in that changes nothing: the unit is as if there were none."""
    fields = {name: clean(value, 200) for name, value in msgspec.structs.asdict(header).items()}
    return "\n".join(
        [
            "# Made by ddtui: the unit's own settings hold.",
            *(f"# {name}: {value}" for name, value in fields.items() if value),
            "",
        ]
    )


def header_of(text: str) -> Header:
    """The header of a drop-in; empty fields where there is none."""
    found = {match[1]: match[2] for line in text.split("\n") if (match := _FIELD.fullmatch(line))}
    return msgspec.convert(found, Header)


def stands_before_another(text: str, base: str) -> bool:
    """Whether a drop-in was written for other settings of the unit than those of this hash."""
    written_for = header_of(text).base
    return sets_anything(text) and bool(written_for) and bool(base) and written_for != base


def sets_anything(text: str) -> bool:
    """Whether a drop-in holds more than comments."""
    return any(
        line.strip() and not line.lstrip().startswith(("#", ";")) for line in text.split("\n")
    )
