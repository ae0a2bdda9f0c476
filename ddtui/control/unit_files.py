"""A unit's files as they are on its host, and what keeps them from being changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ddtui.collect.settings import Scope
from ddtui.collect.systemd_text import parse_properties, split_words
from ddtui.control.by_hand import by_hand, looked_at
from ddtui.control.exec_start import (
    ExecError,
    Unresolved,
    commands,
    environment_of,
    specifiers,
    split_variable,
)
from ddtui.control.unit_command import DROP_IN_NAME, EnvironmentFile
from ddtui.control.unit_text import UnitFile, listed, split_cat
from ddtui.core.bounded import bounded_int
from ddtui.core.text import clean


class Trouble(msgspec.Struct, frozen=True):
    """Why a unit cannot be changed as it is on its host: what, and what to do."""

    what: str
    remedy: str


class UnitText(msgspec.Struct, frozen=True):
    """A unit's files as they are on the host."""

    user: str
    uid: int
    load_state: str
    files: tuple[UnitFile, ...]
    """The fragment first, then drop-ins in the order in which systemd reads them."""
    environment_files: tuple[EnvironmentFile, ...]
    own: str
    """Text of ddtui's drop-in; empty where there is none."""
    shown: str
    """`ExecStart` of `systemctl show`."""
    unread: tuple[str, ...] = ()
    """Drop-ins among the files that systemd has not read yet."""
    closed: tuple[str, ...] = ()
    """Files of it that may not be read; `files` has the others."""
    machine: str = ""
    """Tells the host's installation from any other one; empty where that is not known."""
    passing: bool = False
    """Whether it is of a user's manager that ends with the user's last login."""
    stopped_with_it: tuple[str, ...] = ()
    """Other units that are up, and that systemd stops with it."""
    scope: Scope = "system"
    """Whose manager has it."""
    trouble: Trouble | None = None


_BLOCK = re.compile(
    rb"@(show|passing|with|machine|cat|file|gone|environment|ours|unread) (\d{1,12}|-) ([^\n]*)\n"
)
_SHOWN = (
    *("LoadState", "FragmentPath", "DropInPaths", "EnvironmentFiles", "ExecStart"),
    *("Environment", "NeedDaemonReload"),
)
_FOLDERS = {"system": "/etc/systemd/system", "user": "~/.config/systemd/user"}
_TRANSIENT = "/systemd/transient/"
_SHOWN_COMMAND = re.compile(
    r"^ExecStart=\{ path=.*? ; argv\[\]=(.*?) ; ignore_errors=", re.M | re.S
)


def parse_unit_files(output: bytes, unit: str = "", scope: Scope = "system") -> UnitText:
    """Read the answer of the program UNIT_FILES about a unit."""
    first, _, rest = output.partition(b"\n")
    _, user, uid, *_ = [*first.decode("utf-8", "replace").split(" "), "", "", ""]
    blocks = _blocks(rest)
    shown = next((text or "" for kind, _, text in blocks if kind == "show"), "")
    values = parse_properties(shown.split("\n"), _SHOWN)
    named = (values.get("FragmentPath", ""), *split_words(values.get("DropInPaths", "")))
    own = [(path, text) for kind, path, text in blocks if kind == "ours"]
    unread = [UnitFile(path, text or "") for kind, path, text in blocks if kind == "unread"]
    files, closed = _files(blocks, named, own)
    if files and unread:
        drop_ins = sorted([*files[1:], *unread], key=lambda file: file.path.rpartition("/")[2])
        files = [files[0], *drop_ins]
    text = UnitText(
        user=user,
        uid=-1 if (number := bounded_int(uid)) is None else number,
        load_state=values.get("LoadState", ""),
        files=tuple(files),
        environment_files=tuple(
            EnvironmentFile(path, None if text is None else read_environment_file(text))
            for kind, path, text in blocks
            if kind == "environment"
        ),
        own=own[0][1] or "" if own else "",
        shown=values.get("ExecStart", ""),
        unread=tuple(file.path for file in unread),
        closed=tuple(closed),
        passing=any(kind == "passing" for kind, _, _ in blocks),
        stopped_with_it=tuple(
            dict.fromkeys(clean(path, 200) for kind, path, _ in blocks if kind == "with")
        ),
        machine=next((clean(path, 64) for kind, path, _ in blocks if kind == "machine"), ""),
        scope=scope,
    )
    return _judged(unit, text, values, shown)


def _blocks(rest: bytes) -> list[tuple[str, str, str | None]]:
    """Kind, path and text of each block; None for the text of a file that may not be read."""
    blocks: list[tuple[str, str, str | None]] = []
    at = 0
    while (match := _BLOCK.match(rest, at)) is not None:
        kind, size, path = (part.decode("utf-8", "surrogateescape") for part in match.groups())
        if size == "-":
            blocks.append((kind, path, None))
            at = match.end()
        else:
            end = match.end() + int(size)
            text = rest[match.end() : end].decode("utf-8", "surrogateescape")
            blocks.append((kind, path, text))
            at = end + 1
    return blocks


