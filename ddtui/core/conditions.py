"""Conditions over settings, such as `topk <= budget` or `block_size > 8 or budget < 16`.

A language of its own, so that a file from elsewhere cannot run anything: comparisons (chained too),
`in`, arithmetic, `and`, `or`, `not`, parentheses. Names are knobs, `flag:NAME` and `env:NAME`.

A comparison of size with a setting that is `none` is neither true nor false: `none` leaves the
value to the server. A condition that comes out so excludes nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from ddtui.core.knobs import KNOBS, knob_name
from ddtui.core.launch import Value

LONGEST = 500
"""Characters of a condition."""
_DEEPEST = 30
"""Parentheses and `not` within one another."""


class BadCondition(ValueError):
    """A condition cannot be read, or not be judged. `text` with a caret at `at` shows where."""

    def __init__(self, what: str, text: str, at: int) -> None:
        super().__init__(f"{what}\n    {text}\n    {' ' * at}^")
        self.what = what
        self.text = text
        self.at = at


class Condition(msgspec.Struct, frozen=True):
    """A condition that was read."""

    text: str
    names: tuple[str, ...]
    """The settings that it speaks of."""
    root: Node

    def holds(self, values: Mapping[str, Value]) -> bool | None:
        """Whether it holds; None where a setting is `none` or not given. Raises BadCondition."""
        return _truth(self._value(self.root, values))

    def _value(self, node: Node, values: Mapping[str, Value]) -> Value:
        match node:
            case Literal():
                return node.value
            case Name():
                value = values.get(node.name)
                return _number(value) if ":" in node.name else value
            case Not():
                truth = _truth(self._value(node.inner, values))
                return None if truth is None else not truth
            case Both():
                return self._both(node, values)
            case Chain():
                return self._chain(node, values)
            case Arithmetic():
                return self._computed(node, values)

    def _both(self, node: Both, values: Mapping[str, Value]) -> bool | None:
        left, right = (_truth(self._value(each, values)) for each in (node.left, node.right))
        decisive = node.word == "or"
        if decisive in (left, right):
            return decisive
        return None if None in (left, right) else not decisive

    def _chain(self, node: Chain, values: Mapping[str, Value]) -> bool | None:
        left, result = self._value(node.first, values), True
        unknown = False
        for sign, at, others in node.rest:
            rights = [self._value(each, values) for each in others]
            if sign in _MEMBERSHIP:
                truth: bool | None = any(_equal(left, each) for each in rights) == (sign == "in")
            else:
                truth = self._compared(sign, left, rights[0], at)
            unknown = unknown or truth is None
            result = result and truth is not False
            left = rights[0]
        return None if result and unknown else result

    def _compared(self, sign: str, left: Value, right: Value, at: int) -> bool | None:
        if sign in ("==", "!="):
            return _equal(left, right) == (sign == "==")
        if left is None or right is None:
            return None
        if _is_number(left) != _is_number(right) or isinstance(left, bool):
            what = f"{_shown(left)} and {_shown(right)} cannot be compared by size"
            raise BadCondition(what, self.text, at)
        return bool(_ORDER[sign](left, right))

    def _computed(self, node: Arithmetic, values: Mapping[str, Value]) -> Value:
        left, right = (self._value(each, values) for each in (node.left, node.right))
        if left is None or right is None:
            return None
        if not (_is_number(left) and _is_number(right)):
            wrong = left if not _is_number(left) else right
            raise BadCondition(f"{_shown(wrong)} is no number", self.text, node.at)
        try:
            result = _ARITHMETIC[node.sign](left, right)
        except ZeroDivisionError as error:
            raise BadCondition("divides by zero", self.text, node.at) from error
        except OverflowError as error:
            raise BadCondition("the number is too large", self.text, node.at) from error
        return result if isinstance(result, int | float) else None


class Literal(msgspec.Struct, frozen=True, tag=True):
    """A value as it is written."""

    value: Value


class Name(msgspec.Struct, frozen=True, tag=True):
    """A setting."""

    name: str


class Not(msgspec.Struct, frozen=True, tag=True):
    """The contrary."""

    inner: Node


class Both(msgspec.Struct, frozen=True, tag=True):
    """Two conditions with `and` or `or` between them."""

    word: str
    left: Node
    right: Node


class Arithmetic(msgspec.Struct, frozen=True, tag=True):
    """A computed number."""

    sign: str
    at: int
    left: Node
    right: Node


class Chain(msgspec.Struct, frozen=True, tag=True):
    """Comparisons, each with the value before it: `4 <= topk <= budget`."""

    first: Node
    rest: tuple[tuple[str, int, tuple[Node, ...]], ...]
    """Sign, its place, and what is compared: several for `in`."""


Node = Literal | Name | Not | Both | Arithmetic | Chain

_ORDER: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS = (*_ORDER, "==", "!=")
_MEMBERSHIP = ("in", "not in")
_WORDS = ("and", "or", "not", "in")
_CONSTANTS: Mapping[str, Value] = {"none": None, "true": True, "false": False}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,12}(?:\.\d{1,12})?(?![\w.]))"
    r"|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<name>(?:flag|env):(?:--)?[A-Za-z0-9_][\w.-]*|[A-Za-z_]\w*(?:-[A-Za-z_]\w*)*)"
    r"|(?P<sign><=|>=|==|!=|//|[<>()+\-*/%,]))"
)


_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?")


def _truth(value: Value) -> bool | None:
    return None if value is None else bool(value)


def _number(value: Value) -> Value:
    """The number that the text of a flag or variable is, else the value as it is."""
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, str) != isinstance(right, str) and None not in (left, right):
        return str(left) == str(right)  # the value of a flag is text
    return left == right


def _shown(value: Value) -> str:
    if value is None:
        return "none"
    return repr(value) if isinstance(value, str) else str(value).lower()


def read_condition(text: str) -> Condition:
    """A condition from its text. Raises BadCondition, which shows the place of the mistake."""
    if len(text) > LONGEST:
        raise BadCondition(f"is longer than {LONGEST} characters", text[:40] + "...", 40)
    parser = _Parser(text)
    root = parser.whole()
    return Condition(text, tuple(dict.fromkeys(parser.names)), root)


class _Parser:
    """Recursive descent; what binds least comes first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0
        self.names: list[str] = []

    def whole(self) -> Node:
        if len(self._tokens) == 1:
            raise self._bad("expected a condition, such as topk <= budget")
        node = self._or()
        if self._kind() != "end":
            raise self._bad(f"did not expect {self._word()!r} here")
        if isinstance(node, Literal | Arithmetic):
            raise BadCondition("compares nothing, such as topk <= budget does", self._text, 0)
        return node

    def _split(self) -> list[tuple[str, str, int]]:
        found, at, text = [], 0, self._text
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise BadCondition(_unreadable(text, at), text, at)
            kind = match.lastgroup or ""
            found.append((kind, match[kind], match.start(kind)))
            at = match.end()
        return [*found, ("end", "", len(text.rstrip()))]

    def _kind(self) -> str:
        return self._tokens[self._next][0]

    def _word(self) -> str:
        return self._tokens[self._next][1]

    def _at(self) -> int:
        return self._tokens[self._next][2]

    def _bad(self, what: str) -> BadCondition:
        return BadCondition(what, self._text, self._at())

    def _take(self, *words: str) -> str:
        """The next word if it is one of these; empty otherwise."""
        word = self._word()
        plain = word.lower() if self._kind() == "name" else word
        if self._kind() in ("name", "sign") and plain in words:
            self._next += 1
            return plain
        return ""

    def _or(self) -> Node:
        node = self._and()
        while self._take("or"):
            node = Both("or", node, self._and())
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._take("and"):
            node = Both("and", node, self._not())
        return node

    def _not(self) -> Node:
        if not self._take("not"):
            return self._comparison()
        self._deeper()
        node = Not(self._not())
        self._depth -= 1
        return node

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._bad("is nested too deeply")

    def _comparison(self) -> Node:
        first = self._sum()
        rest: list[tuple[str, int, tuple[Node, ...]]] = []
        while True:
            at = self._at()
            if sign := self._take(*_COMPARISONS):
                rest.append((sign, at, (self._sum(),)))
            elif self._take("in"):
                rest.append(("in", at, self._list()))
            elif self._take("not"):
                if not self._take("in"):
                    raise self._bad("expected `in` after `not` here")
                rest.append(("not in", at, self._list()))
            else:
                break
            if rest[-1][0] in _MEMBERSHIP:
                break
        return Chain(first, tuple(rest)) if rest else first

    def _list(self) -> tuple[Node, ...]:
        if not self._take("("):
            raise self._bad("expected values in parentheses after `in`, such as (4, 8)")
        nodes = [self._sum()]
        while self._take(","):
            nodes.append(self._sum())
        self._close()
        return tuple(nodes)

    def _close(self) -> None:
        if not self._take(")"):
            raise self._bad("expected ) here")

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._sign("+", "-"):
            node = Arithmetic(sign[0], sign[1], node, self._product())
        return node

    def _product(self) -> Node:
        node = self._operand()
        while sign := self._sign("*", "/", "//", "%"):
            node = Arithmetic(sign[0], sign[1], node, self._operand())
        return node

    def _sign(self, *signs: str) -> tuple[str, int] | None:
        at = self._at()
        sign = self._take(*signs)
        return (sign, at) if sign else None

    def _operand(self) -> Node:
        if self._take("("):
            self._deeper()
            node = self._or()
            self._close()
            self._depth -= 1
            return node
        if sign := self._sign("-"):
            self._deeper()
            node = Arithmetic("-", sign[1], Literal(0), self._operand())
            self._depth -= 1
            return node
        kind, word = self._kind(), self._word()
        if kind == "number":
            self._next += 1
            return Literal(float(word) if "." in word else int(word))
        if kind == "text":
            self._next += 1
            return Literal(word[1:-1])
        if kind == "name" and word.lower() not in _WORDS:
            return self._name(word)
        raise self._bad("expected a value or a name here")

    def _name(self, word: str) -> Node:
        if word.lower() in _CONSTANTS:
            self._next += 1
            return Literal(_CONSTANTS[word.lower()])
        if ":" in word:
            kind, _, name = word.partition(":")
            found: str | None = f"{kind}:{name.removeprefix('--')}"
        else:
            found = "preset" if word == "preset" else knob_name(word)
        if found is None:
            near = get_close_matches(word.lower(), [*KNOBS, "preset"], n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise self._bad(f"there is no knob {word!r}{hint} (a text is written '{word}')")
        self._next += 1
        self.names.append(found)
        return Name(found)


def _unreadable(text: str, at: int) -> str:
    for sign, instead in (("=", "=="), ("&", "and"), ("|", "or"), ("!", "not"), ("[", "(")):
        if text.startswith(sign, at):
            return f"did not expect {sign!r}; did you mean {instead}?"
    if text[at] in "'\"":
        return "this text has no end"
    return f"cannot read {text[at : at + 20]!r}"
