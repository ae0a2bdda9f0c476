"""Failure signatures: what an engine's log, systemd and the kernel say when something fails.

They are data. An engine's adapter brings a TOML file of `[[signature]]` tables; this module reads
it strictly and finds, fast, which of them a line shows.
"""

from __future__ import annotations

import enum
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec


class Kind(enum.StrEnum):
    """What a signature stands for."""

    ROOT = "root"  # why the engine failed
    HARDWARE = "hardware"  # why it failed, and the machine is at fault
    SYSTEMD = "systemd"  # why it failed: the unit's settings, or what systemd did
    KERNEL = "kernel"  # why it failed: what the kernel did
    WRAPPER = "wrapper"  # only says that something else has failed
    HARMLESS = "harmless"  # looks like a failure and is none
    NOTE = "note"  # no failure, and worth knowing


class Place(enum.StrEnum):
    """Where the text stands."""

    ENGINE = "engine"
    KERNEL = "kernel"
    SYSTEMD = "systemd"  # what the service manager says of the unit, its result among it


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One `[[signature]]` table."""

    id: str
    """Stable name in kebab-case."""
    title: str
    """What is wrong, in a line."""
    kind: Kind
    cause: str
    remedy: str
    patterns: tuple[str, ...] = ()
    """Regular expressions, each searched for in one line."""
    applies: tuple[Place, ...] = (Place.ENGINE,)
    rank: int = 70
    """How specific it is, 0 to 100. Where several match, the highest is the cause; one below
    UNKNOWN_RANK gives way to a traceback that no signature knows. A wrapper with a rank above 0 is
    told where nothing says what it reports of."""
    unless: str = ""
    """It does not hold for a line that this matches too."""
    telling: str = ""
    """Of several lines that show it, those that this matches too prove it best."""
    before: tuple[str, ...] = ()
    """It holds only while no line of its rank has matched one of these in this invocation."""
    after: tuple[str, ...] = ()
    """It holds only once a line of its rank has matched one of these in this invocation."""
    of_all_ranks: bool = False
    """A line of any rank will do for `after`: they come that far together."""
    decides: bool = False
    """The engine has failed where this is seen, whatever it says itself afterwards."""
    tells_message: bool = False
    """Its title is followed by the exception's own words."""
    acceptance_below: float | None = None
    """For a note: it holds where the median acceptance length is below this."""
    links: tuple[str, ...] = ()


UNKNOWN_RANK = 50
"""Rank of a root failure that no signature knows."""
CAUSES = frozenset({Kind.ROOT, Kind.HARDWARE, Kind.SYSTEMD, Kind.KERNEL})

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LEAST_HINT = 4
_REMEMBERED, _REMEMBERED_LENGTH = 4096, 400


class SignatureError(ValueError):
    """A table of signatures has a mistake: the message says where and what."""


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    signature: tuple[Signature, ...]


@dataclass(frozen=True)
class _Pattern:
    """A compiled pattern with a text that every match of it holds: the cheap check."""

    hint: str
    compiled: re.Pattern[str]

    def found_in(self, text: str) -> bool:
        return self.hint in text and self.compiled.search(text) is not None


@dataclass(frozen=True)
class _Rule:
    signature: Signature
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None

    def holds(self, text: str) -> bool:
        if self.pattern.search(text) is None:
            return False
        return self.unless is None or self.unless.search(text) is None


@dataclass
class Signatures:
    """All signatures of an engine, ready to be matched."""

    all: tuple[Signature, ...]
    marks: tuple[_Pattern, ...] = ()
    """The `before` and `after` patterns of all signatures."""
    _by_place: dict[Place, dict[str, list[_Rule]]] = field(default_factory=dict)
    """Rules by the hint of their pattern."""
    _plain: set[tuple[Place, str]] = field(default_factory=set, repr=False, compare=False)
    """Lines that show none: a log says the same again and again."""

    def matches(self, text: str, place: Place) -> list[Signature]:
        """Signatures that a line shows, before its conditions on other lines are looked at."""
        if (place, text) in self._plain:
            return []
        found: list[Signature] = []
        for hint, rules in self._by_place.get(place, {}).items():
            if hint in text:
                found += [rule.signature for rule in rules if rule.holds(text)]
        if found:
            return list({signature.id: signature for signature in found}.values())
        if len(text) < _REMEMBERED_LENGTH:
            if len(self._plain) >= _REMEMBERED:
                self._plain.clear()
            self._plain.add((place, text))
        return found

    def marks_in(self, text: str) -> list[str]:
        """Which of the `before` and `after` patterns a line matches."""
        return [mark.compiled.pattern for mark in self.marks if mark.found_in(text)]

    def with_more(self, more: Signatures) -> Signatures:
        """These and others, as one."""
        return _build((*self.all, *more.all), "signatures")


