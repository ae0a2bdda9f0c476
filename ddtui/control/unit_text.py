"""Reads unit files as systemd does: sections, assignments, comments, continued lines.

Format: systemd.syntax(7). A comment line in the middle of a continued line is left out and does
not end it; a backslash at a line's end becomes a blank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

WHITESPACE = " \t\n\r"


class UnitFile(msgspec.Struct, frozen=True):
    """One file of a unit: its fragment or a drop-in."""

    path: str
    text: str


class Assignment(msgspec.Struct, frozen=True):
    """One `name=value`."""

    name: str
    value: str
    path: str
    """The file that it stands in."""


def assignments(files: Iterable[UnitFile], section: str = "Service") -> Iterator[Assignment]:
    """The assignments of a section over all files, in the order given."""
    for file in files:
        inside = False
        for line in _logical_lines(file.text):
            if line.startswith("["):
                inside = line == f"[{section}]"
            elif inside:
                name, equals, value = line.partition("=")
                if equals:
                    yield Assignment(name.strip(WHITESPACE), value.strip(WHITESPACE), file.path)


def listed(files: Iterable[UnitFile], name: str, section: str = "Service") -> list[Assignment]:
    """The assignments of a setting that holds a list: an empty one empties it."""
    found: list[Assignment] = []
    for each in assignments(files, section):
        if each.name == name:
            found = [*found, each] if each.value else []
    return found


def single(files: Iterable[UnitFile], name: str, default: str = "") -> str:
    """The last assignment of a setting of `[Service]` that holds one value."""
    value = default
    for each in assignments(files):
        if each.name == name:
            value = each.value or default
    return value


def _logical_lines(text: str) -> Iterator[str]:
    """Lines put together, stripped; without comments and empty ones."""
    held: str | None = None
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.lstrip(WHITESPACE)
        if line[:1] in ("#", ";"):
            continue
        whole = line if held is None else held + line
        if _ends_open(whole):
            held = whole[:-1] + " "
            continue
        held = None
        if stripped := whole.strip(WHITESPACE):
            yield stripped
    if held is not None and (stripped := held.strip(WHITESPACE)):
        yield stripped


def _ends_open(line: str) -> bool:
    """Whether the line goes on: it ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def split_cat(text: str, paths: Collection[str]) -> list[UnitFile]:
    """The files in the output of `systemctl cat`: each begins with a line `# PATH`.

    `paths` are those that there can be: a comment in a file may look the same.
    """
    files: list[UnitFile] = []
    path, lines = "", list[str]()
    for line in text.split("\n"):
        if line.startswith("# /") and line[2:] in paths:
            if path:
                files.append(UnitFile(path, "\n".join(lines)))
            path, lines = line[2:], []
        else:
            lines.append(line)
    if path:
        files.append(UnitFile(path, "\n".join(lines)))
    return files
