"""JSON as ddtui writes it: what cannot be written in it is replaced, and never a fault."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def json_text(value: object, *, indent: int = 2) -> str:
    """A JSON document: keys in the order of the types, null for NaN and what is infinite.

    Bytes that are no UTF-8 (of a file's name, say) are question marks. An `indent` below 0 makes it
    one line.
    """
    try:
        plain: Any = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        plain = msgspec.json.encode(_encodable(msgspec.to_builtins(value, enc_hook=str)))
    text: str = (plain if indent < 0 else msgspec.json.format(plain, indent=indent)).decode()
    return text


def in_ascii(text: str) -> str:
    """The same JSON in ASCII alone, for where something else than UTF-8 is written."""
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value
