"""What is typed right after a question has closed: meant for the question, not for what is below.

Whoever types the word that a question asks for, and has closed it by a key before, types it into
the screen below, where each of its letters is a key that does something.

Pure: it is told of keys with the time at which the terminal sent them.
"""

from __future__ import annotations

AFTER = 0.5
"""Seconds after the last key of a question in which no key is meant for what is below."""
AFTER_A_WORD = 0.9
"""The same after a question that asks for a word to be typed: its letters may be on their way."""
REST = 0.4
"""Seconds of silence that end such a burst."""

_HARMLESS = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})


class Aftermath:
    """Keeps the rest of what was typed into a question from acting below it."""

    def __init__(self) -> None:
        self._until = float("-inf")
        self._told = True

    def asked(self, at: float, *, word: bool) -> None:
        """A key went to a question, at a time of the clock that key events carry."""
        self._until = at + (AFTER_A_WORD if word else AFTER)
        self._told = False

    def swallows(self, key: str, at: float) -> bool:
        """Whether a key that would go to something else is a rest of what the question got.

        Keys that only move pass. `key` is Textual's name for it, empty for pasted text.
        """
        if at >= self._until or key in _HARMLESS:
            return False
        self._until = max(self._until, at + REST)
        return True

    def worth_telling(self) -> bool:
        """Whether it is to be told, which is so once a question."""
        told, self._told = self._told, True
        return not told
