r"""Finds where a secret's value begins and ends in a text, behind its name.

A value is quoted (`'X'`, `b"X"`, `\"X\"` within JSON within JSON), a call or a collection
(`SecretStr('X')`, `['X', 'Y']`), or a word that ends at white space or at the quote that closes
what it stands in: a key may hold `&`, `;`, `,` and brackets. Spans are offsets, without quotes.
"""

from __future__ import annotations

import re

Span = tuple[int, int]

_OPENING = re.compile(r"""[bBrRuU]{0,2}(\\{0,3}['"])""")
_NOTHING = re.compile(r"(?:[Nn]one|null|True|False|true|false|[Nn]ot?|unset|missing)(?![\w.&-])")
"""Says that no secret is set, which is worth knowing."""
_COLLECTION = re.compile(r"""[\[({]|[A-Za-z_][\w.]{0,60}\((?=\s{0,4}[bBrRuU]{0,2}['"])""")
_WORD = re.compile(r"""[^\s'"]+""")
_STEP = re.compile(r"""[^'"\[\](){}]+""")
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_LINE = re.compile(r"[^\n]*")
_LINE_OR_QUOTE = re.compile(r"""[^\n'"]*""")
_AFTER_WORD = ",;)]}\\"
"""What behind a word belongs to the text that the word stands in."""

_SCHEME = re.compile(
    r"(?:(?P<one>bearer|basic|token|api-?key|key|negotiate|ntlm)|digest|aws4[\w-]{1,20})[ \t]+",
    re.IGNORECASE,
)
"""How a header's credential is given: in one word, or in several parts."""


def assigned(text: str, at: int) -> Span | None:
    """The value behind `name=` or `name:`; None where none is set."""
    quoted = _quoted(text, at)
    if quoted is not None or _NOTHING.match(text, at) is not None:
        return _unless_empty(quoted)
    collection = _COLLECTION.match(text, at)
    if collection is not None:
        end = _closing_bracket(text, collection.end())
        is_empty = not text[collection.end() : end - 1].strip()
        return None if is_empty else (at, end)
    return word(text, at)


def argument(text: str, at: int) -> Span | None:
    """The value behind a flag: one word of a shell, or one of a printed list."""
    quoted = _quoted(text, at)
    if quoted is not None or _NOTHING.match(text, at) is not None:
        return _unless_empty(quoted)
    return word(text, at)


def header(text: str, name: int, at: int, *, in_words: bool) -> Span | None:
    """The value of a header whose name begins at `name`, without a well-known scheme before it.

    Unquoted it ends with the line, with the quote before its name, or (`in_words`) with a word.
    """
    span = _quoted(text, at)
    if span is None and _NOTHING.match(text, at) is not None:
        return None
    begin, end = span or (at, at)
    scheme = _SCHEME.match(text, begin)
    if scheme is not None and (span is None or scheme.end() < end):
        begin = scheme.end()
    if span is not None:
        return _unless_empty((begin, end))
    if text[name - 1 : name] in ("'", '"'):
        return _unless_empty((begin, _closing(text, begin, text[name - 1])))
    if (scheme is not None and scheme["one"]) or (scheme is None and in_words):
        return word(text, begin)
    line = _LINE_OR_QUOTE if scheme is None else _LINE
    match = line.match(text, begin)
    return _unless_empty((begin, match.end() if match is not None else begin))


def word(text: str, at: int) -> Span | None:
    """A word, without the punctuation behind it that is not its own."""
    match = _WORD.match(text, at)
    if match is None:
        return None
    return _unless_empty((at, at + len(match.group().rstrip(_AFTER_WORD))))


def _unless_empty(span: Span | None) -> Span | None:
    return span if span is not None and span[0] < span[1] else None


def _quoted(text: str, at: int) -> Span | None:
    opening = _OPENING.match(text, at)
    if opening is None:
        return None
    return opening.end(), _closing(text, opening.end(), opening[1])


def _closing(text: str, begin: int, quote: str) -> int:
    """Where the quote closes; the end of a text that was cut before it."""
    if len(quote) > 1:
        found = text.find(quote, begin)
        return found if found >= 0 else len(text)
    found = text.find(quote, begin)
    while found >= 0:
        backslashes = found
        while backslashes > begin and text[backslashes - 1] == "\\":
            backslashes -= 1
        if (found - backslashes) % 2 == 0:
            return found
        found = text.find(quote, found + 1)
    return len(text)


def _closing_bracket(text: str, begin: int) -> int:
    """The end of what a bracket before `begin` opened; of the text where it is never closed."""
    depth, at = 1, begin
    while at < len(text):
        char = text[at]
        if char in "'\"":
            string = _STRING.match(text, at)
            if string is None:
                return len(text)
            at = string.end()
            continue
        if char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
            if depth == 0:
                return at + 1
        step = _STEP.match(text, at)
        at = step.end() if step is not None else at + 1
    return len(text)
