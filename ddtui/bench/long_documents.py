"""The prompts of the set `long`: made-up documents of a few thousand words, always the same.

They are generated rather than shipped: reports of a made-up harbour, whose sentences are put
together from parts by a fixed pseudo-random choice, so that every document is unlike the others and
nothing in it can be known by heart. Each asks for something that stands in it.
"""

from __future__ import annotations

import random

from ddtui.core.generation import Prompt

WORDS = (1500, 3000, 6000, 12000)
"""Lengths; two documents of each."""
_SHIPS = ("Alder", "Brant", "Corvid", "Dunlin", "Egret", "Fulmar", "Grebe", "Heron", "Ibis", "Jay")
_CARGO = ("timber", "salt", "copper wire", "oranges", "machine parts", "paper", "grain", "glass")
_BERTHS = ("the north quay", "the old basin", "berth nine", "the coal pier", "the lock", "the slip")
_WEATHER = ("in thin fog", "under a low sun", "in steady rain", "with the wind from the west",
            "on a calm sea", "after a night of hail")  # fmt: skip
_DEEDS = (
    "was unloaded by two gangs",
    "waited for a pilot until noon",
    "took on water and coal",
    "had her papers corrected twice",
    "lost an anchor and found another",
    "was moved to make room for the ferry",
    "was inspected, and nothing was found",
)
_ASIDES = (
    "The clerk noted that the scales had been set anew that week.",
    "Nobody could say who had left the gate open.",
    "The bell of the harbour office struck one time too many.",
    "Three letters were returned, because the street had been renamed.",
    "The harbour master paid for the repair out of the small fund.",
    "A gull had nested in the signal lamp again.",
)


def long_prompts() -> tuple[Prompt, ...]:
    """Eight documents of 1,500 to 12,000 words, each with a question at its end."""
    return tuple(
        _document(number, words)
        for number, words in enumerate((words for words in WORDS for _ in range(2)), start=1)
    )


def _document(number: int, words: int) -> Prompt:
    # A fixed choice, not a secret.
    rng = random.Random(f"harbour {number}")  # noqa: S311
    parts = [f"Harbour report, volume {number} (a made-up document)."]
    count, day = 8, 0
    while count < words:
        day += 1
        sentence = (
            f"Day {day}: the {rng.choice(_SHIPS)} came in {rng.choice(_WEATHER)} with"
            f" {rng.randint(3, 900)} tons of {rng.choice(_CARGO)}, lay at {rng.choice(_BERTHS)} and"
            f" {rng.choice(_DEEDS)}. {rng.choice(_ASIDES)}"
        )
        count += len(sentence.split())
        parts.append(sentence)
    asked = sorted(rng.sample(range(1, day + 1), 3))
    parts.append(
        f"Read the report above. First say what happened on the days {asked[0]}, {asked[1]} and"
        f" {asked[2]}. Then describe in your own words how work in this harbour goes, and which"
        " kinds of trouble come again and again."
    )
    return Prompt.of("\n\n".join(parts), f"long-{number:02d}")
