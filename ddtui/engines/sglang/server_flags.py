"""What an installed server's command line takes, learned from the server itself.

Two sources: `--help` (argparse: the usage, and the list of options below it where there is one),
and the keys of `/server_info`, which are its arguments with underscores. The usage gives choices
and says which flags take values; the options give other spellings; `/server_info` gives types.
Formats: Python's argparse 3.10 to 3.14, SGLang 0.4.6 to 0.5.23.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache

import msgspec

from ddtui.core.text import clean
from ddtui.engines.sglang.arguments import Scalar


class ValueType(enum.StrEnum):
    """What a flag's value seems to be; UNKNOWN where nothing tells."""

    UNKNOWN = "unknown"
    SWITCH = "switch"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"


class FlagInfo(msgspec.Struct, frozen=True):
    """One flag."""

    name: str
    """Without dashes, as the server's own help calls it."""
    takes_value: bool = True
    optional_value: bool = False
    """May also stand without a value (argparse's nargs `?` and `*`)."""
    many: bool = False
    """Takes several values, one word each."""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    negated: str = ""
    """The flag that turns it off (`no-enable-x`), where there is one."""
    type: ValueType = ValueType.UNKNOWN


class ServerFlags(msgspec.Struct, frozen=True):
    """All flags of a server. Encodable, so that a caller can keep it by version."""

    version: str
    flags: dict[str, FlagInfo]
    """By name without dashes."""
    source: str
    """`--help`, `/server_info` or `command line`."""

    @property
    def complete(self) -> bool:
        """Whether a flag that is not in it is certainly none of the server's."""
        return self.source == HELP

    def exact(self, name: str) -> FlagInfo | None:
        """The flag with this name or alias; a `no-...` form counts as the flag it turns off."""
        info = self.flags.get(name)
        if info is not None or not name:
            return info
        alias = _KNOWN_ALIASES.get(name)
        for each in self.flags.values():
            if name in each.aliases or name == each.negated or each.name == alias:
                return each
        return None

    def find(self, name: str) -> FlagInfo | None:
        """As `exact`, and as argparse an unambiguous beginning of a name."""
        found = self.exact(name)
        if found is not None or not name:
            return found
        longer = [
            info
            for info in self.flags.values()
            if any(each.startswith(name) for each in (info.name, *info.aliases))
        ]
        return longer[0] if len(longer) == 1 else None

    def knows(self, name: str) -> bool:
        """Whether the server has a flag of this very name, or an alias of it."""
        return self.exact(name) is not None

    def nearest(self, name: str) -> str:
        """The flag whose name is most like this one; empty where none is."""
        names = [each for info in self.flags.values() for each in (info.name, *info.aliases)]
        near = get_close_matches(name, names, n=1, cutoff=0.7)
        return near[0] if near else ""


HELP = "--help"
SERVER_INFO = "/server_info"
COMMAND_LINE = "command line"

_KNOWN_ALIASES = {
    "model": "model-path",
    "tp": "tp-size",
    "tensor-parallel-size": "tp-size",
    "dp": "dp-size",
    "data-parallel-size": "dp-size",
    "ep": "ep-size",
    "expert-parallel-size": "ep-size",
    "pp": "pp-size",
    "pipeline-parallel-size": "pp-size",
    "speculative-draft-model": "speculative-draft-model-path",
    "attention-context-parallel-size": "attn-cp-size",
}
"""Spellings that SGLang takes and that its usage does not show (it shows the first one only)."""
_NO_ARGUMENTS = frozenset(
    {
        "status", "version", "frontend", "internal-states", "launch-command", "startup-time",
        "max-total-num-tokens", "max-req-input-len", "kv-events", "hicache-object-layout",
    }
)  # fmt: skip
"""Keys of `/server_info` that are figures of the server, and no arguments."""


class NotUnderstood(ValueError):
    """The text is no help of a server."""


_FLAG = r"--(?P<name>[A-Za-z0-9][\w.-]*)"
_CHOICES = r"\{[^{}]*\}"
_META = rf"(?:{_CHOICES}|[A-Z0-9_]+|<[^<>]*>)"


@lru_cache(maxsize=4)
def parse_help(text: str, version: str = "") -> ServerFlags:
    """The flags in the output of `--help`, or in the usage that comes with a refusal.

    Kept for the last few texts: a sweep plans hundreds of configurations of one server. Raises
    NotUnderstood where there is no usage in it.
    """
    begin = re.search(r"(?m)^usage: ", text)
    if begin is None:
        raise NotUnderstood("there is no usage in it")
    lines = text[begin.start() :].splitlines()
    usage = [lines[0]]
    for line in lines[1:]:
        if not line.startswith(" "):
            break
        usage.append(line)
    flags = dict(_usage_flags(" ".join(line.strip() for line in usage)))
    _add_options(lines[len(usage) :], flags)
    if len(flags) < 2:
        raise NotUnderstood("its usage names no flags")
    return ServerFlags(version, flags, HELP)


