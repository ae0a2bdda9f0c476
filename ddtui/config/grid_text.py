"""Grids as one line: `budget=4,8 topk=4,6 block_size=8,16 match if topk <= budget`.

Words in any order, conditions last; blanks, commas and colons of a value stand in quotes. Every
mistake is shown with a caret below its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ddtui.config.assignments import assignment
from ddtui.config.errors import ConfigError, Problem, did_you_mean
from ddtui.config.preset_tables import NAME
from ddtui.core.conditions import BadCondition, read_condition
from ddtui.core.launch import Value
from ddtui.core.redact import redact_text
from ddtui.core.sweep import (
    MOST_COMBINATIONS,
    POLICIES,
    PRESET,
    Axis,
    Baseline,
    Matching,
    Sweep,
    policy_name,
)

LONGEST = 10_000
"""Characters of a grid."""
_OPTIONS = ("match", "control", "again", "repeats", "plan", "baseline", "if")
BASELINES: Mapping[str, Baseline] = {
    "first": "first",
    "in-force": "in force",
    "none": "none",
    "auto": "auto",
}
MOST_REPEATS = 100
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"']|["'].*)+""")
"""A quote without an end reaches to the end of the text."""
_SHOWN = 160


class Mistake(Exception):
    """Something in a grid is wrong, at a place of its text."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what, self.at = what, at


def parse_grid(text: str, where: str = "grid") -> Sweep:
    """The sweep that a line asks for. Raises ConfigError with every mistake."""
    text = " ".join(text.split("\n"))
    if len(text) > LONGEST:
        raise ConfigError.of(f"is longer than {LONGEST} characters", where=where)
    reader, problems = _Reader(), []
    for word, at in _words(text):
        try:
            reader.read(word, at)
        except Mistake as mistake:
            problems.append(Problem(pointed(mistake.what, text, mistake.at), where))
        except BadCondition as error:
            place = at + word.index(error.text) + error.at if error.text in word else at
            problems.append(Problem(pointed(error.what, text, place), where))
    if not problems and not reader.axes and not reader.baseline_values:
        usage = "name settings and their values, such as budget=4,8 topk=4,6"
        problems.append(Problem(f"is empty: {usage}", where))
    if problems:
        raise ConfigError(problems)
    sweep = reader.sweep()
    if too_many := size_problem(sweep):
        raise ConfigError.of(too_many, where=where)
    return sweep


def pointed(what: str, text: str, at: int) -> str:
    """A mistake with the part of the text around it, and a caret below its place."""
    text, at = redact_text(text), len(redact_text(text[:at]))
    begin = max(0, at - _SHOWN // 2)
    return f"{what}\n    {text[begin : begin + _SHOWN]}\n    {' ' * (at - begin)}^"


def size_problem(sweep: Sweep) -> str:
    """What is wrong with a sweep's size; empty for nothing."""
    if sweep.combinations <= MOST_COMBINATIONS:
        return ""
    product = " x ".join(str(len(axis.values)) for axis in sweep.axes)
    return (
        f"has {product} = {sweep.combinations} combinations, and {MOST_COMBINATIONS} is the most:"
        " leave values out, or couple settings that belong together (budget~block_size=8:16,16:35)"
    )


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Words with their places; from the first `if` on, each condition is one."""
    conditions: list[int] = []
    for match in _WORD.finditer(text):
        if match[0] == "if":
            conditions.append(match.start())
        elif not conditions:
            yield match[0], match.start()
    for begin, end in zip(conditions, [*conditions, len(text)][1:], strict=True):
        yield text[begin:end].rstrip(), begin


class _Reader:
    """Puts a sweep together, word by word."""

    def __init__(self) -> None:
        self.axes: list[Axis] = []
        self.baseline_values: dict[str, Value] = {}
        self._sweep = Sweep()

    def sweep(self) -> Sweep:
        changes = {"axes": tuple(self.axes), "baseline_values": self.baseline_values}
        sweep = msgspec.structs.replace(self._sweep, **changes)
        if self.baseline_values:
            sweep = msgspec.structs.replace(sweep, baseline="values")
        return sweep

    def read(self, word: str, at: int) -> None:
        name, sign, text = word.partition("=")
        if not word.startswith("if ") and (quote := _open_quote(word)) is not None:
            raise Mistake("this quote has no end", at + quote)
        if re.match(r"if(\s|$)", word):
            self._condition(word)
        elif name == "match":
            self._match(text, at + len(name) + len(sign))
        elif name == "baseline":
            self._baseline(text, at + len(name) + len(sign))
        elif name.startswith("baseline:"):
            self._baseline_value(word, at)
        elif name in ("control", "again") and not sign:
            self._switch(name)
        elif name == "repeats":
            self._set(repeats=_repeats(text, at + len(name) + len(sign)))
        elif name == "plan":
            if not NAME.fullmatch(text):
                raise Mistake("expected the name of a bench plan, such as plan=quick", at)
            self._set(plan=text)
        elif not sign:
            raise Mistake(_no_value(word), at)
        else:
            self._axis(name, text, at, at + len(name) + 1)

    def _set(self, **changes: object) -> None:
        self._sweep = msgspec.structs.replace(self._sweep, **changes)

    def _condition(self, word: str) -> None:
        condition = read_condition(word[2:].strip())
        self._set(conditions=(*self._sweep.conditions, condition))

    def _matching(self, **changes: object) -> None:
        now = self._sweep.match or Matching()
        self._set(match=msgspec.structs.replace(now, **changes))

    def _match(self, text: str, at: int) -> None:
        name, colon, size = text.partition(":")
        policy = policy_name(name) if name else Matching().policy
        if policy is None:
            hint = did_you_mean(name, POLICIES) or f" (policies: {', '.join(POLICIES)})"
            raise Mistake(f"there is no policy {name[:80]!r}{hint}", at)
        if colon and not (size.isdecimal() and 2 <= int(size) <= 4096):
            what = "expected the block size that the budgets are for, such as match=nodes:8"
            raise Mistake(what, at + len(name) + 1)
        self._matching(policy=policy, block_size=int(size) if colon else None)

    def _switch(self, name: str) -> None:
        if name == "again":
            self._set(again=True)
        else:
            self._matching(control=True)

    def _baseline(self, text: str, at: int) -> None:
        if text not in BASELINES:
            values = "baseline:budget=8 baseline:topk=4"
            expected = f"expected {', '.join(BASELINES)}, or values: {values}"
            raise Mistake(f"got {text[:80]!r}; {expected}", at)
        self._set(baseline=BASELINES[text])

    def _baseline_value(self, word: str, at: int) -> None:
        name, sign, text = word.removeprefix("baseline:").partition("=")
        if not sign:
            raise Mistake("has no value; write baseline:budget=8", at)
        setting, value = _setting(name, _unquoted(text), at + len("baseline:"))
        if setting in self.baseline_values:
            raise Mistake(f"{setting} of the baseline is set twice", at)
        self.baseline_values[setting] = value

    def _axis(self, name: str, text: str, at: int, values_at: int) -> None:
        names = _split(name, "~")
        taken = {each for axis in self.axes for each in axis.names}
        settings: list[str] = []
        rows: list[tuple[Value, ...]] = []
        for piece, offset in _pieces(text, ","):
            parts = [part for part, _ in _pieces(piece, ":")] if len(names) > 1 else [piece]
            if len(parts) != len(names):
                what = f"expected {len(names)} values for {name}, as in {_example(names)}"
                raise Mistake(f"{what}; got {piece[:80]!r}", values_at + offset)
            read = [
                _setting(each, _unquoted(part), at, values_at + offset)
                for each, part in zip(names, parts, strict=True)
            ]
            settings = [setting for setting, _ in read]
            row = tuple(value for _, value in read)
            if row in rows:
                raise Mistake(f"{piece[:80]} stands there twice", values_at + offset)
            rows.append(row)
        for setting in settings:
            if setting in taken or settings.count(setting) > 1:
                raise Mistake(f"{setting} is set twice", at)
        self.axes.append(Axis(tuple(settings), tuple(rows)))


def _setting(name: str, text: str, at: int, value_at: int | None = None) -> tuple[str, Value]:
    """A setting's own name and its value. Raises Mistake."""
    if name == PRESET:
        if not NAME.fullmatch(text):
            place = at if value_at is None else value_at
            raise Mistake(f"{text[:80]!r} is no name of a preset", place)
        return PRESET, text
    try:
        kind, own, value = assignment(f"{name}={text}")
    except ValueError as error:
        known = name.partition(":")[0] in ("flag", "env") or "there is no knob" not in str(error)
        hint = "" if known else did_you_mean(name, _OPTIONS)
        place = value_at if known and value_at is not None else at
        what = f"there is no setting {name[:80]!r}{hint}" if hint else str(error)
        raise Mistake(what, place) from error
    return own if kind == "knob" else f"{kind}:{own}", value


def _repeats(text: str, at: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_REPEATS:
        raise Mistake(f"got {text[:80]!r}; expected 1 to {MOST_REPEATS} repeats", at)
    return int(text)


def _no_value(word: str) -> str:
    hint = did_you_mean(word, _OPTIONS)
    if hint:
        return f"did not expect {word[:80]!r}{hint}"
    return f"{word[:80]!r} has no values; write NAME=VALUE,VALUE (a value with blanks in quotes)"


def _example(names: list[str]) -> str:
    return f"{'~'.join(names)}={':'.join('8' * len(names))},{':'.join(['16'] * len(names))}"


def _open_quote(text: str) -> int | None:
    quote, place = "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote, place = char, at
    return place if quote else None


def _split(text: str, sign: str) -> list[str]:
    return [piece for piece, _ in _pieces(text, sign)]


def _pieces(text: str, sign: str) -> Iterator[tuple[str, int]]:
    """Parts between signs that stand outside of quotes, with their places."""
    begin, quote = 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == sign:
            yield text[begin:at], begin
            begin = at + 1
    yield text[begin:], begin


def _unquoted(text: str) -> str:
    return re.sub(r"\"([^\"]*)\"|'([^']*)'", lambda match: match[1] or match[2] or "", text)
