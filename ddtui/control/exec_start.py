"""systemd's command lines: split, expanded, and rendered again, each token remembering its text.

Rules: systemd.service(5) "Command lines", systemd.syntax(7) "Quoting", systemd.unit(5)
"Specifiers". What systemd does is followed where its manual says less: quotes may begin within a
word, escapes hold within single quotes, an unknown escape stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ddtui.control.unit_text import WHITESPACE

PREFIXES = "@-:+!|"
_SIMPLE = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11,
    "\\": 92, '"': 34, "'": 39, "s": 32,
}  # fmt: skip
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)\Z")
_BRACED = re.compile(r"\$(?:\$|\{([^}:]*)\})")
"""`${NAME:-default}` and its like are none of systemd's here: they stay as they are."""
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@+^~-]+\Z")


class ExecError(ValueError):
    """systemd would not take this command line; says why."""


class Token(msgspec.Struct, frozen=True):
    """One word of a command line."""

    raw: str
    """As it stands in the unit file."""
    value: str
    """Quotes and escapes undone; specifiers and variables not expanded."""


class Command(msgspec.Struct, frozen=True):
    """One command of an ExecStart."""

    prefixes: str
    """Of `@ - : + ! |`, in their order."""
    tokens: tuple[Token, ...]
    """The program first (with `@` its argv[0] second), then its arguments."""

    @property
    def expands(self) -> bool:
        """Whether variables are expanded in it."""
        return ":" not in self.prefixes

    def render(self) -> str:
        """The command as it is written in a unit file."""
        return self.prefixes + " ".join(token.raw for token in self.tokens)


# ---- words ---------------------------------------------------------------------------------------


def words(text: str) -> list[Token]:
    """Split a value into its words. Raises ExecError for an open quote or a trailing backslash."""
    found: list[Token] = []
    at = _skip_blanks(text, 0)
    while at < len(text):
        value, end = _word(text, at)
        found.append(Token(text[at:end], value))
        at = _skip_blanks(text, end)
    return found


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in WHITESPACE:
        at += 1
    return at


def _word(text: str, at: int) -> tuple[str, int]:
    """One word from `at`: its value and where it ends."""
    out, quote = bytearray(), ""
    while at < len(text):
        char = text[at]
        if char == "\\":
            data, at = _escape(text, at + 1)
            out += data
            continue
        if quote:
            if char == quote:
                quote = ""
            else:
                out += char.encode("utf-8", "surrogateescape")
        elif char in "'\"":
            quote = char
        elif char in WHITESPACE:
            break
        else:
            out += char.encode("utf-8", "surrogateescape")
        at += 1
    if quote:
        raise ExecError(f"a quote ({quote}) is not closed")
    return out.decode("utf-8", "surrogateescape"), at


def _escape(text: str, at: int) -> tuple[bytes, int]:
    """What the escape after a backslash stands for, and where it ends."""
    if at >= len(text):
        raise ExecError("it ends in a backslash")
    char = text[at]
    if char in _SIMPLE:
        return bytes([_SIMPLE[char]]), at + 1
    for letter, pattern in (
        ("x", r"[0-9a-fA-F]{2}"),
        ("u", r"[0-9a-fA-F]{4}"),
        ("U", r"[0-9a-fA-F]{8}"),
    ):
        if char == letter and (match := re.compile(pattern).match(text, at + 1)):
            number = int(match[0], 16)
            if letter == "x" and number:
                return bytes([number]), match.end()
            if letter != "x" and number and _is_character(number):
                return chr(number).encode(), match.end()
    if (match := re.compile(r"[0-3][0-7]{2}").match(text, at)) and int(match[0], 8):
        return bytes([int(match[0], 8)]), match.end()
    # systemd warns of an unknown escape and keeps it.
    return ("\\" + char).encode("utf-8", "surrogateescape"), at + 1


def _is_character(number: int) -> bool:
    """Whether systemd takes it for a character: no surrogate and no noncharacter."""
    return (
        number < 0x110000
        and not 0xD800 <= number < 0xE000
        and not 0xFDD0 <= number <= 0xFDEF
        and number & 0xFFFE != 0xFFFE
    )


# ---- commands ------------------------------------------------------------------------------------


def commands(value: str) -> list[Command]:
    """The commands of one ExecStart value. Raises ExecError."""
    found: list[Command] = []
    at = _skip_blanks(value, 0)
    while at < len(value):
        command, at = _command(value, at)
        found.append(command)
        at = _skip_blanks(value, at)
    return found


def _command(value: str, at: int) -> tuple[Command, int]:
    prefixes = ""
    tokens: list[Token] = []
    while at < len(value):
        if tokens and value[at] == ";" and value[at + 1 : at + 2] in ("", *WHITESPACE):
            at += 1
            break
        if tokens and value.startswith("\\;", at) and value[at + 2 : at + 3] in ("", *WHITESPACE):
            tokens.append(Token("\\;", ";"))
            at = _skip_blanks(value, at + 2)
            continue
        word, end = _word(value, at)
        raw = value[at:end]
        if not tokens:
            # systemd looks for prefixes in the unquoted word; nobody quotes them.
            bare = word.lstrip(PREFIXES)
            prefixes = word[: len(word) - len(bare)]
            if not raw.startswith(prefixes):
                raise ExecError("its prefixes are quoted")
            word, raw = bare, raw[len(prefixes) :]
            if not word:
                raise ExecError("no program is named")
        tokens.append(Token(raw, word))
        at = _skip_blanks(value, end)
    return Command(prefixes, tuple(tokens)), at


