"""Splits the message of one journal entry into the lines that the program wrote.

A progress bar of tqdm ends each of its states in a carriage return, and journald ends an entry at
a newline: a whole bar arrives as one entry when it closes, or glued in front of the next line that
any process of the unit writes meanwhile.
"""

from __future__ import annotations

import re

BAR = re.compile(
    r"(?P<label>(?:[A-Za-z][^\r\n|\[\]]{0,160}?:)?) *"
    r"(?:(?P<percent>\d{1,3})%(?: Completed \| *|\|[^|\r\n]{0,400}\| *)"
    r"(?P<done>[\d.]+[kMGTP]?)/(?P<total>[\d.]+[kMGTP]?)|(?P<count>[\d.]+[kMGTP]?)(?:it|B)) "
    r"\[(?P<elapsed>[\d:]+)(?:<(?P<remaining>[\d:?]+))?, [^\]\r\n]{0,200}\]"
)
"""One state of a tqdm bar, at the start of a line: its own layout and the engines' variant
`{desc}: {percentage}% Completed | {n}/{total} [{elapsed}<{remaining}, {rate}]`."""

_ENDS = re.compile(r"[\r\n]+")
_TERMINAL = re.compile(r"(?:\x1b\[[0-9;?]{0,16}[A-Za-z]|[ \t])*")
"""What a bar may write around itself: cursor movement and blanks that clear the rest of the row."""


def split_message(message: str) -> list[tuple[str, bool]]:
    """Return `(text, is_bar)` for each line of a journal message, oldest first.

    Whatever directly follows a bar is a line of its own. A line is never cut elsewhere: a stamp in
    the middle of one may be text that a user sent. Empty lines are dropped; white space and cursor
    movement around a bar belong to the bar.
    """
    result: list[tuple[str, bool]] = []
    parts = _ENDS.split(message) if "\r" in message or "\n" in message else (message,)
    for part in parts:
        _split_part(part, result)
    return result


def _split_part(part: str, result: list[tuple[str, bool]]) -> None:
    rest = part
    while True:
        start = _after_terminal(rest)
        bar = BAR.match(rest, start)
        if bar is None:
            break
        result.append((bar.group().strip(), True))
        rest = rest[bar.end() :]
        if not rest[_after_terminal(rest) :]:
            return
    if rest.strip():
        result.append((rest, False))


def _after_terminal(text: str) -> int:
    match = _TERMINAL.match(text)
    return match.end() if match is not None else 0