def _usage_flags(usage: str) -> Iterable[tuple[str, FlagInfo]]:
    for group in _groups(usage):
        names = [part.strip() for part in group.split(" | ")]
        info = _usage_flag(names[0])
        if info is None:
            continue
        rest = [part.removeprefix("--") for part in names[1:] if part.startswith("--")]
        negated = next((each for each in rest if each == f"no-{info.name}"), "")
        yield info.name, msgspec.structs.replace(info, negated=negated)


def _groups(usage: str) -> Iterable[str]:
    """The bracketed parts of a usage, without their brackets, and the required flags between."""
    depth, begin, outside = 0, 0, 0
    for at, char in enumerate(usage):
        if char == "[":
            if depth == 0:
                yield from _required(usage[outside:at])
                begin = at + 1
            depth += 1
        elif char == "]" and depth:
            depth -= 1
            if depth == 0:
                yield usage[begin:at]
                outside = at + 1
    yield from _required(usage[outside:])


def _required(text: str) -> Iterable[str]:
    return (part for part in re.split(r"(?=--[A-Za-z])", text) if part.startswith("--"))


def _usage_flag(text: str) -> FlagInfo | None:
    match = re.match(rf"{_FLAG}\s*(?P<value>.*)$", text.strip(), re.DOTALL)
    if match is None:
        return None
    value = match["value"].strip()
    choices = re.search(_CHOICES, value)
    optional = value.startswith("[")
    many = "..." in value or re.match(rf"{_META}\s+{_META}", value) is not None
    return FlagInfo(
        match["name"],
        takes_value=bool(value),
        optional_value=optional,
        many=many,
        choices=_choices(choices[0]) if choices else (),
        type=ValueType.UNKNOWN if value else ValueType.SWITCH,
    )


def _choices(text: str) -> tuple[str, ...]:
    return tuple(clean(choice.strip(), 200) for choice in text[1:-1].split(",") if choice.strip())


def _add_options(lines: list[str], flags: dict[str, FlagInfo]) -> None:
    """Other spellings from the list of options: `  --tp-size TP, --tensor-parallel-size TP`."""
    for line in lines:
        if not re.match(r" {1,4}-", line):
            continue
        head = re.split(r"\s{2,}", re.sub(_CHOICES, "", line).strip())[0]
        names = re.findall(r"(?:^|,\s*)--([A-Za-z0-9][\w.-]*)", head)
        if not names or names == ["help"]:
            continue
        # The usage shows the first spelling, so it is there; a cut usage may lack it.
        main = next((name for name in names if name in flags), names[0])
        info = flags.get(main) or _usage_flag(re.sub(r"^.*?--", "--", line.strip(), count=1))
        if info is None:
            continue
        others = [name for name in names if name not in {main, f"no-{main}"}]
        negated = f"no-{main}" if f"no-{main}" in names else info.negated
        aliases = tuple(dict.fromkeys((*info.aliases, *others)))
        flags[main] = msgspec.structs.replace(info, aliases=aliases, negated=negated)


def from_server_info(arguments: Mapping[str, object], version: str = "") -> ServerFlags:
    """The flags that a running server's `/server_info` implies: names, and types by value."""
    flags = {}
    for key, value in arguments.items():
        name = key.replace("_", "-")
        if name in _NO_ARGUMENTS or name.startswith("-"):
            continue
        flags[name] = FlagInfo(
            name,
            takes_value=not isinstance(value, bool),
            optional_value=value is None,
            many=isinstance(value, list),
            type=_type_of(value),
        )
    return ServerFlags(version, flags, SERVER_INFO)


def _type_of(value: object) -> ValueType:
    match value:
        case bool():
            return ValueType.SWITCH
        case int():
            return ValueType.INTEGER
        case float():
            return ValueType.NUMBER
        case str():
            return ValueType.TEXT
        case _:
            return ValueType.UNKNOWN


def from_values(values: Mapping[str, str]) -> ServerFlags:
    """The flags that a command line uses: all that is known of a server that could not be asked."""
    flags = {
        name: FlagInfo(name, takes_value=text != "true", optional_value=True, many=True)
        for name, text in values.items()
    }
    return ServerFlags("", flags, COMMAND_LINE)


def with_types(server: ServerFlags, arguments: Mapping[str, Scalar]) -> ServerFlags:
    """The same with the types of the values that a running server of this version reports.

    An integer that is reported may stand for a number (a default of 300 seconds).
    """
    flags = dict(server.flags)
    for key, value in arguments.items():
        info = flags.get(key.replace("_", "-"))
        found = _type_of(value)
        if info is None or info.type is not ValueType.UNKNOWN or found is ValueType.SWITCH:
            continue
        flags[info.name] = msgspec.structs.replace(info, type=found)
    return msgspec.structs.replace(server, flags=flags)
