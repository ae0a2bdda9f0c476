"""Random bursts of input as a terminal delivers them, with the time of every key.

A burst is text in one or more chunks. It goes through Textual's own parser, so that an escape
sequence torn apart by a slow link becomes what it becomes for a user: keys that nobody pressed.
Every key of a burst has another one within half a second, as keys of a burst do.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import textual._parser
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

ESCAPE_DELAY = 0.1
"""Seconds that Textual waits for the rest of an escape sequence."""
LONGEST_TEAR = 0.39
"""Seconds between two chunks of one burst, at most."""

KEYS = (
    *("\r", "\t", " ", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[Z", "\x1b[5~", "\x1b[6~"),
    *("\x7f", "\x10", "\n", "\x1b", "\x14", "\x12", "\x07", "\x1b[H", "\x1b[F", "\x1bOP", "\x15"),
)
SEQUENCES = (
    "\x1b[<35;10;20M",
    "\x1b[<64;3;4M",
    "\x1b[<0;35;10m",
    "\x1b[?62;22;52c",
    "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
    "\x1bP>|tmux 3.4\x1b\\",
    "\x1b[200~apply\x1b[201~",
    "\x1b[?2026;2$y",
    "\x1b[24;80R",
    "\x1b[1;5C\r",
    "\x1b[C\r",
    "\t\x1b[I\r",
)
TEXTS = (
    "ddtui apply ct200 budget-16 --yes\n",
    "sglang-kimi\t\r",
    "sglang-kimi\x1b[C\r\r",
    "\tsglang-kimi\r\r",
    "apply\r",
    "end\t\t\r",
    "y\nyes\ny\n",
    "a\t\r\x1b[C\r",
    "4a\x1b[C\rapply\r",
    "BRDA\t\r",
    "R\t\r",
    "D\x1b[C\x1b[C\r",
    ":restart\r\t\r",
    "\x10roll back\r\x1b[C \r",
    "systemctl restart sglang-kimi.service\r",
    "for host in a b; do\n\tssh $host 'reboot'\ndone\n",
    "\r\r\r\r\r\r\r\r",
    "\t\r\t\r\t\r",
    "\x1b[200~sglang-kimi\r\x1b[201~\t\r",
)


SENT: Counter[str] = Counter()
"""Bursts and keys sent in this run."""


@dataclass
class Burst:
    """One burst: events with their times, from the first key on."""

    events: list[Message] = field(default_factory=list)
    seconds: float = 0.0


def burst(rng: random.Random) -> Burst:
    """One random burst of two keys or more."""
    chunks = list(_chunks(rng))
    result = parsed(chunks)
    if sum(isinstance(each, events.Key) for each in result.events) == 1:
        result = parsed([*chunks, (0.02, rng.choice("xq1"))])
    return result


def pause(rng: random.Random) -> float:
    """Seconds between two bursts: none, too few to be noticed, or plenty."""
    return rng.choice((0.0, 0.02, 0.1, 0.3, 0.6, 1.1, 3.0, 10.0))


def _chunks(rng: random.Random) -> Iterator[tuple[float, str]]:
    """Chunks of text, each with the seconds since the one before."""
    kind = rng.random()
    if kind < 0.35:  # keys hammered, or typed before a screen came up
        for _ in range(rng.randint(2, 12)):
            key = rng.choice(KEYS) if rng.random() < 0.6 else chr(rng.randint(33, 126))
            yield rng.uniform(0.0, 0.03), key
    elif kind < 0.5:  # a key held down, at a keyboard's slow or fast rate
        key, rate = rng.choice((*KEYS, "a", "R", "B", "D")), rng.choice((0.025, 0.04, 0.1))
        for _ in range(rng.randint(2, 15)):
            yield rate, key
    elif kind < 0.7:
        yield from torn("".join(rng.choices(SEQUENCES, k=rng.randint(1, 3))), rng)
    elif kind < 0.85:  # an unbracketed paste, in one piece or torn apart
        yield from torn(rng.choice(TEXTS), rng)
    else:  # an unbracketed paste that the terminal sends slowly
        text = rng.choice(TEXTS) + rng.choice(TEXTS)
        size = rng.choice((1, 4, 16))
        for at in range(0, len(text), size):
            yield 0.01 if size == 1 else 0.125, text[at : at + size]


def torn(text: str, rng: random.Random) -> Iterator[tuple[float, str]]:
    """A text in one to three chunks."""
    most = min(2, len(text) - 1)
    cuts = sorted(rng.sample(range(1, len(text)), rng.randint(0, most)))
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        yield rng.uniform(0.1, LONGEST_TEAR), text[begin:end]


def parsed(chunks: list[tuple[float, str]]) -> Burst:
    """What Textual makes of the chunks; `time` of each event counts from 0."""
    clock = [0.0]
    before = vars(textual._parser)["get_time"]
    vars(textual._parser)["get_time"] = lambda: clock[0]
    try:
        parser = XTermParser()
        found: list[Message] = []

        def take(messages: Any, at: float) -> None:
            for message in messages:
                message.time = at
                found.append(message)

        for gap, text in chunks:
            if gap > ESCAPE_DELAY:
                clock[0] += ESCAPE_DELAY
                take(parser.tick(), clock[0])
                clock[0] += gap - ESCAPE_DELAY
            else:
                clock[0] += gap
            take(parser.feed(text), clock[0])
        clock[0] += ESCAPE_DELAY
        take(parser.tick(), clock[0])
    finally:
        vars(textual._parser)["get_time"] = before
    wanted = (events.Key, events.Paste, events.MouseMove, events.MouseScrollUp)
    return Burst([each for each in found if isinstance(each, wanted)], clock[0])
