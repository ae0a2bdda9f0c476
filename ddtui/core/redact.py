"""Removes secrets from everything that is shown, recorded or logged.

What counts as a secret: values of names such as `api_key`, `password`, `HF_TOKEN`, `AWS_...`,
whatever their spelling (flag, environment, JSON, Python); authorization headers and cookies;
credentials in URLs; and words that look like the keys of well-known services. Redacting twice
changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ddtui.core import secret_values
from ddtui.core.secret_names import ABBREVIATIONS, NAME, OWNED, VARIABLE, is_secret_name
from ddtui.core.text import clean

__all__ = [
    "MASK",
    "is_secret_name",
    "redact_argv",
    "redact_environment",
    "redact_mapping",
    "redact_text",
    "safe_text",
]

MASK = "<redacted>"

_MARGIN = 1000
"""Characters that are looked at beyond a limit."""

_DEEPEST = 60
"""Levels of decoded JSON that are looked into; what lies deeper is masked."""

_FLAG = re.compile(
    rf"--(?P<name>(?:[a-z0-9]+[-_]){{0,6}}?(?:{NAME})"
    rf"|(?:{'|'.join(sorted(ABBREVIATIONS, key=len, reverse=True))})(?=[=\s'\"\\]))"
    r"(?P<sep>=|\\{0,3}['\"]?,?\s+)"
)
"""--api-key X   --api-key=X   ['--api-key', 'X']   --api-k X"""
_ASSIGNED = re.compile(
    rf"(?P<name>{NAME})"
    r"(?P<sep>\\{0,3}['\"]?\s{0,4}[:=]\s{0,4}|\\{0,3}['\"]\s{0,4},\s{0,4}(?=[bB]?\\{0,3}['\"]))"
)
"""api_key=X   'api_key': 'X'   "api_key":"X"   (b'x-api-key', b'X')"""
_PAIR = re.compile(r"\([bB]?\\{0,3}['\"][\w-]{0,40}$")
"""What stands before a name that is the first of two in parentheses."""
_HEADER = re.compile(
    r"(?<![A-Za-z0-9])(?P<name>(?:proxy-)?authorization|(?:set-)?cookies?)"
    r"(?P<sep>\\{0,3}['\"]\s{0,4}[:=,]\s{0,4}|\s{0,4}[:=]\s{0,4})",
    re.IGNORECASE,
)
"""Authorization: Bearer X   Cookie: a=X; b=Y   (b'authorization', b'ApiKey X')"""
_BEARER = re.compile(r"(bearer\s{1,8})(?=[^\s'\"]{0,512}\d)[\w.~+/=-]{8,}", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"(://[^\s/:@'\"]{0,64}:)[^\s/'\"]{1,256}(?=@)")
_USER_IN_URL = re.compile(r"(https?://)[^\s/:@'\"?#]{1,256}(?=:?@)", re.IGNORECASE)
"""scheme://user:X@host   https://X@host   https://X:@host"""
_ASSIGNED_VARIABLE = re.compile(rf"(?:(?<![A-Za-z0-9_])|(?<=-e))(?P<name>{VARIABLE})(?P<sep>=)")
"""MY_TOKEN=X, AWS_ANYTHING=X, docker's -eMY_TOKEN=X."""
_LOOKS_SECRET = re.compile(
    r"(?=[\w.~+/-]{0,200}\d)(?=[\w.~+/-]{0,200}[A-Za-z])[\w.~+/-]{8,}={0,2}(?![^\s'\",;)\]}])"
)
"""What is believed to be a secret where only the bare word `token` stands before it."""

_Match = re.Match[str]
_Find = Callable[[_Match], secret_values.Span | None]


def _argument(match: _Match) -> secret_values.Span | None:
    text, at = match.string, match.end()
    name = match["name"]
    if not is_secret_name(name):
        return None
    if match["sep"] != "=" and text.startswith("--", at):
        return None  # the next flag: this one has no value
    span = secret_values.argument(text, at)
    if span is not None and text[slice(*span)] == name.upper().replace("-", "_"):
        return None  # a usage, which names the value after the flag
    return span


def _assigned(match: _Match) -> secret_values.Span | None:
    text, begin = match.string, match.start()
    if "," in match["sep"] and _PAIR.search(text[max(0, begin - 50) : begin]) is None:
        return None
    if match["name"][-5:].lower() in ("token", "okens"):
        before = text[max(0, begin - 20) : begin]
        if not _is_credential(before, match) and not _looks_secret(before, match):
            return None
    return secret_values.assigned(text, match.end())


def _is_credential(before: str, match: _Match) -> bool:
    """Whether a name that ends in `token` names a credential: `hf_token`, a bare `"token":`."""
    if OWNED.search(before) is not None:
        return True
    # A field that is named just "token"; "tokens" is a count or a list of words.
    is_field = before[-1:] in ("'", '"') and match["sep"][0] in "'\""
    return is_field and match["name"][-1] in "nN"


def _looks_secret(before: str, match: _Match) -> bool:
    """Whether what follows the bare word `token` is more than a word or a number."""
    if match["name"][-1] in "sS" or before[-1:].isalnum() or before[-1:] in ("_", "-", "#", "$"):
        return False
    at = match.end() + (match.string[match.end() : match.end() + 1] in ("'", '"'))
    return _LOOKS_SECRET.match(match.string, at) is not None


def _header(match: _Match) -> secret_values.Span | None:
    return secret_values.header(
        match.string, match.start(), match.end(), in_words="=" in match["sep"]
    )


