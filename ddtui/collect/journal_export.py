"""Reads what `journalctl --output=export` prints, and gives each entry as a line of its JSON.

The format (systemd's "Journal Export Formats"): a field is `NAME=text` in a line, or, where its
value is no plain text of one line, its name in a line, eight bytes with the value's length (the
least significant first), the value and a newline. An empty line ends the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

FIRST = b"__CURSOR="
"""What an entry begins with."""
LONGEST_VALUE = 1 << 18
"""Bytes of a value that are kept: those of a core dump's fields are skipped."""
_LENGTH_BYTES = 8

_Value = str | list[int]


class _Source:
    """Bytes of a stream, in pieces of the size that is asked for."""

    def __init__(self, head: bytes, read: Callable[[], bytes]) -> None:
        self._held = bytearray(head)
        self._read = read

    def line(self) -> bytes | None:
        """The next line without its end, of one that is too long its beginning; None at the end."""
        kept: bytes | None = None
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            if len(self._held) > LONGEST_VALUE:
                kept = kept or bytes(self._held[:LONGEST_VALUE])
                self._held.clear()
            searched = len(self._held)
            if not self._more():
                rest, self._held = bytes(self._held), bytearray()
                return kept or rest or None
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return kept or line

    def value(self, length: int) -> bytes:
        """So many bytes, or the first of them where they are too many."""
        kept = bytearray()
        while length > 0 and (self._held or self._more()):
            taken = self._held[:length]
            del self._held[: len(taken)]
            length -= len(taken)
            kept += taken[: LONGEST_VALUE - len(kept)]
        return bytes(kept)

    def _more(self) -> bool:
        chunk = self._read()
        self._held += chunk
        return bool(chunk)


def entries(head: bytes, read: Callable[[], bytes]) -> Iterator[str]:
    """Each entry as JSON. `head` are the first bytes, `read` gives more, and none at the end."""
    source = _Source(head, read)
    fields: dict[str, _Value] = {}
    while (line := source.line()) is not None:
        if not line.strip():
            if fields:
                yield _as_json(fields)
            fields = {}
            continue
        name, equals, text = line.partition(b"=")
        if equals:
            value = text
        else:
            value = source.value(int.from_bytes(source.value(_LENGTH_BYTES), "little"))
            source.value(1)  # its newline
        fields.setdefault(name.decode("ascii", "replace"), _value(value))
    if fields:
        yield _as_json(fields)


def _value(raw: bytes) -> _Value:
    """Text, or the values of bytes that are no UTF-8, as journalctl's JSON has them."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return list(raw)


def _as_json(fields: dict[str, _Value]) -> str:
    return msgspec.json.encode(fields).decode()
