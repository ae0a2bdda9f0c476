"""What a terminal sends, as messages: Textual's parser, mended where it fails or goes deaf.

Textual 8.2.8 fails at impossible key codes, and a paste whose end is torn apart by a slow link
never ends for it: every later key is taken for pasted text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.constants import ESCAPE_DELAY
from textual.keys import Keys
from textual.message import Message

MOST_CELLS = 10_000
"""Width and height of a terminal, and place of the mouse, beyond which nobody is believed."""
PASTE_QUIET = 1.0
"""Seconds of silence that end a paste whose end does not come."""
LONGEST_PASTE = 100_000
"""Characters of a paste that are kept."""
_MOST_BUTTONS = 0xFF


class TolerantParser(XTermParser):
    """Skips what cannot be: key codes beyond Unicode, coordinates beyond any screen.

    Pastes are taken out before Textual sees them, so that they end.
    """

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: str | None = None
        """What was pasted so far; None when nothing is being pasted."""
        self._held = ""
        """What may be the beginning of a paste's first sequence."""
        self._heard = 0.0

    def feed(self, data: str) -> Iterable[Message]:
        """Messages of what was typed.

        Raises:
            textual._parser.ParseError: after the end was fed.
        """
        self._heard = time.monotonic()
        return (each for each in self._all(self._held + data) if _possible(each))

    def _all(self, data: str) -> Iterator[Message]:
        self._held = ""
        while data:
            if self._pasted is not None:
                looked = max(0, len(self._pasted) - len(BRACKETED_PASTE_END))
                self._pasted += data
                end = self._pasted.find(BRACKETED_PASTE_END, looked)
                if end < 0:
                    self._pasted = self._pasted[:LONGEST_PASTE] + self._pasted[LONGEST_PASTE:][-8:]
                    return
                data = self._pasted[end + len(BRACKETED_PASTE_END) :]
                yield self._paste(self._pasted[:end])
                continue
            typed, start, data = data.partition(BRACKETED_PASTE_START)
            if start:
                self._pasted = ""
            else:
                kept = len(typed) - _begun(typed)
                typed, self._held = typed[:kept], typed[kept:]
            if typed:
                yield from super().feed(typed)

    def tick(self) -> Iterable[Message]:
        """Messages of what was waiting for more, and waits no longer."""
        silent = time.monotonic() - self._heard
        if self._pasted is not None and silent > PASTE_QUIET:
            yield self._paste(self._pasted)
        if self._held and silent > ESCAPE_DELAY:
            held, self._held = self._held, ""
            if held == "\x1b" and self._awaiting.timeout is None:
                yield events.Key("escape", held)
            else:
                yield from super().feed(held)
                if self._timeout_time is not None:
                    self._timeout_time = 0.0  # it has waited here already
        yield from super().tick()

    def _paste(self, text: str) -> events.Paste:
        self._pasted = None
        return events.Paste(text[:LONGEST_PASTE].replace("\x00", ""))

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        try:
            return list(super()._sequence_to_key_events(sequence, alt))
        except (ValueError, OverflowError):
            return [events.Key(Keys.Ignore, sequence)]

    def parse_mouse_code(self, code: str) -> Message | None:
        try:
            buttons = int(code[3:].partition(";")[0])
            return super().parse_mouse_code(code) if 0 <= buttons <= _MOST_BUTTONS else None
        except (ValueError, OverflowError):
            return None


def _possible(message: Message) -> bool:
    """Whether a terminal can mean it."""
    if isinstance(message, events.Resize):
        width, height = message.size
        return 0 < width <= MOST_CELLS and 0 < height <= MOST_CELLS
    if isinstance(message, events.MouseEvent):
        return max(abs(message.screen_x), abs(message.screen_y)) <= MOST_CELLS
    if isinstance(message, events.Key):  # a lone surrogate can neither be shown nor saved
        return not any("\ud800" <= each <= "\udfff" for each in message.character or "")
    return True


def _begun(text: str) -> int:
    """How many of the last characters may begin a paste."""
    for count in range(len(BRACKETED_PASTE_START) - 1, 0, -1):
        if text.endswith(BRACKETED_PASTE_START[:count]):
            return count
    return 0
