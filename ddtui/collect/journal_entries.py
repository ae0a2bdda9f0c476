"""Reads what `journalctl --output=json --all` prints: one JSON object an entry.

Fields: systemd.journal-fields(7). A value is a string; an array of byte values where it is not
plain UTF-8 text (a carriage return or ESC is enough); null where it was too long for journalctl;
and an array of values where the field occurs more than once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

import msgspec

from ddtui.core.bounded import bounded_int
from ddtui.core.journal_text import split_message
from ddtui.core.redact import redact_text
from ddtui.core.samples import JournalLine
from ddtui.core.text import clean

TEXT_LIMIT = 8_000
"""Characters kept of a line. The whole line is still in the host's journal."""
LONG_TEXT_LIMIT = 48 * 1024
LONG_LINES = 20
"""So many lines of an invocation are kept up to LONG_TEXT_LIMIT: an engine tells its configuration
in one line of 15 kB and more, early."""
REMEMBERED = 4096
"""Cursors kept to recognize entries that come twice."""

_SUPPRESSED = re.compile(r"Suppressed (\d+) messages from ")
_Value = str | list[int] | None


class Entry(msgspec.Struct, gc=False):
    """The fields of an entry that are read."""

    cursor: str = msgspec.field(name="__CURSOR", default="")
    realtime: str = msgspec.field(name="__REALTIME_TIMESTAMP", default="")
    message: _Value = msgspec.field(name="MESSAGE", default=None)
    invocation: str = msgspec.field(name="_SYSTEMD_INVOCATION_ID", default="")
    job_invocation: str = msgspec.field(name="INVOCATION_ID", default="")
    user_invocation: str = msgspec.field(name="USER_INVOCATION_ID", default="")
    pid: str = msgspec.field(name="_PID", default="")
    priority: str = msgspec.field(name="PRIORITY", default="")
    line_break: str = msgspec.field(name="_LINE_BREAK", default="")
    stream: str = msgspec.field(name="_STREAM_ID", default="")
    unit: str = msgspec.field(name="UNIT", default="")
    user_unit: str = msgspec.field(name="USER_UNIT", default="")
    object_unit: str = msgspec.field(name="OBJECT_SYSTEMD_UNIT", default="")
    dropped: str = msgspec.field(name="N_DROPPED", default="")


_decoder = msgspec.json.Decoder(Entry)
_any_decoder = msgspec.json.Decoder()
_names = {field.encode_name: field for field in msgspec.structs.fields(Entry)}


def parse_entry(line: bytes) -> Entry | None:
    """One entry; None when the line is none (`-- No entries --`, or cut in the middle)."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        return _parse_odd(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if line.startswith(b"{"):
            try:  # bytes that are no UTF-8
                return _parse_odd(line.decode("utf-8", "replace").encode())
            except (msgspec.DecodeError, UnicodeError):
                return None
        return None


def _parse_odd(line: bytes) -> Entry | None:
    """An entry with values of unusual types: repeated fields, byte arrays instead of text."""
    try:
        values = _any_decoder.decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(values, dict):
        return None
    plain = {field.name: _text(values[name]) for name, field in _names.items() if name in values}
    return Entry(**plain)


def _text(value: object) -> str:
    """Any value of journalctl's JSON as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if all(isinstance(item, int) and 0 <= item < 256 for item in value):
            return bytes(value).decode("utf-8", "replace")
        return "\n".join(_text(item) for item in value)
    return "" if value is None else str(value)


class Batch(msgspec.Struct):
    """What some entries gave."""

    lines: list[JournalLine]
    cursor: str = ""
    suppressed: int = 0
    entries: int = 0


class JournalReader:
    """Turns entries into lines. Holds what must be remembered between two of them."""

    def __init__(self) -> None:
        self.cursor = ""
        """Resumes after the last entry read."""
        self.stamp = 0.0
        self._seen: set[str] = set()
        self._order: deque[str] = deque()
        self._unfinished: set[str] = set()
        self._long_left: dict[str, int] = {}

    def read(self, raw: Sequence[bytes], *, newer_than: float = 0.0) -> Batch:
        """Lines of entries that have not been read yet and are not older than `newer_than`."""
        batch = Batch([])
        for line in raw:
            entry = parse_entry(line)
            if entry is None or entry.cursor in self._seen:
                continue
            time = bounded_int(entry.realtime)
            stamp = self.stamp if time is None else time / 1e6
            if stamp < newer_than:
                continue
            self._remember(entry.cursor, stamp)
            batch.entries += 1
            batch.suppressed += self._add(entry, stamp, batch.lines)
        batch.cursor = self.cursor
        return batch

    def _remember(self, cursor: str, stamp: float) -> None:
        if cursor:
            self.cursor = cursor
            self._seen.add(cursor)
            self._order.append(cursor)
            if len(self._order) > REMEMBERED:
                self._seen.discard(self._order.popleft())
        self.stamp = stamp

    def _add(self, entry: Entry, stamp: float, lines: list[JournalLine]) -> int:
        """Append the entry's lines; returns the number of messages that it says were dropped."""
        message = entry.message
        text = message if isinstance(message, str) else _text(message)
        manager = bool(entry.unit or entry.user_unit or entry.object_unit)
        told = entry.job_invocation or entry.user_invocation
        invocation = told if manager else entry.invocation
        continued = self._continues(entry)
        pid = bounded_int(entry.pid)
        priority = bounded_int(entry.priority)
        for part, bar in split_message(text):
            shown, truncated = self._shown(part, invocation)
            lines.append(
                JournalLine(
                    stamp,
                    shown,
                    invocation,
                    pid,
                    priority,
                    manager,
                    truncated,
                    continued,
                    bar,
                )
            )
            continued = False
        if manager and "Suppressed " in text:
            return _suppressed(entry, text)
        return 0

    def _continues(self, entry: Entry) -> bool:
        """Whether the entry is the rest of a line that journald cut."""
        stream = entry.stream or entry.pid
        continued = stream in self._unfinished
        if entry.line_break == "line-max":
            self._unfinished.add(stream)
        elif continued:
            self._unfinished.discard(stream)
        return continued

    def _shown(self, text: str, invocation: str) -> tuple[str, bool]:
        """The text as it may be shown, and whether it was cut."""
        if len(text) <= TEXT_LIMIT:
            return redact_text(clean(text, TEXT_LIMIT)), False
        left = self._long_left.get(invocation, LONG_LINES)
        if left:
            if invocation not in self._long_left:
                self._long_left.clear()  # a new invocation
            self._long_left[invocation] = left - 1
        limit = LONG_TEXT_LIMIT if left else TEXT_LIMIT
        return redact_text(clean(text[: 2 * limit], limit)), len(text) > limit


def _suppressed(entry: Entry, text: str) -> int:
    match = _SUPPRESSED.search(text)
    return bounded_int(entry.dropped) or (bounded_int(match[1]) or 0 if match is not None else 0)
