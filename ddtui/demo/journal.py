"""The simulated journal: entries with cursors, printed as `journalctl -o json --all` prints them.

Formats: systemd.journal-fields(7) and systemd-journald(8), with the traps that were measured on
real ones: progress bars wait for their newline, a message with control characters becomes an array
of bytes, long lines are cut.
"""

from __future__ import annotations

import asyncio
import random
import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import msgspec

LINE_MAX = 48 * 1024
"""Bytes after which journald cuts a line."""
_KEEP = 20_000
_CURSOR = re.compile(
    r"s=(?P<seqnum_id>[0-9a-f]+);i=(?P<number>[0-9a-f]+);.*;t=(?P<time>[0-9a-f]+);"
)
_NOT_TEXT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True)
class Entry:
    """One journal entry."""

    number: int
    """Position in the journal, from 1."""
    realtime: int
    """Microseconds since the epoch."""
    fields: Mapping[str, str]

    def message(self) -> str:
        """Its text."""
        return self.fields["MESSAGE"]


class CursorRefused(ValueError):
    """This is no cursor of a journal."""


class Journal:
    """Entries in the order of writing."""

    def __init__(self, rng: random.Random, booted_at: float) -> None:
        self._entries: list[Entry] = []
        self._dropped = 0
        self._seqnum_id = f"{rng.getrandbits(128):032x}"
        self.boot_id = f"{rng.getrandbits(128):032x}"
        self.machine_id = f"{rng.getrandbits(128):032x}"
        self._booted_at = booted_at
        self._grown = asyncio.Event()

    def append(self, at: float, fields: Mapping[str, str]) -> None:
        """Add an entry with the stamp `at` (Unix seconds)."""
        number = self._dropped + len(self._entries) + 1
        self._entries.append(Entry(number, int(at * 1e6), fields))
        if len(self._entries) > 2 * _KEEP:
            del self._entries[:_KEEP]
            self._dropped += _KEEP
        self._grown.set()
        self._grown = asyncio.Event()

    def cursor(self, entry: Entry) -> str:
        """The entry's own place, for `--after-cursor`."""
        monotonic = entry.realtime - int(self._booted_at * 1e6)
        return (
            f"s={self._seqnum_id};i={entry.number:x};b={self.boot_id};m={monotonic:x};"
            f"t={entry.realtime:x};x={entry.number * 0x9E3779B97F4A7C15 % (1 << 64):x}"
        )

    def after(self, cursor: str) -> int:
        """The position after a cursor, for `entries`. Raises CursorRefused."""
        match = _CURSOR.match(cursor)
        if match is None:
            raise CursorRefused(cursor)
        if match["seqnum_id"] == self._seqnum_id:
            return int(match["number"], 16)
        stamps = [entry.realtime for entry in self._entries]
        return self._dropped + bisect_right(stamps, int(match["time"], 16))

    def last(self, count: int) -> int:
        """The position before the last `count` entries."""
        return max(self._dropped, self._dropped + len(self._entries) - count)

    def entries(self, position: int = 0) -> list[Entry]:
        """Entries after a position, those that are still kept."""
        return self._entries[max(0, position - self._dropped) :]

    async def follow(self, position: int) -> AsyncIterator[list[Entry]]:
        """Entries after a position as they come, for ever."""
        while True:
            grown = self._grown
            fresh = self.entries(position)
            if fresh:
                position = fresh[-1].number
                yield fresh
            else:
                await grown.wait()

    def to_json(self, entry: Entry) -> bytes:
        """One entry as a line of JSON, without newline."""
        fields: dict[str, str | list[int]] = {
            "__CURSOR": self.cursor(entry),
            "__REALTIME_TIMESTAMP": str(entry.realtime),
            "__MONOTONIC_TIMESTAMP": str(entry.realtime - int(self._booted_at * 1e6)),
            "_BOOT_ID": self.boot_id,
            "_MACHINE_ID": self.machine_id,
            **entry.fields,
        }
        message = entry.message()
        if _NOT_TEXT.search(message):
            fields["MESSAGE"] = list(message.encode("utf-8"))
        return msgspec.json.encode(fields)


class OutputStream:
    """A service's standard error on its way into the journal."""

    def __init__(self, journal: Journal, fields: Mapping[str, str]) -> None:
        self._journal = journal
        self._fields = dict(fields)
        self._pending = ""

    def write(self, at: float, pid: int, command: str, text: str) -> None:
        """Bytes that a process wrote; entries are made of whole lines only."""
        *lines, self._pending = (self._pending + text).split("\n")
        for line in lines:
            self._line(at, pid, command, line)

    def close(self, at: float, pid: int) -> None:
        """What was left without a newline."""
        if self._pending:
            self._line(at, pid, "python", self._pending, "eof")
            self._pending = ""

    def _line(self, at: float, pid: int, command: str, line: str, broken: str = "") -> None:
        line = line.rstrip(" \t")
        while line:
            piece, line = line[:LINE_MAX], line[LINE_MAX:]
            fields = self._fields | {"_PID": str(pid), "_COMM": command, "MESSAGE": piece}
            if line or broken:
                fields["_LINE_BREAK"] = "line-max" if line else broken
            self._journal.append(at, fields)