def parse_signatures(text: str, source: str) -> Signatures:
    """Read a TOML document. `source` is its name in errors. Raises SignatureError."""
    try:
        table = msgspec.convert(tomllib.loads(text), _Table)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SignatureError(f"{source}: {error}") from error
    return _build(table.signature, source)


def _build(signatures: Iterable[Signature], source: str) -> Signatures:
    built = Signatures(tuple(signatures))
    known: set[str] = set()
    marks: dict[str, _Pattern] = {}
    for signature in built.all:
        where = f"{source}: signature {signature.id!r}"
        _check(signature, where)
        if signature.id in known:
            raise SignatureError(f"{where} is there twice")
        known.add(signature.id)
        unless = _compile(signature.unless, f"{where}, unless") if signature.unless else None
        _compile(signature.telling, f"{where}, telling")
        for mark in (*signature.before, *signature.after):
            marks[mark] = _pattern(mark, where)
        for text in signature.patterns:
            pattern = _pattern(text, where)
            for place in signature.applies:
                rules = built._by_place.setdefault(place, {}).setdefault(pattern.hint, [])
                rules.append(_Rule(signature, pattern.compiled, unless))
    built.marks = tuple(marks.values())
    return built


def _check(signature: Signature, where: str) -> None:
    if _ID.fullmatch(signature.id) is None:
        raise SignatureError(f"{where}: an id is words of a-z and 0-9 with dashes between them")
    if not 0 <= signature.rank <= 100:
        raise SignatureError(f"{where}: rank {signature.rank} is not between 0 and 100")
    for name in ("title", "cause", "remedy"):
        if not getattr(signature, name).strip():
            raise SignatureError(f"{where}: {name} is empty")
    if not signature.patterns and signature.acceptance_below is None:
        raise SignatureError(f"{where}: it has no patterns")
    if not signature.applies:
        raise SignatureError(f"{where}: applies names no place")


def _pattern(text: str, where: str) -> _Pattern:
    compiled = _compile(text, where)
    hint = "" if compiled.flags & re.IGNORECASE else hint_of(text)
    if len(hint) < _LEAST_HINT:
        raise SignatureError(
            f"{where}: pattern {text!r} needs {_LEAST_HINT} plain characters in a row outside of"
            " groups and classes, by which lines are sorted out fast"
        )
    return _Pattern(hint, compiled)


def _compile(text: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise SignatureError(
            f"{where}: pattern {text!r} is no regular expression: {error}"
        ) from error


_ATOM = re.compile(
    r"\\[^\w\s](?P<e1>)|\\.(?P<cls>)|\[(?:\\.|[^\]\\])+\](?P<set>)|[().^$|](?P<meta>)"
    r"|[*+?](?P<quant>)|\{\d*,?\d*\}(?P<rep>)|.(?P<plain>)",
    re.DOTALL,
)


def hint_of(pattern: str) -> str:
    """The longest text that stands in every match of a pattern; empty where there is none.

    Groups, classes and whatever may be left out are passed over; an alternative outside of a group
    leaves nothing that is certain.
    """
    best, run, depth = "", "", 0
    for match in _ATOM.finditer(pattern):
        atom, kind = match.group(), match.lastgroup
        if atom == "|" and depth == 0:
            return ""
        if kind in ("quant", "rep"):
            # What is before it may be missing, or come several times.
            run, best = "", max(best, run[:-1], key=len)
        elif depth == 0 and kind in ("plain", "e1"):
            run += atom[-1]
            continue
        else:
            depth += (atom == "(") - (atom == ")")
        best, run = max(best, run, key=len), ""
    return max(best, run, key=len)