def _variable(match: _Match) -> secret_values.Span | None:
    return secret_values.argument(match.string, match.end())


_NAME_HINTS = ("key", "secret", "pass", "credential", "watermark_")
_TOKEN_HINT = re.compile(r"token(?:s?['\"=\\]| =|(?<=[\s_-]token):)")
"""What a text must hold, in lower case, for the patterns to match: the cheap check for the many
lines without secrets. Decode lines hold `#token:`, `token usage:` and `(token/s)`."""

_VARIABLE_HINTS = ("TOKEN", "SECRET", "PA", "KEY", "AWS_", "_PWD", "JWT", "COOKIE")

_WELL_KNOWN_HINTS = (
    *("hf_", "sk-", "sk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "nvapi-", "eyJ"),
)
_WELL_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{8,}|gsk_[A-Za-z0-9]{16,}|AIza[\w-]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}"
    # Not begun within a word, or each beginning in a long word would have it read to its end.
    r"|nvapi-[\w-]{16,}|(?<![\w-])eyJ[\w-]{8,}(?:\.[\w-]*){1,4})"
)
"""Shapes of keys: Hugging Face, OpenAI style, GitHub, Stripe, Groq, Google, GitLab, Slack, AWS,
NVIDIA, JWT."""


def redact_text(text: str) -> str:
    """Return a line of text, a script or a message with its secrets replaced by `MASK`."""
    lowered = f" {text.lower()}"  # the blank: a word may begin the text
    if "--" in lowered:
        text = _mask(text, _FLAG, _argument)
    if _holds(lowered, _NAME_HINTS) or _TOKEN_HINT.search(lowered) is not None:
        text = _mask(text, _ASSIGNED, _assigned)
    if "authorization" in lowered or "cookie" in lowered:
        text = _mask(text, _HEADER, _header)
    if "bearer" in lowered:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if "://" in lowered:
        text = _PASSWORD_IN_URL.sub(rf"\1{MASK}", text)
        text = _USER_IN_URL.sub(rf"\1{MASK}", text)
    if _holds(text, _VARIABLE_HINTS):
        text = _mask(text, _ASSIGNED_VARIABLE, _variable)
    if _holds(text, _WELL_KNOWN_HINTS):
        text = _WELL_KNOWN.sub(MASK, text)
    return text


def safe_text(text: str, limit: int) -> str:
    """Return a text from a host as one line that may be shown: clean, without secrets, capped.

    It is capped last: a secret that was cut would not be told by its shape.
    """
    return clean(redact_text(clean(text, 2 * limit + _MARGIN)), limit)


def _holds(text: str, hints: tuple[str, ...]) -> bool:
    # A plain loop: this runs for every line of a log, and a generator costs as much as the search.
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


def _mask(text: str, pattern: re.Pattern[str], find: _Find) -> str:
    """The text with the value behind every match masked. No part of it is read twice."""
    pieces: list[str] = []
    done = 0
    match = pattern.search(text)
    while match is not None:
        span = find(match)
        after = match.end()
        if span is not None:
            pieces += (text[done : span[0]], MASK)
            done = after = span[1]
        match = pattern.search(text, after)
    return "".join((*pieces, text[done:])) if pieces else text


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with the values of its secret flags replaced by `MASK`.

    A secret flag's value reaches to the next flag: systemd prints one with blanks as several words,
    and some engines take several keys.
    """
    result: list[str] = []
    hiding = 0
    for argument in argv:
        if hiding and not argument.startswith("--") and (hiding == 1 or not _is_short(argument)):
            result.append(MASK)
            hiding += 1
            continue
        is_flag = argument.startswith("--") and "=" not in argument
        hiding = 1 if is_flag and is_secret_name(argument) else 0
        result.append(_redact_word(argument))
    return tuple(result)


def _is_short(argument: str) -> bool:
    return len(argument) == 2 and argument[0] == "-" and argument[1].isalpha()


def _redact_word(word: str) -> str:
    """A word such as `--flag=value`, `NAME=value`, `--env=NAME=value`, `-eNAME=value`."""
    name, separator, value = word.partition("=")
    if separator and name.startswith("--"):
        if is_secret_name(name):
            return f"{name}={MASK}" if value else word
        inner = _redact_pair(value)
        return f"{name}={inner}" if inner != value else redact_text(word)
    return _redact_pair(word)


def _redact_pair(pair: str) -> str:
    name, separator, value = pair.partition("=")
    plain = name.removeprefix("-e")
    if separator and value and plain.isidentifier() and is_secret_name(plain):
        return f"{name}={MASK}"
    return redact_text(pair)


def redact_environment(assignments: Iterable[str]) -> tuple[str, ...]:
    """Return `NAME=value` pairs with the values of secret names replaced by `MASK`."""
    result = []
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if separator and value and is_secret_name(name):
            result.append(f"{name}={MASK}")
        else:
            result.append(redact_text(assignment))
    return tuple(result)


def redact_mapping(values: Mapping[str, object]) -> dict[str, object]:
    """Return a copy of decoded JSON with secrets replaced by `MASK`, at every depth.

    A secret that is not set (None, an empty string, a boolean) stays as it is.
    """
    return {name: _redact_value(name, value, _DEEPEST) for name, value in values.items()}


def _redact_value(name: str, value: object, depth: int) -> object:
    if value is None or value == "" or isinstance(value, bool):
        return value
    if is_secret_name(name) or depth == 0:
        return MASK
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {str(key): _redact_value(str(key), inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, str) for item in value):
            return list(redact_argv(value))
        return [_redact_value("", item, depth - 1) for item in value]
    return value
