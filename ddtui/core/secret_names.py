"""Which names stand for secrets: of flags, environment variables and fields.

Token *counts* and special tokens of a model (`max_total_tokens`, `mask_token`) are none.
"""

from __future__ import annotations

import re
from functools import lru_cache

_OWNERS = (
    "access|admin|api|app|auth|bearer|bot|client|csrf|deploy|gh|github|gitlab|hf|hub|"
    "hugging_?face|id|jwt|login|ngc|oauth|personal|refresh|registry|secret|security|"
    "service|session|slack|sso|user|vault|wandb"
)
"""What stands before `token` where that is a credential and not a piece of text."""
OWNED = re.compile(rf"(?<![a-z0-9])(?:{_OWNERS})[_ -]?$", re.IGNORECASE)
"""Matches what stands before `token` there."""


def _cases(first: str, rest: str = "") -> str:
    # Spelled out: a pattern that ignores case cannot skip ahead to where one of its words begins,
    # which makes it ten times slower.
    return "|".join(word + rest for word in (first, first.upper(), first.title()))


_KEY = rf"[_-]?(?:{_cases('key')})(?:[_-]?(?:{_cases('id')}))?s?(?:_b|_B)?"
NAME = "|".join(
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
"""Pattern of the ends of names in running text. One that ends in `token` needs a second look."""

_UNIQUE_FROM = {
    "api-key": "ap",
    "admin-api-key": "adm",
    "hf-token": "hf-t",
    "ssl-keyfile-password": "ssl-keyfile-",
    "watermark-config": "watermark-c",
    "watermark-key": "watermark-k",
}
"""Secret flags and the shortest beginning by which argparse takes them for no other flag."""
ABBREVIATIONS = frozenset(
    flag[:length]
    for flag, shortest in _UNIQUE_FROM.items()
    for length in range(len(shortest), len(flag))
)
"""Beginnings of secret flags' names, without dashes: argparse takes them for the whole names."""

_PIECES = "BOS|CLS|DRAFT|END|EOS|FIRST|IMAGE|LAST|MASK|MAX|MIN|NEXT|NUM|PAD|PER|SEP|STOP|UNK"
VARIABLE = (
    r"AWS_[A-Z0-9_]{1,60}"
    rf"|(?!(?:[A-Z0-9_]{{1,40}}_)?(?:{_PIECES})_TOKEN)(?:[A-Z][A-Z0-9_]{{0,60}}?)?"
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|(?:_|SSH|API|AUTH)KEY|_PASS|_PWD|_PAT|JWT|COOKIE)"
    r"(?:_?\d{1,4})?(?:_ID|_B)?"
)
"""Pattern of environment variables, told by their capitals: MY_TOKEN, AWS_ANYTHING, DB_PASS."""

_SECRET_VARIABLE = re.compile(VARIABLE)
_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|secret|credential|api_?key|authorization|watermark_(?:key|config)"
    r"|(?:private|access|encryption|signing)_?key(?:_id)?(?:_b)?$"
    rf"|(?:^|_)(?:{_OWNERS})_?tokens?$|^token$|^aws_|^(?:set_)?cookies?$|^jwt$"
)


def is_secret_name(name: str) -> bool:
    """Whether the value of a flag, variable or field of this name is a secret."""
    return _is_secret(name) if len(name) <= _USUAL_LENGTH else _judge(name)


def _judge(name: str) -> bool:
    bare = name.lstrip("-")
    plain = bare.replace("-", "_")
    if bare in ABBREVIATIONS or _SECRET_VARIABLE.fullmatch(plain) is not None:
        return True
    return _SECRET_NAME.search(plain.lower()) is not None


_is_secret = lru_cache(maxsize=4096)(_judge)
"""Engines repeat the same few hundred names at every answer."""
_USUAL_LENGTH = 100
"""Characters; longer names would only fill the cache."""