def _files(
    blocks: Sequence[tuple[str, str, str | None]],
    named: Sequence[str],
    own: Sequence[tuple[str, str | None]],
) -> tuple[list[UnitFile], list[str]]:
    """The unit's files that may be read, and paths of those that may not."""
    cat = next((text or "" for kind, _, text in blocks if kind == "cat"), None)
    closed = [path for path, text in own if text is None]
    if cat is not None:
        return split_cat(cat, {*named, *(path for path, _ in own)}), closed
    texts = {path: text for kind, path, text in blocks if kind == "file"}
    gone = {path for kind, path, _ in blocks if kind == "gone"}
    there = [path for path in named if path and path not in gone]
    files = [UnitFile(path, text) for path in there if (text := texts.get(path)) is not None]
    closed += [path for path in there if texts.get(path) is None and path not in closed]
    return files, closed


# ---- what keeps a unit from being changed --------------------------------------------------------


def _judged(unit: str, text: UnitText, values: Mapping[str, str], shown: str) -> UnitText:
    """The same with what keeps the unit from being changed; with what closed files are told to set.

    A drop-in that may not be read (it may hold keys) is no trouble where systemd's own word shows
    that it sets no command.
    """
    fragment = values.get("FragmentPath", "")
    trouble = _of_the_unit(unit, text, fragment)
    beneath = [path for path in text.closed if not path.endswith(f"/{DROP_IN_NAME}")]
    if trouble is None and text.closed:
        is_known = values.get("NeedDaemonReload") != "yes" and beneath == list(text.closed)
        if fragment in text.closed or not is_known or not _same_command(unit, text.files, shown):
            trouble = _not_to_be_read(text)
    if trouble is not None or not beneath:
        return msgspec.structs.replace(text, trouble=trouble)
    told = dict(each.partition("=")[::2] for each in split_words(values.get("Environment", "")))
    known = environment_of(
        (each.value for each in listed(text.files, "Environment")), _lenient(unit)
    )
    theirs = {name: value for name, value in told.items() if known.get(name) != value}
    files = (EnvironmentFile(beneath[0], theirs), *text.environment_files)
    return msgspec.structs.replace(text, environment_files=files)


def _of_the_unit(unit: str, text: UnitText, fragment: str) -> Trouble | None:
    if text.load_state == "not-found":
        return Trouble(
            f"there is no unit {unit} (not-found)",
            "name the engine's unit with --unit, or in the host's section",
        )
    if text.load_state == "masked":
        return Trouble(f"{unit} is masked", f"on the host: {by_hand(text.scope, 'unmask', unit)}")
    if text.load_state not in {"loaded", ""}:
        return Trouble(
            f"systemd cannot load {unit} ({text.load_state})",
            f"`{looked_at(text.scope, 'status', unit)}` on the host says why",
        )
    if _TRANSIENT in fragment:
        return Trouble(
            f"{unit} is a transient unit: systemd forgets it once it is stopped, and nothing could"
            " start it again",
            f"make it a unit with a file of its own in {_FOLDERS[text.scope]}"
            f" (`{looked_at(text.scope, 'cat', unit)}` shows what it holds)",
        )
    if fragment in text.closed:
        return None
    if not text.files or text.files[0].path != fragment:
        return Trouble(
            f"{fragment or f'the file of {unit}'} is gone: once the unit is stopped, nothing could"
            " start it again",
            f"put the file back, then: {by_hand(text.scope, 'daemon-reload')}",
        )
    return None


def _not_to_be_read(text: UnitText) -> Trouble:
    path = text.closed[0]
    return Trouble(
        f"{path} may not be read by {text.user}, and may hold the unit's command",
        f"on the host: sudo setfacl -m u:{text.user}:r {path} (and x for closed folders above it),"
        " or log in as root",
    )


def _lenient(unit: str) -> Callable[[str], str]:
    """Expands specifiers; leaves a text as it is where one of them is not known."""
    expand = specifiers(unit)

    def lenient(text: str) -> str:
        try:
            return expand(text)
        except Unresolved:
            return text

    return lenient


def _same_command(unit: str, files: Sequence[UnitFile], shown: str) -> bool:
    """Whether these files set the very commands that systemd has."""
    expand = specifiers(unit)
    try:
        written = [
            " ".join(expand(token.value) for token in command.tokens)
            for each in listed(files, "ExecStart")
            for command in commands(each.value)
        ]
    except ExecError:
        return False
    return bool(written) and written == _SHOWN_COMMAND.findall(shown)


def read_environment_file(text: str) -> dict[str, str]:
    """Variables of an environment file: systemd.exec(5), `EnvironmentFile=`."""
    found: dict[str, str] = {}
    for line in re.sub(r"\\\n", "", text).split("\n"):
        name, equals, value = line.strip().partition("=")
        if not equals or name[:1] in "#;" or not re.fullmatch(r"[A-Za-z_]\w*", name.strip()):
            continue
        value = value.strip()
        if value[:1] in ("'", '"'):
            value = " ".join(split_variable(value))
        found[name.strip()] = value
    return found
