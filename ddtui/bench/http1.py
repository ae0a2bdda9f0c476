"""Answers of HTTP/1.1 out of bytes as they come (RFC 9112): pure, and cheap for an event a read."""

from __future__ import annotations

import enum
import re

import msgspec

HEAD_LIMIT = 64 << 10
"""Most bytes of a status line with its headers, or of the trailers after a chunked body."""
_SIZE_LINE_LIMIT = 1 << 10
_BODY_LIMIT = 1 << 40
"""No answer announces more than this and means it."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: ([^\r\n]*))?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,10})[ \t]*(?:;[^\r\n]*)?")
_BODILESS = {204, 304}


class Malformed(ValueError):
    """The bytes are no answer of HTTP/1.1; the text says what is wrong with them."""


class Head(msgspec.Struct, frozen=True):
    """Status and headers."""

    status: int
    reason: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    minor_version: int = 1

    def values(self, name: bytes) -> list[bytes]:
        """The elements of a header that is a list, in lower case; `name` in lower case too."""
        found = [value for key, value in self.headers if key.lower() == name]
        return [item.strip().lower() for value in found for item in value.split(b",")]


class _State(enum.Enum):
    HEAD = enum.auto()
    SIZE = enum.auto()
    CHUNK = enum.auto()
    CHUNK_END = enum.auto()
    TRAILERS = enum.auto()
    LENGTH = enum.auto()
    UNTIL_CLOSE = enum.auto()
    COMPLETE = enum.auto()


class AnswerParser:
    """One answer. `feed` it what comes; it gives the pieces of the body."""

    def __init__(self, *, head_only: bool = False) -> None:
        """`head_only`: the answer to a HEAD request, which announces a body and brings none."""
        self.head: Head | None = None
        self._head_only = head_only
        self._state = _State.HEAD
        self._held = b""
        self._left = 0
        self._reusable = True

    @property
    def complete(self) -> bool:
        """Whether the answer has ended."""
        return self._state is _State.COMPLETE

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request after this answer."""
        return self.complete and self._reusable

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of the body that `data` brings. Raises Malformed."""
        if self._state is _State.SIZE and (whole := self._whole_chunk(data)):
            return [whole]
        pieces: list[bytes] = []
        if self._held:
            data, self._held = self._held + data, b""
        at, end = 0, len(data)
        while at < end and self._state is not _State.COMPLETE:
            before, state = at, self._state
            at = self._advance(data, at, pieces)
            if at == before and self._state is state:
                self._held = data[at:]
                return pieces
        if at < end:  # more than the answer: nobody asked for it
            self._reusable = False
        return pieces

    def end(self) -> None:
        """The connection has ended. Raises Malformed when the answer is not whole."""
        self._reusable = False
        if self._state is _State.UNTIL_CLOSE:
            self._state = _State.COMPLETE
        elif self._state is _State.HEAD:
            raise Malformed("the connection ended before an answer came")
        elif self._state is not _State.COMPLETE:
            raise Malformed("the connection ended in the middle of the answer")

    def _whole_chunk(self, data: bytes) -> bytes:
        """What a chunk brings that is all of `data`, as nearly always; else nothing."""
        if self._held or not data.endswith(b"\r\n"):
            return b""
        stop = data.find(b"\r\n", 0, _SIZE_LINE_LIMIT)
        match = _SIZE.fullmatch(data, 0, stop)
        if match is None or len(data) - stop - 4 != int(match[1], 16):
            return b""
        return data[stop + 2 : -2]

    def _advance(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """Take one element; returns where the next one begins, `at` itself when it is not whole."""
        state = self._state
        if state is _State.SIZE:
            return self._take_size(data, at)
        if state is _State.CHUNK or state is _State.LENGTH:
            return self._take_counted(data, at, pieces)
        if state is _State.CHUNK_END:
            return self._take_chunk_end(data, at)
        if state is _State.UNTIL_CLOSE:
            pieces.append(data[at:])
            return len(data)
        if state is _State.TRAILERS:
            return self._take_trailer(data, at)
        return self._take_head(data, at)

    def _take_size(self, data: bytes, at: int) -> int:
        stop = data.find(b"\r\n", at, at + _SIZE_LINE_LIMIT)
        if stop < 0:
            if len(data) - at >= _SIZE_LINE_LIMIT:
                raise Malformed("the size of a chunk does not end")
            return at
        match = _SIZE.fullmatch(data, at, stop)
        if match is None:
            raise Malformed(f"not the size of a chunk: {data[at : min(stop, at + 40)]!r}")
        self._left = int(match[1], 16)
        self._state = _State.CHUNK if self._left else _State.TRAILERS
        return stop + 2

    def _take_counted(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        piece = data[at : at + self._left]
        pieces.append(piece)
        self._left -= len(piece)
        if not self._left:
            chunked = self._state is _State.CHUNK
            self._state = _State.CHUNK_END if chunked else _State.COMPLETE
        return at + len(piece)

    def _take_chunk_end(self, data: bytes, at: int) -> int:
        if len(data) - at < 2:
            return at
        if data[at : at + 2] != b"\r\n":
            raise Malformed("a chunk is longer than its announced size")
        self._state = _State.SIZE
        return at + 2

    def _take_trailer(self, data: bytes, at: int) -> int:
        stop = data.find(b"\r\n", at)
        if stop < 0:
            if len(data) - at >= HEAD_LIMIT:
                raise Malformed("the trailers after the body do not end")
            return at
        if stop == at:
            self._state = _State.COMPLETE
        return stop + 2

    def _take_head(self, data: bytes, at: int) -> int:
        stop = data.find(b"\r\n\r\n", at)
        if (stop if stop >= 0 else len(data)) - at > HEAD_LIMIT:
            raise Malformed(f"the head of the answer is longer than {HEAD_LIMIT >> 10} KiB")
        if stop < 0:
            if not b"HTTP/1.".startswith(data[at : at + 7]):
                raise Malformed(f"not an answer of HTTP/1: {data[at : at + 40]!r}")
            return at
        head = parse_head(data[at:stop])
        if head.status >= 200:  # else an interim answer, which the real one follows
            self.head = head
            self._begin_body(head)
        return stop + 4

    def _begin_body(self, head: Head) -> None:
        options = head.values(b"connection")
        self._reusable = b"close" not in options if head.minor_version else b"keep-alive" in options
        coding, length = head.values(b"transfer-encoding"), head.values(b"content-length")
        if self._head_only or head.status in _BODILESS:
            self._state = _State.COMPLETE
        elif coding:
            if coding != [b"chunked"]:
                raise Malformed(f"transfer-encoding {b', '.join(coding)[:40]!r} is not understood")
            self._state = _State.SIZE
        elif length:
            self._left = _content_length(length)
            self._state = _State.LENGTH if self._left else _State.COMPLETE
        else:
            self._state = _State.UNTIL_CLOSE


def _content_length(values: list[bytes]) -> int:
    if len(set(values)) != 1 or not re.fullmatch(rb"[0-9]{1,13}", values[0]):
        raise Malformed(f"not a content-length: {b', '.join(values)[:40]!r}")
    length = int(values[0])
    if length > _BODY_LIMIT:
        raise Malformed(f"a content-length of {length} bytes")
    return length


def parse_head(data: bytes) -> Head:
    """Status line and headers, without the empty line that ends them. Raises Malformed."""
    first, *lines = data.split(b"\r\n")
    match = _STATUS_LINE.fullmatch(first)
    if match is None:
        raise Malformed(f"not a status line of HTTP/1: {first[:40]!r}")
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name) or b"\n" in value or b"\0" in value:
            raise Malformed(f"not a header: {line[:40]!r}")
        headers.append((name, value.strip(b" \t")))
    return Head(int(match[2]), match[3] or b"", tuple(headers), int(match[1]))
