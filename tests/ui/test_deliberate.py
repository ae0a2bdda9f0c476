"""What judges the keys of a question: no burst passes it, whatever the timing; a person does."""

from __future__ import annotations

import random

import pytest
from textual import events

from ddtui.ui.deliberate import BURST_QUIET, OPENING, REST, SETTLE, Deliberation
from tests.ui.bursts import KEYS, LONGEST_TEAR, burst, parsed, pause

SCROLLS = {"up", "down", "pageup", "pagedown", "home", "end"}
QUESTIONS = {
    "two answers": ((), {}),
    "three answers": ((("cancel", "refuse", "do"),), {}),
    "a word": ((), {"word": "sglang-kimi"}),
    "a short word": ((("cancel", "refuse", "do"),), {"word": "end"}),
    "unasked": ((), {"opening": 1.5, "quiet": 1.0}),
}


def take(asked: Deliberation, event: object, at: float) -> None:
    """Give an event to a question, as its screen does."""
    asked.settle(at)
    if isinstance(event, events.Paste):
        asked.paste(at)
    elif isinstance(event, events.Key):
        if event.key in SCROLLS:
            asked.moved(at)
        else:
            asked.key(event.key, event.character, at)


@pytest.mark.parametrize("name", QUESTIONS)
def test_ten_thousand_bursts_never_pass(name: str) -> None:
    arguments, options = QUESTIONS[name]
    rng = random.Random(name)
    now, cancelled = 100.0, 0
    asked = Deliberation(now, *arguments, **options)  # type: ignore[arg-type]
    for number in range(10_000):
        some = burst(rng)
        for event in some.events:
            take(asked, event, now + event.time)
        now += some.seconds + pause(rng)
        answer = asked.settle(now)
        assert answer in {None, "cancel"}, f"burst {number}"
        if answer is not None:
            cancelled += 1
            asked = Deliberation(now, *arguments, **options)  # type: ignore[arg-type]
    assert cancelled > 100  # it did listen


def test_no_tear_is_as_long_as_what_a_press_needs() -> None:
    assert min(REST, SETTLE) > LONGEST_TEAR + 0.1


@pytest.mark.parametrize("key", [*KEYS, "y", "d", "a"])
def test_no_single_key_passes(key: str) -> None:
    asked = Deliberation(0.0, ("cancel", "refuse", "do"))
    for event in parsed([(0.0, key)]).events:
        take(asked, event, 10.0 + event.time)
    assert asked.settle(20.0) in {None, "cancel"}


def test_the_word_pasted_over_and_over_never_counts() -> None:
    asked = Deliberation(0.0, word="sglang-kimi")
    now = 10.0
    for tear in (1, 3, 6, 9):
        for event in parsed([(0.0, "sglang-kimi"[:tear]), (0.3, "sglang-kimi"[tear:])]).events:
            take(asked, event, now + event.time)
        now += 5.0
        assert not asked.word_given


def type_word(asked: Deliberation, word: str, now: float, rng: random.Random) -> float:
    """Type as a fast typist: 40 to 220 ms a key, now and then two keys at once."""
    for character in word:
        now += rng.choice((0.02, *[rng.uniform(0.04, 0.22)] * 9))
        asked.key(character, character, now)
    return now


@pytest.mark.parametrize("seed", range(200))
def test_a_person_always_passes(seed: int) -> None:
    rng = random.Random(seed)
    word = rng.choice(("", "sglang-kimi", "apply", "end"))
    answers = rng.choice((("cancel", "do"), ("cancel", "refuse", "do")))
    asked = Deliberation(0.0, answers, word=word)
    now = type_word(asked, word, OPENING + rng.uniform(0.01, 3.0), rng)
    assert asked.word_given
    for _ in range(len(answers) - 1):
        now += rng.uniform(0.08, 1.0)
        asked.key(rng.choice(("right", "tab")), None, now)
    now += rng.uniform(REST, 3.0)
    asked.key("enter", "\r", now)
    assert asked.settle(now + SETTLE - 0.01) is None
    assert asked.settle(now + SETTLE + 0.001) == "do"


def test_after_a_burst_it_listens_again() -> None:
    asked = Deliberation(0.0)
    for at in (5.0, 5.01, 5.02):
        asked.key("x", "x", at)
    assert not asked.listening(5.02 + BURST_QUIET - 0.01)
    asked.key("right", None, 5.02 + BURST_QUIET + 0.1)
    asked.key("enter", None, 8.0)
    assert asked.settle(9.0) == "do"
