"""Server-sent events out of pieces of a body, each with the time stamp of its last byte."""

from __future__ import annotations

EVENT_LIMIT = 16 << 20
"""Most bytes of one event."""
END = b"[DONE]"
"""The data of the event that ends a stream of an OpenAI-like endpoint."""


class EventTooLong(ValueError):
    """An event does not end."""

    def __init__(self) -> None:
        super().__init__(f"an event of the stream is longer than {EVENT_LIMIT >> 20} MiB")


class EventSplitter:
    """Takes pieces cut at any byte; gives the data of whole events.

    Format: https://html.spec.whatwg.org/multipage/server-sent-events.html. Only `data` matters
    here; other fields and comments are passed over, and what has no empty line after it is cut off
    and dropped.
    """

    def __init__(self) -> None:
        self._held = b""
        self._after_return = False
        """Whether the last piece ended with a return, of whose end this may be the other half."""

    def feed(self, stamp: float, piece: bytes) -> list[tuple[float, bytes]]:
        """(Stamp, data) of each event that `piece` completes. Raises EventTooLong."""
        if b"\r" in piece or self._after_return:
            piece = self._with_plain_ends(piece)
        data = self._held + piece if self._held else piece
        *blocks, self._held = data.split(b"\n\n")
        if len(self._held) > EVENT_LIMIT:
            raise EventTooLong
        events = []
        for block in blocks:
            # Nearly all events are one line of data.
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append((stamp, block[6:]))
            elif (fields := _data_of(block)) is not None:
                events.append((stamp, fields))
        return events

    def _with_plain_ends(self, piece: bytes) -> bytes:
        r"""Lines may end with `\r\n`, `\r` or `\n`."""
        if not piece:
            return piece
        if self._after_return:
            piece = piece.removeprefix(b"\n")
        self._after_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _data_of(block: bytes) -> bytes | None:
    lines = []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            lines.append(value.removeprefix(b" "))
    return b"\n".join(lines) if lines else None
