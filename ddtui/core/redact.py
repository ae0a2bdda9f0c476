"""Removes secrets from everything that is shown, recorded or logged.

What counts as a secret: values of names such as `api_key`, `password`, `HF_TOKEN`, `AWS_...`,
whatever their spelling (flag, environment, JSON, Python); authorization headers; passwords in URLs;
and words that look like the keys of well-known services. Token *counts* and special tokens of a
model (`max_total_tokens`, `mask_token`) are none. Redacting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

MASK = "<redacted>"

_OWNERS = (
    "access|admin|api|app|auth|bearer|bot|client|csrf|deploy|gh|github|gitlab|hf|hub|"
    "hugging_?face|id|jwt|login|ngc|oauth|personal|refresh|registry|secret|security|"
    "service|session|slack|sso|user|vault|wandb"
)
"""What stands before `token` where that is a credential and not a piece of text."""
_OWNED = re.compile(rf"(?<![a-z0-9])(?:{_OWNERS})[_-]?$", re.IGNORECASE)


def _cases(first: str, rest: str = "") -> str:
    # Spelled out: a pattern that ignores case cannot skip ahead to where one of its words begins,
    # which makes it ten times slower.
    return "|".join(word + rest for word in (first, first.upper(), first.title()))


_KEY = rf"[_-]?(?:{_cases('key')})(?:[_-]?(?:{_cases('id')}))?s?(?:_b|_B)?"
_NAME = "|".join(
    (
        _cases("api", _KEY),
        _cases("secret", rf"s?(?:[_-]?(?:{_cases('access')}))?(?:{_KEY})?"),
        *(_cases(word) for word in ("password", "passwd", "passphrase")),
        *(_cases(word, _KEY) for word in ("private", "access", "encryption", "signing")),
        r"watermark_(?:key(?:_b)?|config)",
        _cases("credential", "s?"),
        _cases("token", "s?"),
    )
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_UNFINISHED = r"""'[^']*$|"[^"]*$"""
"""A quoted value whose line was cut."""
_BARE = r"[^\s'\",;&()\[\]{}]+"
_NOTHING = r"(?!(?:None|null|True|False|true|false)(?![\w.-]))"
"""Says that no secret is set, which is worth knowing."""
_VALUE = rf"(?:{_QUOTED}|{_UNFINISHED}|{_NOTHING}{_BARE})"

_NAME_HINTS = (
    *("api_key", "api-key", "apikey", "secret", "passw", "passphrase", "credential"),
    *("private_key", "private-key", "privatekey", "access_key", "access-key", "accesskey"),
    *("encryption", "signing", "watermark_", "token=", "token'", 'token"', "tokens=", "token ="),
    *("_token:", "auth-token:", "access-token:", "api-token:", "session-token:", "hub-token:"),
)
_PATTERNS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    # --api-key X   --api-key=X   ['--api-key', 'X']
    (
        ("--",),
        re.compile(rf"(--(?:[a-z0-9]+[-_]){{0,6}}?(?:{_NAME}))((?:=|['\"]?,?\s+))({_VALUE})"),
    ),
    # api_key=X   'api_key': 'X'   "api_key":"X"
    (
        _NAME_HINTS,
        re.compile(rf"({_NAME})(['\"]?\s{{0,4}}[:=]\s{{0,4}})({_VALUE})"),
    ),
    # Authorization: Bearer X
    (
        ("authorization",),
        re.compile(
            r"(authorization)(['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?:(?:bearer|basic|token)\s+)?)"
            r"([^\s'\",;]+)",
            re.IGNORECASE,
        ),
    ),
    (
        ("bearer",),
        re.compile(r"(bearer)(\s+)((?=[^\s'\"]{0,512}\d)[\w.~+/=-]{8,})", re.IGNORECASE),
    ),
    # scheme://user:X@host
    (("://",), re.compile(r"(://[^\s/:@'\"]{0,64}:)()([^\s/@'\"]{1,256})(?=@)")),
)
"""Each with what a text must hold, in lower case, for the pattern to match: the cheap check for the
many lines without secrets. Groups: the name, what stands between, the secret."""

_VARIABLE_HINTS = ("TOKEN", "SECRET", "PASSW", "_KEY", "AWS_")
_VARIABLE = re.compile(
    r"((?<![A-Za-z0-9_])(?:AWS_[A-Z0-9_]{1,60}|[A-Z][A-Z0-9_]{0,60}?(?:TOKEN|SECRET|PASSWORD"
    rf"|PASSWD|_KEY)(?:_ID|_B)?))(=)({_VALUE})"
)
"""MY_TOKEN=X, AWS_ANYTHING=X: environment variables, told by their capitals."""

_WELL_KNOWN_HINTS = (
    *("hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    *("xox", "AKIA", "nvapi-", "eyJ"),
)
_WELL_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|nvapi-[\w-]{16,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)"
)
"""Shapes of keys: Hugging Face, OpenAI style, GitHub, GitLab, Slack, AWS, NVIDIA, JWT."""

_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|secret|credential|api_?key|authorization|watermark_(?:key|config)"
    r"|(?:private|access|encryption|signing)_?key(?:_id)?(?:_b)?$"
    rf"|(?:^|_)(?:{_OWNERS})_?tokens?$|^token$|^aws_"
)
_SECRET_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*(?:TOKEN|_KEY)(?:_ID)?")


def is_secret_name(name: str) -> bool:
    """Whether the value of a flag, variable or field of this name is a secret."""
    plain = name.lstrip("-").replace("-", "_")
    if _SECRET_VARIABLE.fullmatch(plain) is not None:
        return True
    return _SECRET_NAME.search(plain.lower()) is not None


def redact_text(text: str) -> str:
    """Return a line of text, a script or a message with its secrets replaced by `MASK`."""
    lowered = text.lower()
    for hints, pattern in _PATTERNS:
        if _holds(lowered, hints):
            text = pattern.sub(_mask, text)
    if _holds(text, _VARIABLE_HINTS):
        text = _VARIABLE.sub(_mask, text)
    if _holds(text, _WELL_KNOWN_HINTS):
        text = _WELL_KNOWN.sub(MASK, text)
    return text


def _holds(text: str, hints: tuple[str, ...]) -> bool:
    # A plain loop: this runs for every line of a log, and a generator costs as much as the search.
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


def _mask(match: re.Match[str]) -> str:
    name, between, value = match.group(1, 2, 3)
    if name[-5:].lower() in ("token", "okens") and not _is_credential(match):
        return match.group(0)
    quote = value[0] if value[0] in "'\"" else ""
    if quote:
        if len(value) == 2 and value[1] == quote:
            return match.group(0)  # empty: no secret is set
        closing = quote if value[-1] == quote and len(value) > 1 else ""
        return f"{name}{between}{quote}{MASK}{closing}"
    return f"{name}{between}{MASK}"


def _is_credential(match: re.Match[str]) -> bool:
    """Whether a name that ends in `token` names a credential: `hf_token`, a bare `"token":`."""
    name = match.group(1)
    if name.startswith("--"):
        return is_secret_name(name)
    before = match.string[max(0, match.start() - 20) : match.start()]
    if match.start() == match.start(1) and _OWNED.search(before) is not None:
        return True
    # A field that is named just "token"; "tokens" is a count or a list of words.
    return name[-1] in "nN" and before[-1:] in ("'", '"') and match.group(2)[0] in ("'", '"')


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with the values of its secret flags replaced by `MASK`."""
    result: list[str] = []
    hide_next = False
    for argument in argv:
        if hide_next and not argument.startswith("--"):
            result.append(MASK)
            hide_next = False
            continue
        name, separator, value = argument.partition("=")
        is_name = name.startswith("--") or (separator and name.isidentifier())
        hide_next = False
        if is_name and is_secret_name(name):
            if separator:
                result.append(f"{name}={MASK}" if value else argument)
                continue
            hide_next = True
        result.append(redact_text(argument))
    return tuple(result)


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
    return {name: _redact_value(name, value) for name, value in values.items()}


def _redact_value(name: str, value: object) -> object:
    if value is None or value == "" or isinstance(value, bool):
        return value
    if is_secret_name(name):
        return MASK
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {str(key): _redact_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, str) for item in value):
            return list(redact_argv(value))
        return [_redact_value("", item) for item in value]
    return value
