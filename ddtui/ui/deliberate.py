"""Tells what a person means from keys that merely arrive: the one way to a dangerous answer.

A terminal also delivers keys that nobody pressed for this question: what was typed before it came
up, text pasted without brackets, an escape sequence that a slow link has torn apart. They differ
from a person's in their rhythm and in what follows them. So an answer that does something needs

- a question that has been open for a moment, and silence since the keys that came before it;
- a step to its button and a press, each alone: keys that come in a burst undo everything, and make
  the question deaf until they have been quiet for a second;
- the press some time after the step, and nothing right after it;
- where a word is asked for, the word typed key by key.

Pure: it is told of keys with the time at which the terminal sent them, and asked for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

OPENING = 0.5
"""Seconds after opening in which keys are not meant for the question."""
QUIET = 0.25
"""Seconds of silence that the question waits for before it listens."""
GAP = 0.05
"""Seconds between two keys under which they are a burst."""
BURST_QUIET = 1.0
"""Seconds of silence after a burst: the rest of it may be on its way."""
REST = 0.5
"""Seconds without a key before a press counts."""
SETTLE = 0.5
"""Seconds without a key after a press before it counts."""
PASTED = 0.015
"""Seconds between two characters of text that no hand types."""

_FORTH, _BACK = ("right", "tab"), ("left", "shift+tab")
_AWAY = ("escape", "ctrl+c")
_PRESS = ("enter", "space")
_LONGEST_WORD = 80


class Deliberation:
    """One question. Times are seconds of the clock that key events carry."""

    def __init__(
        self,
        now: float,
        answers: Sequence[str] = ("cancel", "do"),
        *,
        word: str = "",
        opening: float = OPENING,
        quiet: float = QUIET,
    ) -> None:
        """Open the question.

        Args:
            now: When it came up.
            answers: What can be answered; the first one changes nothing, and is chosen at first.
            word: Must be typed before any other answer counts; empty for none.
            opening: Seconds in which it does not listen.
            quiet: Seconds of silence that it waits for.
        """
        self.answers = tuple(answers)
        self.word = word
        self.chosen = 0
        self.typed = ""
        self.note = ""
        """What to tell the person; empty for nothing."""
        self.answer: str | None = None
        """The answer, once there is one."""
        self._quiet = quiet
        self._deaf_until = now + opening
        self._last: float | None = None
        self._pressed: float | None = None
        self._gaps: list[float] = []

    def listening(self, now: float) -> bool:
        """Whether keys are taken for an answer."""
        return now >= self._deaf_until

    @property
    def word_given(self) -> bool:
        """Whether the word was typed, or none is asked for."""
        return self.typed == self.word

    def due(self, now: float) -> float | None:
        """Seconds until something changes by itself, if it does."""
        if self._pressed is not None:
            return max(0.0, self._pressed + SETTLE - now)
        return self._deaf_until - now if now < self._deaf_until else None

    def key(self, key: str, character: str | None, at: float) -> None:
        """A key came. `key` is Textual's name for it."""
        if self.answer is not None:
            return
        gap = float("inf") if self._last is None else at - self._last
        self._last = at
        if self._pressed is not None:
            self._disturb(at)
        elif not self.listening(at):
            if gap < GAP:
                self._quiet = max(self._quiet, BURST_QUIET)
            self._deaf_until = max(self._deaf_until, at + self._quiet)
        elif self.word and character is not None and character.isprintable() and key != "space":
            self._type(character, gap, at)
        elif gap < GAP:
            self._disturb(at)
        else:
            self._alone(key, gap, at)

    def moved(self, at: float) -> None:
        """A key came that only scrolls: harmless, even held down; it is a key all the same."""
        if self._pressed is not None:
            self._disturb(at)
        elif not self.listening(at):
            self._deaf_until = max(self._deaf_until, at + self._quiet)
        self._last = at

    def paste(self, at: float) -> None:
        """Text was pasted, and the terminal said so: it is no answer, and no word."""
        self._last = at
        if self.answer is None:
            self._disturb(at, "Pasted text does not count: type it")

    def click(self, answer: str, at: float) -> None:
        """A button was clicked."""
        alone = self._last is None or at - self._last >= GAP
        if self.answer is not None or not self.listening(at) or not alone:
            return
        if answer == self.answers[0] or self.word_given:
            self.answer = answer

    def settle(self, now: float) -> str | None:
        """The answer, if it stands by now."""
        if self.answer is None and self._pressed is not None and now - self._pressed >= SETTLE:
            self.answer = self.answers[self.chosen]
        return self.answer

    # ---- within -----------------------------------------------------------------------------

    def _alone(self, key: str, gap: float, at: float) -> None:
        self.note = ""
        if key in _AWAY:
            self.answer = self.answers[0]
        elif key in _FORTH or key in _BACK:
            step = 1 if key in _FORTH else -1
            reach = len(self.answers) if self.word_given else 1
            self.chosen = (self.chosen + step) % reach
            if reach == 1 and len(self.answers) > 1:
                self.note = f"Type {self.word} first"
        elif key in _PRESS:
            self._press(gap, at)
        elif key == "backspace":
            self.typed, self._gaps = self.typed[:-1], self._gaps[:-1]
            self.chosen = 0
        elif key == "ctrl+u":
            self.typed, self._gaps, self.chosen = "", [], 0

    def _press(self, gap: float, at: float) -> None:
        if self.chosen == 0:
            self.answer = self.answers[0]
        elif gap < REST:
            self.note = "That was quick: wait a moment, then press it again"
        elif self.word_given:
            self._pressed = at

    def _type(self, character: str, gap: float, at: float) -> None:
        self.note = ""
        self.chosen = 0
        if self.typed:
            self._gaps.append(gap)
        self.typed = (self.typed + character)[:_LONGEST_WORD]
        pasted = sum(each < PASTED for each in self._gaps)
        if self.word_given and pasted * 2 > len(self._gaps):
            self._disturb(at, "Pasted text does not count: type it")

    def _disturb(self, at: float, note: str = "") -> None:
        """Keys that no hand presses so: begin again once they have ended."""
        self._pressed = None
        self.chosen = 0
        self.typed, self._gaps = "", []
        self._quiet = max(self._quiet, BURST_QUIET)
        self._deaf_until = at + self._quiet
        self.note = note or "Keys came in a burst: nothing was done"