# ---- expansion -----------------------------------------------------------------------------------


class Unresolved(ExecError):
    """A specifier or a variable whose value is not known here."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not known")
        self.name = name


def specifiers(unit: str, known: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Expands `%` specifiers: those of the unit's name, and others that are `known` by letter.

    The function raises Unresolved for any other.
    """
    stem = unit.rpartition(".")[0] or unit
    prefix, _, instance = stem.partition("@")
    last = prefix.rpartition("-")[2]
    table = {
        "n": unit, "N": stem, "p": prefix, "P": unescape(prefix), "i": instance,
        "I": unescape(instance), "j": last, "J": unescape(last), "%": "%",
        "f": "/" + (unescape(instance) or unescape(prefix)),
        **(known or {}),
    }  # fmt: skip

    def expand(text: str) -> str:
        def value(match: re.Match[str]) -> str:
            letter = match[1]
            if letter in table:
                return table[letter]
            if not letter.isalpha():
                return match[0]
            raise Unresolved(match[0])

        return re.sub(r"%(.)", value, text, flags=re.DOTALL)

    return expand


def unescape(name: str) -> str:
    r"""Undo systemd-escape(1): `-` is `/`, `\xNN` is a byte."""
    raw = re.sub(
        rb"\\x([0-9a-fA-F]{2})|(-)",
        lambda m: b"/" if m[2] else bytes([int(m[1], 16)]),
        name.encode("utf-8", "surrogateescape"),
    )
    return raw.decode("utf-8", "surrogateescape")


def variable_of(value: str) -> str:
    """The variable where a word is `$NAME` alone, which may become several words; else empty."""
    match = _VARIABLE.match(value)
    return match[1] if match is not None else ""


def expand_word(value: str, environment: Mapping[str, str]) -> list[str]:
    """The words that a word (specifiers expanded) becomes. Raises Unresolved.

    systemd makes a variable that is not set empty; here it may come from a file that cannot be
    read, so that the caller decides (a mapping with a default).
    """
    if name := variable_of(value):
        return split_variable(_lookup(environment, name))

    def replace(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else _lookup(environment, match[1])

    return [_BRACED.sub(replace, value)]


def _lookup(environment: Mapping[str, str], name: str) -> str:
    try:
        return environment[name]
    except KeyError:
        raise Unresolved(f"${name}") from None


def split_variable(value: str) -> list[str]:
    """The words of a variable's value: quotes are undone, escapes as well, an open quote ends."""
    out: list[str] = []
    at = _skip_blanks(value, 0)
    while at < len(value):
        word, quote = "", ""
        while at < len(value) and (quote or value[at] not in WHITESPACE):
            char = value[at]
            if char == "\\":
                word, at = word + value[at + 1 : at + 2], at + 1
            elif quote:
                word, quote = (word, "") if char == quote else (word + char, quote)
            elif char in "'\"":
                quote = char
            else:
                word += char
            at += 1
        out.append(word)
        at = _skip_blanks(value, at)
    return out


def join_variable(parts: Iterable[str]) -> str:
    """A value that `split_variable` makes into `parts` again."""
    return " ".join(
        part if _PLAIN.match(part) else '"' + re.sub(r'(["\\])', r"\\\1", part) + '"'
        for part in parts
    )


# ---- rendering -----------------------------------------------------------------------------------


def quoted(text: str, *, expands: bool = True) -> str:
    r"""A word of a command line from which systemd makes exactly `text`.

    `expands` says whether variables are expanded there. Control characters and bytes that are no
    UTF-8 become escapes. A NUL raises ExecError: no argument can hold one.
    """
    if "\0" in text:
        raise ExecError("an argument cannot hold a NUL")
    text = text.replace("%", "%%")
    if expands:
        text = text.replace("$", "$$")
    if _PLAIN.match(text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that was no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x20 or number == 0x7F:
        return f"\\x{number:02x}"
    if not _is_character(number):
        return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8"))
    if number in (0x85, 0x2028, 0x2029, 0xFEFF):
        return f"\\u{number:04x}"
    return char


def quoted_assignment(name: str, value: str) -> str:
    """`NAME=value` as one word of an `Environment=` line, where `$` has no meaning.

    Raises ExecError for a value that systemd does not take: control characters other than tab and
    newline, and what is no Unicode text.
    """
    for char in value:
        number = ord(char)
        control = (number < 0x20 and char not in "\t\n") or number == 0x7F
        if control or not _is_character(number):
            raise ExecError(f"the value of {name} holds {char!r}, which systemd does not take")
    return quoted(f"{name}={value}", expands=False)


def environment_of(
    values: Iterable[str], expand: Callable[[str], str] = lambda text: text
) -> dict[str, str]:
    """The variables that `Environment=` values set, the last one of a name counting.

    A word without `=` is left out, as systemd does. Raises ExecError.
    """
    result: dict[str, str] = {}
    for value in values:
        for token in words(value):
            name, equals, text = expand(token.value).partition("=")
            if equals and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                result[name] = text
    return result


def token_words(
    command: Command, index: int, expand: Callable[[str], str], environment: Mapping[str, str]
) -> list[str]:
    """The words that one of its tokens becomes. Raises Unresolved."""
    value = expand(command.tokens[index].value)
    # The program's path is never expanded; its argv[0] is the same word.
    return expand_word(value, environment) if index > 0 and command.expands else [value]


def flat(groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """All words in one."""
    return tuple(word for group in groups for word in group)
